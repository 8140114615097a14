package web_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"docent/actors/gaps"
	"docent/actors/job"
	"docent/actors/job/startjob"
	"docent/actors/reports"
	"docent/api"
	"docent/internal/task/tasktest"
	"docent/model"
	"docent/persistence/catalog"
	"docent/persistence/catalog/catalogtest"
	"docent/search"
	"docent/web"
)

// ask asks, as a reader of acme, a question that the documentation does not answer, and returns its id.
func (h *fixture) ask(caller, text string, change ...func(*api.QuestionRow)) string {
	h.t.Helper()
	at := h.clock.Now().Add(time.Duration(h.audience.Position())*time.Second - time.Hour)
	q := api.QuestionRow{ID: api.TurnID(api.NewID(api.TurnPrefix, at)), Question: text, Asked: at, Ended: at,
		Channel: api.ChannelWeb}
	for _, c := range change {
		c(&q)
	}
	h.audience.Put(api.ThreadRow{ID: api.ThreadID(api.NewID(api.ThreadPrefix, at)), Project: "acme", Caller: caller,
		Questions: []api.QuestionRow{q}})
	// Pages wait for the listing by themselves, but not for as long as a machine may stand still.
	if err := h.listing.Wait(h.t.Context(), catalog.Newest); err != nil {
		h.t.Fatal(err)
	}
	return string(q.ID)
}

func wellAnswered(q *api.QuestionRow) {
	q.Answered, q.FirstText = true, 120
	q.Sources = []api.PageRef{{URL: "https://docs.acme.example/guides/keys#make", Title: "Keys"}}
}

// agentStub stands in for the jobs, the documentation and the models.
type agentStub struct {
	mu       sync.Mutex
	made     map[string]api.JobID
	requests []startjob.Request
	refuse   error
	local    bool
	docs     string
	secrets  map[string]string
}

func (a *agentStub) Create(_ context.Context, r startjob.Request) (job.Reply, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.refuse != nil {
		return job.Reply{}, a.refuse
	}
	id, ok := a.made[r.Key]
	if !ok {
		id = api.JobID(api.NewID(api.JobPrefix, time.Now()))
		a.made[r.Key], a.requests = id, append(a.requests, r)
	}
	return job.Reply{Row: api.JobRow{Job: api.Job{ID: id}}, Fresh: !ok}, nil
}

func (a *agentStub) Started(_ api.ProjectID, key string) (api.JobID, bool, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	id, ok := a.made[key]
	return id, ok, nil
}

func (a *agentStub) Ask(context.Context, api.JobID, job.Command) (job.Reply, error) {
	return job.Reply{Row: api.JobRow{Branch: "docent/gap", Job: api.Job{Status: api.JobCompleted, PRLink: new(string)}}}, nil
}

func (a *agentStub) PullState(context.Context, api.Project, string) (api.PullState, error) {
	return "", nil
}

func (a *agentStub) Around(context.Context, api.ProjectID, search.Place, []string) ([]search.Hit, error) {
	return nil, nil
}

func (a *agentStub) Search(context.Context, api.ProjectID, search.Query) ([]search.Hit, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.docs == "" {
		return nil, search.ErrNotIndexed
	}
	return []search.Hit{{Path: "guides/keys.md", Title: "Keys <i>", Heading: "Make one", Content: a.docs,
		URL: "https://docs.acme.example/guides/keys"}}, nil
}

func (a *agentStub) Rarity(_ context.Context, _ api.ProjectID, terms []string) ([]int, int, error) {
	return make([]int, len(terms)), 100, nil
}

func (a *agentStub) Commit(api.ProjectID) string { a.mu.Lock(); defer a.mu.Unlock(); return a.docs }

func (a *agentStub) Pages(context.Context, api.ProjectID) ([]search.PageInfo, error) {
	if a.Commit("") == "" {
		return nil, search.ErrNotIndexed
	}
	return []search.PageInfo{{Path: "guides/keys.md", URL: "https://docs.acme.example/guides/keys", Title: "Keys"},
		{Path: "guides/lonely.md", URL: "https://docs.acme.example/guides/lonely", Title: "Lonely"}}, nil
}

func (a *agentStub) Answer(_ context.Context, _ string, r model.Request, emit func(model.Delta) error) (
	model.Result, error) {
	answers := len(r.Passages) > 0 && strings.Contains(r.Passages[0].Text, "rotate")
	return model.Result{Answered: answers}, emit(model.Delta{Text: "so", Cite: []int{0}})
}

// An agentView is what the pages about topics ask: the pages of the documentation, and whether a model is built in.
type agentView struct {
	nobody
	agent *agentStub
}

