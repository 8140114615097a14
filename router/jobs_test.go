package router_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"docent/actors/job"
	"docent/api"
	"docent/persistence/cluster"
	"docent/persistence/journal"
)

func TestAJobIsCreatedReadAndFollowedUp(t *testing.T) {
	h := build(t)
	res := h.do("POST", "/v2/agent/acme/job", h.admin,
		`{"prompt":"  rename \"A\" to \"B\"\n","asDraft":true,"model":"small","later":{"x":[1]}}`)
	if res.StatusCode != 201 {
		t.Fatal(res.Status)
	}
	created := decodeJSON(t, res.Body)
	id := created["id"].(string)
	if got, want := res.Header.Get("Location"), "/v2/agent/acme/job/"+id; got != want {
		t.Errorf("Location %q, want %q", got, want)
	}
	if created["status"] != "active" || created["prLink"] != nil || created["createdAt"] != "2026-11-21T10:00:00.123Z" ||
		created["archivedAt"] != nil {
		t.Errorf("created: %v", created)
	}
	if got, want := res.Header.Get("RateLimit"), `"project-hour";r=99;t=1800`; got != want {
		t.Errorf("RateLimit %q, want %q", got, want)
	}
	if got, want := res.Header.Get("RateLimit-Policy"), `"project-hour";q=100;w=3600`; got != want {
		t.Errorf("RateLimit-Policy %q, want %q", got, want)
	}
	cmd := h.jobs.last.(job.Create)
	if cmd.Prompt != `rename "A" to "B"` || !cmd.Draft || cmd.Model != "small" || cmd.Project.ID != "acme" ||
		cmd.User == "" || len(cmd.Uses) != 1 {
		t.Errorf("command: %+v", cmd)
	}

	if outcome, ok := created["outcome"]; !ok || outcome != nil {
		t.Errorf("the outcome of an active job is %v", outcome)
	}
	link := "/pulls/pr_1"
	h.jobs.change(api.JobID(id), func(r *api.JobRow) {
		r.Job.Status, r.Job.PRLink, r.Job.Outcome = api.JobCompleted, &link, api.OutcomeChanged
	})
	read := h.json(200, "GET", res.Header.Get("Location"), h.admin, "")
	if read["outcome"] != "changed" || read["status"] != "completed" || read["prLink"] != h.url+"/pulls/pr_1" {
		t.Errorf("read: %v", read)
	}
	again := h.json(200, "POST", res.Header.Get("Location")+"/message", h.admin, `{"prompt":"and the title"}`)
	if again["status"] != "active" || again["id"] != id {
		t.Errorf("after the follow-up: %v", again)
	}
	if got := h.jobs.prompts(api.JobID(id)); len(got) != 2 || got[1] != "and the title" {
		t.Errorf("prompts: %q", got)
	}
	if got := h.quotas.count("project/acmeproject-hour"); got != 2 {
		t.Errorf("%d uses counted, want 2", got)
	}
	if got := h.json(200, "POST", res.Header.Get("Location")+"/cancel", h.admin, ""); got["status"] != "failed" ||
		got["message"] != "cancelled" {
		t.Errorf("cancelled: %v", got)
	}
	if got := h.json(200, "POST", res.Header.Get("Location")+"/archive", h.admin, ""); got["archivedAt"] == nil {
		t.Errorf("archived: %v", got)
	}
	refused := h.json(409, "POST", res.Header.Get("Location")+"/message", h.admin, `{"prompt":"more"}`)
	if refused["code"] != "conflict" || refused["error"] != "the job is archived" {
		t.Errorf("follow-up to an archived job: %v", refused)
	}
	if got := h.quotas.count("project/acmeproject-hour"); got != 2 {
		t.Errorf("a refused follow-up cost a use: %d, want 2", got)
	}
}

func (h *house) create(headers ...string) string {
	h.t.Helper()
	return h.json(201, "POST", "/v2/agent/acme/job", h.admin, `{"prompt":"p"}`, headers...)["id"].(string)
}

