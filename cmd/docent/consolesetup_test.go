package main

import (
	"context"
	"crypto/rand"
	"html"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"docent/api"
	"docent/cmd/docent/config"
	"docent/cmd/docent/operator"
	"docent/cmd/docent/server"
	"docent/persistence/datadir"
	"docent/search/sources"
)

// A consoleHouse is the whole program in the test's process, so that a test may sign in as anybody.
type consoleHouse struct {
	t    *testing.T
	app  *server.Server
	url  string
	data string
	log  *lockedBuffer
}

func newConsoleHouse(t *testing.T) *consoleHouse {
	t.Helper()
	h, stop := openConsoleHouse(t, filepath.Join(t.TempDir(), "data"))
	t.Cleanup(stop)
	return h
}

// openConsoleHouse is newConsoleHouse on a data directory that may be there already. Stop ends it.
func openConsoleHouse(t *testing.T, data string) (h *consoleHouse, stop func()) {
	t.Helper()
	h = &consoleHouse{t: t, data: data, log: new(lockedBuffer)}
	dir, err := datadir.Open(h.data, datadir.Server, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	c := config.Default()
	c.Data = h.data
	var handler http.Handler
	var ready sync.WaitGroup
	ready.Add(1)
	running := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		ready.Wait()
		handler.ServeHTTP(w, req)
	}))
	c.PublicURL = running.URL
	if h.app, err = server.New(t.Context(), server.Deps{Dir: dir, Config: c, Address: running.URL,
		Log: slog.New(slog.NewTextHandler(h.log, &slog.HandlerOptions{Level: slog.LevelDebug}))}); err != nil {
		t.Fatal(err)
	}
	h.url, handler = running.URL, h.app.Edge
	h.app.Updates.Wake()
	ready.Done()
	return h, func() {
		h.app.Pages.Leave()
		running.CloseClientConnections()
		running.Close()
		h.app.CancelWork()
		if err := h.app.Close(); err != nil {
			t.Error(err)
		}
		dir.Close()
	}
}

// A visitorOf is a browser of somebody who is signed in.
type visitorOf struct {
	*consoleHouse
	client *http.Client
}

// as is a browser of somebody with that role in the default organization; of the operator where it is empty.
func (h *consoleHouse) as(role api.Role) *visitorOf {
	h.t.Helper()
	if role == "" {
		return h.browse(api.SignIn{Kind: api.SessionOfLink, How: "link"})
	}
	return h.asIn(api.DefaultOrg, role)
}

// asIn is a browser of somebody with that role in an organization.
func (h *consoleHouse) asIn(org api.OrgID, role api.Role) *visitorOf {
	h.t.Helper()
	p, err := h.app.Stores.Catalog.AddPerson(h.t.Context(), api.Person{Name: string(role),
		Email: rand.Text() + "@example.com", Roles: map[api.OrgID]api.Role{org: role}}, "")
	if err != nil {
		h.t.Fatal(err)
	}
	return h.browse(api.SignIn{Kind: api.SessionOfPerson, Person: p.ID, How: "link"})
}

