package web

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"net/mail"
	"regexp"
	"strings"
	"time"

	"docent/api"
	"docent/forge"
)

const (
	// shownAtOnce are the lines of changes on the page of a pull request. The other files' are fetched as they are opened.
	shownAtOnce = 1_000
	// maxShownLines are the lines of one file's changes. More are left to the text form.
	maxShownLines = 20_000
)

type pullView struct {
	Pull     api.PullRequest
	Name     string // of the project
	Diff     forge.Diff
	Body     template.HTML
	Files    []fileView
	One      bool // of the files is shown, which was asked for
	MayMerge bool
}

type fileView struct {
	forge.FileDiff
	Anchor   string
	Hunks    []hunk
	Later    bool // its changes are fetched when it is opened
	TooLarge bool
}

// pull finds the pull request that the path names. Its id cannot be guessed: whoever has the link may read it.
func (s *Server) pull(v *visit) (p api.PullRequest, form string, err error) {
	id := v.param("id")
	for _, suffix := range []string{".diff", ".patch"} {
		if before, ok := strings.CutSuffix(id, suffix); ok {
			id, form = before, suffix
		}
	}
	if !api.ValidID(api.PullPrefix, id) {
		return p, form, missing("pull request")
	}
	if p, err = s.Pulls.Pull(v.Context(), id); err != nil {
		return p, form, named(err, "pull request")
	}
	project, err := s.Catalog.Project(v.Context(), p.Project)
	if err != nil && !errors.Is(err, api.ErrNotFound) { // a removed project's requests can still be read
		return p, form, err
	}
	v.project, v.org = project, project.Org
	if project.ID == "" {
		v.project = api.Project{ID: p.Project, Name: string(p.Project)}
	}
	v.about(p.Job, "")
	return p, form, nil
}

func (s *Server) showPull(v *visit) error {
	p, form, err := s.pull(v)
	if err != nil {
		return err
	}
	diff, err := s.Pulls.Diff(v.Context(), p.ID)
	var gone *api.StateError // its commits are not there: the page shows the rest and says so
	if err != nil && (form != "" || !errors.As(err, &gone)) {
		return named(err, "pull request")
	}
	switch form {
	case ".diff":
		send(v, http.StatusOK, "text/plain; charset=utf-8", []byte(diff.String()))
		return nil
	case ".patch":
		send(v, http.StatusOK, "text/plain; charset=utf-8", patch(p, diff))
		return nil
	}
	view := pullView{Pull: p, Diff: diff, Name: cmp.Or(v.project.Name, string(p.Project))}
	if view.Body, err = markdown(p.Body); err != nil {
		return err
	}
	if gone != nil {
		view.Body = template.HTML("<p role=\"status\"><strong>"+template.HTMLEscapeString(gone.Reason)+
			".</strong></p>\n") + view.Body
	}
	one := v.query("file")
	view.One = one != ""
	view.Files = filesShown(diff, one)
	if view.One && len(view.Files) == 0 {
		return missing("file " + one + " among the changes of this pull request")
	}
	view.MayMerge = p.State == api.PullOpen && v.org != "" && v.may(editor)
	if !v.who.role(v.org).Valid() {
		v.project, v.org = api.Project{}, "" // a reader who has the link: none of the console's
	}
	return s.render(v, "pull", cmp.Or(p.Title, p.Head), view)
}

// filesShown are the files of a diff as a page shows them: all, the larger ones to be fetched later, or the one that is
// asked for.
func filesShown(diff forge.Diff, one string) []fileView {
	left := shownAtOnce
	if one != "" {
		left = maxShownLines
	}
	var files []fileView
	for i, f := range diff.Files {
		if one != "" && f.Path != one {
			continue
		}
		fv := fileView{FileDiff: f, Anchor: fmt.Sprintf("file-%d", i+1)}
		switch n := strings.Count(f.Unified, "\n"); {
		case n > maxShownLines:
			fv.TooLarge = true
		case n > left:
			fv.Later = true
		default:
			left -= n
			fv.Hunks = hunks(f.Unified)
		}
		files = append(files, fv)
	}
	return files
}

func (s *Server) mergePull(v *visit) error {
	return s.changePull(v, func(id string) (api.PullRequest, error) { return s.Pulls.Merge(v.Context(), id) })
}

func (s *Server) closePull(v *visit) error {
	return s.changePull(v, func(id string) (api.PullRequest, error) { return s.Pulls.Close(v.Context(), id) })
}

