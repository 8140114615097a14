package work

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"strconv"
	"strings"

	"docent/actors/job"
	"docent/actors/job/startjob"
	"docent/api"
	"docent/forge"
	"docent/model"
	"docent/persistence/catalog"
	"docent/web/console"
	"docent/web/diff"
)

const (
	// shownAtOnce are the lines of changes on the page of a pull request. The other files' are fetched as they are
	// opened.
	shownAtOnce = 500
	// maxShownLines are the lines of one file's changes. More are left to the text form.
	maxShownLines = 20_000
	// maxShownBytes are the bytes of one file's changes.
	maxShownBytes = 2 << 20
	atOnceBytes   = 50_000 // of all changes that are shown at once
	pullsShown    = 50
)

type pullView struct {
	Pull  api.PullRequest
	Name  string // of the project
	Diff  forge.Diff
	Body  template.HTML
	Files []fileView
	Tree  []*diff.Node
	One   bool // of the files is shown, which was asked for
	Split bool // both versions are shown side by side

	Member     bool // of the project's organization
	MayMerge   bool
	MayComment bool
	MayRevert  bool
	Key        string   // of the form that reverts it: sent twice, it starts one job
	Gap        *gapLink // that its job closes; nil if it was begun for none
	JobPath    string   // address of the job in the console; empty if there is none, or the visitor may not see it
	Comments   []commentView
	Drafts     []commentView // the visitor's own
	Message    string        // what the job gets when the drafts are sent
	Stuck      bool          // drafts are on their way, and nobody knows whether they came there
	Builtin    bool          // the job's agent knows instructions of fixed forms
	Problems   map[string]string

	Conflict  string   // why a merge was refused; empty if none was
	Conflicts []string // its files
}

type fileView struct {
	forge.FileDiff
	Number   int // within the diff, from 1; 0 for one that is of no pull request
	Anchor   string
	Hunks    []hunkView
	Later    bool // its changes are fetched when it is opened
	TooLarge bool
	Readable bool          // it is a page, which can be shown as its readers see it
	Preview  *preview      // of both versions, if it was asked for
	Ask      *askView      // the form for a comment, if it was asked for
	Remarks  []commentView // comments on lines that are not shown
}

// A hunkView is a run of lines of a diff with the comments on them.
type hunkView struct {
	Header string
	Lines  []lineView
	Rows   []rowView // side by side; nil if the lines are shown one below the other
}

type lineView struct {
	diff.Line
	Old, New string // how an address names the line; empty if that version has none
	Comments []commentView
	Ask      *askView
}

type rowView struct{ Old, New *lineView }

// lineOf names a line of one of the versions in an address.
func lineOf(old bool, n int) string {
	if n == 0 {
		return ""
	}
	if old {
		return "o" + strconv.Itoa(n)
	}
	return "n" + strconv.Itoa(n)
}

// readLine is the inverse of lineOf.
func readLine(at string) (old bool, n int, ok bool) {
	if at == "" || at[0] != 'o' && at[0] != 'n' {
		return false, 0, false
	}
	n, err := strconv.Atoi(at[1:])
	return at[0] == 'o', n, err == nil && n > 0
}

// hunkViews reads the changes of a file. Remarks, which may be nil, gives the comments on a line.
func hunkViews(unified string, split bool, remarks func(at string) ([]commentView, *askView)) []hunkView {
	hunks := diff.Read(unified)
	out := make([]hunkView, len(hunks))
	for i := range hunks {
		h := &hunks[i]
		v := hunkView{Header: h.Header, Lines: make([]lineView, len(h.Lines))}
		at := make(map[*diff.Line]*lineView, len(h.Lines))
		for k := range h.Lines {
			l := &v.Lines[k]
			*l = lineView{Line: h.Lines[k], Old: lineOf(true, h.Lines[k].Old), New: lineOf(false, h.Lines[k].New)}
			if remarks != nil {
				for _, ref := range []string{l.Old, l.New} {
					if ref == "" {
						continue
					}
					comments, ask := remarks(ref)
					l.Comments = append(l.Comments, comments...)
					l.Ask = cmp.Or(ask, l.Ask)
				}
			}
			at[&h.Lines[k]] = l
		}
		if split {
			for _, r := range h.Rows() {
				v.Rows = append(v.Rows, rowView{at[r.Old], at[r.New]})
			}
		}
		out[i] = v
	}
	return out
}

