package work

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"docent/actors/job"
	"docent/actors/job/startjob"
	"docent/api"
	"docent/internal/background"
	"docent/persistence/cluster"
	"docent/web/console"
	"docent/web/diff"
)

const (
	momentsShown = 150   // of a job's log, the newest
	jobDiffLines = 3_000 // of changes on a job's page
	rulesModel   = "rules-1"
)

// A jobView is the page of one job.
type jobView struct {
	jobLive
	Key      string // of the follow-up's form
	Builtin  bool   // the built-in agent works, which knows instructions of fixed forms
	Examples []string
	Prompt   string // what the form for a follow-up holds
	Gap      *gapLink
	Problems map[string]string
	Live     string // address of what keeps the page up to date
}

// jobLive is what changes of a job's page while the job works.
type jobLive struct {
	jobLine
	Moments []moment
	Earlier bool // there are more moments than are shown
	Omitted bool // the oldest are no longer kept
	Files   []fileView
	Shown   int  // files of the diff
	Growing bool // the diff is of an edit that goes on
	Advice  string
	Pull    string // address of the pull request; empty if there is none
	Real    string // the instruction of a dry run that may be carried out; empty if it may not
}

// A moment is one entry of a job's log, as a page shows it.
type moment struct {
	job.Entry
	ID    string // of the element
	Calls []call
	By    string
}

// A call of a tool, in one line. What it was given and what it gave is loaded when it is opened.
type call struct {
	job.ToolUse
	What    string // what it is about, in few words
	Done    bool   // what it gave is known
	Path    string // address of the whole
	Element string // its id; another one once it is done
}

// Done reports how many todos are done.
func (l jobLive) Done() (n int) {
	for _, t := range l.Todos {
		if t.Status == "completed" {
			n++
		}
	}
	return n
}

// Active reports whether the job works.
func (l jobLive) Active() bool { return l.Job.Status == api.JobActive }

// ModelHelps reports whether a language model could have done what the built-in agent did not understand.
func (l jobLive) ModelHelps() bool {
	return l.Job.Model == rulesModel && l.Job.Outcome == api.OutcomeNotUnderstood
}

// Took is how long the model has worked; empty if that is no time to speak of.
func (l jobLive) Took() string {
	if took := l.Spent.Time.Round(100 * time.Millisecond); took > 0 {
		return took.String()
	}
	return ""
}

// Cost is what the models have cost.
func (l jobLive) Cost() string { return fmt.Sprintf("$%.4f", float64(l.Spent.Cost)/1e6) }

// jobID is the job that the address names. What cannot be one is answered like an unknown one.
func jobID(v *console.Visit) (api.JobID, error) {
	id := v.Param("id")
	if !api.ValidID(api.JobPrefix, id) {
		return "", api.Missing("job")
	}
	v.About(api.JobID(id), "")
	return api.JobID(id), nil
}

// jobNow is a job as it is, with its log, and with what checks printed if that may be seen.
func (s *handler) jobNow(ctx context.Context, project api.Project, id api.JobID, all, prints bool) (jobLive, error) {
	reply, err := s.Work.Ask(ctx, id, job.Watch{Project: project.ID, Log: true, Edits: true})
	if err != nil {
		return jobLive{}, err
	}
	names := s.askerNames(ctx, project)
	path := console.PathOf(project) + "/jobs/" + string(id)
	view := jobLive{jobLine: jobLine{reply.Row, cmp.Or(names(reply.Row.User), reply.Row.User), path},
		Omitted: reply.Omitted > 0}
	view.Moments = moments(seen(reply.Log, prints), path)
	if n := len(view.Moments); n > momentsShown && !all {
		view.Moments, view.Earlier = view.Moments[n-momentsShown:], true
	}
	text := ""
	for _, e := range reply.Log {
		if e.Diff != "" {
			text = e.Diff
		}
	}
	if reply.Edits != nil && reply.Edits.Diff != "" {
		text, view.Growing = reply.Edits.Diff, true
	}
	view.Files = jobFiles(text)
	if link := reply.Row.Job.PRLink; link != nil && safeLink(*link) {
		view.Pull = *link
	}
	view.Advice = advice(reply.Row)
	if reply.Row.DryRun && reply.Row.Job.Status == api.JobCompleted && reply.Row.Job.Outcome == api.OutcomeChanged {
		view.Real = triedPrompt(reply.Log)
	}
	return view, nil
}

