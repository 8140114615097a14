package router_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"docent/actors/thread"
	"docent/api"
	"docent/persistence/catalog/insights"
)

// updates stands in for what re-indexes documentation.
type updates struct {
	clock *clock
	mu    sync.Mutex
	all   map[api.UpdateID]api.Update
	fail  error
}

func (u *updates) Start(_ context.Context, project api.ProjectID) (api.UpdateID, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.fail != nil {
		return "", u.fail
	}
	id := api.UpdateID(api.NewID(api.UpdatePrefix, u.clock.Now()))
	u.all[id] = api.Update{ID: id, Project: project, Status: api.UpdateQueued, CreatedAt: u.clock.Now()}
	return id, nil
}

func (u *updates) Status(_ context.Context, id api.UpdateID) (api.Update, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if up, ok := u.all[id]; ok {
		return up, nil
	}
	return api.Update{}, fmt.Errorf("update %s: %w", id, api.ErrNotFound)
}

func (u *updates) change(id api.UpdateID, f func(*api.Update)) {
	u.mu.Lock()
	defer u.mu.Unlock()
	up := u.all[id]
	f(&up)
	u.all[id] = up
}

// analytics stands in for the catalog's lists. It answers what a test gives it, and keeps what it was asked.
type analytics struct {
	mu       sync.Mutex
	rows     []api.QuestionRow
	totals   insights.QuestionTotals
	callers  []insights.CallerCount
	pages    []insights.PageCount
	searches []insights.SearchCount
	next     string
	last     insights.AnalyticsQuery
	counted  []string
	read     []string
}

func (a *analytics) ask(q insights.AnalyticsQuery) (string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.last = q
	if q.After == "wrong" {
		return "", &api.InvalidError{Problems: []api.Problem{{Field: "cursor", Message: "must be one of ours"}}}
	}
	return a.next, nil
}

func (a *analytics) Questions(_ context.Context, q insights.AnalyticsQuery) ([]api.QuestionRow, string, error) {
	next, err := a.ask(q)
	return a.rows, next, err
}

func (a *analytics) Totals(context.Context, insights.AnalyticsQuery) (insights.QuestionTotals, error) {
	return a.totals, nil
}

func (a *analytics) Callers(_ context.Context, q insights.AnalyticsQuery) ([]insights.CallerCount, string, error) {
	next, err := a.ask(q)
	return a.callers, next, err
}

func (a *analytics) Feedback(_ context.Context, q insights.AnalyticsQuery) ([]api.QuestionRow, string, error) {
	next, err := a.ask(q)
	return a.rows, next, err
}

func (a *analytics) PageFeedback(_ context.Context, q insights.AnalyticsQuery) ([]insights.PageCount, string, error) {
	next, err := a.ask(q)
	return a.pages, next, err
}

func (a *analytics) Searches(_ context.Context, q insights.AnalyticsQuery) ([]insights.SearchCount, string, int, error) {
	next, err := a.ask(q)
	return a.searches, next, 7, err
}

func (a *analytics) RecordSearch(project api.ProjectID, client, query string, results int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.counted = append(a.counted, fmt.Sprintf("%s %q =%d", project, query, results))
}

func (a *analytics) RecordRead(project api.ProjectID, way, page string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.read = append(a.read, fmt.Sprintf("%s %s %s", project, way, page))
}

// asked puts a question and gives the ids that came with the answer.
func (h *house) asked(fp string) (threadID, messageID string) {
	h.t.Helper()
	_, res := h.text(200, "POST", "/discovery/v2/assistant/docs.acme.example/message", h.assistant,
		`{"fp":"`+fp+`","messages":[{"role":"user","content":"q"}]}`)
	id := res.Header.Get("X-Thread-Id")
	h.threads.mu.Lock()
	defer h.threads.mu.Unlock()
	return id, string(h.threads.all[api.ThreadID(id)].turn.ID)
}

