package web_test

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"docent/actors/thread"
	"docent/api"
	"docent/persistence/catalog/catalogtest"
	"docent/web"
	"docent/web/insights"
)

const conversationsAt = "/console/org-a/docs.acme.example/conversations"

// A desk has conversations, as the threads' actors have them, and is the journal that their listing follows.
type desk struct {
	*catalogtest.Feed
	mu       sync.Mutex
	threads  map[api.ThreadID]thread.Conversation
	erasures map[string]insights.Erasure
	changed  chan struct{}
	listed   func() // waits until the listing has what was told: pages do so for two seconds at most, and then show what there is
}

func newDesk() *desk {
	return &desk{Feed: catalogtest.NewFeed(), threads: map[api.ThreadID]thread.Conversation{},
		erasures: map[string]insights.Erasure{}, changed: make(chan struct{}, 1),
		listed: func() {}}
}

func (d *desk) Read(_ context.Context, id api.ThreadID, cmd thread.Read) (thread.Conversation, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	c, ok := d.threads[id]
	if !ok || c.Project != cmd.Project {
		return thread.Conversation{}, api.ErrNotFound
	}
	return c, nil
}

func (d *desk) Forget(_ context.Context, id api.ThreadID, cmd thread.Forget) error {
	d.mu.Lock()
	c, ok := d.threads[id]
	if ok = ok && c.Project == cmd.Project; ok {
		delete(d.threads, id)
		d.Tell(thread.Stream(id))
	}
	d.mu.Unlock()
	if !ok {
		return api.ErrNotFound
	}
	d.listed()
	return nil
}

func (d *desk) put(c thread.Conversation) {
	d.mu.Lock()
	d.threads[c.Thread] = c
	d.Tell(thread.Stream(c.Thread))
	d.mu.Unlock()
	d.listed()
}

// load makes the row of a thread as the actors do.
func (d *desk) load(_ context.Context, stream string, _ uint64) (api.ThreadRow, bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	c, ok := d.threads[api.ThreadID(strings.TrimPrefix(stream, thread.Stream("")))]
	row := api.ThreadRow{ID: c.Thread, Project: c.Project, Caller: c.Caller}
	for _, e := range c.Turns {
		q := api.QuestionRow{ID: e.Turn, Channel: e.Channel, Page: e.Page, Question: e.Question, Answer: e.Answer,
			Error: e.Error, Answered: e.Answered, Model: e.Model, Asked: e.Asked, Ended: e.Ended}
		for _, s := range e.Sources {
			q.Sources = append(q.Sources, api.PageRef{URL: s.URL, Title: s.Title})
		}
		if f := e.Feedback; f != nil {
			q.Rating, q.Comment, q.Rated = f.Rating, f.Comment, f.At
		}
		if e.Done {
			row.Questions = append(row.Questions, q)
		}
	}
	return row, ok, nil
}

// Erase removes at once.
func (d *desk) Erase(project api.ProjectID, caller string, ended func(int, error)) (bool, error) {
	d.mu.Lock()
	gone := 0
	for id, c := range maps.Clone(d.threads) {
		if c.Project == project && c.Caller == caller {
			delete(d.threads, id)
			d.Tell(thread.Stream(id))
			gone++
		}
	}
	d.erasures[caller] = insights.Erasure{Done: gone, Total: gone, Ended: true, At: time.Now()}
	d.mu.Unlock()
	d.listed()
	ended(gone, nil)
	return true, nil
}

func (d *desk) Erasure(_ api.ProjectID, caller string) (insights.Erasure, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	e, ok := d.erasures[caller]
	return e, ok
}

func (d *desk) Watch(api.ProjectID, string) <-chan struct{} { return d.changed }

// withDesk builds a server whose conversations a test makes.
func withDesk(t *testing.T) (*fixture, *desk) {
	d := newDesk()
	h := build(t, func(deps *web.Deps) { deps.Threads, deps.Eraser = d, d })
	h.unlist()
	p := h.catalog.NewThreadProjector(d, d.load, slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { p.Run(ctx) })
	d.listed = func() {
		if err := p.Wait(ctx, d.Position()); err != nil && ctx.Err() == nil {
			t.Error(err)
		}
	}
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	return h, d
}

var threadsMade atomic.Int64

// converse makes a conversation of acme, of questions that were answered.
func (d *desk) converse(caller string, at time.Time, change ...func(*thread.Exchange)) api.ThreadID {
	made := threadsMade.Add(1)
	c := thread.Conversation{Thread: api.ThreadID(api.NewID(api.ThreadPrefix, at)), Project: "acme", Caller: caller, Opened: at}
	for i, to := range change {
		asked := at.Add(time.Duration(i) * time.Minute)
		e := thread.Exchange{Turn: api.TurnID(api.NewID(api.TurnPrefix, asked)), Question: fmt.Sprintf("Question %d of %d?", i, made),
			Asked: asked, Answer: "Because **it is so**.", Answered: true, Done: true, Ended: asked.Add(time.Second),
			Model: "builtin", Channel: api.ChannelWeb}
		to(&e)
		c.Turns = append(c.Turns, e)
	}
	d.put(c)
	return c.Thread
}