// safeLink reports whether a link may stand on a page: one of ours, or of a code host.
func safeLink(link string) bool {
	return strings.HasPrefix(link, "/") && !strings.HasPrefix(link, "//") || strings.HasPrefix(link, "https://") ||
		strings.HasPrefix(link, "http://")
}

// triedPrompt is the instruction whose dry run ended last; empty if the log does not have it whole.
func triedPrompt(log []job.Entry) string {
	for i := len(log) - 1; i >= 0; i-- {
		if log[i].Type == job.EntryPrompt {
			if strings.HasSuffix(log[i].Text, "…") {
				return ""
			}
			return log[i].Text
		}
	}
	return ""
}

// seen is a log as a visitor may see it: what a project's own check printed is for those who may edit, as code of the
// repository may have run there.
func seen(log []job.Entry, prints bool) []job.Entry {
	if prints {
		return log
	}
	log = slices.Clone(log)
	for i := range log {
		log[i].Printed = ""
		log[i].Results = slices.Clone(log[i].Results)
		for n, r := range log[i].Results {
			if r.Printed {
				log[i].Results[n].Output = "The project's own check fails. Those who may edit see what it printed."
			}
		}
	}
	return log
}

// moments are the entries of a log, with the calls of tools and whether what they gave is known.
func moments(log []job.Entry, path string) []moment {
	given := map[string]job.ToolUse{}
	for _, e := range log {
		for _, r := range e.Results {
			given[r.ID] = r
		}
	}
	var out []moment
	ended := len(log) > 0 && log[len(log)-1].Status != api.JobActive
	for _, e := range log {
		m := moment{Entry: e, ID: "e" + strconv.FormatUint(e.Seq, 10)}
		uses := e.Calls
		if len(uses) == 0 && e.Tool != nil {
			uses = []job.ToolUse{*e.Tool}
		}
		for n, use := range uses {
			result, known := given[use.ID]
			known = known && use.ID != ""
			c := call{ToolUse: use, What: about(use.Input), Done: known || ended,
				Path:    fmt.Sprintf("%s/steps/%d", path, e.Seq),
				Element: fmt.Sprintf("c%d-%d", e.Seq, n)}
			c.Failed = c.Failed || result.Failed
			if !c.Done {
				c.Element += "-now"
			}
			m.Calls = append(m.Calls, c)
		}
		m.Diff = ""
		out = append(out, m)
	}
	return out
}

// about says in few words what a call of a tool is about.
func about(input string) string {
	for _, name := range []string{"path", "from", "query", "pattern", "heading", "title", "summary"} {
		_, rest, ok := strings.Cut(input, `"`+name+`"`)
		if !ok {
			continue
		}
		rest, ok = strings.CutPrefix(strings.TrimLeft(rest, ": "), `"`)
		if !ok {
			continue
		}
		if text, _, ok := strings.Cut(rest, `"`); ok {
			return console.Shorten(80, text)
		}
	}
	return ""
}