func TestAnAnswerIsRated(t *testing.T) {
	h := build(t)
	id, message := h.asked("ann")
	body := func(fields string) string {
		return fmt.Sprintf(`{"threadId":%q,"messageId":%q,%s}`, id, message, fields)
	}
	for _, path := range []string{"/discovery/v1/feedback/docs.acme.example", "/v1/feedback/docs.acme.example"} {
		text, res := h.text(204, "POST", path, h.assistant,
			body(`"rating":"down","comment":"  not what I asked\n","extra":1`))
		if text != "" || res.Header.Get("Access-Control-Allow-Origin") != "*" {
			t.Errorf("%s is answered %q, %v", path, text, res.Header)
		}
		h.text(204, "OPTIONS", path, "", "", "Origin", "https://acme.example", "Access-Control-Request-Method", "POST")
	}
	h.text(204, "POST", "/v1/feedback/docs.acme.example", h.assistant,
		body(`"rating":"up","comment":null,"fp":"ann","threadKey":"tk_secret"`))
	h.text(204, "POST", "/v1/feedback/docs.acme.example", h.assistant, body(`"rating":"up"`), "X-Thread-Key", "tk_secret")
	rated := []thread.Rate{
		{Turn: api.TurnID(message), Rating: api.RatedDown, Comment: "not what I asked"},
		{Turn: api.TurnID(message), Rating: api.RatedDown, Comment: "not what I asked"},
		{Turn: api.TurnID(message), Rating: api.RatedUp, Caller: "ann", ThreadKey: "tk_secret"},
		{Turn: api.TurnID(message), Rating: api.RatedUp, ThreadKey: "tk_secret"},
	}
	for i := range rated {
		rated[i].Project = h.catalog.projects["acme"]
	}
	if !reflect.DeepEqual(h.threads.rated, rated) {
		t.Errorf("rated\n%+v, want\n%+v", h.threads.rated, rated)
	}

	other, _ := h.asked("bob")
	for name, c := range map[string]struct {
		path, key, body string
		status          int
		fields          string
	}{
		"another thread's message": {"/v1/feedback/docs.acme.example", h.assistant,
			fmt.Sprintf(`{"threadId":%q,"messageId":%q,"rating":"up"}`, other, message), 404, ""},
		"an unknown message": {"/v1/feedback/docs.acme.example", h.assistant,
			fmt.Sprintf(`{"threadId":%q,"messageId":"m","rating":"up"}`, id), 404, ""},
		"an unknown thread": {"/v1/feedback/docs.acme.example", h.assistant,
			fmt.Sprintf(`{"threadId":%q,"messageId":%q,"rating":"up"}`, api.NewID(api.ThreadPrefix, h.clock.Now()), message),
			404, ""},
		"no thread's id": {"/v1/feedback/docs.acme.example", h.assistant,
			fmt.Sprintf(`{"threadId":"t","messageId":%q,"rating":"up"}`, message), 404, ""},
		"another caller": {"/v1/feedback/docs.acme.example", h.assistant, body(`"rating":"up","fp":"bob"`), 404,
			""},
		"a wrong thread key": {"/v1/feedback/docs.acme.example", h.assistant, body(`"rating":"up","threadKey":"x"`),
			404, ""},
		"another domain": {"/v1/feedback/two.acme.example", h.assistant, body(`"rating":"up"`), 404, ""},
		"an admin key":   {"/v1/feedback/docs.acme.example", h.admin, body(`"rating":"up"`), 403, ""},
		"no key":         {"/v1/feedback/docs.acme.example", "", body(`"rating":"up"`), 401, ""},
		"nothing":        {"/v1/feedback/docs.acme.example", h.assistant, `{}`, 400, "threadId messageId rating"},
		"of the wrong types": {"/v1/feedback/docs.acme.example", h.assistant,
			`{"threadId":1,"messageId":[],"rating":"great","comment":{},"fp":2,"threadKey":true}`, 400,
			"threadId messageId fp threadKey rating comment"},
		"too long a comment": {"/v1/feedback/docs.acme.example", h.assistant,
			body(`"rating":"up","comment":"` + strings.Repeat("x", 2001) + `"`), 400, "comment"},
	} {
		res := h.do("POST", c.path, c.key, c.body)
		answer := decodeJSON(t, res.Body)
		var fields []string
		details, _ := answer["details"].([]any)
		for _, d := range details {
			fields = append(fields, d.(map[string]any)["field"].(string))
		}
		if res.StatusCode != c.status || strings.Join(fields, " ") != c.fields {
			t.Errorf("%s: %d %v, want %d %s", name, res.StatusCode, answer, c.status, c.fields)
		}
	}
	if len(h.threads.rated) != len(rated) {
		t.Errorf("what was refused has rated: %+v", h.threads.rated)
	}
	h.threads.refuse = &api.BusyError{Kind: api.ErrUnavailable, RetryAfter: 5 * time.Second}
	h.text(503, "POST", "/v1/feedback/docs.acme.example", h.assistant, body(`"rating":"up"`))
}