func asIs(*thread.Exchange) {}

func TestConversationsAreListedAndFiltered(t *testing.T) {
	h, d := withDesk(t)
	now := h.clock.Now()
	plain := d.converse("anonymous", now.Add(-3*time.Hour), asIs)
	failed := d.converse("ada", now.Add(-2*time.Hour), asIs, func(e *thread.Exchange) {
		e.Question, e.Answered, e.Answer, e.Error = "Why does the webhook fail?", false, "", "The answer could not be completed."
	})
	doubt := d.converse("bob", now.Add(-time.Hour), func(e *thread.Exchange) {
		e.Question, e.Answered, e.Page, e.Channel = "How do I rotate tokens?", false, "/guides/start", api.ChannelAPI
		e.Sources = []thread.Source{{URL: "https://docs.acme.example/tokens#x", Title: "Tokens"}}
		e.Feedback = &thread.Feedback{Rating: api.RatedDown, Comment: "No!", At: now}
	})
	b := h.visitor("viewer")
	for _, test := range []struct {
		query string
		want  []api.ThreadID
	}{
		{"", []api.ThreadID{doubt, failed, plain}}, {"?q=webhook", []api.ThreadID{failed}}, {"?q=webh", []api.ThreadID{failed}},
		{"?outcome=failed", []api.ThreadID{failed}}, {"?outcome=in_doubt", []api.ThreadID{doubt}},
		{"?outcome=unanswered", []api.ThreadID{doubt}}, {"?rating=down", []api.ThreadID{doubt}}, {"?rating=up", nil},
		{"?page=/tokens", []api.ThreadID{doubt}}, {"?page=/guides/start", []api.ThreadID{doubt}}, {"?caller=ada", []api.ThreadID{failed}},
		{"?channel=api", []api.ThreadID{doubt}}, {"?from=2026-11-21&until=2026-11-21", []api.ThreadID{doubt, failed, plain}},
		{"?until=2026-11-20", nil}, {"?outcome=nonsense&rating=sideways&from=never", []api.ThreadID{doubt, failed, plain}},
	} {
		page, _ := b.text(http.StatusOK, conversationsAt+test.query)
		var got []api.ThreadID
		rest := page
		for {
			_, after, ok := strings.Cut(rest, `<tr><td class="asked"><a href="`+conversationsAt+"/")
			if !ok {
				break
			}
			id, more, _ := strings.Cut(after, `"`)
			got, rest = append(got, api.ThreadID(id)), more
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%q: %v, want %v", test.query, got, test.want)
		}
		if len(test.want) == 0 && !strings.Contains(page, "No conversation fits the filter") {
			t.Errorf("%q: an empty list does not say why", test.query)
		}
	}
	if page := b.open(conversationsAt + "?q=webhook"); !strings.Contains(page, "Why does the webhook fail?") {
		t.Error("the question that was looked for is not shown")
	}
	if part, _ := b.text(http.StatusOK, conversationsAt+"?q=webhook", "HX-Request", "true"); strings.Contains(part, "<html") {
		t.Error("htmx is answered with a whole page")
	}
	if page, _ := b.text(http.StatusOK, conversationsAt+"?q=webhook", "HX-Request", "true",
		"HX-History-Restore-Request", "true"); !strings.Contains(page, "<html") {
		t.Error("who goes back in the browser is answered with a part of the page")
	}
}

func TestNewConversationsAppearByThemselves(t *testing.T) {
	h, d := withDesk(t)
	b := h.visitor("viewer")
	if page := b.open(conversationsAt); !strings.Contains(page, "No questions yet") {
		t.Error("an empty list does not say what to do")
	}
	e := b.listen(conversationsAt + "/live")
	e.until("No questions yet")
	id := d.converse("ada", h.clock.Now(), asIs)
	e.until(string(id))
	one := b.listen(conversationsAt + "/" + string(id) + "/live")
	one.until("Because")
	d.mu.Lock()
	c := d.threads[id]
	d.mu.Unlock()
	next := c.Turns[0]
	next.Turn, next.Question, next.Asked = "msg_2", "And then?", next.Asked.Add(time.Minute)
	c.Turns = append(slices.Clone(c.Turns), next)
	d.put(c)
	one.until("And then?")
}