// jobFiles are the files of a job's diff as its page shows them.
func jobFiles(text string) []fileView {
	var out []fileView
	left := jobDiffLines
	for i, f := range diff.Files(text) {
		fv := fileView{Anchor: fmt.Sprintf("d%d", i+1)}
		fv.Path, fv.From, fv.Added, fv.Deleted, fv.Status = f.Path, f.From, f.Added, f.Deleted, "modified"
		switch head := firstLine(f.Unified); {
		case f.From != "":
			fv.Status = "moved"
		case strings.HasPrefix(head, "@@ -0,0 "):
			fv.Status = "added"
		case strings.Contains(head, " +0,0 @@"):
			fv.Status = "deleted"
		}
		if n := strings.Count(f.Unified, "\n"); n > left || len(f.Unified) > maxShownBytes {
			fv.TooLarge = true
		} else {
			left -= n
			fv.Hunks = hunkViews(f.Unified, false, nil)
		}
		out = append(out, fv)
	}
	return out
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// advice says what to do about a job that did not end well.
func advice(r api.JobRow) string {
	switch {
	case r.Job.Status == api.JobActive:
		return ""
	case r.Archived:
		return "This job is archived and takes no more messages. Start a new one to go on."
	case r.Job.Status == api.JobFailed && r.Halt == api.HaltInterrupted:
		return "It was canceled. A message starts it again."
	case r.Job.Status == api.JobFailed && r.Halt == api.HaltMisconfigured:
		return "The code host or the project's settings stand in the way. An owner can put that right under Sources or Settings; " +
			"then send the instruction again."
	case r.Job.Status == api.JobFailed:
		return "Nothing was published. Send the instruction again, or ask for less at a time. The server's log has more."
	case r.Job.Outcome == api.OutcomeNotUnderstood:
		return "Nothing was changed. Say it in another way in a message below; the built-in agent knows instructions of fixed forms."
	case r.Job.Outcome == api.OutcomeNeedsDetail:
		return "Nothing was changed. Answer in a message below what the agent asks for."
	case r.Job.Outcome == api.OutcomeNothingToDo:
		return "The pages are already as the instruction wants them."
	}
	return ""
}

func (s *handler) jobPage(v *console.Visit, id api.JobID) (jobView, error) {
	now, err := s.jobNow(v.Context(), v.Project, id, v.Query("all") != "", v.May(console.Editor))
	if err != nil {
		return jobView{}, err
	}
	gap, err := s.gapOf(v.Context(), v.Project, id)
	return jobView{jobLive: now, Key: rand.Text(), Builtin: now.Job.Model == rulesModel, Examples: examples, Gap: gap,
		Live: now.Path + "/live"}, err
}

func (s *handler) showJob(v *console.Visit) error {
	id, err := jobID(v)
	if err != nil {
		return err
	}
	view, err := s.jobPage(v, id)
	if err != nil {
		return err
	}
	return s.Render(v, "job", cmp.Or(view.Job.Title, "Job"), view)
}

// liveJob keeps a job's page up to date.
func (s *handler) liveJob(v *console.Visit) error {
	id, err := jobID(v)
	if err != nil {
		return err
	}
	if _, err := s.Work.Ask(v.Context(), id, job.Read{Project: v.Project.ID}); err != nil {
		return err
	}
	project, prints := v.Project, v.May(console.Editor)
	return s.Watch(v, "job.live", string(id), func() (<-chan struct{}, func()) { return s.followJob(project.ID, id) },
		func(ctx context.Context) (any, error) {
			now, err := s.jobNow(ctx, project, id, false, prints)
			return jobView{jobLive: now}, err
		})
}

// followPatience is how long one question to a job waits for news.
const followPatience = 15 * time.Second

// followJob tells of each change of a job: of its log and of its edits while it works, and afterwards of another
// message to it.
func (s *handler) followJob(project api.ProjectID, id api.JobID) (<-chan struct{}, func()) {
	ctx, cancel := context.WithCancel(context.Background()) // until stop
	changed := make(chan struct{}, 1)
	listed, unwatch := s.Catalog.Watch(project)
	background.Go("web.followJob", func() {
		defer unwatch()
		var seq, seen uint64
		for ctx.Err() == nil {
			reply, err := s.Jobs.Ask(ctx, id, job.Watch{Project: project, After: seq, Edits: true, Seen: seen,
				Until: time.Now().Add(followPatience)})
			if errors.As(err, new(*cluster.ElsewhereError)) {
				select {
				case changed <- struct{}{}: // who looks finds it, and comes again at the other node
				default:
				}
			}
			if err != nil {
				pause(ctx, time.Second)
				continue
			}
			news := reply.Row.Seq > seq || reply.Edits != nil
			seq = max(seq, reply.Row.Seq)
			if reply.Edits != nil {
				seen = reply.Edits.Version
			}
			if news {
				select {
				case changed <- struct{}{}:
				default: // nobody has looked since the last one
				}
			}
			if reply.Row.Job.Status != api.JobActive { // nothing is to be expected of its actor
				select {
				case <-ctx.Done():
				case <-listed:
				}
			}
		}
	})
	return changed, cancel
}

// pause waits, or returns when ctx ends.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// A callsView is one answer of a language model with its calls, and what they gave.
type callsView struct {
	job.Entry
	Path  string // of the job
	Calls []job.ToolUse
}

// showStep shows the calls of one step in full, as far as the log keeps them.
func (s *handler) showStep(v *console.Visit) error {
	id, err := jobID(v)
	if err != nil {
		return err
	}
	seq, err := strconv.ParseUint(v.Param("seq"), 10, 64)
	if err != nil || seq == 0 {
		return api.Missing("step")
	}
	reply, err := s.Work.Ask(v.Context(), id, job.Watch{Project: v.Project.ID, After: seq - 1, Log: true})
	if err != nil {
		return err
	}
	if len(reply.Log) == 0 || reply.Log[0].Seq != seq {
		return api.Missing("step")
	}
	given := map[string]job.ToolUse{}
	log := seen(reply.Log, v.May(console.Editor))
	for _, e := range log {
		for _, r := range e.Results {
			given[r.ID] = r
		}
	}
	view := callsView{Entry: log[0], Path: jobsPath(v) + "/" + string(id), Calls: slices.Clone(log[0].Calls)}
	if len(view.Calls) == 0 && view.Tool != nil {
		view.Calls = []job.ToolUse{*view.Tool}
	}
	for i, c := range view.Calls {
		if r, ok := given[c.ID]; ok && c.ID != "" {
			view.Calls[i].Output, view.Calls[i].Failed = r.Output, r.Failed
		}
	}
	if v.Partial() {
		return s.Part(v, "job.calls", view)
	}
	return s.Render(v, "job.step", "Step "+v.Param("seq"), view)
}

// followUp gives a job one more instruction.
func (s *handler) followUp(v *console.Visit) error {
	id, err := jobID(v)
	if err != nil {
		return err
	}
	f := v.Form
	reply, err := s.Work.FollowUp(v.Context(), id, startjob.Request{Project: v.Project, By: api.KeyID(v.Who.ID),
		Prompt: f.Get("prompt"), Key: formKey("message", v.Who.ID, f.Get("key"))})
	if problems := console.Faults(err); len(problems) > 0 {
		view, also := s.jobPage(v, id)
		if also != nil {
			return also
		}
		view.Prompt, view.Problems = f.Get("prompt"), problems
		return s.RenderStatus(v, http.StatusBadRequest, "job", cmp.Or(view.Job.Title, "Job"), view)
	}
	if err != nil {
		return err
	}
	if reply.Fresh {
		v.Audit("job.message", string(id), console.Shorten(100, f.Get("prompt")))
	}
	return v.Done(jobsPath(v)+"/"+string(id), "The job has your message.")
}

// carryOut does for real what a dry run tried.
func (s *handler) carryOut(v *console.Visit) error {
	id, err := jobID(v)
	if err != nil {
		return err
	}
	now, err := s.jobNow(v.Context(), v.Project, id, false, v.May(console.Editor))
	if err != nil {
		return err
	}
	if now.Real == "" {
		return &api.StateError{Kind: api.ErrConflict,
			Reason: "this job has no dry run that can be repeated from here: start a new job with its instruction"}
	}
	asks := now.Job.Model
	if asks == rulesModel {
		asks = ""
	}
	if _, known := s.modelNamed(asks); !known {
		asks = ""
	}
	reply, err := s.Work.Create(v.Context(), startjob.Request{Project: v.Project, By: api.KeyID(v.Who.ID),
		Prompt: now.Real, Model: asks, Key: formKey("carry out", string(id), strconv.FormatUint(now.Seq, 10))})
	if err != nil {
		return err
	}
	if reply.Fresh {
		v.Audit("job.create", string(reply.Row.Job.ID), "as tried by "+string(id))
	}
	return v.Done(jobsPath(v)+"/"+string(reply.Row.Job.ID), "This job does what the dry run has tried.")
}

// modelNamed reports whether a model of that name is configured.
func (s *handler) modelNamed(name string) (provider string, known bool) {
	for _, c := range s.Models.Choices() {
		if c.Name == name {
			return c.Provider, true
		}
	}
	return "", name == ""
}

func (s *handler) cancelJob(v *console.Visit) error {
	return s.changeJob(v, "job.cancel", "The job is canceled.", job.Cancel{Project: v.Project.ID})
}

func (s *handler) archiveJob(v *console.Visit) error {
	return s.changeJob(v, "job.archive", "The job is archived: lists leave it out.", job.Archive{Project: v.Project.ID})
}

func (s *handler) changeJob(v *console.Visit, action, said string, cmd job.Command) error {
	id, err := jobID(v)
	if err != nil {
		return err
	}
	reply, err := s.Work.Ask(v.Context(), id, cmd)
	if err != nil {
		return err
	}
	if reply.Fresh {
		v.Audit(action, string(id), reply.Row.Job.Title)
	}
	return v.Done(jobsPath(v)+"/"+string(id), said)
}