func TestTheDocumentationIsReadAnew(t *testing.T) {
	h := build(t)
	started := h.json(202, "POST", "/v1/project/update/acme", h.admin, "", "Content-Type", "application/json")
	id := started["statusId"].(string)
	path := "/v1/project/update-status/" + id
	got := h.json(200, "GET", path, h.admin, "")
	if got["status"] != "queued" || got["_id"] != id || got["projectId"] != "acme" || got["commit"] != nil ||
		got["endedAt"] != nil {
		t.Errorf("queued it is %v", got)
	}
	at := h.clock.Now()
	h.updates.change(api.UpdateID(id), func(u *api.Update) {
		u.Status, u.Summary, u.Logs, u.StartedAt, u.EndedAt = api.UpdateSuccess, "1 page added", []string{"reading"}, &at, &at
		u.Commit = api.UpdateCommit{SHA: "c0ffee", Ref: "main", Message: "m", Added: []string{"a.md"}}
	})
	got = h.json(200, "GET", path, h.admin, "")
	want := map[string]any{"sha": "c0ffee", "ref": "main", "message": "m",
		"filesChanged": map[string]any{"added": []any{"a.md"}, "modified": []any{}, "removed": []any{}}}
	if got["status"] != "success" || !reflect.DeepEqual(got["commit"], want) ||
		!reflect.DeepEqual(got["logs"], []any{"reading"}) || got["endedAt"] != "2026-11-21T10:00:00.123Z" {
		t.Errorf("ended it is %v", got)
	}
	h.text(200, "HEAD", path, h.admin, "")

	reader := h.key(api.Key{Kind: api.AdminKey, Org: "org-a", Scopes: []string{api.ScopeRead}})
	writer := h.key(api.Key{Kind: api.AdminKey, Org: "org-a", Scopes: []string{api.ScopeWrite}})
	stranger := h.key(api.Key{Kind: api.AdminKey, Org: "org-b"})
	h.json(200, "GET", path, reader, "")
	h.json(403, "POST", "/v1/project/update/acme", reader, "")
	h.json(202, "POST", "/v1/project/update/acme", writer, "")
	h.json(403, "GET", path, writer, "")
	h.json(404, "GET", path, stranger, "")
	h.json(404, "POST", "/v1/project/update/acme", stranger, "")
	h.json(404, "POST", "/v1/project/update/none", h.admin, "")
	h.json(404, "GET", "/v1/project/update-status/"+api.NewID(api.UpdatePrefix, at), h.admin, "")
	h.json(404, "GET", "/v1/project/update-status/x", h.admin, "")
	h.json(403, "GET", path, h.assistant, "")
	h.json(401, "GET", path, "", "")
	h.json(405, "GET", "/v1/project/update/acme", h.admin, "")
	h.updates.change(api.UpdateID(id), func(u *api.Update) { u.Project = "gone" })
	h.json(404, "GET", path, h.admin, "")
	h.updates.fail = fmt.Errorf("queue: %w", api.ErrUnavailable)
	h.json(503, "POST", "/v1/project/update/acme", h.admin, "")
}

