package work

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"docent/actors/job/startjob"
	"docent/api"
	"docent/model"
	"docent/persistence/catalog"
	"docent/web/console"
)

const jobsShown = 50 // of a page of a list

// A jobLine is one job in a list.
type jobLine struct {
	api.JobRow
	By   string // who asked for it
	Path string
}

// A choice is one entry of a list to choose from.
type choice struct{ Value, Text string }

// A jobsView is a page of a project's jobs.
type jobsView struct {
	Rows     []jobLine
	Shown    map[string]string // the filters, as the address has them
	Askers   []choice
	Statuses []choice
	Outcomes []choice
	Next     string // address of the next page; empty on the last one
	Live     string // address of what keeps the list up to date; empty on further pages
}

// Filtered reports whether something is filtered for.
func (j jobsView) Filtered() bool { return len(j.Shown) > 0 }

// jobsPath is the address of a project's jobs.
func jobsPath(v *console.Visit) string { return v.Base() + "/jobs" }

// jobFilter reads what the address asks for. What is no filter is left out.
func jobFilter(v *console.Visit) (q catalog.JobQuery, shown map[string]string) {
	shown = map[string]string{}
	take := func(name string, allowed ...string) string {
		value := strings.TrimSpace(v.Query(name))
		if value == "" || len(allowed) > 0 && !slices.Contains(allowed, value) {
			return ""
		}
		shown[name] = value
		return value
	}
	q = catalog.JobQuery{Project: v.Project.ID, Limit: jobsShown + 1,
		Status: api.JobStatus(take("status", string(api.JobActive), string(api.JobCompleted), string(api.JobFailed))),
		Outcome: api.Outcome(take("outcome", string(api.OutcomeChanged), string(api.OutcomeNothingToDo),
			string(api.OutcomeNotUnderstood), string(api.OutcomeNeedsDetail))),
		By: take("by"), Text: take("q")}
	switch take("archived", "only", "all") {
	case "only":
		yes := true
		q.Archived = &yes
	case "all":
	default:
		no := false
		q.Archived = &no
	}
	if after := v.Query("after"); api.ValidID(api.JobPrefix, after) {
		q.Before = api.JobID(after)
	}
	return q, shown
}

// listJobs is a page of a list of jobs.
func (s *handler) listJobs(ctx context.Context, project api.Project, q catalog.JobQuery) (lines []jobLine,
	more bool, err error) {
	rows, err := s.Catalog.Jobs(ctx, q)
	if err != nil {
		return nil, false, err
	}
	if len(rows) == q.Limit {
		rows, more = rows[:q.Limit-1], true
	}
	names := s.askerNames(ctx, project)
	for _, r := range rows {
		lines = append(lines, jobLine{r, cmp.Or(names(r.User), r.User), console.PathOf(project) + "/jobs/" + string(r.Job.ID)})
	}
	return lines, more, nil
}

// askerNames returns the names of those who ask for jobs: keys, people and automations. Each kind is looked up when one
// of it is met; a name that cannot be had is left out.
func (s *handler) askerNames(ctx context.Context, project api.Project) func(id string) string {
	var keys, automations map[string]string
	people := map[string]string{}
	return func(id string) string {
		switch {
		case strings.HasPrefix(id, api.KeyPrefix):
			if keys == nil {
				keys = map[string]string{}
				list, _ := s.Catalog.Keys(ctx, catalog.KeyQuery{Org: project.Org})
				for _, k := range list {
					keys[string(k.ID)] = "key " + cmp.Or(k.Name, k.Hint)
				}
			}
			return keys[id]
		case strings.HasPrefix(id, api.AutomationPrefix):
			if automations == nil {
				automations = map[string]string{}
				list, _ := s.Catalog.Automations(ctx, project.ID)
				for _, a := range list {
					automations[string(a.ID)] = "automation " + a.Name
				}
			}
			return automations[id]
		case id == "link": // who came by the printed one
			return "Operator"
		}
		if _, known := people[id]; !known {
			p, err := s.Catalog.Person(ctx, api.PersonID(id))
			if people[id] = p.Name; err != nil {
				people[id] = ""
			}
		}
		return people[id]
	}
}

