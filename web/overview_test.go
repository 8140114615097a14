package web_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"docent/api"
	"docent/persistence/catalog"
	"docent/web"
	"docent/web/projects"
)

// conditions stand in for what projects stand on.
type conditions struct {
	mu  sync.Mutex
	all map[api.ProjectID]projects.Condition
}

func (c *conditions) Condition(_ context.Context, p api.Project) (projects.Condition, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if known, ok := c.all[p.ID]; ok {
		return known, nil
	}
	return projects.Condition{Commit: "0123456789abcdef", Pages: 12, Sections: 34, Model: "builtin",
		Read: time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)}, nil
}

// figures are a catalog in which some things have happened.
type figures struct {
	*catalog.Catalog
	mu        sync.Mutex
	day, week catalog.Day
	before    catalog.Day
	days      []catalog.Day
	questions []api.QuestionRow
	jobs      []api.JobRow
	updates   []api.Update
	changed   chan struct{}
	now       func() time.Time
}

func (f *figures) Watch(api.ProjectID) (<-chan struct{}, func()) { return f.changed, func() {} }

func (f *figures) Days(_ context.Context, q catalog.AnalyticsQuery, _ *time.Location) ([]catalog.Day, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch ago := f.now().Sub(q.From); {
	case !q.To.IsZero():
		return []catalog.Day{{}, f.before}, nil
	case ago <= 25*time.Hour:
		return []catalog.Day{f.day}, nil
	case ago <= 8*24*time.Hour:
		return []catalog.Day{f.week, {}}, nil
	}
	return f.days, nil
}

func (f *figures) Questions(context.Context, catalog.AnalyticsQuery) ([]api.QuestionRow, string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.questions, "", nil
}

func (f *figures) Jobs(_ context.Context, q catalog.JobQuery) (list []api.JobRow, _ error) {
	for _, j := range f.jobs {
		if q.Status == "" || q.Status == j.Job.Status {
			list = append(list, j)
		}
	}
	return list, nil
}

func (f *figures) Updates(context.Context, api.ProjectID, int) ([]api.Update, error) {
	return f.updates, nil
}

// withFigures is a server on which some things have happened.
func withFigures(t testing.TB) (*fixture, *figures) {
	f := &figures{changed: make(chan struct{}, 1)}
	h := build(t, func(d *web.Deps) {
		f.Catalog, f.now, d.Catalog = d.Catalog.(*catalog.Catalog), d.Now, f
	})
	return h, f
}

const overviewAt = "/console/org-a/docs.acme.example"

func TestTheOverviewOfAProjectInWhichNothingHasHappened(t *testing.T) {
	t.Parallel()
	h, _ := withFigures(t)
	page, _ := h.visitor("viewer").text(200, overviewAt)
	contains(t, page, "There is no assistant key yet", `href="`+overviewAt+`/keys">Create a key`, "Needs attention",
		"No questions yet", overviewAt+`/playground">Ask one`, "No jobs yet",
		"12 pages", "34 sections", "0123456", "builtin", "acme")
	if strings.Contains(page, `class="spark"`) {
		t.Error("a curve of nothing")
	}
}

func TestTheOverviewSaysWhatNeedsAttentionAndLeadsThere(t *testing.T) {
	t.Parallel()
	h, f := withFigures(t)
	h.key(api.Key{Kind: api.AssistantKey, Org: "org-a", Project: "acme", Name: "site"})
	b := h.visitor("viewer")
	page, _ := b.text(200, overviewAt)
	contains(t, page, "Healthy")
	if strings.Contains(page, "What needs attention") {
		t.Error("something needs attention where all is well")
	}
	f.day, f.week = catalog.Day{Questions: 10, Answered: 4, Unanswered: 4, Failed: 2},
		catalog.Day{Questions: 40, Answered: 20, Unanswered: 20, Down: 12}
	f.before = catalog.Day{Questions: 40, Answered: 30, Unanswered: 10}
	f.days = []catalog.Day{{Questions: 3, Answered: 3}, {}, {Questions: 10, Answered: 4, Unanswered: 6}}
	f.questions = []api.QuestionRow{{Thread: "thr_1", Question: "Why <b>not</b>?", Asked: h.clock.Now(), Rating: api.RatedDown}}
	f.jobs = []api.JobRow{{Job: api.Job{ID: "job_1", Title: "Fix the page", Status: api.JobFailed}},
		{Job: api.Job{ID: "job_2", Status: api.JobActive}},
		{Job: api.Job{ID: "job_3", Status: api.JobCompleted, Outcome: api.OutcomeNothingToDo}}}
	f.updates = []api.Update{{Status: api.UpdateFailure, Summary: "the branch is gone"}}
	h.below.all["acme"] = projects.Condition{Commit: "abc", Pages: 1, Model: "large", ModelState: "open", DeadLinks: 3,
		Limits: []projects.Allowance{{Of: "Questions of the organization in an hour", Left: 5, Limit: 100},
			{Of: "Questions with the key site in this month", Limit: 7, Key: "key_1"}, {Of: "Jobs", Left: 99, Limit: 100}}}
	page, _ = b.text(200, overviewAt)
	contains(t, page, "Readers are affected", "The last update failed: the branch is gone", overviewAt+"/sources",
		"The model large is failing", overviewAt+"/settings", "Questions of the organization in an hour: 95 of 100 used.",
		"key site in this month: 7 of 7 used.", "1 job failed in the last 24 hours", overviewAt+"/jobs?status=failed",
		"Fewer questions are answered: 50% in the last seven days, 75% in the seven before.", overviewAt+"/gaps",
		"12 of 40 answers of the last seven days were rated down", "The documentation has 3 dead links",
		"Why &lt;b&gt;not&lt;/b&gt;?", overviewAt+"/conversations/thr_1", "rated down", "Fix the page", overviewAt+"/jobs/job_2", ">working<", ">nothing to do<",
		`aria-label="The last 14 days: 3, 0, 10"`, `aria-label="The last 14 days: 100%, –, 40%"`, "40%")
	if strings.Index(page, "7 of 7 used") > strings.Index(page, "95 of 100 used") {
		t.Error("a limit that is nearly used stands before one that is used")
	}
	if strings.Contains(page, "Jobs: 1 of 100") {
		t.Error("a limit that is hardly used is said to need attention")
	}
	h.below.all["acme"] = projects.Condition{Failure: "the host does not answer", Model: "builtin"}
	page, _ = b.text(200, overviewAt)
	contains(t, page, "The documentation could not be read: the host does not answer")
}

func TestTheOverviewChangesAsThingsHappen(t *testing.T) {
	t.Parallel()
	h, f := withFigures(t)
	b := h.visitor("viewer")
	e := b.listen(overviewAt + "/live")
	e.until("No questions yet")
	f.mu.Lock()
	f.questions = []api.QuestionRow{{Thread: "thr_1", Question: "Is it live?", Asked: h.clock.Now()}}
	f.mu.Unlock()
	f.changed <- struct{}{}
	e.until("Is it live?")
	if res := h.visitor("stranger").do("GET", overviewAt+"/live", nil); res.StatusCode != 404 {
		t.Errorf("another organization's person is answered %d", res.StatusCode)
	}
}