// A reader's page is named by the site's address as search knows it: even if its configuration states that, not
// the project.
func TestAReadersPlaceIsAtTheAddressThatTheSiteStates(t *testing.T) {
	h := build(t)
	h.docs.address = "https://docs.acme.example/base"
	at := h.clock.Now()
	for page, want := range map[string]any{
		"/guide": "https://docs.acme.example/base/guide", "base/guide/": "https://docs.acme.example/base/guide/",
		"/basement":                   "https://docs.acme.example/base/basement",
		"https://docs.acme.example/x": "https://docs.acme.example/x", "": nil,
	} {
		h.stats.rows = []api.QuestionRow{{ID: api.TurnID(api.NewID(api.TurnPrefix, at)),
			Thread: api.ThreadID(api.NewID(api.ThreadPrefix, at)), Page: page, Asked: at}}
		got := h.json(200, "GET", "/v1/analytics/acme/assistant", h.admin, "")
		row := got["conversations"].([]any)[0].(map[string]any)
		if row["pageUrl"] != want {
			t.Errorf("%q is at %v, want %v", page, row["pageUrl"], want)
		}
	}
}

func TestAnalyticsAreShown(t *testing.T) {
	h := build(t)
	p := h.catalog.projects["acme"]
	p.SiteURL = "https://docs.acme.example"
	h.catalog.projects["acme"] = p
	at := h.clock.Now()
	id := api.ThreadID(api.NewID(api.ThreadPrefix, at))
	turn := func() api.TurnID { return api.TurnID(api.NewID(api.TurnPrefix, at)) }
	first, second := turn(), turn()
	h.stats.rows = []api.QuestionRow{
		{ID: first, Thread: id, Caller: "ann", Channel: api.ChannelWeb, Page: "/guide", Question: "How?", Answer: "So.",
			Answered: true, Model: "builtin", FallbackFor: "large",
			Sources: []api.PageRef{{URL: "/a#x", Title: "A"}, {URL: "/a#y", Title: "A"}, {URL: "/b", Title: "B"}}, Asked: at,
			Ended: at, Rating: api.RatedDown, Comment: "no", Rated: at},
		{ID: second, Thread: id, Caller: "ann", Question: "Why?", Error: "down", Model: "builtin", Asked: at, Ended: at,
			Rating: api.RatedUp, Rated: at, Replaced: true},
	}
	h.stats.totals = insights.QuestionTotals{Threads: 1, Callers: 1, Questions: 5, Answered: 3, Unanswered: 1, Failed: 1,
		Web: 2, API: 1, Up: 1, Down: 1}
	h.stats.callers = []insights.CallerCount{{Caller: "ann", Threads: 1, Questions: 2, Last: at}}
	h.stats.pages = []insights.PageCount{{Page: "/a", Up: 1, Down: 2}}
	h.stats.searches = []insights.SearchCount{{Query: "api keys", Count: 3, Results: 9, Last: at}}

	base := "/v1/analytics/acme/"
	const stamp = "2026-11-21T10:00:00.123Z"
	same := func(path string, want string) {
		t.Helper()
		got := h.json(200, "GET", base+path, h.admin, "")
		var w any
		if err := json.Unmarshal([]byte(want), &w); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(any(got), w) {
			text, _ := json.Marshal(got)
			t.Errorf("%s is\n%s\nwant\n%s", path, text, want)
		}
		h.text(200, "HEAD", base+path, h.admin, "")
	}
	conversations := fmt.Sprintf(`"conversations":[
		{"id":%q,"messageId":%q,"timestamp":%q,"query":"How?","response":"So.","responseType":"answer","sources":[{"title":"A","url":"/a#x"},{"title":"A","url":"/a#y"},{"title":"B","url":"/b"}],
		 "resolutionStatus":"answered","queryCategory":null,"pageUrl":"https://docs.acme.example/guide","caller":"ann","channel":"web","model":"builtin","error":null,"rating":"down","comment":"no","fallbackFor":"large"},
		{"id":%q,"messageId":%q,"timestamp":%q,"query":"Why?","response":"","responseType":"answer","sources":[],
		 "resolutionStatus":"unanswered","queryCategory":null,"pageUrl":null,"caller":"ann","channel":null,"model":"builtin","error":"down","rating":"up","comment":null,"fallbackFor":null}]`,
		id, first, stamp, id, second, stamp)
	same("assistant", `{`+conversations+
		`,"totals":{"threads":1,"callers":1,"questions":5,"answered":3,"unanswered":1,"failed":1,"thumbsUp":1,"thumbsDown":1},"nextCursor":null,"hasMore":false}`)
	if h.stats.last.Limit != 100 || !h.stats.last.From.IsZero() || h.stats.last.Project != "acme" {
		t.Errorf("asked for %+v", h.stats.last)
	}
	h.stats.next = "n2"
	same("assistant?cursor=n1&limit=1000&dateFrom=2026-11-01&dateTo=2026-11-21T12:00:00%2B02:00",
		`{`+conversations+`,"nextCursor":"n2","hasMore":true}`)
	want := insights.AnalyticsQuery{Project: "acme", From: time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC),
		To: time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC), After: "n1", Limit: 1000}
	if h.stats.last != want {
		t.Errorf("asked for %+v, want %+v", h.stats.last, want)
	}
	same("assistant/caller-stats",
		`{"web":2,"api":1,"other":2,"total":5,"callers":[{"caller":"ann","threads":1,"questions":2,"lastAt":"`+
			stamp+`"}],"nextCursor":"n2","hasMore":true}`)
	same("searches", `{"searches":[{"searchQuery":"api keys","hits":3,"results":9,"ctr":null,"topClickedPage":null,"lastSearchedAt":"`+stamp+`"}],"totalSearches":7,"nextCursor":"n2","hasMore":true}`)
	same("feedback/by-page",
		`{"feedback":[{"path":"/a","thumbsUp":1,"thumbsDown":2,"code":0,"total":3}],"nextCursor":"n2","hasMore":true}`)
	feedback := fmt.Sprintf(`{"feedback":[
		{"id":%q,"threadId":%q,"path":"/a","paths":["/a","/b"],"query":"How?","rating":"down","helpful":false,"comment":"no","contact":null,"createdAt":%q,"source":"contextual","status":"pending","replaced":false},
		{"id":%q,"threadId":%q,"path":"","paths":[],"query":"Why?","rating":"up","helpful":true,"comment":null,"contact":null,"createdAt":%q,"source":"contextual","status":"pending","replaced":true}],
		"nextCursor":"n2","hasMore":true}`, first, id, stamp, second, id, stamp)
	same("feedback", feedback)
	same("feedback?source=contextual&status=resolved,pending", feedback)
	if h.stats.last.Limit != 50 {
		t.Errorf("the limit is %d", h.stats.last.Limit)
	}
	for _, path := range []string{"feedback?source=agent", "feedback?status=resolved",
		"feedback/by-page?source=code_snippet", "feedback/by-page?status=dismissed,in_progress"} {
		same(path, `{"feedback":[],"nextCursor":null,"hasMore":false}`)
	}

	h.threads.read = map[api.ThreadID]thread.Conversation{id: {Thread: id, Project: "acme", Caller: "ann", Opened: at,
		Turns: []thread.Exchange{
			{Turn: first, Message: "m1", Question: "How?", Asked: at, Answer: "So.", Answered: true, Done: true, Ended: at,
				Model: "builtin", FallbackFor: "large",
				Sources:  []thread.Source{{ID: "s1", URL: "/a#x", Title: "A"}},
				Feedback: &thread.Feedback{Rating: api.RatedDown, At: at}},
			{Turn: second, Question: "Why?", Asked: at, Done: true, Ended: at, Text: "Be", Error: "down"},
			{Turn: "msg_3", Question: "When?", Asked: at},
		}, Replaced: []thread.Exchange{{Turn: "msg_0", Message: "m0", Question: "What?", Asked: at}}}}
	same("assistant/threads/"+string(id), fmt.Sprintf(`{"threadId":%q,"createdAt":%q,"caller":"ann","messages":[
		{"id":"m1","role":"user","content":"How?","createdAt":%q},
		{"id":%q,"role":"assistant","content":"So.","createdAt":%q,"sources":[{"title":"A","url":"/a#x"}],"resolutionStatus":"answered","model":"builtin","fallbackFor":"large","feedback":{"rating":"down","comment":null,"createdAt":%q}},
		{"id":%q,"role":"user","content":"Why?","createdAt":%q},
		{"id":%q,"role":"assistant","content":"Be","createdAt":%q,"sources":[],"resolutionStatus":"unanswered","error":"down"},
		{"id":"msg_3:question","role":"user","content":"When?","createdAt":%q}],
		"replaced":[{"id":"m0","role":"user","content":"What?","createdAt":%q}]}`, id, stamp, stamp, first, stamp, stamp, second+":question", stamp, second, stamp, stamp, stamp))
	h.json(404, "GET", base+"assistant/threads/"+api.NewID(api.ThreadPrefix, at), h.admin, "")
	h.json(404, "GET", base+"assistant/threads/x", h.admin, "")
	h.json(404, "GET", "/v1/analytics/acme-two/assistant/threads/"+string(id), h.admin, "")
}

