package web_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"docent/actors/job"
	"docent/agent"
	"docent/api"
	"docent/forge"
)

const jobsOfAcme = "/console/org-a/docs.acme.example/jobs"

// evil is what stored script would look like.
const evil = `<script>alert(1)</script><img src=x onerror=alert(2)>"' javascript:alert(3)`

// harmless fails if a page holds what somebody has stored as something else than text.
func harmless(t *testing.T, where, page string) {
	t.Helper()
	for _, never := range []string{"<script>alert", "<img src=x", `href="javascript`, "onerror=alert(2)>\"' "} {
		if strings.Contains(page, never) {
			t.Errorf("%s has %q", where, never)
		}
	}
}

// workingJob is a job of acme that a language model works on, whose every text is hostile.
func (h *fixture) workingJob() api.JobID {
	id := api.JobID(api.NewID(api.JobPrefix, time.Now()))
	now := time.Now()
	h.jobs.add(api.JobRow{Project: "acme", User: "key_x", Branch: evil, Todos: []api.Todo{
		{ID: "1", Content: evil, Status: "completed"}, {ID: "2", Content: "then", Status: "in_progress"}},
		Spent: api.Spent{Steps: 2, Tokens: 12_345, Cost: 67_800, Time: 3 * time.Second},
		Job:   api.Job{ID: id, Status: api.JobActive, Title: evil, Message: evil, Model: evil, CreatedAt: now, UpdatedAt: now}},
		job.Entry{Type: job.EntryCreated, At: now, Status: api.JobActive},
		job.Entry{Type: job.EntryPrompt, At: now, Text: evil, Instruction: string(id), Status: api.JobActive},
		job.Entry{Type: job.EntryTool, At: now, Text: evil, Status: api.JobActive, Calls: []job.ToolUse{
			{ID: "1/a", Name: "read_file", Input: `{"path":"guides/` + evil + `"}`}}, Usage: &agent.Usage{PromptTokens: 10, CompletionTokens: 2}},
		job.Entry{Type: job.EntryTool, At: now, Status: api.JobActive, Results: []job.ToolUse{{ID: "1/a", Output: evil}},
			Calls: []job.ToolUse{{ID: "1/b", Name: evil, Input: `{"path":"b.md"}`}}})
	return id
}

func TestAJobIsSeenLive(t *testing.T) {
	t.Parallel()
	h := build(t)
	id := h.workingJob()
	b := h.visitor("viewer")
	path := jobsOfAcme + "/" + string(id)
	page, _ := b.text(200, path)
	harmless(t, "the page", page)
	for _, want := range []string{"12345 tokens", "$0.0678", "1 of 2 done", "<code>read_file</code> guides/&lt;script", "running",
		"10 tokens in", `href="` + path + `/steps/3"`, `sse-connect="` + path + `/live"`} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	for _, never := range []string{"Cancel</button>", `name="prompt"`, "Archive"} {
		if strings.Contains(page, never) {
			t.Errorf("a viewer sees %q", never)
		}
	}
	// What a call was given and what it gave is a page of its own, and a part for the script.
	step, _ := b.text(200, path+"/steps/3")
	harmless(t, "a step", step)
	part, _ := b.text(200, path+"/steps/3", "HX-Request", "true")
	if !strings.Contains(step, "onerror=alert(2)&gt;") || strings.Contains(part, "<html") ||
		!strings.HasPrefix(part, `<div class="changes">`) {
		t.Errorf("the step is %s", part)
	}
	b.text(404, path+"/steps/99")
	b.text(404, path+"/steps/x")

	// The edit is seen as it grows, and then how it ended.
	events := b.listen(path + "/live")
	events.until("12345 tokens")
	h.jobs.mu.Lock()
	h.jobs.edits = &job.Edits{Version: 1, Diff: "--- a/x.md\n+++ b/x.md\n@@ -1 +1 @@\n-say log in <b>\n+say sign in <b>\n"}
	h.jobs.mu.Unlock()
	events.until("Changes so far")
	h.jobs.mu.Lock()
	row := h.jobs.all[id]
	row.Seq++
	row.Job.Status, row.Job.Outcome, row.Job.Message = api.JobCompleted, api.OutcomeChanged, "All done."
	h.jobs.edits = nil
	h.jobs.mu.Unlock()
	events.until("All done.")
}

