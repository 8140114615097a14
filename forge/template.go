package forge

import (
	"path"
	"regexp"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"docent/api"
	"docent/forge/failure"
	"docent/forge/git"
	"docent/internal/brief"
)

// Where the report stands in a pull request's body, so that a later one replaces it and nothing that people wrote
// around it.
const (
	reportBegins = "<!-- docent: report -->"
	reportEnds   = "<!-- docent: end of report -->"
)

// Hosts refuse bodies beyond some size; GitHub's is the smallest, 65,536 characters.
const maxBody = 48 << 10

func marked(report string) string {
	report = strings.TrimSpace(report)
	for _, mark := range []string{reportBegins, reportEnds} {
		report = strings.ReplaceAll(report, mark, "")
	}
	if len(report) > maxBody {
		report = brief.Bytes(report, maxBody, "…") +
			"\n\n(The report is longer than a pull request's text may be; the job has the rest.)"
	}
	return reportBegins + "\n" + report + "\n" + reportEnds
}

// replaceReport puts a new report in the old one's place. If somebody took the old one out, the body stays theirs.
func replaceReport(body, report string) (string, bool) {
	body = strings.ReplaceAll(body, "\r\n", "\n")
	begin := strings.Index(body, reportBegins)
	if begin < 0 {
		return body, false
	}
	end := strings.Index(body[begin:], reportEnds)
	if end < 0 {
		return body, false
	}
	return body[:begin] + report + body[begin+end+len(reportEnds):], true
}

var (
	comments  = regexp.MustCompile(`(?s)<!--.*?-->`)
	gaps      = regexp.MustCompile(`\n{3,}`)
	asksWhat  = regexp.MustCompile(`(?i)\b(description|summary|what|changes?|overview|proposed|about|purpose)\b`)
	heading   = regexp.MustCompile(`^ {0,3}#{1,6}\s+\S`)
	underline = regexp.MustCompile(`^ {0,3}(=+|-+)\s*$`)
)

// fill puts a report into the repository's template: under the first heading that asks what was done, else above the
// rest, or where an operator's template says. Comments in a template speak to its author and go; boxes stay unticked, since ticking them is for people.
func fill(template, report string) string {
	if before, after, ok := strings.Cut(template, "{report}"); ok {
		return strings.TrimSpace(strings.TrimSpace(before) + "\n\n" + report + "\n\n" + strings.TrimSpace(after))
	}
	template = strings.ReplaceAll(template, "\r\n", "\n")
	if strings.HasPrefix(template, "---\n") { // front matter of hosts that have it
		if _, rest, ok := strings.Cut(template[4:], "\n---\n"); ok {
			template = rest
		}
	}
	template = strings.TrimSpace(gaps.ReplaceAllString(comments.ReplaceAllString(template, ""), "\n\n"))
	if template == "" {
		return report
	}
	template = brief.Bytes(template, 12<<10, "…")
	lines := strings.Split(template, "\n")
	for i, line := range lines {
		at := i + 1
		switch {
		case !asksWhat.MatchString(line):
			continue
		case heading.MatchString(line):
		case at < len(lines) && underline.MatchString(lines[at]) && strings.TrimSpace(line) != "":
			at++
		default:
			continue
		}
		before, after := strings.Join(lines[:at], "\n"), strings.TrimSpace(strings.Join(lines[at:], "\n"))
		if after != "" {
			after = "\n\n" + after
		}
		return before + "\n\n" + report + after
	}
	return report + "\n\n" + template
}

// pullTemplate is the template that the host would offer to a person, from the branch that the pull request is meant
// for. Empty if there is none.
func pullTemplate(s *git.Store, base string, kind api.HostKind) (string, error) {
	const usual = "pull_request_template"
	places := []string{".github/" + usual, usual, "docs/" + usual}
	switch kind {
	case api.HostGitLab:
		places = []string{".gitlab/merge_request_templates/default"}
	case api.HostGitea:
		places = append([]string{".forgejo/" + usual, ".gitea/" + usual}, places...)
	}
	return firstText(s, base, places, 64<<10)
}

// firstText is the first of a branch's files that is there, whatever the case of its name, and whether or not it ends in
// .md or .txt. Empty if there is none, or only larger ones.
func firstText(s *git.Store, base string, places []string, most int64) (string, error) {
	head, err := s.Head(base)
	if err != nil || head.IsZero() {
		return "", err
	}
	c, err := s.Commit(head)
	if err != nil {
		return "", err
	}
	for _, place := range places {
		dir, want := path.Split(place)
		tree, err := folderAt(s, c.Tree, strings.TrimSuffix(dir, "/"))
		if err != nil {
			return "", err
		}
		if tree.IsZero() {
			continue
		}
		entries, err := s.Tree(tree)
		if err != nil {
			return "", err
		}
		for _, e := range entries {
			name := strings.ToLower(e.Name)
			if ext := path.Ext(name); ext == ".md" || ext == ".txt" {
				name = strings.TrimSuffix(name, ext)
			}
			if name != want || !e.IsFile() {
				continue
			}
			size, err := s.Size(e.Hash)
			if err != nil {
				return "", err
			}
			if size > most {
				continue
			}
			data, err := s.Blob(e.Hash)
			return failure.Text(string(data)), err
		}
	}
	return "", nil
}

// folderAt finds a folder below a tree, whatever the case of its name; zero if there is none.
func folderAt(s *git.Store, root plumbing.Hash, dir string) (plumbing.Hash, error) {
	if dir == "" {
		return root, nil
	}
	first, rest, _ := strings.Cut(dir, "/")
	entries, err := s.Tree(root)
	if err != nil {
		return plumbing.ZeroHash, err
	}
	for _, e := range entries {
		if e.IsDir() && strings.EqualFold(e.Name, first) {
			return folderAt(s, e.Hash, rest)
		}
	}
	return plumbing.ZeroHash, nil
}