// browse is a browser with a session.
func (h *consoleHouse) browse(in api.SignIn) *visitorOf {
	h.t.Helper()
	now := time.Now()
	in.CreatedAt, in.SeenAt, in.ExpiresAt, in.Idle = now, now, now.Add(time.Hour), time.Hour
	token := rand.Text()
	if _, err := h.app.Stores.Catalog.AddSession(h.t.Context(), in, api.HashSecret(token)); err != nil {
		h.t.Fatal(err)
	}
	jar, _ := cookiejar.New(nil)
	u, _ := url.Parse(h.url)
	jar.SetCookies(u, []*http.Cookie{{Name: "docent_session", Value: token, Path: "/"}})
	return &visitorOf{h, &http.Client{Jar: jar,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

// signedIn is a browser of somebody who has signed in with an admin key.
func (h *consoleHouse) signedIn(key string) *visitorOf {
	h.t.Helper()
	jar, _ := cookiejar.New(nil)
	b := &visitorOf{h, &http.Client{Jar: jar,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
	if status, page, _ := b.send("/login", "/login", url.Values{"key": {key}}); status != http.StatusSeeOther {
		h.t.Fatalf("sign in: %d\n%s", status, page)
	}
	return b
}

func (b *visitorOf) do(method, path string, form url.Values) (int, string, string) {
	b.t.Helper()
	var body io.Reader
	if form != nil {
		body = strings.NewReader(form.Encode())
	}
	req, err := http.NewRequestWithContext(b.t.Context(), method, b.url+path, body)
	if err != nil {
		b.t.Fatal(err)
	}
	req.Header.Set("Accept", "text/html")
	if form != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	resp, err := b.client.Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return resp.StatusCode, string(text), resp.Header.Get("Location")
}

// open gets a page, following where it leads.
func (b *visitorOf) open(path string) string {
	b.t.Helper()
	for range 5 {
		status, text, to := b.do(http.MethodGet, path, nil)
		if status == http.StatusSeeOther {
			path = to
			continue
		}
		if status != http.StatusOK {
			b.t.Fatalf("GET %s: %d\n%s\n%s", path, status, text, b.log)
		}
		return text
	}
	b.t.Fatalf("%s leads round and round", path)
	return ""
}

var formToken = regexp.MustCompile(`name="token" value="([^"]+)"`)

// send sends a form of a page, and gives the status, the page and where it leads. Where it leads to a task that takes longer
// than a page waits, as on a slow machine, that has ended afterwards. One that failed has changed nothing: the form is sent
// again, since only its own page says what is wrong with it.
func (b *visitorOf) send(from, path string, form url.Values) (status int, page, to string) {
	b.t.Helper()
	if form == nil {
		form = url.Values{}
	}
	until(b.t, path+" is answered", func() bool {
		m := formToken.FindStringSubmatch(b.open(from))
		if m == nil {
			b.t.Fatalf("%s has no form", from)
		}
		form.Set("token", html.UnescapeString(m[1]))
		status, page, to = b.do(http.MethodPost, path, form)
		_, task, waits := strings.Cut(to, "/sources/task/")
		return !waits || !b.ended(task).Failed()
	})
	return status, page, to
}

// ended waits until a task has ended, and gives it as it is then.
func (h *consoleHouse) ended(id string) (task sources.Task) {
	h.t.Helper()
	until(h.t, "the task has ended", func() bool {
		var err error
		if task, err = h.app.Tasks.Task(id); err != nil {
			h.t.Fatal(err)
		}
		return !task.Running()
	})
	return task
}

// await opens a page until it has a text.
func (b *visitorOf) await(path, text string) string {
	b.t.Helper()
	page := ""
	ctx, cancel := context.WithTimeout(b.t.Context(), time.Minute)
	defer cancel()
	for ctx.Err() == nil {
		if page = b.open(path); strings.Contains(page, text) {
			return page
		}
		time.Sleep(20 * time.Millisecond)
	}
	b.t.Fatalf("%s does not come to say %q:\n%s", path, text, page)
	return ""
}

func wants(t *testing.T, page string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(page, text) {
			t.Errorf("the page lacks %q:\n%s", text, page)
		}
	}
}

// TestTheWizardLeadsFromAFolderToTheKeys goes through all steps without scripts: what is found, what is read, the first
// question, and both keys, which are shown once and work.
func TestTheWizardLeadsFromAFolderToTheKeys(t *testing.T) {
	t.Parallel()
	h := newConsoleHouse(t)
	b := h.as("")
	source := writeFiles(t, map[string]string{
		"docs/index.md":   "# Harbour\n\nThe harbour opens at six.\n\n## Ferries\n\nFerries leave on the hour. See [prices](/prices).\n",
		"docs/tickets.md": "# Tickets\n\nA ticket costs four coins.\n",
		"docs/_draft.md":  "# Draft\n",
		"README.md":       "# Code\n",
	})
	page := b.open("/console/setup")
	wants(t, page, "Where is your documentation?", "docent project add")
	status, _, to := b.send(
		"/console/setup",
		"/console/setup/source",
		url.Values{"source": {source}, "id": {"harbour"}},
	)
	if status != http.StatusSeeOther || to != "/console/setup/harbour" {
		t.Fatalf("%d, %s", status, to)
	}
	page = b.await(to, "what was found")
	wants(t, page, "2 pages", `value="docs"`, "Guessed from the folder docs", "_draft.md")

	status, page, _ = b.send(
		to,
		to+"/add",
		url.Values{"domain": {"not a domain"}, "docsDir": {"docs"}, "siteUrl": {"ftp://x"}},
	)
	if status != http.StatusBadRequest {
		t.Errorf("a wrong domain: %d", status)
	}
	wants(
		t,
		page,
		`aria-invalid="true"`,
		"must be a domain or one part of it",
		"must be an http or https URL",
		`value="not a domain"`,
	)
	status, _, next := b.send(
		to,
		to+"/add",
		url.Values{"domain": {"docs.harbour.example"}, "docsDir": {"docs"}, "name": {"Harbour"},
			"siteUrl": {"https://docs.harbour.example"}},
	)
	if status != http.StatusSeeOther {
		t.Fatalf("%d", status)
	}
	page = b.await(next, "is read")
	wants(t, page, "Dead links", "/prices", "_draft.md", "Ask the first question")

	status, _, question := b.send(to+"/question", to+"/ask", url.Values{"question": {"When does the harbour open?"}})
	if status != http.StatusSeeOther {
		t.Fatalf("%d", status)
	}
	page = b.await(question, "opens at six")
	wants(t, page, "https://docs.harbour.example", "Next: the keys")

	status, page, _ = b.send(to+"/keys", to+"/create", nil)
	key := regexp.MustCompile(`dct_asst_[A-Za-z0-9_-]+|dct_[a-z]+_[A-Za-z0-9_-]+`)
	keys := key.FindAllString(page, -1)
	if status != http.StatusOK || len(keys) < 2 {
		t.Fatalf("%d: %q", status, keys)
	}
	wants(t, page, "useChat", "curl -N", h.url+"/discovery/v2/assistant/docs.harbour.example/message", "How to go on")
	status, _, again := b.send(to+"/keys", to+"/create", nil)
	if page = b.open(again); status != http.StatusSeeOther || key.MatchString(page) {
		t.Errorf("a form that is sent again: %d, %q", status, key.FindAllString(page, -1))
	}
	list, err := h.app.Operator.ListKeys(t.Context(), operator.ProjectParams{ID: "harbour"})
	if err != nil || len(list) != 2 {
		t.Errorf("the keys are %+v, %v", list, err)
	}
	made, err := h.app.Stores.Catalog.AuditLog(t.Context(), api.AuditQuery{Org: api.DefaultOrg, Action: "key.create", Limit: 10})
	if err != nil || len(made) != 2 || made[1].Object != string(list[0].ID) || made[0].Object != string(list[1].ID) {
		t.Errorf("the audit log does not say which keys were made: %+v, %v", made, err)
	}
	page = b.open("/console/" + string(api.DefaultOrg) + "/docs.harbour.example/sources")
	wants(t, page, source, "folder <code>docs</code>", "1 dead link", "https://docs.harbour.example/tickets")
	// What was given up, or is there already, is said plainly.
	if status, page, _ = b.do(http.MethodGet, "/console/setup/nothing", nil); status != http.StatusNotFound ||
		!strings.Contains(page, "was not added") {
		t.Errorf("a draft that does not exist: %d", status)
	}
	for _, secret := range keys {
		if strings.Contains(h.log.String(), secret) || len(holders(t, h.data, secret)) > 0 {
			t.Error("a key is in the log or on the disk")
		}
	}
}

// TestTheWizardIsTheOperators asks for its pages and actions without a session and with each role, but that of an owner
// of the default organization, who is an operator.
func TestTheWizardIsTheOperators(t *testing.T) {
	t.Parallel()
	h := newConsoleHouse(t)
	secret := writeFiles(t, map[string]string{"index.md": "# Secret\n"})
	for _, role := range []api.Role{api.RoleViewer, api.RoleEditor} {
		b := h.as(role)
		token := html.UnescapeString(formToken.FindStringSubmatch(b.open("/console"))[1])
		if status, _, _ := b.do(http.MethodGet, "/console/setup", nil); status != http.StatusNotFound {
			t.Errorf("the %s sees the wizard: %d", role, status)
		}
		status, page, _ := b.do(
			http.MethodPost,
			"/console/setup/source",
			url.Values{"source": {secret}, "token": {token}},
		)
		if status != http.StatusNotFound || strings.Contains(page, secret) {
			t.Errorf("the %s looks at a folder: %d", role, status)
		}
	}
	operator := h.as("")
	operator.open("/console/setup")
	if status, _, _ := operator.do(
		http.MethodPost,
		"/console/setup/source",
		url.Values{"source": {secret}},
	); status != http.StatusForbidden {
		t.Errorf("a form without a token: %d", status)
	}
}

// TestTheWizardSaysWhatIsWrongAtItsField pastes what cannot be read, what is dangerous, and what has a secret in it.
func TestTheWizardSaysWhatIsWrongAtItsField(t *testing.T) {
	t.Parallel()
	h := newConsoleHouse(t)
	b := h.as("")
	for source, want := range map[string]string{
		"":                                     "is required",
		"-oProxyCommand=touch /tmp/x":          "begins with a hyphen",
		"ext::sh -c touch":                     "program to git",
		"https://user:hunter2@git.example.com": "take it out",
		"http://169.254.169.254/latest/":       "private network",
		h.url:                                  "private network",
		"gopher://x":                           "must be a folder or an address",
		"docs":                                 "not a whole path or address",
	} {
		status, page, _ := b.send("/console/setup", "/console/setup/source", url.Values{"source": {source}})
		if status != http.StatusBadRequest || !strings.Contains(page, want) {
			t.Errorf("%q: %d\n%s", source, status, page)
		}
	}
	for field, form := range map[string]url.Values{
		"id-fault":     {"source": {t.TempDir()}, "id": {"../../etc"}},
		"secret-fault": {"source": {"https://git.example.com/docs.git"}, "secret": {"tok\x00hunter2"}},
		"branch-fault": {"source": {t.TempDir()}, "branch": {"--upload-pack=touch"}},
	} {
		status, page, _ := b.send("/console/setup", "/console/setup/source", form)
		if status != http.StatusBadRequest || !strings.Contains(page, field) || strings.Contains(page, "hunter2") {
			t.Errorf("%s: %d\n%s", field, status, page)
		}
	}
	hostile := filepath.Join(t.TempDir(), `<img src=x onerror=alert(1)>`)
	if err := os.MkdirAll(hostile, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(
		filepath.Join(hostile, "<b>page.md"),
		[]byte("# <script>alert(1)</script>\n\n[x](<i>.md)\n"),
		0o600,
	); err != nil {
		t.Fatal(err)
	}
	_, _, to := b.send("/console/setup", "/console/setup/source", url.Values{"source": {hostile}, "id": {"hostile"}})
	page := b.await(to, "what was found")
	if strings.Contains(page, "<img src=x") || strings.Contains(page, "<script>alert") {
		t.Errorf("hostile names come through:\n%s", page)
	}
	status, _, gone := b.send(to, to+"/discard", nil)
	if page = b.open(
		gone,
	); status != http.StatusSeeOther || strings.Contains(page, "hostile</strong>") ||
		h.app.Stores.Hub.Holds("hostile") {
		t.Errorf("after it was given up: %d", status)
	}
	_, _, to = b.send(
		"/console/setup",
		"/console/setup/source",
		url.Values{"source": {filepath.Join(hostile, "nowhere")}},
	)
	wants(t, b.await(to, "cannot be read"), "Give another source")
}

// TestAProjectOnItsWayIsForgottenByARestart looks at a source with a token, restarts the server, and finds that it is said
// plainly and that nothing is kept.
func TestAProjectOnItsWayIsForgottenByARestart(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	source := writeFiles(t, map[string]string{"index.md": "# Tea\n"})
	h, stop := openConsoleHouse(t, data)
	b := h.as("")
	const secret = "tok_OfAProjectOnItsWay"
	_, page, to := b.send("/console/setup", "/console/setup/source", url.Values{"source": {source}, "id": {"tea"}, "secret": {secret}})
	if to == "" {
		t.Fatal(page)
	}
	b.await(to, "what was found")
	if list := holders(t, data, secret); len(list) != 1 {
		t.Errorf("before the restart the token is in %q", list)
	}
	wants(t, b.open("/console/setup"), "On their way", source)
	stop()
	h, stop = openConsoleHouse(t, data)
	defer stop()
	status, page, _ := h.as("").do(http.MethodGet, to, nil)
	if status != http.StatusNotFound || !strings.Contains(page, "was not added") || !strings.Contains(page, "Begin again") {
		t.Errorf("after the restart: %d\n%s", status, page)
	}
	if list := holders(t, data, secret); len(list) > 0 {
		t.Errorf("after the restart the token is in %q", list)
	}
}

// TestTheWizardSaysThatTheExclusionsAreUnknownAndTakesThem looks at a site whose configuration computes what it leaves
// out: the page says so and which fields mend it, nothing is added without them, and with them the site is read.
func TestTheWizardSaysThatTheExclusionsAreUnknownAndTakesThem(t *testing.T) {
	t.Parallel()
	h := newConsoleHouse(t)
	b := h.as("")
	source := writeFiles(t, map[string]string{
		"docusaurus.config.js":  "export default {title: 'x', presets: [['classic', {docs: {exclude: leftOut()}}]]}",
		"docs/intro.md":         "# Intro\n\nWombats dig.\n",
		"docs/internal/plan.md": "# Plan\n\nThe codename is Bluefin.\n",
	})
	_, _, to := b.send("/console/setup", "/console/setup/source", url.Values{"source": {source}, "id": {"unknown"}})
	page := b.await(to, "what was found")
	wants(t, page, "docusaurus.config.js: exclude is computed", "Leave out", "Include")
	form := url.Values{"domain": {"unknown.example"}}
	_, _, next := b.send(to, to+"/add", form)
	wants(t, b.await(next, "was not added"), "docusaurus.config.js: exclude is computed")
	form.Set("exclude", "internal/")
	_, _, next = b.send(to, to+"/add", form)
	wants(t, b.await(next, "is read"), "--exclude internal/")
	if n, _ := h.app.Stores.Library.Size("unknown"); n != 1 {
		t.Errorf("%d pages are public", n)
	}
}
