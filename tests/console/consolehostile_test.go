package console

import (
	"bufio"
	"context"
	"encoding/csv"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"docent/api"
	"docent/cmd/docent/operator"
	"docent/tests/harness"
)

// hostile is text that is an element, an attribute or a program wherever a page forgets to escape it.
const hostile = `x"'></a></script></style></textarea></title></svg>--><hostile-x data-hostile="1" onmouseover="alert(1)" ` +
	`style="color:red"></hostile-x><img src=x onerror=alert(1)><script>alert(1)</script>[l](javascript:alert(1))` +
	`![i](javascript:alert(1)) {{.}} ${alert(1)} <svg onload=alert(1)>`

// formula is text that a spreadsheet carries out.
const formula = `=HYPERLINK("https://evil.example","docent")`

// Hostile text in questions, comments, pages and their names, instructions, diffs, and the names of keys, people and
// automations is nothing but text on every page of the console, and in every part that is live.
func TestHostileTextIsTextOnEveryPage(t *testing.T) {
	t.Parallel()
	h := newGuarded(t, map[string]string{
		"tea.md":                        "---\ntitle: '" + strings.ReplaceAll(hostile, "'", "''") + "'\n---\n\n# Tea " + hostile + "\n\nGreen tea is brewed at eighty degrees.\n\n" + hostile + "\n",
		"<hostile-x data-hostile=1>.md": "# Coffee\n\nCoffee is brewed at ninety degrees.\n",
		"index.md":                      "# Drinks\n\nTea and coffee " + hostile + ".\n",
	})
	h.beHostile()
	c := &crawl{guest: h.guest("operator"), seen: map[string]bool{}, shows: map[string]bool{}}
	base := "/console/org-a/docs.acme.example"
	harness.Until(t, "the overview lists what has happened", func() bool {
		return strings.Contains(c.page(""), "&lt;hostile-x")
	})
	for _, r := range h.App.Pages.Rules() {
		if path := address(r.Pattern); r.Method == http.MethodGet && certain(r.Pattern) && !strings.HasSuffix(path, "/live") {
			c.add(path)
		}
	}
	c.add(base + "/playground?q=" + url.QueryEscape(hostile) + "&text=" + url.QueryEscape(hostile))
	c.add(base + "/conversations?q=" + url.QueryEscape(hostile))
	c.add(base + "/jobs?q=" + url.QueryEscape(hostile) + "&status=" + url.QueryEscape(hostile))
	c.add("/login?next=" + url.QueryEscape(hostile))
	c.add("/console/system?level=" + url.QueryEscape(hostile))
	pulled, err := h.App.Stores.Catalog.Pulls(t.Context(), "acme", "")
	if err != nil || len(pulled) == 0 {
		t.Errorf("%d pull requests: %v", len(pulled), err)
	}
	for _, p := range pulled {
		c.add("/pulls/" + p.ID)
	}
	c.run()
	t.Logf("%d addresses, hostile text on %d of them", len(c.seen), len(c.shows))
	for _, page := range []string{base, "/console/system", "/console/org-a/people", "/console/org-a/audit"} {
		if !c.shows[page] {
			t.Errorf("%s shows no hostile text: this test sees nothing of it", page)
		}
	}
	pulls := 0
	for page := range c.shows {
		if strings.HasPrefix(page, "/pulls/") {
			pulls++
		}
	}
	if pulls == 0 {
		t.Error("no pull request with hostile text was looked at")
	}
}

// beHostile has everything happen to the project that outsiders and insiders can make happen, with hostile text.
func (h *guarded) beHostile() {
	t, ctx := h.T, h.T.Context()
	t.Helper()
	ops := h.App.Operator
	key := func(kind api.KeyKind) string {
		made, err := ops.CreateKey(ctx, operator.KeyParams{Project: "acme", Kind: kind, Name: hostile[:90]})
		if err != nil {
			t.Fatal(err)
		}
		return made.Key
	}
	admin, reader := key(api.AdminKey), key(api.AssistantKey)
	call := func(method, path, key string, body any) string {
		t.Helper()
		text, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		req, err := http.NewRequestWithContext(ctx, method, h.URL+path, strings.NewReader(string(text)))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+key)
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("User-Agent", hostile)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		answer, err := io.ReadAll(res.Body)
		if err != nil || res.StatusCode >= 400 {
			t.Fatalf("%s %s: %d %s %v", method, path, res.StatusCode, answer, err)
		}
		return string(answer)
	}
	for _, question := range []string{"How is green tea brewed? " + hostile, hostile, formula} {
		call(http.MethodPost, "/discovery/v2/assistant/docs.acme.example/message", reader, map[string]any{"fp": "anonymous",
			"messages": []any{map[string]any{"role": "user", "content": question}}})
	}
	call(http.MethodPost, "/discovery/v1/search/docs.acme.example", reader, map[string]any{"query": "tea " + hostile})
	for _, prompt := range []string{hostile, `replace "eighty" with "` + strings.NewReplacer(`"`, "'", "{{.}}", "").Replace(hostile) +
		`" in tea.md`, `rename "eighty" to "<hostile-x data-hostile=1>" everywhere`} {
		var job api.Job
		if err := json.Unmarshal([]byte(call(http.MethodPost, "/v2/agent/acme/job", admin, map[string]any{"prompt": prompt})),
			&job); err != nil {
			t.Fatal(err)
		}
		for ended := false; !ended; {
			text := call(http.MethodGet, "/v2/agent/acme/job/"+string(job.ID), admin, nil)
			if err := json.Unmarshal([]byte(text), &job); err != nil {
				t.Fatal(err)
			}
			if ended = job.Status != api.JobActive; !ended {
				time.Sleep(20 * time.Millisecond) // polls
			}
		}
	}
	if _, err := h.App.Stores.Catalog.AddPerson(ctx, api.Person{Name: hostile[:98], Email: "x@example.com",
		Roles: map[api.OrgID]api.Role{"org-a": api.RoleViewer}}, ""); err != nil {
		t.Fatal(err)
	}
	if err := h.App.Stores.Catalog.Audit(ctx, api.AuditEntry{Org: "org-a", Who: hostile, Action: "key.create", Object: hostile,
		Detail: hostile}); err != nil {
		t.Fatal(err)
	}
	if _, err := ops.AddAutomation(ctx, api.Automation{Project: "acme", Name: "weekly " + hostile[:40], Cron: "0 9 * * 1",
		Prompt: "tea.md", DailyCap: 1}); err != nil {
		t.Logf("no automation: %v", err)
	}
	h.App.Log.Log(ctx, slog.LevelWarn, hostile, "field "+hostile, hostile)
}