func (a agentView) Pages(ctx context.Context, project api.ProjectID) ([]search.PageInfo, error) {
	return a.agent.Pages(ctx, project)
}

func (a agentView) Choices() []model.Choice {
	a.agent.mu.Lock()
	defer a.agent.mu.Unlock()
	if a.agent.local {
		return []model.Choice{{Name: model.Builtin, Provider: model.Builtin, Default: true, Agent: true}}
	}
	return []model.Choice{{Name: "large", Provider: model.OpenAI, Default: true, Agent: true}}
}

func (a *agentStub) Keep(project api.ProjectID, text string) (string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	name := fmt.Sprintf("%s.%d", project, len(a.secrets))
	a.secrets[name] = text
	return name, nil
}

func (a *agentStub) Drop(name string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.secrets, name)
	return nil
}

func (a *agentStub) Read(name string) (string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.secrets[name], nil
}

// insights gives the pages real topics and reports over the server's catalog.
func (h *fixture) insights(deps *web.Deps) {
	h.t.Helper()
	h.audience = catalogtest.NewThreads()
	h.agent = &agentStub{made: map[string]api.JobID{}, secrets: map[string]string{}}
	log := slog.New(slog.DiscardHandler)
	p := h.catalog.NewThreadProjector(h.audience, h.audience.Load, log)
	h.listing = p
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); p.Run(ctx) }()
	h.unlist = func() { cancel(); <-done }
	h.t.Cleanup(h.unlist)
	topics, err := gaps.New(gaps.Deps{Catalog: h.catalog, Documents: h.agent, Model: h.agent, Starter: h.agent,
		Jobs: h.agent, Pulls: h.agent, Now: h.clock.Now, Log: log})
	if err != nil {
		h.t.Fatal(err)
	}
	weekly, err := reports.New(reports.Deps{Catalog: h.catalog, Topics: topics, Journal: struct{ reports.Journal }{}, Now: h.clock.Now,
		Log: log, Tasks: new(tasktest.Queue)})
	if err != nil {
		h.t.Fatal(err)
	}
	deps.Finder, deps.Models = agentView{agent: h.agent}, agentView{agent: h.agent}
	deps.Topics, deps.Reports, deps.Secrets = topics, weekly, h.agent
}

const acme = "/console/org-a/docs.acme.example"

// hostile is what a reader may write.
const hostile = `<script>alert("rotate")</script> how to rotate a key "><img src=x onerror=alert(1)>`

// rotation asks about one thing as three readers, and about others as others.
func (h *fixture) rotation() string {
	first := h.ask("ann", "How do I rotate an API key?")
	h.ask("bob", hostile, func(q *api.QuestionRow) {
		q.Rating, q.Rated, q.Comment = api.RatedDown, q.Asked, `</textarea><script>alert("comment")</script>`
	})
	h.ask("anonymous", "rotate API keys")
	h.ask("cid", "Is there a mobile app?")
	h.ask("dan", "How do I make a key?", wellAnswered)
	return first
}

func TestGapsBecomeJobsOnce(t *testing.T) {
	h := build(t)
	first := h.rotation()
	h.agent.docs = "Keys open doors."
	b := h.visitor("editor")
	list, _ := b.text(200, acme+"/gaps")
	for _, want := range []string{"Open (2)", "4 questions, grouped", `href="` + acme + "/gaps/" + first + `"`} {
		if !strings.Contains(list, want) {
			t.Errorf("the list lacks %q", want)
		}
	}
	page, _ := b.text(200, acme+"/gaps/"+first)
	for _, want := range []string{"The quotes are readers&#39; words", "guides/keys.md, in its section", `name="attempt" value="1"`,
		"3 readers asked 3 questions"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q:\n%s", want, page)
		}
	}
	form := url.Values{"token": {b.token(page)}, "attempt": {"1"}, "prompt": {"Close the gap.\r\nPlease."}, "draft": {"1"}}
	var at string
	for range 2 { // a double click
		res := b.send(acme+"/gaps/"+first+"/open", form)
		if at = res.Header.Get("Location"); res.StatusCode != http.StatusSeeOther || !strings.HasPrefix(at, acme+"/gaps/gap_") {
			t.Fatalf("%d %s", res.StatusCode, at)
		}
	}
	if len(h.agent.requests) != 1 || h.agent.requests[0].Prompt != "Close the gap.\nPlease." || !h.agent.requests[0].Draft {
		t.Fatalf("jobs: %+v", h.agent.requests)
	}
	id := h.agent.made[h.agent.requests[0].Key]
	page, _ = b.text(200, at)
	if !strings.Contains(page, acme+"/jobs/"+string(id)) || strings.Contains(page, `name="prompt"`) {
		t.Errorf("the page does not lead to the job %s:\n%s", id, page)
	}
	if _, res := b.text(303, acme+"/gaps/"+first); res.Header.Get("Location") != at {
		t.Errorf("the old address leads to %q", res.Header.Get("Location"))
	}
	if list, _ := b.text(200, acme+"/gaps?state=job"); !strings.Contains(list, "With a job (1)") {
		t.Error("it is not among those with a job")
	}

	// It is merged, and the documentation has it.
	pull, err := h.catalog.AddPull(t.Context(), api.PullRequest{Project: "acme", Head: "docent/gap", Base: "main"})
	if err != nil {
		t.Fatal(err)
	}
	when := h.clock.Now().Add(-2 * time.Hour)
	pull.State, pull.ClosedAt = api.PullMerged, &when
	if _, err := h.catalog.UpdatePull(t.Context(), pull); err != nil {
		t.Fatal(err)
	}
	h.agent.docs = "To rotate a key, make another."
	h.ask("eve", "rotate API key", wellAnswered)
	page, _ = b.text(200, at)
	for _, want := range []string{"Since the merge", "Asked since", "3 of 3", "answered</span>"} {
		if !strings.Contains(page, want) {
			t.Errorf("after the merge the page lacks %q:\n%s", want, page)
		}
	}
}