func TestAJobOfAnotherProjectIsNotThere(t *testing.T) {
	t.Parallel()
	h := build(t)
	id := h.workingJob()
	owner := h.visitor("owner")
	two := "/console/org-a/two.acme.example/jobs/" + string(id)
	for _, path := range []string{two, two + "/live", two + "/steps/3", jobsOfAcme + "/job_nothing",
		jobsOfAcme + "/" + api.NewID(api.JobPrefix, time.Now())} {
		owner.text(404, path)
	}
	token := owner.token(owner.open("/console"))
	for _, act := range []string{"message", "cancel", "archive", "carry-out"} {
		if res := owner.send(two+"/"+act, url.Values{"token": {token}, "prompt": {"x"}}); res.StatusCode != 404 {
			t.Errorf("%s of another project's job: %d", act, res.StatusCode)
		}
	}
	if row := h.jobs.all[id]; row.Job.Status != api.JobActive || row.Archived || len(h.jobs.requests) != 0 {
		t.Errorf("it was changed: %+v, %+v", row, h.jobs.requests)
	}
}

func TestAFormThatIsSentTwiceIsOneRequest(t *testing.T) {
	t.Parallel()
	h := build(t)
	b := h.visitor("editor")
	form, _ := b.text(200, jobsOfAcme+"/new?prompt=fix+it&dry=yes")
	if !strings.Contains(form, ">fix it</textarea>") || !strings.Contains(form, `value="yes" checked> Dry run`) {
		t.Error("the form is not filled in as the address says")
	}
	values := url.Values{"token": {b.token(form)}, "key": {field(t, form, "key")}, "prompt": {"fix broken links"},
		"model": {"large"}, "draft": {"yes"}, "branch": {"docs/links"}}
	var at string
	for range 2 {
		res := b.send(jobsOfAcme+"/create", values)
		if to := res.Header.Get("Location"); res.StatusCode != 303 || at != "" && to != at {
			t.Errorf("%d %s", res.StatusCode, to)
		} else {
			at = to
		}
	}
	if len(h.jobs.requests) != 1 {
		t.Fatalf("%d jobs", len(h.jobs.requests))
	}
	r := h.jobs.requests[0]
	if r.Prompt != "fix broken links" || r.Model != "large" || !r.Draft || r.DryRun || r.Branch != "docs/links" || r.By == "" {
		t.Errorf("%+v", r)
	}
	page, _ := b.text(200, at)
	message := url.Values{"token": {b.token(page)}, "key": {field(t, page, "key")}, "prompt": {"undo that"}}
	b.send(at+"/message", message)
	b.send(at+"/message", message)
	if len(h.jobs.requests) != 2 {
		t.Errorf("a message that was sent twice: %+v", h.jobs.requests[1:])
	}
	// An empty one comes back with what is wrong.
	values.Set("prompt", "")
	res := b.send(jobsOfAcme+"/create", values)
	if body := bodyOf(t, res); res.StatusCode != 400 || !strings.Contains(body, "is required") ||
		!strings.Contains(body, `value="docs/links"`) {
		t.Errorf("%d %s", res.StatusCode, body)
	}
	b.send(at+"/cancel", url.Values{"token": {b.token(page)}})
	if page, _ := b.text(200, at); !strings.Contains(page, ">cancelled</span>") {
		t.Errorf("after the cancelling: %s", page)
	}
	b.send(at+"/archive", url.Values{"token": {b.token(page)}})
	if page, _ := b.text(200, at); strings.Contains(page, `id="message"`) {
		t.Error("an archived job still has the form")
	}
}