// What readers and models write is shown as text, wherever it stands.
func TestConversationsAreShownAsTheReaderSawThem(t *testing.T) {
	h, d := withDesk(t)
	now := h.clock.Now()
	hostile := `<script>alert(1)</script><img src=x onerror=alert(2)>`
	id := d.converse(hostile, now, func(e *thread.Exchange) {
		e.Question, e.Page = hostile, `/"><script>alert(3)</script>`
		e.Answer = hostile + "\n\n# A heading\n\n- one\n- [two](javascript:alert(4))\n\n```suggestions\n(Next?)[/next]\n```"
		e.Sources = []thread.Source{{URL: "javascript:alert(5)", Title: hostile}, {URL: "https://docs.acme.example/a", Title: "A page"}}
		e.Feedback = &thread.Feedback{Rating: api.RatedUp, Comment: hostile, At: now}
		e.Model, e.Usage.Prompt, e.Usage.Completion = "big", 812, 93
	}, func(e *thread.Exchange) { e.Done, e.Answer = false, "" })
	d.mu.Lock()
	c := d.threads[id]
	c.Replaced = []thread.Exchange{{Turn: "msg_old", Question: "An older " + hostile, Answer: "old " + hostile, Done: true,
		Answered: true, Asked: now, Ended: now}}
	d.threads[id] = c
	d.mu.Unlock()
	b := h.visitor("viewer")
	for _, path := range []string{"/" + string(id), "", "?q=alert", "?caller=" + hostile} {
		page, _ := b.text(http.StatusOK, conversationsAt+strings.ReplaceAll(strings.ReplaceAll(path, "<", "%3C"), " ", "%20"))
		for _, bad := range []string{"<script>alert", "<img src=x", `href="javascript:`} {
			if strings.Contains(page, bad) {
				t.Errorf("%q: the page has %q", path, bad)
			}
		}
	}
	page := b.open(conversationsAt + "/" + string(id))
	for _, part := range []string{"<h1>A heading</h1>", "https://docs.acme.example/a", "rated up", "812 tokens read", "by big",
		"The answer is being written", "that the reader has edited or asked again", "An older", "Suggested next: Next?",
		"Retrieval and timings"} {
		if !strings.Contains(page, part) {
			t.Errorf("the conversation lacks %q", part)
		}
	}
}

func TestConversationsOfOthersAreNotThere(t *testing.T) {
	h, d := withDesk(t)
	id := d.converse("ada", h.clock.Now(), asIs)
	other := strings.Replace(conversationsAt, "docs.acme", "two.acme", 1)
	b := h.visitor("owner")
	b.text(http.StatusOK, conversationsAt+"/"+string(id))
	b.text(http.StatusNotFound, other+"/"+string(id))
	b.text(http.StatusNotFound, other+"/"+string(id)+"/live")
	b.post(http.StatusNotFound, other+"/"+string(id)+"/delete")
	if page := b.open(other); strings.Contains(page, string(id)) {
		t.Error("the conversation is listed in another project")
	}
	h.visitor("stranger").text(http.StatusNotFound, conversationsAt+"/"+string(id))
	for _, who := range []string{"viewer", "editor"} {
		v := h.visitor(who)
		if page := v.open(conversationsAt + "/" + string(id)); strings.Contains(page, "/delete") {
			t.Errorf("a %s is offered to delete", who)
		}
		v.post(http.StatusForbidden, conversationsAt+"/"+string(id)+"/delete")
		v.post(http.StatusForbidden, conversationsAt+"/forget/begin", "caller", "ada", "again", "ada")
		v.text(http.StatusForbidden, conversationsAt+"/forget?caller=ada")
	}
	if _, err := d.Read(t.Context(), id, thread.Read{Project: "acme"}); err != nil {
		t.Fatal("it was deleted")
	}
}