func (s *Server) changePull(v *visit, change func(id string) (api.PullRequest, error)) error {
	p, _, err := s.pull(v)
	if err != nil {
		return err
	}
	switch role := v.who.role(v.org); {
	case v.org == "" || !role.Valid():
		return missing("pull request")
	case !role.AtLeast(api.RoleEditor):
		return &api.StateError{Kind: api.ErrForbidden, Reason: "merging and closing need the role editor"}
	case p.State != api.PullOpen:
		return &api.StateError{Kind: api.ErrConflict, Reason: "this pull request is " + string(p.State) + " already"}
	}
	if _, err := change(p.ID); err != nil {
		if errors.Is(err, forge.ErrMergeConflict) {
			reason := forge.ErrMergeConflict.Error()
			var files *forge.ConflictError
			if errors.As(err, &files) {
				reason = files.Error()
			}
			return &api.StateError{Kind: api.ErrConflict,
				Reason: reason + "; ask the job for a follow-up, or merge the branch by hand"}
		}
		return named(err, "pull request")
	}
	return v.seeOther("/pulls/" + p.ID)
}

// A hunk is a run of lines of a diff, with where it stands in both versions.
type hunk struct {
	Header string
	Lines  []line
}

// A line of a diff: its kind is "add", "del", "same" or "note". A number is zero where that version has no such line.
type line struct {
	Kind     string
	Old, New int
	Text     string
}

// hunks reads a unified diff of one file.
func hunks(text string) []hunk {
	var list []hunk
	var before, after int
	for l := range strings.Lines(text) {
		l = strings.TrimSuffix(l, "\n")
		if strings.HasPrefix(l, "@@") {
			before, after = 0, 0
			fmt.Sscanf(l, "@@ -%d", &before)
			if _, plus, ok := strings.Cut(l, " +"); ok {
				fmt.Sscanf(plus, "%d", &after)
			}
			list = append(list, hunk{Header: l})
			continue
		}
		if len(list) == 0 || l == "" {
			continue
		}
		h := &list[len(list)-1]
		entry := line{Text: strings.TrimSuffix(l[1:], "\r")}
		switch l[0] {
		case '+':
			entry.Kind, entry.New = "add", after
			after++
		case '-':
			entry.Kind, entry.Old = "del", before
			before++
		case ' ':
			entry.Kind, entry.Old, entry.New = "same", before, after
			before++
			after++
		default:
			entry.Kind = "note"
		}
		h.Lines = append(h.Lines, entry)
	}
	return list
}

// patch is the diff as a mail that `git am` takes.
func patch(p api.PullRequest, d forge.Diff) []byte {
	var b bytes.Buffer
	from := mail.Address{Name: "Docent", Address: "docent@localhost"}
	fmt.Fprintf(&b, "From %040d Mon Sep 17 00:00:00 2001\n", 0)
	fmt.Fprintf(&b, "From: %s\nDate: %s\nSubject: [PATCH] %s\n", from.String(), p.UpdatedAt.UTC().Format(time.RFC1123Z),
		oneLine(p.Title))
	b.WriteString("MIME-Version: 1.0\nContent-Type: text/plain; charset=UTF-8\nContent-Transfer-Encoding: 8bit\n\n")
	first := true
	for l := range strings.Lines(p.Body) {
		l = strings.TrimRight(l, "\r\n")
		if endsMessage(l) || first && inBodyHeader.MatchString(l) {
			l = " " + l
		}
		first = first && strings.TrimSpace(l) == ""
		b.WriteString(l + "\n")
	}
	b.WriteString("---\n")
	for _, f := range d.Files {
		fmt.Fprintf(&b, " %s | %d\n", forge.QuotePath(f.Path), f.Added+f.Deleted)
	}
	fmt.Fprintf(&b, " %d files changed, %d insertions(+), %d deletions(-)\n\n", len(d.Files), d.Added, d.Deleted)
	b.WriteString(d.String())
	return b.Bytes()
}

// endsMessage tells the lines at which `git am` takes a mail's text to be over, or another mail to begin.
func endsMessage(line string) bool {
	for _, sign := range []string{"diff ", "--- ", "Index: ", "From ", ">From "} {
		if strings.HasPrefix(line, sign) {
			return true
		}
	}
	return strings.TrimRight(line, " \t") == "---"
}

// inBodyHeader are the lines that `git am` takes for the author or the subject where a text begins with them.
var inBodyHeader = regexp.MustCompile(`^([A-Za-z-]+:|\[PATCH)`)

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