func TestAnalyticsAreForTheOrganizationsReaders(t *testing.T) {
	h := build(t)
	reader := h.key(api.Key{Kind: api.AdminKey, Org: "org-a", Scopes: []string{api.ScopeRead}})
	writer := h.key(api.Key{Kind: api.AdminKey, Org: "org-a", Scopes: []string{api.ScopeWrite}})
	stranger := h.key(api.Key{Kind: api.AdminKey, Org: "org-b"})
	for _, path := range []string{"assistant", "assistant/caller-stats", "searches", "feedback", "feedback/by-page"} {
		of := func(project string) string { return "/v1/analytics/" + project + "/" + path }
		h.json(200, "GET", of("acme"), reader, "")
		h.json(403, "GET", of("acme"), writer, "")
		h.json(403, "GET", of("acme"), h.assistant, "")
		h.json(401, "GET", of("acme"), "", "")
		h.json(404, "GET", of("acme"), stranger, "")
		h.json(404, "GET", of("none"), reader, "")
		h.json(405, "POST", of("acme"), h.admin, "")
		for query, want := range map[string]string{
			"dateFrom=yesterday":                      "dateFrom",
			"dateFrom=2026-13-01&dateTo=2026-11-2":    "dateFrom dateTo",
			"dateFrom=2026-11-02&dateTo=2026-11-01":   "dateTo",
			"dateFrom=0000-01-01":                     "dateFrom",
			"dateFrom=2026-11-01T10:00:00":            "dateFrom",
			"dateFrom=2026-11-01&dateFrom=2026-11-01": "dateFrom",
			"limit=0":      "limit",
			"limit=1001":   "limit",
			"limit=ten":    "limit",
			"cursor=wrong": "cursor",
		} {
			res := h.do("GET", of("acme")+"?"+query, reader, "")
			var fields []string
			details, _ := decodeJSON(t, res.Body)["details"].([]any)
			for _, d := range details {
				fields = append(fields, d.(map[string]any)["field"].(string))
			}
			if res.StatusCode != 400 || strings.Join(fields, " ") != want {
				t.Errorf("%s?%s: %d %v, want 400 %s", path, query, res.StatusCode, fields, want)
			}
		}
		if strings.HasPrefix(path, "feedback") {
			h.json(400, "GET", of("acme")+"?source=x", reader, "")
			h.json(400, "GET", of("acme")+"?status=pending,x", reader, "")
		}
		if path != "assistant" {
			h.json(400, "GET", of("acme")+"?limit=101", reader, "")
		}
	}
}

