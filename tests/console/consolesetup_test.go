package console

import (
	"html"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"docent/api"
	"docent/cmd/docent/config"
	"docent/cmd/docent/operator"
	"docent/cmd/docent/server"
	"docent/persistence/datadir"
	"docent/tests/harness"
)

func newConsoleHouse(t *testing.T) *harness.Console {
	t.Helper()
	h, stop := openConsoleHouse(t, filepath.Join(t.TempDir(), "data"))
	t.Cleanup(stop)
	return h
}

// openConsoleHouse is newConsoleHouse on a data directory that may be there already. Stop ends it.
func openConsoleHouse(t *testing.T, data string, settings ...func(*config.Config)) (h *harness.Console, stop func()) {
	t.Helper()
	h = &harness.Console{T: t, Data: data, Log: new(harness.LockedBuffer)}
	dir, err := datadir.Open(h.Data, datadir.Server, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	c := config.Default()
	c.Data = h.Data
	for _, set := range settings {
		set(&c)
	}
	var handler http.Handler
	var ready sync.WaitGroup
	ready.Add(1)
	running := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		ready.Wait()
		handler.ServeHTTP(w, req)
	}))
	c.PublicURL = running.URL
	if h.App, err = server.New(t.Context(), server.Deps{Dir: dir, Config: c, Address: running.URL,
		Log: slog.New(slog.NewTextHandler(h.Log, &slog.HandlerOptions{Level: slog.LevelDebug}))}); err != nil {
		t.Fatal(err)
	}
	h.URL, handler = running.URL, h.App.Edge
	h.App.Updates.Wake()
	ready.Done()
	return h, func() {
		h.App.Pages.Leave()
		running.CloseClientConnections()
		running.Close()
		h.App.CancelWork()
		if err := h.App.Close(); err != nil {
			t.Error(err)
		}
		dir.Close()
	}
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
	b := h.As("")
	source := harness.WriteFiles(t, map[string]string{
		"docs/index.md":   "# Harbour\n\nThe harbour opens at six.\n\n## Ferries\n\nFerries leave on the hour. See [prices](/prices).\n",
		"docs/tickets.md": "# Tickets\n\nA ticket costs four coins.\n",
		"docs/_draft.md":  "# Draft\n",
		"README.md":       "# Code\n",
	})
	page := b.Open("/console/setup")
	wants(t, page, "Where is your documentation?", "docent project add")
	status, _, to := b.Send(
		"/console/setup",
		"/console/setup/source",
		url.Values{"source": {source}, "id": {"harbour"}},
	)
	if status != http.StatusSeeOther || to != "/console/setup/harbour" {
		t.Fatalf("%d, %s", status, to)
	}
	page = b.Await(to, "Review “")
	wants(t, page, "Public pages</dt><dd>2</dd>", `value="docs"`, "Guessed from the folder docs", "_draft.md")

	status, page, _ = b.Send(
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
	status, _, next := b.Send(
		to,
		to+"/add",
		url.Values{"domain": {"docs.harbour.example"}, "docsDir": {"docs"}, "name": {"Harbour"},
			"siteUrl": {"https://docs.harbour.example"}},
	)
	if status != http.StatusSeeOther {
		t.Fatalf("%d", status)
	}
	page = b.Await(next, "is indexed")
	wants(t, page, "Dead links", "/prices", "_draft.md", "Ask the first question")

	status, _, question := b.Send(to+"/question", to+"/ask", url.Values{"question": {"When does the harbour open?"}})
	if status != http.StatusSeeOther {
		t.Fatalf("%d", status)
	}
	page = b.Await(question, "opens at six")
	wants(t, page, "https://docs.harbour.example", "Continue")

	status, page, shown := b.Send(to+"/keys", to+"/create", nil)
	if status != http.StatusSeeOther {
		t.Fatalf("making the keys: %d\n%s", status, page)
	}
	page = b.Open(shown)
	key := regexp.MustCompile(`dct_asst_[A-Za-z0-9_-]+|dct_[a-z]+_[A-Za-z0-9_-]+`)
	keys := key.FindAllString(page, -1)
	if len(keys) < 2 || key.MatchString(b.Open(shown)) {
		t.Fatalf("the keys are %q, or shown twice", keys)
	}
	wants(t, page, "useChat", "curl -N", h.URL+"/discovery/v2/assistant/docs.harbour.example/message", "Next steps")
	status, _, again := b.Send(to+"/keys", to+"/create", nil)
	if page = b.Open(again); status != http.StatusSeeOther || key.MatchString(page) {
		t.Errorf("a form that is sent again: %d, %q", status, key.FindAllString(page, -1))
	}
	list, err := h.App.Operator.ListKeys(t.Context(), operator.ProjectParams{ID: "harbour"})
	if err != nil || len(list) != 2 {
		t.Errorf("the keys are %+v, %v", list, err)
	}
	made, err := h.App.Stores.Catalog.AuditLog(t.Context(), api.AuditQuery{Org: api.DefaultOrg, Action: "key.create", Limit: 10})
	said := func(id api.KeyID) bool { // in either order: both may be of one millisecond
		return slices.ContainsFunc(made, func(e api.AuditEntry) bool { return e.Object == string(id) })
	}
	if err != nil || len(made) != 2 || !said(list[0].ID) || !said(list[1].ID) {
		t.Errorf("the audit log does not say which keys were made: %+v, %v", made, err)
	}
	page = b.Open("/console/" + string(api.DefaultOrg) + "/docs.harbour.example/sources")
	wants(t, page, source, "folder <code>docs</code>", "1 dead link", "https://docs.harbour.example/tickets")
	// What was given up, or is there already, is said plainly.
	if status, page, _ = b.Do(http.MethodGet, "/console/setup/nothing", nil); status != http.StatusNotFound ||
		!strings.Contains(page, "was not added") {
		t.Errorf("a draft that does not exist: %d", status)
	}
	for _, secret := range keys {
		if strings.Contains(h.Log.String(), secret) || len(harness.Holders(t, h.Data, secret)) > 0 {
			t.Error("a key is in the log or on the disk")
		}
	}
}