func TestConversationsAreExported(t *testing.T) {
	h, d := withDesk(t)
	now := h.clock.Now()
	formula := "=HYPERLINK(\"https://evil.example\";\"x\")"
	for n := range 450 { // more than are read at once
		d.converse(fmt.Sprintf("+%d", n%2), now.Add(-time.Duration(n)*time.Minute), func(e *thread.Exchange) {
			e.Question, e.Answer = formula, "@a\n\"b\""
			e.Sources = []thread.Source{{URL: "https://docs.acme.example/a"}}
		})
	}
	b := h.visitor("viewer")
	text, res := b.text(http.StatusOK, conversationsAt+".csv?caller=%2B1")
	if got := res.Header.Get("Content-Disposition"); got != `attachment; filename="conversations-docs.acme.example.csv"` {
		t.Errorf("it is offered as %s", got)
	}
	rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil || len(rows) != 226 {
		t.Fatalf("%d lines, want 226: %v", len(rows), err)
	}
	for _, row := range rows[1:] {
		if row[3] != "'+1" || row[6] != "'"+formula || row[8] != "'@a\n\"b\"" {
			t.Fatalf("a program for tables would run %q", row)
		}
	}
	text, res = b.text(http.StatusOK, conversationsAt+".ndjson")
	if kind := res.Header.Get("Content-Type"); kind != "application/x-ndjson" {
		t.Errorf("the type is %s", kind)
	}
	n := 0
	for line := range strings.Lines(text) {
		var q struct{ ThreadID, Question, Outcome string }
		if err := json.Unmarshal([]byte(line), &q); err != nil || q.Question != formula || q.Outcome != "answered" {
			t.Fatalf("%v: %s", err, line)
		}
		n++
	}
	if n != 450 {
		t.Errorf("%d lines, want 450", n)
	}
	if text, _ := b.text(http.StatusOK, conversationsAt+".csv?q=nothing"); strings.Count(text, "\n") != 1 {
		t.Errorf("a file without a question is %q", text)
	}
}

func TestAnOwnerDeletesAConversation(t *testing.T) {
	h, d := withDesk(t)
	id, kept := d.converse("ada", h.clock.Now(), asIs), d.converse("ada", h.clock.Now(), asIs)
	b := h.visitor("owner")
	b.post(http.StatusSeeOther, conversationsAt+"/"+string(id)+"/delete")
	if page := b.open(conversationsAt); strings.Contains(page, string(id)) || !strings.Contains(page, string(kept)) ||
		!strings.Contains(page, "Conversation deleted") {
		t.Errorf("after it the list is\n%s", page)
	}
	b.text(http.StatusNotFound, conversationsAt+"/"+string(id))
	b.post(http.StatusNotFound, conversationsAt+"/"+string(id)+"/delete")
	log, err := h.catalog.AuditLog(t.Context(), api.AuditQuery{Org: "org-a", Limit: 10})
	if err != nil || len(log) != 1 || log[0].Action != "conversation.delete" || log[0].Object != string(id) {
		t.Errorf("the audit log has %+v, %v", log, err)
	}
}

func TestAnOwnerDeletesAPersonsData(t *testing.T) {
	h, d := withDesk(t)
	for range 3 {
		d.converse("ada", h.clock.Now(), asIs, asIs)
	}
	kept := d.converse("bob", h.clock.Now(), asIs)
	b := h.visitor("owner")
	if page := b.open(conversationsAt + "?caller=ada"); !strings.Contains(page, "/conversations/forget?caller=ada") {
		t.Error("the list of one person does not lead to the deletion")
	}
	preview := b.open(conversationsAt + "/forget?caller=ada")
	if !strings.Contains(preview, "3 conversations") || !strings.Contains(preview, "6 questions") {
		t.Errorf("the preview says\n%s", preview)
	}
	if page := b.open(conversationsAt + "/forget?caller=anonymous"); strings.Contains(page, "/forget/begin") ||
		!strings.Contains(page, "not one person") {
		t.Error("everybody without a name can be deleted")
	}
	if page := b.open(conversationsAt + "/forget"); strings.Contains(page, "/forget/begin") {
		t.Error("nobody can be deleted")
	}
	b.post(http.StatusBadRequest, conversationsAt+"/forget/begin", "again", "")
	b.post(http.StatusBadRequest, conversationsAt+"/forget/begin", "caller", "ada", "again", "adam")
	b.post(http.StatusBadRequest, conversationsAt+"/forget/begin", "caller", "anonymous", "again", "anonymous")
	if page := b.open(conversationsAt + "?caller=ada"); strings.Count(page, `class="asked"`) != 3 {
		t.Error("something was deleted without being confirmed")
	}
	b.post(http.StatusSeeOther, conversationsAt+"/forget/begin", "caller", "ada", "again", "ada")
	page := b.open(conversationsAt + "/forget?caller=ada")
	if !strings.Contains(page, "3 conversations") || !strings.Contains(page, "No conversations of this person") {
		t.Errorf("after it the page says\n%s", page)
	}
	if list := b.open(conversationsAt); strings.Count(list, `class="asked"`) != 1 || !strings.Contains(list, string(kept)) {
		t.Error("more, or less, than the person's conversations are gone")
	}
	log, err := h.catalog.AuditLog(t.Context(), api.AuditQuery{Org: "org-a", Limit: 10})
	if err != nil || len(log) != 2 {
		t.Fatalf("the audit log has %+v, %v", log, err)
	}
	actions := []string{log[0].Action, log[1].Action}
	slices.Sort(actions)
	if !slices.Equal(actions, []string{"person-data.delete", "person-data.deleted"}) || log[0].Object != "ada" {
		t.Errorf("the audit log has %+v", log)
	}
}