func TestAPollThatKnowsTheJobGetsNoBody(t *testing.T) {
	h := build(t)
	path := "/v2/agent/acme/job/" + h.create()
	first := h.do("GET", path, h.admin, "")
	tag := first.Header.Get("ETag")
	for _, seen := range []string{tag, "W/" + tag, `"x", ` + tag, "*"} {
		body, res := h.text(304, "GET", path, h.admin, "", "If-None-Match", seen)
		if body != "" || res.Header.Get("ETag") != tag {
			t.Errorf("If-None-Match %s: %q, ETag %q", seen, body, res.Header.Get("ETag"))
		}
	}
	h.text(200, "GET", path, h.admin, "", "If-None-Match", `"other"`)
	body, res := h.text(200, "HEAD", path, h.admin, "")
	if body != "" || res.Header.Get("ETag") != tag || res.Header.Get("Content-Length") == "" {
		t.Errorf("HEAD: %q, %v", body, res.Header)
	}
}

func TestAPollIsHeldUntilTheJobChanges(t *testing.T) {
	t.Parallel()
	h := build(t)
	id := h.create()
	path := "/v2/agent/acme/job/" + id
	tag := h.do("GET", path, h.admin, "").Header.Get("ETag")
	watching := make(chan struct{}, 10)
	h.jobs.before = func(cmd job.Command) {
		if _, ok := cmd.(job.Watch); ok {
			watching <- struct{}{}
		}
	}
	for _, name := range []string{"by tag", "without a tag"} {
		t.Run(name, func(t *testing.T) {
			var headers []string
			if name == "by tag" {
				headers = []string{"If-None-Match", tag}
			}
			got := make(chan map[string]any)
			go func() { got <- h.json(200, "GET", path+"?wait=30", h.admin, "", headers...) }()
			<-watching
			// An event that the answer does not show does not end the wait.
			h.jobs.change(api.JobID(id), func(r *api.JobRow) {})
			<-watching
			h.jobs.change(api.JobID(id), func(r *api.JobRow) { r.Job.Title = name })
			if j := <-got; j["title"] != name {
				t.Errorf("%v", j)
			}
		})
	}
	// The version that was seen is old already: no wait.
	if j := h.json(200, "GET", path+"?wait=30", h.admin, "", "If-None-Match", tag); j["title"] == "" {
		t.Errorf("%v", j)
	}
	// The job has ended: nothing to wait for.
	h.jobs.change(api.JobID(id), func(r *api.JobRow) { r.Job.Status = api.JobCompleted })
	h.json(200, "GET", path+"?wait=30", h.admin, "")
	// The time passes.
	tag = h.do("GET", path, h.admin, "").Header.Get("ETag")
	h.text(304, "GET", path+"?wait=1", h.admin, "", "If-None-Match", tag)
}

func TestAHeldPollEndsWhenTheServiceStops(t *testing.T) {
	h := build(t)
	path := "/v2/agent/acme/job/" + h.create()
	watching := make(chan struct{}, 1)
	h.jobs.before = func(cmd job.Command) {
		if _, ok := cmd.(job.Watch); ok {
			watching <- struct{}{}
		}
	}
	got := make(chan map[string]any)
	go func() { got <- h.json(200, "GET", path+"?wait=60", h.admin, "") }()
	<-watching
	if err := h.server.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	if j := <-got; j["status"] != "active" {
		t.Errorf("%v", j)
	}
}

