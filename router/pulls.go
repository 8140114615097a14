package router

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"net/mail"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/uptrace/bunrouter"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"

	"docent/api"
	"docent/forge"
)

const (
	// shownAtOnce are the lines of changes on the page of a pull request. The other files' are fetched as they are opened.
	shownAtOnce = 1_000
	// maxShownLines are the lines of one file's changes. More are left to the text form.
	maxShownLines = 20_000
)

// markdown renders what people and models write. Raw HTML and links that run programs are left out: that is goldmark's
// default, which nothing here may change. Table cells are aligned by attribute, since the page takes no inline styles.
var markdown = goldmark.New(goldmark.WithExtensions(extension.Linkify, extension.Strikethrough, extension.TaskList,
	extension.NewTable(extension.WithTableCellAlignMethod(extension.TableCellAlignAttribute))))

// pull finds the pull request that the path names. Its id cannot be guessed: whoever has the link may read it.
func (s *Server) pull(req bunrouter.Request, id string) (api.PullRequest, error) {
	if !api.ValidID(api.PullPrefix, id) {
		return api.PullRequest{}, missing("pull request")
	}
	p, err := s.Pulls.Pull(req.Context(), id)
	return p, named(err, "pull request")
}

func (s *Server) showPull(x *exchange, req bunrouter.Request) error {
	id, form := param(req, "id"), ""
	for _, suffix := range []string{".diff", ".patch"} {
		if before, ok := strings.CutSuffix(id, suffix); ok {
			id, form = before, suffix
		}
	}
	p, err := s.pull(req, id)
	if err != nil {
		return err
	}
	x.project.ID, x.job = p.Project, p.Job
	diff, err := s.Pulls.Diff(req.Context(), id)
	var gone *api.StateError // its commits are not there: the page shows the rest and says so
	if err != nil && (form != "" || !errors.As(err, &gone)) {
		return named(err, "pull request")
	}
	switch form {
	case ".diff":
		write(x, http.StatusOK, "text/plain; charset=utf-8", []byte(diff.String()))
		return nil
	case ".patch":
		write(x, http.StatusOK, "text/plain; charset=utf-8", patch(p, diff))
		return nil
	}
	v := pullView{Pull: p, Diff: diff, Title: cmp.Or(p.Title, p.Head)}
	var body bytes.Buffer
	if err := markdown.Convert([]byte(p.Body), &body); err != nil {
		return fmt.Errorf("render the pull request's text: %w", err)
	}
	v.Body = template.HTML(body.String()) // goldmark's own, without raw HTML
	if gone != nil {
		v.Body = template.HTML("<p role=\"status\"><strong>"+template.HTMLEscapeString(gone.Reason)+".</strong></p>\n") +
			v.Body
	}
	one := req.URL.Query().Get("file")
	v.One = one != ""
	left := shownAtOnce
	if v.One {
		left = maxShownLines
	}
	for i, f := range diff.Files {
		if v.One && f.Path != one {
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
		v.Files = append(v.Files, fv)
	}
	if v.One && len(v.Files) == 0 {
		return missing("file " + one + " among the changes of this pull request")
	}
	project, err := s.Catalog.Project(req.Context(), p.Project)
	if err != nil && !errors.Is(err, api.ErrNotFound) { // a removed project's requests can still be read
		return err
	}
	v.Project = cmp.Or(project.Name, string(p.Project))
	who, ok, err := s.session(x, req)
	if err != nil {
		return err
	}
	if ok {
		v.SignedIn = true
		v.Token = s.token(who.value)
		v.MayMerge = p.State == api.PullOpen && s.mayChange(req, who, p) == nil
	}
	return s.render(x, http.StatusOK, "pull", v.Title, v)
}

// mayChange refuses a session whose key is of another organization, or may not write.
func (s *Server) mayChange(req bunrouter.Request, who session, p api.PullRequest) error {
	project, err := s.Catalog.Project(req.Context(), p.Project)
	if err != nil {
		return named(err, "pull request")
	}
	if project.Org != who.key.Org {
		return missing("pull request")
	}
	return scope(who.key, http.MethodPost)
}

func (s *Server) mergePull(x *exchange, req bunrouter.Request) error {
	return s.changePull(x, req, func(id string) (api.PullRequest, error) { return s.Pulls.Merge(req.Context(), id) })
}

func (s *Server) closePull(x *exchange, req bunrouter.Request) error {
	return s.changePull(x, req, func(id string) (api.PullRequest, error) { return s.Pulls.Close(req.Context(), id) })
}

func (s *Server) changePull(x *exchange, req bunrouter.Request, change func(id string) (api.PullRequest, error)) error {
	values, err := s.form(x, req)
	if err != nil {
		return err
	}
	id := param(req, "id")
	p, err := s.pull(req, id)
	if err != nil {
		return err
	}
	x.project.ID, x.job = p.Project, p.Job
	who, ok, err := s.session(x, req)
	if err != nil {
		return err
	}
	if !ok {
		return seeOther(x, "/login?next="+url.QueryEscape("/pulls/"+id))
	}
	if !same([]byte(values.Get("token")), []byte(s.token(who.value))) {
		return errForm
	}
	if err := s.mayChange(req, who, p); err != nil {
		return err
	}
	if p.State != api.PullOpen {
		return &api.StateError{Kind: api.ErrConflict, Reason: "this pull request is " + string(p.State) + " already"}
	}
	if _, err := change(id); err != nil {
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
	return seeOther(x, "/pulls/"+id)
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
