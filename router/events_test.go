package router_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"docent/actors/job"
	"docent/api"
	"docent/api/openapi/openapitest"
	"docent/router"
)

// An event is one server-sent event as a browser would hand it on.
type event struct{ id, name, data string }

// events reads server-sent events; comments are left out. The channel closes with the stream.
func events(t *testing.T, body io.Reader) <-chan event {
	t.Helper()
	out := make(chan event, 100)
	go func() {
		defer close(out)
		var e event
		lines := bufio.NewScanner(body)
		lines.Buffer(nil, 4<<20)
		for lines.Scan() {
			name, value, _ := strings.Cut(lines.Text(), ": ")
			switch name {
			case "id":
				e.id = value
			case "event":
				e.name = value
			case "data":
				e.data = value
			case "":
				if e != (event{}) && value == "" && lines.Text() == "" {
					out <- e
					e = event{}
				}
			}
		}
	}()
	return out
}

// entry holds an event's data against the contract.
func entry(t *testing.T, e event) map[string]any {
	t.Helper()
	schema := "#/components/schemas/JobEvent"
	if e.name == "end" {
		schema = "#/components/schemas/Job"
	}
	if err := openapitest.Document().Body(schema, []byte(e.data)); err != nil {
		t.Errorf("%s: %v", e.name, err)
	}
	var v map[string]any
	if err := json.Unmarshal([]byte(e.data), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func same(r *api.JobRow) {}

func ended(r *api.JobRow) { r.Job.Status, r.Halt = api.JobCompleted, api.HaltCompleted }

func TestAJobIsFollowedFromAnyEvent(t *testing.T) {
	h := build(t)
	id := api.JobID(h.create())
	path := "/v2/agent/acme/job/" + string(id) + "/events"
	h.jobs.add(id, job.Entry{Type: job.EntryProgress, Title: "t", Text: "one\nline",
		Todos: []api.Todo{{ID: "1", Content: "c", Status: "pending", Priority: "low"}}}, same)
	h.jobs.add(id, job.Entry{Type: job.EntryTool, Tool: &job.ToolUse{Name: "read", Input: "a.md", Failed: true}}, same)

	res := h.do("GET", path, h.admin, "")
	if res.StatusCode != 200 || res.Header.Get("Content-Type") != "text/event-stream" ||
		res.Header.Get("X-Accel-Buffering") != "no" {
		t.Fatalf("%s, %v", res.Status, res.Header)
	}
	stream := events(t, res.Body)
	first := <-stream
	if v := entry(t, first); first.id != "2" || first.name != "progress" || v["text"] != "one\nline" ||
		v["status"] != "active" || v["at"] != "2026-11-21T10:00:00.123Z" {
		t.Errorf("%+v", first)
	}
	if e := <-stream; e.id != "3" || entry(t, e)["tool"].(map[string]any)["failed"] != true {
		t.Errorf("%+v", e)
	}
	// Calls side by side are an event each, and the last of them bears the number that a reader comes back with.
	h.jobs.add(id, job.Entry{Type: job.EntryTool, Calls: []job.ToolUse{{ID: "c", Name: "check"}}, Text: "I look.",
		Results: []job.ToolUse{{ID: "a", Name: "read_file", Input: "{}", Output: "x"}, {ID: "b", Name: "grep", Output: "y", Failed: true}, {ID: "old"}}}, same)
	for _, want := range []struct{ id, name, tool, output string }{{"3", "tool", "read_file", "x"}, {"3", "tool", "grep", "y"}, {"4", "progress", "", ""}} {
		e := <-stream
		v := entry(t, e)
		tool, _ := v["tool"].(map[string]any)
		if e.id != want.id || e.name != want.name || fmt.Sprint(v["id"]) != want.id || want.tool != "" && (tool["name"] != want.tool || tool["output"] != want.output) {
			t.Errorf("%+v, want %+v", e, want)
		}
	}
	h.jobs.add(id, job.Entry{Type: job.EntryTool, Results: []job.ToolUse{{ID: "c", Name: "check", Output: "well"}}}, same)
	if e := <-stream; e.id != "5" || e.name != "tool" || entry(t, e)["tool"].(map[string]any)["output"] != "well" {
		t.Errorf("%+v", e)
	}
	// From here on it is followed.
	link := "/pulls/pr_1"
	h.jobs.add(id, job.Entry{Type: job.EntryEdited, Branch: "b", Diff: "+x\n",
		Files: []job.FileChange{{Path: "a.md", Status: "modified", Added: 1}}}, same)
	if e := <-stream; e.id != "6" || entry(t, e)["diff"] != "+x\n" {
		t.Errorf("%+v", e)
	}
	h.jobs.add(id, job.Entry{Type: job.EntryPublished, Branch: "b", Commit: "c", Link: link},
		func(r *api.JobRow) { r.Job.PRLink = &link })
	if e := <-stream; e.id != "7" || entry(t, e)["prLink"] != h.url+link {
		t.Errorf("%+v", e)
	}
	h.jobs.add(id, job.Entry{Type: job.EntryFinished, Text: "Done.", Outcome: api.OutcomeChanged}, ended)
	if e := <-stream; e.id != "8" || entry(t, e)["status"] != "completed" || entry(t, e)["outcome"] != "changed" {
		t.Errorf("%+v", e)
	}
	if e := <-stream; e.id != "" || e.name != "end" || entry(t, e)["prLink"] != h.url+link {
		t.Errorf("%+v", e)
	}
	if e, more := <-stream; more {
		t.Errorf("after the end: %+v", e)
	}

	// A client that was cut off resumes where it was, by header or by query.
	for _, again := range []*http.Response{h.do("GET", path, h.admin, "", "Last-Event-ID", "6"),
		h.do("GET", path+"?after=6", h.admin, "")} {
		var got []string
		for e := range events(t, again.Body) {
			got = append(got, e.id+e.name)
		}
		if fmt.Sprint(got) != "[7published 8finished end]" {
			t.Errorf("resumed: %q", got)
		}
	}
	// Who has seen all of it need not come again.
	if body, _ := h.text(204, "GET", path, h.admin, "", "Last-Event-ID", "8"); body != "" {
		t.Errorf("%q", body)
	}
	h.text(200, "HEAD", path, h.admin, "")
}

func TestWhatTheLogNoLongerHasIsSaid(t *testing.T) {
	h := build(t)
	id := api.JobID(h.create())
	h.jobs.add(id, job.Entry{Type: job.EntryFinished}, ended)
	h.jobs.mu.Lock()
	h.jobs.all[id].omitted = 1
	h.jobs.mu.Unlock()
	body, _ := h.text(200, "GET", "/v2/agent/acme/job/"+string(id)+"/events", h.admin, "")
	if !strings.Contains(body, "event: omitted\ndata: {\"until\":1}\n\nid: 2\nevent: finished\n") {
		t.Errorf("%s", body)
	}
}

func TestAQuietJobIsKeptAliveAndAStopEndsItsStream(t *testing.T) {
	h := build(t, func(d *router.Deps) { d.Bounds.KeepAlive = 20 * time.Millisecond })
	id := h.create()
	res := h.do("GET", "/v2/agent/acme/job/"+id+"/events", h.admin, "")
	r := bufio.NewReader(res.Body)
	for range 3 {
		for {
			line, err := r.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			if line == ": ping\n" {
				break
			}
		}
	}
	if err := h.server.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	if rest, err := io.ReadAll(r); err != nil || bytes.Contains(rest, []byte("event: end")) {
		t.Errorf("%v: %s", err, rest)
	}
	figures, _ := h.text(200, "GET", "/metrics", h.admin, "")
	if want := `docent_streams_ended_total{form="job",how="cut"} 1`; !strings.Contains(figures, want) {
		t.Errorf("the figures lack %s", want)
	}
}

// A job may go on for hours, and a key that was revoked, or that has expired, is told nothing more of it.
func TestAJobIsFollowedAsLongAsItsKeyIsGood(t *testing.T) {
	for name, end := range map[string]func(h *house, secret string){
		"revoked": func(h *house, secret string) {
			h.catalog.mu.Lock()
			defer h.catalog.mu.Unlock()
			delete(h.catalog.keys, api.HashSecret(secret))
		},
		"expired": func(h *house, _ string) { h.clock.advance(2 * time.Hour) },
		"unknown whether it is good": func(h *house, _ string) {
			h.catalog.mu.Lock()
			defer h.catalog.mu.Unlock()
			h.catalog.fail = errors.New("the catalog does not answer")
		},
		"of a project that has moved": func(h *house, _ string) {
			h.catalog.mu.Lock()
			defer h.catalog.mu.Unlock()
			p := h.catalog.projects["acme"]
			p.Org = "org-b"
			h.catalog.projects["acme"] = p
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := build(t)
			id := api.JobID(h.create())
			until := h.clock.Now().Add(time.Hour)
			secret := h.key(api.Key{Kind: api.AdminKey, Org: "org-a", ExpiresAt: &until})
			at := "/v2/agent/acme/job/" + string(id)
			poll, polled := make(chan int, 1), make(chan struct{}, 10)
			h.jobs.before = func(cmd job.Command) {
				if w, ok := cmd.(job.Watch); ok && !w.Log {
					polled <- struct{}{}
				}
			}
			stream := h.do("GET", at+"/events", secret, "")
			got := events(t, stream.Body)
			h.jobs.add(id, job.Entry{Type: job.EntryProgress, Title: "before"}, same)
			if e := <-got; !strings.Contains(e.data, "before") {
				t.Fatalf("%+v", e)
			}
			tag := h.do("GET", at, secret, "").Header.Get("ETag")
			go func() { poll <- h.do("GET", at+"?wait=60", secret, "", "If-None-Match", tag).StatusCode }()
			<-polled
			end(h, secret)
			h.jobs.add(id, job.Entry{Type: job.EntryProgress, Title: "after"}, ended)
			for e := range got {
				t.Errorf("is told %+v", e)
			}
			if status := <-poll; status < 400 {
				t.Errorf("a poll is answered %d", status)
			}
		})
	}
}

func TestAReaderOfAJobThatTakesNothingInLosesItsStreamAndNoOther(t *testing.T) {
	t.Parallel()
	// Longer than the other reader, which takes all in, may stand still on a machine that is busy.
	h := build(t, func(d *router.Deps) { d.Bounds.WriteTimeout = 8 * time.Second })
	id := api.JobID(h.create())
	path := "/v2/agent/acme/job/" + string(id) + "/events"
	stalled := h.dial()
	fmt.Fprint(stalled, h.raw("GET", path, h.admin, 0))
	head(t, bufio.NewReader(stalled)) // or it might come when the server drains
	other := events(t, h.do("GET", path, h.admin, "").Body)
	const entries = 400
	long := strings.Repeat("x", 64<<10) // more than the sockets take in
	for range entries {
		h.jobs.add(id, job.Entry{Type: job.EntryProgress, Text: long}, same)
		if e := <-other; e.name != "progress" {
			t.Fatalf("%.100s", e.data)
		}
	}
	h.jobs.add(id, job.Entry{Type: job.EntryFinished}, ended)
	if e := <-other; e.name != "finished" {
		t.Fatalf("%+v", e)
	}
	if e := <-other; e.name != "end" {
		t.Fatalf("%+v", e)
	}
	if err := h.server.Drain(t.Context()); err != nil { // returns when the stalled one is given up
		t.Fatal(err)
	}
	figures, _ := h.text(200, "GET", "/metrics", h.admin, "")
	for _, want := range []string{`docent_streams_ended_total{form="job",how="stalled"} 1`,
		`docent_streams_ended_total{form="job",how="finished"} 1`} {
		if !strings.Contains(figures, want) {
			t.Errorf("the figures lack %s", want)
		}
	}
}

func TestASessionIsCreatedAndItsRunStreamed(t *testing.T) {
	h := build(t)
	ids := make(chan api.JobID, 10)
	h.jobs.before = func(cmd job.Command) {
		if w, ok := cmd.(job.Watch); ok && w.After > 0 {
			select {
			case ids <- h.jobs.only():
			default:
			}
		}
	}
	// As real callers send it.
	body := `{"messages":[{"role":"system","content":"Rename A to B"}],"asDraft":"true","branch":"docs/rename","fp":"x"}`
	res := h.do("POST", "/v1/agent/acme/job", h.admin, body)
	if res.StatusCode != 200 || res.Header.Get("X-Branch-Name") != "docs/rename" || res.Header.Get("Deprecation") == "" ||
		res.Header.Get("Link") != `</v2/agent/acme/job>; rel="successor-version"` {
		t.Fatalf("%s %v", res.Status, res.Header)
	}
	id := <-ids
	if res.Header.Get("X-Session-Id") != string(id) {
		t.Errorf("session %q, job %q", res.Header.Get("X-Session-Id"), id)
	}
	link := "/pulls/pr_1"
	h.jobs.add(id, job.Entry{Type: job.EntryProgress, Text: "looking"}, same)
	h.jobs.add(id, job.Entry{Type: job.EntryFinished, Text: "Done."},
		func(r *api.JobRow) { ended(r); r.Job.PRLink = &link })
	want := `f:{"messageId":"` + string(id) + `"}` + "\n" + `0:"looking\n"` + "\n" + `0:"\nDone.\n"` + "\n" + `0:"\n` +
		h.url + `/pulls/pr_1\n"` + "\n"
	got, err := io.ReadAll(res.Body)
	if err != nil || !strings.HasPrefix(strings.TrimLeft(string(got), "\n"), want) ||
		!strings.Contains(string(got), "\nd:{\"finishReason\":\"stop\"") {
		t.Errorf("%v\n%s\nwant\n%s", err, got, want)
	}
	h.jobs.mu.Lock()
	row := h.jobs.all[id]
	h.jobs.mu.Unlock()
	if len(row.prompts) != 1 || row.prompts[0] != "Rename A to B" {
		t.Errorf("prompts %q", row.prompts)
	}

	// A repeat within 10 seconds is the same job, told from its start; it costs nothing.
	h.clock.advance(9 * time.Second)
	again := h.do("POST", "/v1/agent/acme/job", h.admin, body)
	if told, _ := io.ReadAll(again.Body); again.Header.Get("X-Session-Id") != string(id) ||
		!strings.Contains(string(told), want) {
		t.Errorf("a repeat is %q:\n%s", again.Header.Get("X-Session-Id"), told)
	}
	if n := h.quotas.count("project/acmeproject-hour"); n != 1 || h.jobs.count() != 1 {
		t.Errorf("%d uses, %d jobs", n, h.jobs.count())
	}
}

func TestASessionThatFailsEndsItsStreamWithTheReason(t *testing.T) {
	h := build(t)
	following := make(chan api.JobID, 10)
	h.jobs.before = func(cmd job.Command) {
		if w, ok := cmd.(job.Watch); ok && w.After > 0 {
			following <- h.jobs.only()
		}
	}
	res := h.do("POST", "/v1/agent/acme/job", h.admin,
		`{"messages":[{"role":"system","content":"Be brief."},{"role":"assistant","content":null},{"role":"user","content":"Do it."}],"asDraft":false,"model":null}`)
	id := <-following
	if got := h.jobs.prompts(id)[0]; got != "Be brief.\n\nDo it." {
		t.Errorf("prompt %q", got)
	}
	h.jobs.add(id, job.Entry{Type: job.EntryFailed, Text: "no such page"}, func(r *api.JobRow) {
		r.Job.Status, r.Job.Message = api.JobFailed, "no such page"
	})
	got, err := io.ReadAll(res.Body)
	if err != nil || !strings.Contains(string(got), `3:"no such page"`) ||
		!strings.Contains(string(got), `d:{"finishReason":"error"`) {
		t.Errorf("%v: %s", err, got)
	}
	// An Idempotency-Key stands for the request in place of its body.
	a := h.do("POST", "/v1/agent/acme/job", h.admin, `{"messages":[{"role":"user","content":"a"}]}`, "Idempotency-Key",
		"k")
	if res := h.do("POST", "/v1/agent/acme/job", h.admin, `{"messages":[{"role":"user","content":"b"}]}`,
		"Idempotency-Key", "k"); a.StatusCode != 200 || res.StatusCode != 409 {
		t.Errorf("%s, %s", a.Status, res.Status)
	}
}

// only is the one job that there is.
func (j *jobs) only() api.JobID {
	j.mu.Lock()
	defer j.mu.Unlock()
	for id := range j.all {
		return id
	}
	return ""
}