func (s *handler) showJobs(v *console.Visit) error {
	q, shown := jobFilter(v)
	view := jobsView{Shown: shown}
	var more bool
	var err error
	if q.Before == "" {
		q.MinPos = catalog.Newest // who has just started a job finds it
	}
	if view.Rows, more, err = s.listJobs(v.Context(), v.Project, q); err != nil {
		return err
	}
	if more {
		view.Next = with(v, "after", string(view.Rows[len(view.Rows)-1].Job.ID))
	}
	if q.Before == "" {
		view.Live = jobsPath(v) + "/live?" + v.Req.URL.RawQuery
	}
	view.Statuses = []choice{{"", "any"}, {"active", "working"}, {"completed", "completed"}, {"failed", "failed"}}
	view.Outcomes = []choice{{"", "any"}, {"changed", "changed"}, {"nothing_to_do", "nothing to do"},
		{"not_understood", "not understood"}, {"needs_detail", "needs detail"}}
	askers, err := s.Catalog.Askers(v.Context(), v.Project.ID)
	if err != nil {
		return err
	}
	names := s.askerNames(v.Context(), v.Project)
	view.Askers = []choice{{"", "anybody"}}
	for _, id := range askers {
		view.Askers = append(view.Askers, choice{id, cmp.Or(names(id), id)})
	}
	slices.SortFunc(view.Askers[1:], func(a, b choice) int { return strings.Compare(a.Text, b.Text) })
	return s.Render(v, "jobs", "Jobs", view)
}

// with is the page's address with another value of its query.
func with(v *console.Visit, name, value string) string {
	q := v.Req.URL.Query()
	q.Set(name, value)
	return (&url.URL{Path: v.Req.URL.Path, RawPath: v.Req.URL.RawPath, RawQuery: q.Encode()}).String()
}

// liveJobs keeps the first page of a list up to date.
func (s *handler) liveJobs(v *console.Visit) error {
	q, shown := jobFilter(v)
	q.Before = ""
	project := v.Project
	return s.Watch(v, "jobs.rows", v.Req.URL.Query().Encode(),
		func() (<-chan struct{}, func()) { return s.Catalog.Watch(project.ID) },
		func(ctx context.Context) (any, error) {
			rows, _, err := s.listJobs(ctx, project, q)
			return jobsView{Rows: rows, Shown: shown}, err
		})
}

// A newJobView is the form for a new job.
type newJobView struct {
	Prompt, Model, Branch string
	DryRun, Draft         bool
	Key                   string // of the form: sent twice, it starts one job
	Models                []model.Choice
	Builtin               bool // the built-in agent is what works if no model is chosen
	Direct                bool // changes go to the documentation's branch itself
	Examples              []string
	Problems              map[string]string
}

// examples are instructions that the built-in agent understands.
var examples = []string{
	`replace "log in" with "sign in" in guides/*.md`,
	`rename "Old Name" to "New Name" everywhere`,
	`add "Some text." after heading "Install" in quickstart.md`,
	`create page guides/new.md titled "New" with content: Some text.`,
	`fix broken links`,
}

func (s *handler) newJobForm(v *console.Visit) newJobView {
	return newJobView{Models: s.Models.Choices(), Key: rand.Text(), Examples: examples, Direct: v.Project.Direct,
		Builtin: model.WorksBuiltin(s.Models.Choices(), v.Project.JobModel())}
}

func (s *handler) showNewJob(v *console.Visit) error {
	view := s.newJobForm(v)
	view.Prompt, view.Model, view.DryRun = v.Query("prompt"), v.Query("model"), v.Query("dry") == "yes"
	return s.Render(v, "jobs.new", "New job", view)
}

// createJob starts a job. A form that is sent twice starts one.
func (s *handler) createJob(v *console.Visit) error {
	f := v.Form
	r := startjob.Request{Project: v.Project, By: api.KeyID(v.Who.ID), Prompt: f.Get("prompt"), Model: f.Get("model"),
		Branch: strings.TrimSpace(f.Get("branch")), DryRun: f.Get("dry") == "yes", Draft: f.Get("draft") == "yes",
		Key: formKey("job", v.Who.ID, f.Get("key"))}
	reply, err := s.Work.Create(v.Context(), r)
	if errors.Is(err, api.ErrInvalid) {
		view := s.newJobForm(v)
		view.Prompt, view.Model, view.Branch, view.DryRun, view.Draft = r.Prompt, r.Model, r.Branch, r.DryRun, r.Draft
		view.Problems = console.Faults(err)
		return s.RenderStatus(v, http.StatusBadRequest, "jobs.new", "New job", view)
	}
	if err != nil {
		return err
	}
	id := reply.Row.Job.ID
	v.About(id, "")
	if reply.Fresh {
		v.Audit("job.create", string(id), reply.Row.Job.Title)
	}
	return v.SeeOther(jobsPath(v) + "/" + string(id))
}

// formKey names what a form asks for, so that it is done once however often the form is sent. A form without a key, such
// as one that was written by hand, is a request of its own.
func formKey(what, who, key string) string {
	if key == "" || len(key) > 100 {
		key = rand.Text()
	}
	return what + " " + who + " " + key
}