// TestTheWizardIsTheOperators asks for its pages and actions without a session and with each role, but that of an owner
// of the default organization, who is an operator.
func TestTheWizardIsTheOperators(t *testing.T) {
	t.Parallel()
	h := newConsoleHouse(t)
	secret := harness.WriteFiles(t, map[string]string{"index.md": "# Secret\n"})
	for _, role := range []api.Role{api.RoleViewer, api.RoleEditor} {
		b := h.As(role)
		token := html.UnescapeString(harness.FormToken.FindStringSubmatch(b.Open("/console"))[1])
		if status, _, _ := b.Do(http.MethodGet, "/console/setup", nil); status != http.StatusNotFound {
			t.Errorf("the %s sees the wizard: %d", role, status)
		}
		status, page, _ := b.Do(
			http.MethodPost,
			"/console/setup/source",
			url.Values{"source": {secret}, "token": {token}},
		)
		if status != http.StatusNotFound || strings.Contains(page, secret) {
			t.Errorf("the %s looks at a folder: %d", role, status)
		}
	}
	operator := h.As("")
	operator.Open("/console/setup")
	if status, _, _ := operator.Do(
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
	b := h.As("")
	for source, want := range map[string]string{
		"":                                     "is required",
		"-oProxyCommand=touch /tmp/x":          "begins with a hyphen",
		"ext::sh -c touch":                     "program to git",
		"https://user:hunter2@git.example.com": "take it out",
		"http://169.254.169.254/latest/":       "private network",
		h.URL:                                  "private network",
		"gopher://x":                           "must be a folder or an address",
		"docs":                                 "not a whole path or address",
		filepath.Join(t.TempDir(), "nowhere"):  "Check the path and its permissions",
	} {
		status, page, _ := b.Send("/console/setup", "/console/setup/source", url.Values{"source": {source}})
		if status != http.StatusBadRequest || !strings.Contains(page, want) {
			t.Errorf("%q: %d\n%s", source, status, page)
		}
	}
	for field, form := range map[string]url.Values{
		"id-fault":     {"source": {t.TempDir()}, "id": {"../../etc"}},
		"secret-fault": {"source": {"https://git.example.com/docs.git"}, "secret": {"tok\x00hunter2"}},
		"branch-fault": {"source": {t.TempDir()}, "branch": {"--upload-pack=touch"}},
	} {
		status, page, _ := b.Send("/console/setup", "/console/setup/source", form)
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
	_, _, to := b.Send("/console/setup", "/console/setup/source", url.Values{"source": {hostile}, "id": {"hostile"}})
	page := b.Await(to, "Review “")
	if strings.Contains(page, "<img src=x") || strings.Contains(page, "<script>alert") {
		t.Errorf("hostile names come through:\n%s", page)
	}
	status, _, gone := b.Send(to, to+"/discard", nil)
	if page = b.Open(
		gone,
	); status != http.StatusSeeOther || strings.Contains(page, "hostile</strong>") ||
		h.App.Stores.Hub.Holds("hostile") {
		t.Errorf("after it was given up: %d", status)
	}
	_, _, to = b.Send(
		"/console/setup",
		"/console/setup/source",
		url.Values{"source": {filepath.Join(hostile, "<b>page.md")}},
	)
	if page = b.Await(to, "Can't read"); !strings.Contains(page, "Use another source") || strings.Contains(page, "Access token") {
		t.Errorf("a file for a source: %s", page)
	}
}

// TestAProjectOnItsWayIsForgottenByARestart looks at a source with a token, restarts the server, and finds that it is said
// plainly and that nothing is kept.
func TestAProjectOnItsWayIsForgottenByARestart(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	source := harness.WriteFiles(t, map[string]string{"index.md": "# Tea\n"})
	h, stop := openConsoleHouse(t, data)
	b := h.As("")
	const secret = "tok_OfAProjectOnItsWay"
	_, page, to := b.Send("/console/setup", "/console/setup/source", url.Values{"source": {source}, "id": {"tea"}, "secret": {secret}})
	if to == "" {
		t.Fatal(page)
	}
	b.Await(to, "Review “")
	if list := harness.Holders(t, data, secret); len(list) != 1 {
		t.Errorf("before the restart the token is in %q", list)
	}
	wants(t, b.Open("/console/setup"), "In progress", source)
	stop()
	h, stop = openConsoleHouse(t, data)
	defer stop()
	status, page, _ := h.As("").Do(http.MethodGet, to, nil)
	if status != http.StatusNotFound || !strings.Contains(page, "was not added") || !strings.Contains(page, "Start again") {
		t.Errorf("after the restart: %d\n%s", status, page)
	}
	if list := harness.Holders(t, data, secret); len(list) > 0 {
		t.Errorf("after the restart the token is in %q", list)
	}
}

// TestTheWizardSaysThatTheExclusionsAreUnknownAndTakesThem looks at a site whose configuration computes what it leaves
// out: the page says so and which fields mend it, nothing is added without them, and with them the site is read.
func TestTheWizardSaysThatTheExclusionsAreUnknownAndTakesThem(t *testing.T) {
	t.Parallel()
	h := newConsoleHouse(t)
	b := h.As("")
	source := harness.WriteFiles(t, map[string]string{
		"docusaurus.config.js":  "export default {title: 'x', presets: [['classic', {docs: {exclude: leftOut()}}]]}",
		"docs/intro.md":         "# Intro\n\nWombats dig.\n",
		"docs/internal/plan.md": "# Plan\n\nThe codename is Bluefin.\n",
	})
	_, _, to := b.Send("/console/setup", "/console/setup/source", url.Values{"source": {source}, "id": {"unknown"}})
	page := b.Await(to, "Review “")
	wants(t, page, "docusaurus.config.js: exclude is computed", "Leave out", "Include")
	form := url.Values{"domain": {"unknown.example"}}
	_, _, next := b.Send(to, to+"/add", form)
	wants(t, b.Await(next, "was not added"), "docusaurus.config.js: exclude is computed")
	form.Set("exclude", "internal/")
	_, _, next = b.Send(to, to+"/add", form)
	wants(t, b.Await(next, "is indexed"), "--exclude internal/")
	if n, _ := h.App.Stores.Library.Size("unknown"); n != 1 {
		t.Errorf("%d pages are public", n)
	}
}