func field(t *testing.T, page, name string) string {
	t.Helper()
	_, rest, ok := strings.Cut(page, `name="`+name+`" value="`)
	value, _, _ := strings.Cut(rest, `"`)
	if !ok {
		t.Fatalf("no field %s in %s", name, page)
	}
	return value
}

// reviewed is an open pull request of acme with a job, which has a comment's form on its lines.
func (h *fixture) reviewed() (id string, of api.JobID) {
	of = api.JobID(api.NewID(api.JobPrefix, time.Now()))
	h.jobs.add(api.JobRow{Project: "acme", Job: api.Job{ID: of, Status: api.JobCompleted, Model: "large-1", Title: "x"}})
	id = h.pull()
	p := h.pulls.all[id]
	p.Job = of
	h.pulls.all[id] = p
	return id, of
}

func TestCommentsOnLinesGoToTheJobAsOneMessage(t *testing.T) {
	t.Parallel()
	h := build(t)
	id, of := h.reviewed()
	path := "/pulls/" + id
	b := h.visitor("editor")
	page, _ := b.text(200, path+"?f=1&at=n11")
	token := b.token(page)
	if !strings.Contains(page, `<textarea id="text-n11"`) || strings.Contains(page, "fixed forms") {
		t.Errorf("there is no form for a comment: %s", page)
	}
	comment := func(b *browser, at, text string) int {
		t.Helper()
		h.clock.advance(time.Second) // comments are in the order of their times
		return b.send(path+"/comment", url.Values{"token": {b.token(b.open(path))}, "f": {"1"}, "path": {"docs/a.md"},
			"at": {at}, "text": {text}}).StatusCode
	}
	if got := []int{comment(b, "n11", "say it "+evil), comment(b, "o11", "and why"), comment(b, "n99", "x"),
		comment(b, "x", "x"), comment(b, "n11", " ")}; fmt.Sprint(got) != "[303 303 404 409 400]" {
		t.Errorf("%v", got)
	}
	if res := b.send(path+"/comment", url.Values{"token": {token}, "f": {"1"}, "path": {"docs/other.md"}, "at": {"n11"},
		"text": {"x"}}); res.StatusCode != 409 {
		t.Errorf("a comment on what the page did not show: %d", res.StatusCode)
	}
	page, _ = b.text(200, path)
	harmless(t, "the page", page)
	if !strings.Contains(page, "2 comments to send") || !strings.Contains(page, "1. docs/a.md, line 11:") ||
		!strings.Contains(page, "&gt; new &lt;B&gt;") || !strings.Contains(page, "line 11 before the change") {
		t.Errorf("the drafts are not shown: %s", page)
	}
	// Nobody else sees them, and only who may edit may comment.
	for _, who := range []string{"nobody", "stranger", "viewer", "owner"} {
		other := h.visitor(who)
		if page, _ := other.text(200, path); strings.Contains(page, "say it") {
			t.Errorf("%s sees another's drafts", who)
		}
		if who == "owner" {
			continue
		}
		if got := other.send(path+"/send", url.Values{"token": {token}}).StatusCode; got == 303 && who != "nobody" || got == 200 {
			t.Errorf("%s sends them: %d", who, got)
		}
	}
	// The answer is lost, and it is sent again: it is one message.
	h.jobs.lose = true
	h.t = discard{t} // the lost answer is an error of the server
	b.send(path+"/send", url.Values{"token": {token}})
	h.t = t
	if page, _ := b.text(200, path); !strings.Contains(page, "The comments may not have arrived") {
		t.Error("the page does not say that the sending got no answer")
	}
	b.send(path+"/send", url.Values{"token": {token}})
	if len(h.jobs.requests) != 1 || len(h.jobs.messages) != 1 {
		t.Fatalf("%d messages were sent", len(h.jobs.requests))
	}
	message := h.jobs.messages[0]
	page, _ = b.text(200, path)
	harmless(t, "the page afterwards", page)
	if strings.Contains(page, "to send") || !strings.Contains(page, ">waiting</span>") ||
		!strings.Contains(page, "#m-"+message) {
		t.Errorf("after the sending: %s", page)
	}
	h.jobs.mu.Lock()
	h.jobs.logs[of] = append(h.jobs.logs[of],
		job.Entry{Seq: 8, Type: job.EntryPublished, Instruction: message, Commit: "abc123"},
		job.Entry{Seq: 9, Type: job.EntryFinished, Instruction: message, Text: "Shortened.", Outcome: api.OutcomeChanged})
	h.jobs.mu.Unlock()
	page, _ = h.visitor("viewer").text(200, path)
	if !strings.Contains(page, ">changed</span>") || !strings.Contains(page, ".diff?commit=abc123\"><code>abc123</code></a>") ||
		!strings.Contains(page, "Shortened.") {
		t.Errorf("what became of them: %s", page)
	}
	if page, _ := h.visitor("nobody").text(200, path); strings.Contains(page, "Shortened.") {
		t.Error("a reader with the link sees the comments")
	}
	// What the job refuses is a draft again.
	comment(b, "n11", "one more")
	h.jobs.fail = &api.StateError{Kind: api.ErrConflict, Reason: "this job is archived"}
	if res := b.send(path+"/send", url.Values{"token": {token}}); res.StatusCode != 409 {
		t.Errorf("a refused message: %d", res.StatusCode)
	}
	if page, _ := b.text(200, path); !strings.Contains(page, "1 comment to send") || strings.Contains(page, "got no answer") {
		t.Error("a refused comment is no draft any more")
	}
}