// pull finds the pull request that the path names. Its id cannot be guessed: anyone with the link may read it.
func (s *handler) pull(v *console.Visit) (p api.PullRequest, form string, err error) {
	id := v.Param("id")
	for _, suffix := range []string{".diff", ".patch"} {
		if before, ok := strings.CutSuffix(id, suffix); ok {
			id, form = before, suffix
		}
	}
	if !api.ValidID(api.PullPrefix, id) {
		return p, form, api.Missing("pull request")
	}
	if p, err = s.Pulls.Pull(v.Context(), id); err != nil {
		return p, form, api.Named(err, "pull request")
	}
	project, err := s.Catalog.Project(v.Context(), p.Project)
	if err != nil && !errors.Is(err, api.ErrNotFound) { // a removed project's requests can still be read
		return p, form, err
	}
	v.Project, v.Org = project, project.Org
	if project.ID == "" {
		v.Project = api.Project{ID: p.Project, Name: string(p.Project)}
	}
	v.About(p.Job, "")
	return p, form, nil
}

func (s *handler) showPull(v *console.Visit) error {
	p, form, err := s.pull(v)
	if err != nil {
		return err
	}
	switch form {
	case ".diff", ".patch":
		diff, err := s.textDiff(v, p, form)
		if err != nil {
			return api.Named(err, "pull request")
		}
		text := []byte(diff.String())
		if form == ".patch" {
			text = patch(p, diff)
		}
		console.Send(v, http.StatusOK, "text/plain; charset=utf-8", text)
		return nil
	}
	view, err := s.pullPage(v, p)
	if err != nil {
		return err
	}
	if v.Partial() && view.One {
		return s.Part(v, "pull.file", view)
	}
	return s.renderPull(v, http.StatusOK, view)
}

// textDiff is what a pull request changes, or one of its commits if the address of the diff names it.
func (s *handler) textDiff(v *console.Visit, p api.PullRequest, form string) (forge.Diff, error) {
	if commit := v.Query("commit"); commit != "" && form == ".diff" {
		return s.Pulls.CommitDiff(v.Context(), p.ID, commit)
	}
	return s.Pulls.Diff(v.Context(), p.ID)
}

// renderPull writes the page of a pull request: in the console's shell for who belongs to its project's organization,
// on its own for a reader who has the link.
func (s *handler) renderPull(v *console.Visit, status int, view pullView) error {
	if !view.Member {
		v.Project, v.Org = api.Project{}, ""
	}
	return s.RenderStatus(v, status, "pull", cmp.Or(view.Pull.Title, view.Pull.Head), view)
}

// pullPage is what the page of a pull request shows, as its address asks for it.
func (s *handler) pullPage(v *console.Visit, p api.PullRequest) (pullView, error) {
	view := pullView{Pull: p, Name: cmp.Or(v.Project.Name, string(p.Project)), Split: v.Query("view") == "split"}
	d, err := s.Pulls.Diff(v.Context(), p.ID)
	var gone *api.StateError // its commits are not there: the page shows the rest and says so
	if err != nil && !errors.As(err, &gone) {
		return view, api.Named(err, "pull request")
	}
	view.Diff = d
	view.Body = s.Markdown(v.Context(), p.Project, p.Body)
	if gone != nil {
		view.Body = template.HTML("<p role=\"status\"><strong>"+template.HTMLEscapeString(gone.Reason)+
			".</strong></p>\n") + view.Body
	}
	if err := s.addRights(v, &view); err != nil {
		return view, err
	}
	one := v.Query("file")
	if n, err := strconv.Atoi(v.Query("f")); err == nil && n >= 1 && n <= len(d.Files) {
		one = d.Files[n-1].Path
	}
	view.One = one != ""
	view.Files = filesShown(v, &view, one)
	if view.One && len(view.Files) == 0 {
		return view, api.Missing("file " + one + " among the changes of this pull request")
	}
	if view.One && v.Query("tab") == "page" && view.Files[0].Readable {
		if view.Files[0].Preview, err = s.preview(v.Context(), p, view.Files[0].FileDiff); err != nil {
			return view, err
		}
	}
	if !view.One && len(d.Files) > 1 {
		paths := make([]string, len(d.Files))
		for i, f := range d.Files {
			paths[i] = f.Path
		}
		view.Tree = diff.Tree(paths)
	}
	return view, nil
}

// addRights says what the visitor may do with a pull request, with what only members of its organization see.
func (s *handler) addRights(v *console.Visit, view *pullView) (err error) {
	p, edits := view.Pull, v.Org != "" && v.Who.Role(v.Org).AtLeast(api.RoleEditor)
	view.Member = v.Who.Reads(v.Org)
	view.MayMerge = p.State == api.PullOpen && edits
	view.MayComment = view.MayMerge && view.Member && p.Job != ""
	view.MayRevert, view.Key = view.Member && edits && p.State == api.PullMerged && p.MergedAs != "", rand.Text()
	if !view.Member {
		return nil
	}
	if p.Job != "" {
		view.JobPath = console.PathOf(v.Project) + "/jobs/" + string(p.Job)
		if view.Gap, err = s.gapOf(v.Context(), v.Project, p.Job); err != nil {
			return err
		}
	}
	return s.addComments(v, view)
}