func TestARepeatedRequestIsTheSameJob(t *testing.T) {
	h := build(t)
	first := h.create("Idempotency-Key", "k1")
	// Another order of fields and other fields that mean nothing make no other request.
	again := h.json(201, "POST", "/v2/agent/acme/job", h.admin, `{"x":1, "asDraft":false, "prompt":"p" }`,
		"Idempotency-Key", "k1")
	if again["id"] != first {
		t.Errorf("the repeat made %v, want %v", again["id"], first)
	}
	if got := h.json(409, "POST", "/v2/agent/acme/job", h.admin, `{"prompt":"q"}`, "Idempotency-Key",
		"k1"); got["code"] != "conflict" {
		t.Errorf("another body: %v", got)
	}
	// Another caller's key, another operation and another project are other requests.
	admin2 := h.key(api.Key{Kind: api.AdminKey, Org: "org-a", Project: "acme"})
	if other := h.json(201, "POST", "/v2/agent/acme/job", admin2, `{"prompt":"p"}`, "Idempotency-Key",
		"k1"); other["id"] == first {
		t.Error("another caller got this caller's job")
	}
	if other := h.json(201, "POST", "/v2/agent/acme-two/job", h.admin, `{"prompt":"p"}`, "Idempotency-Key",
		"k1"); other["id"] == first {
		t.Error("another project got this project's job")
	}
	message := "/v2/agent/acme/job/" + first + "/message"
	h.json(200, "POST", message, h.admin, `{"prompt":"p"}`, "Idempotency-Key", "k1")
	h.json(200, "POST", message, h.admin, `{"prompt":"p"}`, "Idempotency-Key", "k1")
	h.json(409, "POST", message, h.admin, `{"prompt":"q"}`, "Idempotency-Key", "k1")
	if got := h.jobs.prompts(api.JobID(first)); len(got) != 2 {
		t.Errorf("prompts %q, want two", got)
	}
	if got := h.quotas.count("project/acmeproject-hour"); got != 3 { // two creations, one follow-up
		t.Errorf("%d uses counted, want 3", got)
	}
	// A day later the key is free again.
	h.clock.advance(25 * time.Hour)
	h.jobs.claims.mu.Lock()
	clear(h.jobs.claims.held) // as the journal does
	h.jobs.claims.mu.Unlock()
	if h.create("Idempotency-Key", "k1") == first {
		t.Error("the key outlived its day")
	}
}

func TestRequestsThatRaceWithOneKeyMakeOneJob(t *testing.T) {
	h := build(t)
	h.jobs.claims.hidden = true // every lookup comes before the first append
	ids := make([]string, 8)
	var wg sync.WaitGroup
	for i := range ids {
		wg.Go(func() { ids[i] = h.create("Idempotency-Key", "race") })
	}
	wg.Wait()
	for _, id := range ids {
		if id != ids[0] {
			t.Fatalf("the same request made several jobs: %v", ids)
		}
	}
	if n, used := h.jobs.count(), h.quotas.count("project/acmeproject-hour"); n != 1 || used != 1 {
		t.Errorf("%d jobs and %d uses, want one of each", n, used)
	}
	if got := h.json(409, "POST", "/v2/agent/acme/job", h.admin, `{"prompt":"other"}`, "Idempotency-Key",
		"race"); got["code"] != "conflict" {
		t.Errorf("another body: %v", got)
	}
	if used := h.quotas.count("project/acmeproject-hour"); used != 1 {
		t.Errorf("a refused request cost a use: %d", used)
	}
}