// discard takes the errors that a test expects of the server.
type discard struct{ testing.TB }

func (discard) Errorf(string, ...any) {}

func TestAPageIsShownAsItsReadersSeeIt(t *testing.T) {
	t.Parallel()
	h := build(t)
	id := h.pull()
	d := h.pulls.diffs[id]
	d.Files = append(d.Files, forge.FileDiff{Path: "docs/c.mdx", Status: "modified", Added: 1, Deleted: 1, Unified: "@@ -1 +1 @@\n-x\n+y\n"})
	h.pulls.diffs[id] = d
	page := func(what string) string {
		return "---\ntitle: \"Setup <b>\"\n---\nimport X from './x'\n\n<Card title=\"First\">\n  Log " + what +
			" here.\n\n  - one\n</Card>\n\n![A map](https://evil.example/m.png) [in](/there) [out](https://e.example)\n\n" + evil + "\n"
	}
	h.pulls.files = []pullFile{{"docs/c.mdx", true, page("in")}, {"docs/c.mdx", false, page("on")}}
	text, _ := h.browser().text(200, "/pulls/"+id+"?f=6&tab=page")
	harmless(t, "the page", text)
	for _, want := range []string{"<h1>Setup &lt;b&gt;</h1>", "<strong>First</strong>", "Log in here.", "Log on here.",
		"<li>one</li>", `<span class="picture">Picture: A map</span>`, `href="https://e.example"`, "block-changed"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %q: %s", want, text)
		}
	}
	for _, never := range []string{"evil.example", "import X", "<pre><code>Log"} {
		if strings.Contains(text, never) {
			t.Errorf("the page has %q", never)
		}
	}
}