// filesShown are the files of a diff as a page shows them: all, the larger ones to be fetched later, or the one that is
// asked for.
func filesShown(v *console.Visit, view *pullView, one string) []fileView {
	left, bytes := shownAtOnce, atOnceBytes
	if one != "" {
		left, bytes = maxShownLines, maxShownBytes
	}
	open, _ := strconv.Atoi(v.Query("open"))
	var files []fileView
	for i, f := range view.Diff.Files {
		if one != "" && f.Path != one {
			continue
		}
		fv := fileView{FileDiff: f, Number: i + 1, Anchor: fmt.Sprintf("file-%d", i+1), Readable: isPage(f.Path) && !f.Binary}
		switch n := strings.Count(f.Unified, "\n"); {
		case n > maxShownLines, len(f.Unified) > maxShownBytes:
			fv.TooLarge = true
		case (n > left || len(f.Unified) > bytes) && open != i+1:
			fv.Later = true
		case v.Query("tab") == "page" && one != "":
		default:
			left, bytes = left-n, bytes-len(f.Unified)
			fv.Hunks = hunkViews(f.Unified, view.Split, view.remarks(v, &fv))
		}
		for _, c := range append(view.Comments[:len(view.Comments):len(view.Comments)], view.Drafts...) {
			if c.Path == f.Path && !c.shown && !fv.Later && v.Query("tab") != "page" {
				fv.Remarks = append(fv.Remarks, c)
			}
		}
		files = append(files, fv)
	}
	return files
}

func (s *handler) mergePull(v *console.Visit) error {
	return s.changePull(v, "pull.merge", func(id string) (api.PullRequest, error) { return s.Pulls.Merge(v.Context(), id) })
}

func (s *handler) closePull(v *console.Visit) error {
	return s.changePull(v, "pull.close", func(id string) (api.PullRequest, error) { return s.Pulls.Close(v.Context(), id) })
}

// revertPull starts a job that takes back what a merged pull request changed, and opens a pull request for that.
func (s *handler) revertPull(v *console.Visit) error {
	p, _, err := s.pull(v)
	if err != nil {
		return err
	}
	switch role := v.Who.Role(v.Org); {
	case v.Org == "" || !role.Valid():
		return api.Missing("pull request")
	case !role.AtLeast(api.RoleEditor):
		return &api.StateError{Kind: api.ErrForbidden, Reason: "reverting needs the role editor"}
	case p.State != api.PullMerged || p.MergedAs == "":
		return &api.StateError{Kind: api.ErrConflict, Reason: "only a merged pull request can be reverted"}
	}
	reply, err := s.Work.Create(v.Context(), startjob.Request{Project: v.Project, By: api.KeyID(v.Who.ID), Model: model.Builtin,
		Prompt: "revert commit " + p.MergedAs, Key: formKey("revert", v.Who.ID, v.Form.Get("key"))})
	if err != nil {
		return err
	}
	id := reply.Row.Job.ID
	v.About(id, "")
	if reply.Fresh {
		v.Audit("pull.revert", p.ID, string(id))
	}
	return v.Done(console.PathOf(v.Project)+"/jobs/"+string(id), "This job reverts pull request #"+strconv.Itoa(p.Number)+" with another one.")
}

// A gapLink leads to a topic that the documentation lacked.
type gapLink struct{ Path, Question string }