func TestWhatReadersWroteIsTextOnEveryPageAboutIt(t *testing.T) {
	h := build(t)
	h.rotation()
	b := h.visitor("owner")
	_, res := b.text(303, acme+"/gaps/"+h.ask("mallory", hostile))
	id := strings.TrimPrefix(res.Header.Get("Location"), acme+"/gaps/")
	for _, docs := range []string{"", "Keys."} {
		h.agent.docs = docs
		for _, local := range []bool{false, true} {
			h.agent.local = local
			for _, path := range []string{"/gaps", "/gaps/" + id, "/analytics", "/report", "/report?week=2026-W47"} {
				page, _ := b.text(200, acme+path)
				if strings.Contains(page, "<script>alert") || strings.Contains(page, "<img src=x") || strings.Contains(page, "Keys <i>") {
					t.Errorf("%s runs what a reader wrote:\n%s", path, page)
				}
			}
		}
	}
	page, _ := b.text(200, acme+"/gaps/"+id)
	if !strings.Contains(page, "&lt;script&gt;") || strings.Count(page, "</textarea>") != 1 {
		t.Errorf("the question is not shown as it was written:\n%s", page)
	}
}

func TestTheBuiltInAgentIsOfferedOnlyWhatItCanDo(t *testing.T) {
	h := build(t)
	first := h.rotation()
	h.agent.docs, h.agent.local = "Keys.", true
	b := h.visitor("editor")
	page, _ := b.text(200, acme+"/gaps/"+first)
	if !strings.Contains(page, "carries out instructions of fixed forms") ||
		!strings.Contains(page, "to guides/keys.md with content:") {
		t.Errorf("the page does not say so:\n%s", page)
	}
	other, _ := b.text(200, acme+"/gaps/"+first+"?form=page")
	if !strings.Contains(other, "create page guides/") {
		t.Errorf("a page of its own is not offered:\n%s", other)
	}
	form := url.Values{"token": {b.token(page)}, "attempt": {"1"},
		"prompt": {`add a section "X" to guides/keys.md with content: WRITE THE TEXT HERE and mine`}}
	res := b.send(acme+"/gaps/"+first+"/open", form)
	text := bodyOf(t, res)
	if res.StatusCode != 400 || !strings.Contains(text, "still holds") || !strings.Contains(text, "and mine</textarea>") ||
		len(h.agent.requests) != 0 {
		t.Errorf("the placeholder is let through, or the text lost: %d %s", res.StatusCode, text)
	}
	h.agent.refuse = &api.LimitError{Name: "project-hour", Limit: 5, RetryAfter: 90 * time.Second}
	form.Set("prompt", "my own words")
	res = b.send(acme+"/gaps/"+first+"/open", form)
	if text := bodyOf(t, res); res.StatusCode != 429 || !strings.Contains(text, "my own words</textarea>") ||
		!strings.Contains(text, "5 instructions an hour") {
		t.Errorf("beyond the quota: %d %s", res.StatusCode, text)
	}
}