func TestAConflictSaysWhatToDo(t *testing.T) {
	t.Parallel()
	h := build(t)
	id, of := h.reviewed()
	h.pulls.fail = &forge.ConflictError{Files: []string{"docs/a.md"}}
	b := h.visitor("editor")
	res := b.send("/pulls/"+id+"/merge", url.Values{"token": {b.token(b.open("/pulls/" + id))}})
	page := bodyOf(t, res)
	for _, want := range []string{"Can't merge", "<code>docs/a.md</code>", jobsOfAcme + "/" + string(of) + "#message",
		"Back to the pull request"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if res.StatusCode != 409 {
		t.Errorf("it is answered %d", res.StatusCode)
	}
}

func TestAutomationsAreAddedPausedRunAndRemoved(t *testing.T) {
	t.Parallel()
	h := build(t)
	b := h.visitor("owner")
	base := "/console/org-a/docs.acme.example/automations"
	form, _ := b.text(200, base+"/new")
	values := url.Values{"token": {b.token(form)}, "name": {evil}, "prompt": {"../x"}, "dailyCap": {"0"}, "timeZone": {"UTC"}}
	res := b.send(base+"/create", values)
	if body := bodyOf(t, res); res.StatusCode != 400 || !strings.Contains(body, "must be a path inside the repository") ||
		!strings.Contains(body, "must be a whole number") || !strings.Contains(body, "is required, unless it runs on a push") {
		t.Errorf("%d %s", res.StatusCode, body)
	}
	values.Set("prompt", ".docent/x.md")
	values.Set("dailyCap", "3")
	values.Set("cron", "0 6 * * 1")
	at := b.send(base+"/create", values).Header.Get("Location")
	if !strings.HasPrefix(at, base+"/aut_") {
		t.Fatalf("it leads to %q", at)
	}
	if res := b.send(base+"/create", values); res.StatusCode != 400 || !strings.Contains(bodyOf(t, res), "already") {
		t.Errorf("a second one of that name: %d", res.StatusCode)
	}
	act := func(what string, extra ...string) {
		t.Helper()
		form := url.Values{"token": {values.Get("token")}}
		for _, e := range extra {
			form.Set(e, "yes")
		}
		if res := b.send(at+"/"+what, form); res.StatusCode != 303 {
			t.Errorf("%s: %d", what, res.StatusCode)
		}
	}
	act("pause")
	if page, _ := b.text(200, at); !strings.Contains(page, ">paused</span>") {
		t.Error("it is not paused")
	}
	act("pause", "resume")
	act("run")
	page, _ := b.text(200, at)
	harmless(t, "the page", page)
	if strings.Contains(page, ">paused</span>") || !strings.Contains(page, ">accepted</span>") {
		t.Errorf("after a run: %s", page)
	}
	b.text(404, strings.Replace(at, "docs.acme", "two.acme", 1))
	act("remove")
	if page, _ := b.text(200, base); !strings.Contains(page, "No automations yet") {
		t.Errorf("after it was removed: %s", page)
	}
}

// Code of the repository may have run in a project's own check, and printed what it found.
func TestWhatACheckPrintedIsForThoseWhoMayEdit(t *testing.T) {
	t.Parallel()
	h := build(t)
	id := api.JobID(api.NewID(api.JobPrefix, time.Now()))
	now := time.Now()
	h.jobs.add(api.JobRow{Project: "acme", User: "key_x",
		Job: api.Job{ID: id, Status: api.JobFailed, Message: "The project's own check fails.", CreatedAt: now, UpdatedAt: now}},
		job.Entry{Type: job.EntryCreated, At: now, Status: api.JobActive},
		job.Entry{Type: job.EntryTool, At: now, Status: api.JobActive, Calls: []job.ToolUse{{ID: "1/a", Name: "finish"}}},
		job.Entry{Type: job.EntryTool, At: now, Status: api.JobActive, Calls: []job.ToolUse{{ID: "1/b", Name: "finish"}},
			Results: []job.ToolUse{{ID: "1/a", Output: "printed in a step", Printed: true}}},
		job.Entry{Type: job.EntryFailed, At: now, Status: api.JobFailed, Text: "The project's own check fails.",
			Printed: "printed at last"})
	path := jobsOfAcme + "/" + string(id)
	for visitor, sees := range map[string]bool{"viewer": false, "editor": true, "owner": true} {
		b := h.visitor(visitor)
		page, _ := b.text(200, path)
		if !strings.Contains(page, "own check fails") || strings.Contains(page, "printed at last") != sees {
			t.Errorf("%s: the job's page: %s", visitor, page)
		}
		if page, _ := b.text(200, path+"/steps/2"); strings.Contains(page, "printed in a step") != sees {
			t.Errorf("%s: the step's page: %s", visitor, page)
		}
	}
}