// A crawl looks at all that can be reached by links.
type crawl struct {
	*guest
	queue []string
	seen  map[string]bool
	shows map[string]bool // addresses that show hostile text, as text
}

const mostAddresses = 600

func (c *crawl) add(address string) {
	u, err := url.Parse(address)
	if err != nil || u.IsAbs() || u.Host != "" || !strings.HasPrefix(u.Path, "/") || strings.HasPrefix(u.Path, "/assets/") {
		return
	}
	u.Fragment = ""
	if c.seen[u.String()] || len(c.seen) >= mostAddresses {
		return
	}
	c.seen[u.String()] = true
	c.queue = append(c.queue, u.String())
}

func (c *crawl) run() {
	for len(c.queue) > 0 {
		path := c.queue[0]
		c.queue = c.queue[1:]
		res := c.do(http.MethodGet, path, nil)
		kind, _, _ := strings.Cut(res.Header.Get("Content-Type"), ";")
		switch {
		case res.StatusCode == http.StatusSeeOther:
			c.add(res.Header.Get("Location"))
		case res.StatusCode >= 500:
			c.T.Errorf("%s breaks: %s", path, harness.TextOf(c.T, res))
		case kind == "text/html":
			text := harness.TextOf(c.T, res)
			checkPage(c.T, path, res, text)
			c.look(path, text)
		case kind == "text/event-stream":
			c.look(path, firstEvent(c.T, res))
		case kind == "text/csv":
			checkCSV(c.T, path, harness.TextOf(c.T, res))
		}
		res.Body.Close()
	}
}

var visiblyHostile = regexp.MustCompile(`<hostile-x|onerror=alert`)

// look looks for hostile text that has become more than text, and goes on to what the page leads to.
func (c *crawl) look(path, text string) {
	doc, err := html.Parse(strings.NewReader(text))
	if err != nil {
		c.T.Fatal(err)
	}
	for n := range doc.Descendants() {
		if n.Type == html.TextNode && visiblyHostile.MatchString(n.Data) {
			u, _ := url.Parse(path)
			c.shows[u.Path] = true
		}
		if n.Type != html.ElementNode {
			continue
		}
		if n.Data == "hostile-x" {
			c.T.Errorf("%s: hostile text is an element", path)
		}
		for _, problem := range unsafeElement(n) {
			c.T.Errorf("%s: <%s> %s", path, n.Data, problem)
		}
		for _, a := range n.Attr {
			switch {
			case a.Key == "data-hostile" || a.Key == "onload" || a.Key == "onerror":
				c.T.Errorf("%s: hostile text is an attribute of <%s>", path, n.Data)
			case a.Key == "href" && n.Data == "a", a.Key == "sse-connect", a.Key == "hx-get", a.Key == "src" && n.Data == "img":
				c.add(a.Val)
			}
		}
	}
}

// firstEvent is the first part that a live page is sent.
func firstEvent(t testing.TB, res *http.Response) string {
	t.Helper()
	stop := context.AfterFunc(t.Context(), func() { res.Body.Close() })
	defer stop()
	var data []string
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, 4<<20)
	for lines.Scan() {
		if text, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			data = append(data, text)
		} else if lines.Text() == "" && len(data) > 0 {
			break
		}
	}
	return strings.Join(data, "\n")
}

// checkCSV holds a table to being one, in which no cell begins as a spreadsheet's formula does (OWASP, CSV injection).
func checkCSV(t testing.TB, where, text string) {
	t.Helper()
	rows, err := csv.NewReader(strings.NewReader(strings.TrimPrefix(text, "\ufeff"))).ReadAll()
	if err != nil {
		t.Errorf("%s is no table: %v", where, err)
	}
	for i, row := range rows {
		for _, cell := range row {
			if strings.HasPrefix(cell, "=") || strings.HasPrefix(cell, "@") || strings.HasPrefix(cell, "+") ||
				strings.HasPrefix(cell, "-") && len(cell) > 1 {
				t.Errorf("%s: row %d has the formula %.60s", where, i, cell)
			}
		}
	}
}