func TestTopicsAreDismissedAndRestored(t *testing.T) {
	h := build(t)
	first := h.rotation()
	b := h.visitor("editor")
	token := b.token(b.open(acme + "/gaps/" + first))
	res := b.send(acme+"/gaps/"+first+"/dismiss", url.Values{"token": {token}, "reason": {"not <b>ours</b>"}})
	if res.StatusCode != http.StatusSeeOther {
		t.Fatal(res.StatusCode)
	}
	list, _ := b.text(200, acme+"/gaps?state=dismissed")
	if !strings.Contains(list, "Dismissed (1)") || !strings.Contains(list, "Open (1)") {
		t.Errorf("the list is %s", list)
	}
	_, res = b.text(303, acme+"/gaps/"+first)
	at := res.Header.Get("Location")
	page, _ := b.text(200, at)
	if !strings.Contains(page, "not &lt;b&gt;ours&lt;/b&gt;") {
		t.Errorf("the reason is not there: %s", page)
	}
	if res := b.send(at+"/restore", url.Values{"token": {token}}); res.StatusCode != http.StatusSeeOther {
		t.Fatal(res.StatusCode)
	}
	if list, _ := b.text(200, acme+"/gaps"); !strings.Contains(list, "Open (2)") {
		t.Error("it is not open again")
	}
	// A viewer sees it, and is offered nothing.
	page, _ = h.visitor("viewer").text(200, at)
	if strings.Contains(page, at+"/open") || strings.Contains(page, at+"/dismiss") {
		t.Error("a viewer is offered a form")
	}
}

func TestAnalyticsShowTheirNumbersAsTablesAndFiles(t *testing.T) {
	h := build(t)
	h.rotation()
	h.agent.docs = "Keys."
	h.ask("@SUM(A1)", "=cmd|' /C calc'!A0")
	h.catalog.RecordRead("acme", "tools", "guides/keys.md")
	b := h.visitor("viewer")
	page, _ := b.text(200, acme+"/analytics?days=7")
	for _, want := range []string{`data-plot="t-questions"`, `id="t-questions"`, `<tr><td>guides/keys.md</td><td data-label="By MCP and API" class="num">1</td>`, "Lonely", "1 of 2 pages", "Web", "uplot.min."} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if n := strings.Count(page, "2026-11-21"); n < 3 {
		t.Errorf("today is in the tables %d times", n)
	}
	for part, want := range map[string]string{"days": "2026-11-21,6,1,5,0,0,0,1,120,120", "topics": "'=cmd|", "searches": "search,times,last",
		"cited": "https://docs.acme.example/guides/keys,Keys,1", "never": "Lonely", "callers": "'@SUM(A1)",
		"agents": "guides/keys.md,1,0"} {
		res := b.do("GET", acme+"/analytics.csv?days=7&part="+part, nil)
		text := bodyOf(t, res)
		if res.StatusCode != 200 || !strings.Contains(text, want) || res.Header.Get("Content-Type") != "text/csv; charset=utf-8" {
			t.Errorf("%s: %d %s", part, res.StatusCode, text)
		}
	}
	for _, bad := range []string{"days=0", "days=x", "from=yesterday", "from=2026-11-02&to=2026-11-01", "from=1999-01-01",
		"part=none"} {
		b.text(400, acme+"/analytics.csv?"+bad)
	}
	if page, _ := b.text(200, acme+"/analytics?from=2026-10-01&to=2026-10-02"); !strings.Contains(page, "No questions in this period") {
		t.Error("an empty time says nothing of what to do")
	}
}

func TestTheReportIsAPageAndAFile(t *testing.T) {
	h := build(t)
	h.rotation()
	h.clock.advance(3 * 24 * time.Hour) // Tuesday
	viewer, b := h.visitor("viewer"), h.visitor("owner")
	page, _ := viewer.text(200, acme+"/report")
	if !strings.Contains(page, "Week 2026-W47") || !strings.Contains(page, "none before") || strings.Contains(page, "webhook") {
		t.Errorf("a viewer sees %s", page)
	}
	if res := viewer.do("GET", acme+"/report.csv?week=2026-W47", nil); !strings.Contains(bodyOf(t, res), "gap,How do I rotate an API key?,3") {
		t.Error("the file lacks the topic")
	}
	for _, bad := range []string{"2026-W99", "x", "2027-W10"} {
		viewer.text(400, acme+"/report?week="+bad)
	}
	if page := b.open(acme + "/report"); !strings.Contains(page, acme+"/webhooks") || !strings.Contains(page, "report.weekly") {
		t.Error("an owner is not told how to get it every Monday")
	}
	token := b.token(b.open(acme + "/settings"))
	if res := b.send(acme+"/settings/change", url.Values{"token": {token}, "timeZone": {"Mars/Crater"}}); res.StatusCode != 400 {
		t.Errorf("a time zone of another planet: %d", res.StatusCode)
	}
}