func TestJobsAreListedInPages(t *testing.T) {
	h := build(t)
	var ids []string
	for range 7 {
		ids = append([]string{h.create()}, ids...)
		h.clock.advance(time.Millisecond)
	}
	h.json(200, "POST", "/v2/agent/acme/job/"+ids[0]+"/archive", h.admin, "")
	h.jobs.change(api.JobID(ids[1]), func(r *api.JobRow) { r.Job.Status = api.JobFailed })
	h.json(201, "POST", "/v2/agent/acme-two/job", h.admin, `{"prompt":"elsewhere"}`)

	list := func(query string) (got []string, next any) {
		t.Helper()
		page := h.json(200, "GET", "/v2/agent/acme/jobs"+query, h.admin, "")
		for _, j := range page["jobs"].([]any) {
			got = append(got, j.(map[string]any)["id"].(string))
		}
		return got, page["nextCursor"]
	}
	var all []string
	query, pages := "?limit=3", 0
	for {
		got, next := list(query)
		all = append(all, got...)
		pages++
		if next == nil {
			break
		}
		query = "?limit=3&cursor=" + next.(string)
	}
	if fmt.Sprint(all) != fmt.Sprint(ids) || pages != 3 {
		t.Errorf("%d pages: %v, want %v", pages, all, ids)
	}
	if got, _ := list("?archived=true"); fmt.Sprint(got) != fmt.Sprint(ids[:1]) {
		t.Errorf("archived: %v", got)
	}
	if got, _ := list("?archived=false&status=active"); fmt.Sprint(got) != fmt.Sprint(ids[2:]) {
		t.Errorf("active: %v", got)
	}
	if got, next := list("?status=failed&limit=1"); fmt.Sprint(got) != fmt.Sprint(ids[1:2]) || next != nil {
		t.Errorf("failed: %v, %v", got, next)
	}
	h.text(200, "HEAD", "/v2/agent/acme/jobs", h.admin, "")

	res := h.do("GET", "/v1/agent/acme/jobs", h.admin, "")
	sessions := decodeJSON(t, res.Body)["allSessions"].([]any)
	if len(sessions) != 7 || res.Header.Get("Link") != `</v2/agent/acme/jobs>; rel="successor-version"` {
		t.Errorf("%d sessions, Link %q", len(sessions), res.Header.Get("Link"))
	}
	if got := h.json(200, "GET", "/v1/agent/acme/jobs?skip=5&take=1", h.admin, "")["allSessions"].([]any); len(got) != 1 ||
		got[0].(map[string]any)["sessionId"] != ids[5] {
		t.Errorf("skip and take: %v", got)
	}
	s := h.json(200, "GET", "/v1/agent/acme/job/"+ids[1], h.admin, "")
	if s["haulted"] != true || s["subdomain"] != "docs.acme.example" || s["pullRequestLink"] != "" {
		t.Errorf("session: %v", s)
	}
	h.text(200, "HEAD", "/v1/agent/acme/jobs", h.admin, "")
	h.text(200, "HEAD", "/v1/agent/acme/job/"+ids[1], h.admin, "")
}

func TestWhatIsRefusedCostsNothing(t *testing.T) {
	h := build(t)
	path := "/v2/agent/acme/job"
	for _, c := range []struct {
		err    error
		status int
		code   string
		used   int
	}{
		{&api.BusyError{Kind: api.ErrOverloaded, RetryAfter: 7 * time.Second}, 503, "overloaded", 0},
		{fmt.Errorf("append: %w", api.ErrUnavailable), 503, "overloaded", 0},
		{&api.BusyError{Kind: api.ErrShuttingDown}, 503, "shutting_down", 0},
		{&api.InvalidError{Problems: []api.Problem{{Field: "model", Message: "there is no such model"}}}, 400,
			"invalid_request", 0},
		{fmt.Errorf("some bug with a secret in it"), 500, "internal", 0},
		{fmt.Errorf("ask: %w", contextDeadline), 503, "overloaded", 1}, // it may have been accepted
	} {
		h.jobs.refuse = c.err
		res := h.do("POST", path, h.admin, `{"prompt":"p"}`)
		body := decodeJSON(t, res.Body)
		if res.StatusCode != c.status || body["code"] != c.code {
			t.Errorf("%v: %d %v, want %d %s", c.err, res.StatusCode, body, c.status, c.code)
		}
		if strings.Contains(fmt.Sprint(body), "secret") {
			t.Errorf("the cause is shown to the caller: %v", body)
		}
		if got := h.quotas.total(); got != c.used {
			t.Errorf("%v: %d uses counted, want %d", c.err, got, c.used)
		}
		if c.status == 503 && res.Header.Get("Retry-After") == "" {
			t.Errorf("%v: no Retry-After", c.err)
		}
	}
	if !strings.Contains(h.log.String(), "some bug with a secret in it") {
		t.Error("the cause is not in the log")
	}
}