// gapOf is the topic for which a job was begun; nil if it was begun for none.
func (s *handler) gapOf(ctx context.Context, p api.Project, id api.JobID) (*gapLink, error) {
	g, err := s.Catalog.GapOf(ctx, p.ID, id)
	if errors.Is(err, api.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &gapLink{console.PathOf(p) + "/gaps/" + string(g.ID), g.Question}, nil
}

// editable is the pull request that a form is about, if the visitor may change it.
func (s *handler) editable(v *console.Visit) (api.PullRequest, error) {
	p, _, err := s.pull(v)
	if err != nil {
		return p, err
	}
	switch role := v.Who.Role(v.Org); {
	case v.Org == "" || !role.Valid():
		return p, api.Missing("pull request")
	case !role.AtLeast(api.RoleEditor):
		return p, &api.StateError{Kind: api.ErrForbidden, Reason: "merging, closing and commenting need the role editor"}
	case p.State != api.PullOpen:
		return p, &api.StateError{Kind: api.ErrConflict, Reason: "this pull request is " + string(p.State) + " already"}
	}
	return p, nil
}

func (s *handler) changePull(v *console.Visit, action string, change func(id string) (api.PullRequest, error)) error {
	p, err := s.editable(v)
	if err != nil {
		return err
	}
	_, err = change(p.ID)
	if errors.Is(err, forge.ErrMergeConflict) {
		v.Audit(action, p.ID, "refused: both sides changed the same lines")
		return s.showConflict(v, p, err)
	}
	if err != nil {
		return api.Named(err, "pull request")
	}
	v.Audit(action, p.ID, p.Title)
	return v.SeeOther("/pulls/" + p.ID)
}

// showConflict shows the pull request with why it cannot be merged and what to do.
func (s *handler) showConflict(v *console.Visit, p api.PullRequest, err error) error {
	view, also := s.pullPage(v, p)
	if also != nil {
		return also
	}
	view.Conflict = forge.ErrMergeConflict.Error()
	if files, ok := errors.AsType[*forge.ConflictError](err); ok {
		view.Conflict, view.Conflicts = files.Error(), files.Files
	}
	return s.renderPull(v, http.StatusConflict, view)
}

// A pullsView is a page of a project's pull requests.
type pullsView struct {
	Rows   []api.PullRequest
	Jobs   []jobLine // that have pull requests on a code host elsewhere
	Hosted bool      // pull requests are on a code host elsewhere
	State  string
	States []choice
	Next   string
	Live   string
}

// Badge is the state of a pull request.
func (pullsView) Badge(p api.PullRequest) console.Badge {
	switch {
	case p.State == api.PullOpen && p.Draft:
		return console.Badge{Text: "draft", Class: ""}
	case p.State == api.PullOpen:
		return console.Badge{Text: "open", Class: "ok"}
	case p.State == api.PullMerged:
		return console.Badge{Text: "merged", Class: "info"}
	}
	return console.Badge{Text: "closed", Class: ""}
}

var pullStates = []choice{{"open", "Open"}, {"merged", "Merged"}, {"closed", "Closed"}, {"all", "All"}}

// pullFilter reads which pull requests the address asks for; the open ones if it does not say.
func pullFilter(v *console.Visit) (catalog.PullQuery, string) {
	state := cmp.Or(v.Query("state"), "open")
	q := catalog.PullQuery{Project: v.Project.ID, State: api.PullState(state), Limit: pullsShown + 1}
	switch state {
	case "open", "merged", "closed":
	default:
		state, q.State = "all", ""
	}
	q.Before, _ = strconv.Atoi(v.Query("after"))
	return q, state
}

func (s *handler) showPulls(v *console.Visit) error {
	if v.Project.Host != "" && v.Project.Host != api.HostBuiltin {
		return s.showHostedPulls(v)
	}
	q, state := pullFilter(v)
	rows, err := s.Catalog.PullsPage(v.Context(), q)
	if err != nil {
		return err
	}
	view := pullsView{State: state, States: pullStates, Rows: rows}
	if len(rows) > pullsShown {
		view.Rows = rows[:pullsShown]
		view.Next = with(v, "after", strconv.Itoa(view.Rows[pullsShown-1].Number))
	}
	if q.Before == 0 {
		view.Live = v.Base() + "/pulls/live?state=" + state
	}
	return s.Render(v, "pulls", "Pull requests", view)
}

// showHostedPulls lists the jobs of a project whose pull requests are on a code host elsewhere: they are read there.
func (s *handler) showHostedPulls(v *console.Visit) error {
	q := catalog.JobQuery{Project: v.Project.ID, Linked: true, Limit: pullsShown + 1}
	if after := v.Query("after"); api.ValidID(api.JobPrefix, after) {
		q.Before = api.JobID(after)
	}
	rows, more, err := s.listJobs(v.Context(), v.Project, q)
	if err != nil {
		return err
	}
	for i := range rows {
		if link := rows[i].Job.PRLink; link != nil && !safeLink(*link) {
			rows[i].Job.PRLink = nil
		}
	}
	view := pullsView{Hosted: true, Jobs: rows}
	if more {
		view.Next = with(v, "after", string(rows[len(rows)-1].Job.ID))
	}
	return s.Render(v, "pulls", "Pull requests", view)
}

// livePulls keeps the first page of a list up to date.
func (s *handler) livePulls(v *console.Visit) error {
	q, state := pullFilter(v)
	q.Before = 0
	project := v.Project.ID
	return s.Watch(v, "pulls.rows", state,
		func() (<-chan struct{}, func()) { return s.Catalog.Watch(project) },
		func(ctx context.Context) (any, error) {
			rows, err := s.Catalog.PullsPage(ctx, q)
			return pullsView{State: state, Rows: rows[:min(len(rows), pullsShown)]}, err
		})
}

// jobOf is the job that a pull request is of, with its log.
func (s *handler) jobOf(ctx context.Context, p api.PullRequest) (job.Reply, error) {
	return s.Work.Ask(ctx, p.Job, job.Watch{Project: p.Project, Log: true})
}