func TestSearchesAreCountedAndQuestionsSayWhereTheyCameFrom(t *testing.T) {
	h := build(t)
	for _, q := range []string{`"setup"`, `"nothing"`, `""`} {
		h.do("POST", "/v1/search/docs.acme.example", h.assistant, `{"query":`+q+`}`)
	}
	if want := []string{`acme "setup" =1`, `acme "nothing" =0`}; !slices.Equal(h.stats.counted, want) {
		t.Errorf("counted are %q, want %q", h.stats.counted, want)
	}
	for header, want := range map[string]api.Channel{"Origin": api.ChannelWeb, "Sec-Fetch-Mode": api.ChannelWeb,
		"Referer": api.ChannelAPI} {
		h.text(http.StatusOK, "POST", "/v1/assistant/docs.acme.example/message", h.assistant,
			`{"fp":"a","messages":[{"role":"user","content":"q"}]}`, header, "https://acme.example")
		if got := h.threads.last.Channel; got != want {
			t.Errorf("a question with %s comes from %q, want %q", header, got, want)
		}
	}
}

func TestAConversationIsHandedOver(t *testing.T) {
	h := build(t)
	const path = "/discovery/v1/contact/docs.acme.example"
	id, message := h.asked("ann")
	body := func(fields string) string {
		return fmt.Sprintf(`{"threadId":%q,"messageId":%q,%s}`, id, message, fields)
	}
	_, res := h.text(204, "POST", path, h.assistant, body(`"message":" Help me.\nPlease. ","name":"Ann","email":"ann@example.com","fp":"ann"`))
	header(t, res, "Access-Control-Allow-Origin", "*")
	h.text(204, "OPTIONS", path, "", "", "Origin", "https://acme.example", "Access-Control-Request-Method", "POST")
	want := []thread.HandOver{{Project: h.catalog.projects["acme"], Caller: "ann", Turn: api.TurnID(message),
		Contact: thread.Contact{Name: "Ann", Email: "ann@example.com", Message: "Help me.\nPlease."}}}
	if !reflect.DeepEqual(h.threads.handed, want) {
		t.Errorf("handed over is\n%+v, want\n%+v", h.threads.handed, want)
	}
	for name, c := range map[string]struct {
		key, body string
		status    int
	}{
		"nothing":             {h.assistant, `{}`, 400},
		"no message":          {h.assistant, body(`"message":" "`), 400},
		"too long":            {h.assistant, body(`"message":"` + strings.Repeat("x", 4001) + `"`), 400},
		"no address":          {h.assistant, body(`"message":"x","email":"Ann <ann@example.com>"`), 400},
		"a name of two lines": {h.assistant, body(`"message":"x","name":"a\nb"`), 400},
		"another reader":      {h.assistant, body(`"message":"x","fp":"bob"`), 404},
		"an admin key":        {h.admin, body(`"message":"x"`), 403},
		"no key":              {"", body(`"message":"x"`), 401},
	} {
		if res := h.do("POST", path, c.key, c.body); res.StatusCode != c.status {
			t.Errorf("%s: %d", name, res.StatusCode)
		}
	}
	h.threads.handed = nil
	p := h.catalog.projects["acme"]
	p.Widget.ContactIssues = true
	h.catalog.projects["acme"] = p
	for fields, status := range map[string]int{`"message":"x"`: 409, `"message":"x","public":false`: 409, `"message":"x","public":null`: 409,
		`"message":"x","public":"yes"`: 400, `"message":"x","public":true`: 204} {
		text, _ := h.text(status, "POST", path, h.assistant, body(fields))
		if status == 409 && !strings.Contains(text, "others may read") {
			t.Errorf("%s is refused with %s", fields, text)
		}
	}
	if len(h.threads.handed) != 1 {
		t.Errorf("with issues, handed over is %+v", h.threads.handed)
	}
	h.threads.refuse = &api.StateError{Kind: api.ErrConflict, Reason: "people have it"}
	h.text(409, "POST", path, h.assistant, body(`"message":"x","public":true`))
}