func TestAQuotaThatIsUsedUpIsNamed(t *testing.T) {
	h := build(t)
	p := h.catalog.projects["acme"]
	p.Limits.ProjectHour = 2
	h.catalog.projects["acme"] = p
	first := h.create()
	h.json(200, "POST", "/v2/agent/acme/job/"+first+"/message", h.admin, `{"prompt":"p"}`)
	res := h.do("POST", "/v2/agent/acme/job", h.admin, `{"prompt":"p"}`)
	body := decodeJSON(t, res.Body)
	if res.StatusCode != 429 || body["code"] != "rate_limited" || body["limit"] != "project-hour" ||
		body["error"] != "This project has used up its 2 jobs and follow-ups of an hour. Please try again in 2 minutes." ||
		res.Header.Get("Retry-After") != "91" || res.Header.Get("RateLimit") != `"project-hour";r=0;t=1800` ||
		res.Header.Get("RateLimit-Policy") != `"project-hour";q=2;w=3600` {
		t.Errorf("%d %v %v", res.StatusCode, body, res.Header)
	}
	// Reading is not limited, other projects are not concerned, and a project may have none.
	h.json(200, "GET", "/v2/agent/acme/job/"+first, h.admin, "")
	h.json(201, "POST", "/v2/agent/acme-two/job", h.admin, `{"prompt":"p"}`)
	p.Limits.ProjectHour = -1
	h.catalog.projects["acme"] = p
	if res := h.do("POST", "/v2/agent/acme/job", h.admin, `{"prompt":"p"}`); res.StatusCode != 201 ||
		res.Header.Get("RateLimit") != "" {
		t.Errorf("without a limit: %d %v", res.StatusCode, res.Header)
	}
}

func TestAPanicIsOneRequestsOwn(t *testing.T) {
	h := build(t)
	h.jobs.panicOn = func(cmd job.Command) bool { _, ok := cmd.(job.Create); return ok }
	res := h.do("POST", "/v2/agent/acme/job", h.admin, `{"prompt":"p"}`, "X-Request-Id", "mine-1")
	body := decodeJSON(t, res.Body)
	if res.StatusCode != 500 || body["code"] != "internal" || body["requestId"] != "mine-1" ||
		strings.Contains(fmt.Sprint(body), "a bug") {
		t.Errorf("%d %v", res.StatusCode, body)
	}
	h.jobs.panicOn = nil
	h.create()
	if log := h.log.String(); !strings.Contains(log, "panic: a bug") || !strings.Contains(log, `"request":"mine-1"`) {
		t.Errorf("log: %s", log)
	}
}

var contextDeadline = context.DeadlineExceeded

// TestNobodyIsToldThatNothingHappenedWhereThatIsNotKnown has the database's answer to a change be lost: the connection
// breaks off, and the use counts.
func TestNobodyIsToldThatNothingHappenedWhereThatIsNotKnown(t *testing.T) {
	h := build(t)
	used := h.quotas.total()
	h.jobs.refuse = fmt.Errorf("append: %w: %w", journal.ErrUnknown, &api.BusyError{Kind: api.ErrUnavailable, RetryAfter: time.Second})
	req, err := http.NewRequest(http.MethodPost, h.url+"/v2/agent/acme/job", strings.NewReader(`{"prompt":"p"}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+h.admin)
	req.Header.Set("Content-Type", "application/json")
	if res, err := http.DefaultTransport.RoundTrip(req); err == nil {
		res.Body.Close()
		t.Errorf("answered with %d", res.StatusCode)
	}
	if got := h.quotas.total(); got != used+1 {
		t.Errorf("%d uses, had %d", got, used)
	}
}

// TestWhatWasNotBegunForAClientThatLeftCostsNothing has the clients of a job and of a question leave while their node
// waits for another one.
func TestWhatWasNotBegunForAClientThatLeftCostsNothing(t *testing.T) {
	h, solve := worked(t)
	used := h.quotas.total()
	h.jobs.refuse = fmt.Errorf("create: %w", cluster.ErrLeft)
	h.threads.refuse = h.jobs.refuse
	solution := solve()
	for path, with := range map[string][2]string{"/v2/agent/acme/job": {h.admin, `{"prompt":"p"}`}, v2: {h.assistant, ask}} {
		req, err := http.NewRequest(http.MethodPost, h.url+path, strings.NewReader(with[1]))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+with[0])
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("X-Altcha", solution)
		if res, err := http.DefaultTransport.RoundTrip(req); err == nil {
			res.Body.Close()
			t.Errorf("%s: answered with %d", path, res.StatusCode)
		}
	}
	if got := h.quotas.total(); got != used {
		t.Errorf("%d uses, had %d", got, used)
	}
	h.threads.refuse = nil
	h.text(200, "POST", v2, h.assistant, ask, "X-Altcha", solution) // which is not used up
}
