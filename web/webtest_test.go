package web_test

import (
	"bytes"
	"context"
	"errors"
	"html"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"docent/actors/job"
	"docent/actors/pulls/review"
	"docent/api"
	"docent/forge"
	"docent/internal/cell"
	"docent/persistence/catalog"
	"docent/persistence/catalog/catalogtest"
	"docent/web"
	"docent/web/projects"
)

// A fixture is the pages over a real catalog, with stand-ins for what reaches outside, and what a test may look at and
// change in them. It has the organizations org-a (projects acme and acme-two) and org-b (project other).
type fixture struct {
	hooks    *hooks
	t        testing.TB
	url      string
	server   *web.Server
	clock    *clock
	catalog  *catalog.Catalog
	pulls    *pulls
	system   *system
	below    *conditions
	admin    string               // secret of an admin key of org-a
	audience *catalogtest.Threads // the askers of questions
	listing  *catalog.Projector   // of their questions
	unlist   func()               // ends the listing: a second one of the same questions would start it over
	agent    *agentStub
	jobs     *jobs
}

// A clock is set by the test.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// prepared returns a catalog with the organizations and projects of every test, as a file: migrations take their time.
var prepared = sync.OnceValues(func() ([]byte, error) {
	return catalogtest.Made(catalog.Options{Now: func() time.Time { return opened }, Log: slog.New(slog.DiscardHandler)},
		func(c *catalog.Catalog) (err error) {
			for _, org := range []api.OrgID{"org-a", "org-b"} {
				err = errors.Join(err, c.AddOrganization(context.Background(), org, string(org)))
			}
			for _, p := range []api.Project{
				{ID: "acme", Org: "org-a", Domain: "docs.acme.example", Source: "/docs/acme"},
				{ID: "acme-two", Org: "org-a", Domain: "two.acme.example", Source: "/docs/two"},
				{ID: "other", Org: "org-b", Domain: "docs.other.example", Source: "/docs/other"},
			} {
				_, also := c.AddProject(context.Background(), p)
				err = errors.Join(err, also)
			}
			return err
		})
})

// opened is when test servers are built.
var opened = time.Date(2026, 11, 21, 10, 0, 0, 123_000_000, time.UTC)

// openCatalog opens the server's own copy of the prepared catalog.
func (h *fixture) openCatalog() *catalog.Catalog {
	h.t.Helper()
	content, err := prepared()
	if err != nil {
		h.t.Fatal(err)
	}
	c, err := catalog.Open(h.t.Context(), catalogtest.Copy(h.t, content), catalog.Options{Now: h.clock.Now, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { c.Close() })
	return c
}

// build starts a server of pages. Options change what it is given.
func build(t testing.TB, options ...func(*web.Deps)) *fixture {
	t.Helper()
	h := &fixture{t: t, clock: &clock{now: opened},
		pulls: &pulls{all: map[string]api.PullRequest{}, diffs: map[string]forge.Diff{}},
		jobs:  &jobs{all: map[api.JobID]*api.JobRow{}, logs: map[api.JobID][]job.Entry{}, keys: map[string]api.JobID{}}}
	h.catalog, h.system = h.openCatalog(), &system{}
	h.below = &conditions{all: map[api.ProjectID]projects.Condition{}}
	h.admin = h.key(api.Key{Kind: api.AdminKey, Org: "org-a", Project: "acme", Name: "ci"})
	deps := web.Deps{Catalog: h.catalog, Pulls: h.pulls, System: h.system, Projects: h.below, Now: h.clock.Now, Version: "test", Secret: bytes.Repeat([]byte{7}, 32)}
	deps.Setting = func(context.Context) error { return nil }
	deps.Cell = cell.InProcess(append(web.RenderKinds(), review.Kinds()...)...)
	deps.Allowances, deps.Threads, deps.Eraser = allowances{}, newDesk(), newDesk()
	deps.Readers, deps.Tries, deps.Finder, deps.Models = nobody{}, nobody{}, nobody{}, nobody{}
	deps.Setup, deps.Tasks, deps.Sources = projectsOf{}, projectsOf{}, projectsOf{}
	h.insights(&deps)
	deps.Jobs, deps.Work, deps.Automations = h.jobs, h.jobs, automations{h.catalog}
	h.hooks = newHooks(h.catalog, h.clock.Now)
	deps.Webhooks = h.hooks
	for _, o := range options {
		o(&deps)
	}
	var err error
	if h.server, err = web.New(deps); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(h.serve))
	t.Cleanup(func() {
		h.server.Leave()
		server.Close()
	})
	h.url = server.URL
	return h
}

// serve does what the router does for pages: it shows errors.
func (h *fixture) serve(w http.ResponseWriter, req *http.Request) {
	client := netip.MustParseAddrPort(req.RemoteAddr).Addr()
	err := h.server.ServePage(w, req, client, false)
	if err == nil {
		return
	}
	status := http.StatusInternalServerError
	for _, kind := range []struct {
		err    error
		status int
	}{
		{api.ErrInvalid, 400}, {api.ErrForbidden, 403}, {api.ErrNotFound, 404}, {api.ErrConflict, 409},
		{api.ErrLimited, 429}, {api.ErrUnavailable, 503}, {api.ErrOverloaded, 503},
	} {
		if errors.Is(err, kind.err) {
			status = kind.status
		}
	}
	if status == 500 {
		h.t.Errorf("%s %s: %v", req.Method, req.URL, err)
	}
	var problems *api.InvalidError
	var details []api.Problem
	if errors.As(err, &problems) {
		details = problems.Problems
	}
	h.server.FailPage(w, req, status, err.Error(), details, "req_test")
}

// key makes a key and gives its secret.
func (h *fixture) key(k api.Key) string {
	h.t.Helper()
	secret := api.NewSecret(k.Kind)
	k.Hint = api.SecretHint(secret)
	if _, err := h.catalog.AddKey(h.t.Context(), k, api.HashSecret(secret)); err != nil {
		h.t.Fatal(err)
	}
	return secret
}

// A browser keeps cookies and fills in forms.
type browser struct {
	*fixture
	client *http.Client
}

func (h *fixture) browser() *browser {
	jar, err := cookiejar.New(nil)
	if err != nil {
		h.t.Fatal(err)
	}
	transport := &http.Transport{} // that other tests' servers close no connections of
	h.t.Cleanup(transport.CloseIdleConnections)
	return &browser{h, &http.Client{Jar: jar, Transport: transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

// do sends a request, with headers as pairs of name and value.
func (b *browser) do(method, path string, form url.Values, headers ...string) *http.Response {
	b.t.Helper()
	var body io.Reader
	if form != nil {
		body = strings.NewReader(form.Encode())
	}
	req, err := http.NewRequest(method, b.url+path, body)
	if err != nil {
		b.t.Fatal(err)
	}
	req.Header.Set("Accept", "text/html")
	if method == http.MethodPost {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := b.client.Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { res.Body.Close() })
	return res
}

// text gets a page and expects that status.
func (b *browser) text(status int, path string, headers ...string) (string, *http.Response) {
	b.t.Helper()
	res := b.do(http.MethodGet, path, nil, headers...)
	page, err := io.ReadAll(res.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	if res.StatusCode != status {
		b.t.Fatalf("GET %s: %d, want %d: %s", path, res.StatusCode, status, page)
	}
	return string(page), res
}

// open gets a page, whatever its status.
func (b *browser) open(path string) string {
	b.t.Helper()
	return b.read(b.do(http.MethodGet, path, nil))
}

// read is what was answered.
func (b *browser) read(res *http.Response) string {
	b.t.Helper()
	page, err := io.ReadAll(res.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return string(page)
}

// send sends a form.
func (b *browser) send(path string, form url.Values, headers ...string) *http.Response {
	b.t.Helper()
	if form == nil {
		form = url.Values{}
	}
	return b.do(http.MethodPost, path, form, headers...)
}

// token is what the forms of a page bring along.
func (b *browser) token(page string) string {
	b.t.Helper()
	m := regexp.MustCompile(`name="token" value="([^"]+)"`).FindStringSubmatch(page)
	if m == nil {
		b.t.Fatalf("no token in %s", page)
	}
	return html.UnescapeString(m[1])
}

// signIn signs in with the secret of an admin key.
func (b *browser) signIn(secret, next string) *http.Response {
	b.t.Helper()
	return b.send("/login", url.Values{"key": {secret}, "next": {next},
		"token": {b.token(b.open("/login?next=" + url.QueryEscape(next)))}})
}

// cookie is the value of one of the browser's cookies; empty if it has none.
func (b *browser) cookie(name string) string {
	u, _ := url.Parse(b.url)
	for _, c := range b.client.Jar.Cookies(u) {
		if c.Name == name {
			return c.Value
		}
	}
	return ""
}

func header(t testing.TB, res *http.Response, name, want string) {
	t.Helper()
	if got := res.Header.Get(name); got != want {
		t.Errorf("%s is %q, want %q", name, got, want)
	}
}

// pulls stands in for the built-in code host.
type pulls struct {
	mu       sync.Mutex
	all      map[string]api.PullRequest
	diffs    map[string]forge.Diff
	fail     error
	failDiff error
	files    []pullFile
}

func (p *pulls) Pull(ctx context.Context, id string) (api.PullRequest, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r, ok := p.all[id]; ok {
		return r, nil
	}
	return api.PullRequest{}, api.ErrNotFound
}

func (p *pulls) Diff(ctx context.Context, id string) (forge.Diff, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.diffs[id], p.failDiff
}

func (p *pulls) CommitDiff(ctx context.Context, id, commit string) (forge.Diff, error) {
	if commit != "c0ffee" {
		return forge.Diff{}, api.ErrNotFound
	}
	return p.Diff(ctx, id)
}

func (p *pulls) set(id string, state api.PullState) (api.PullRequest, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fail != nil {
		return api.PullRequest{}, p.fail
	}
	r := p.all[id]
	r.State = state
	p.all[id] = r
	return r, nil
}

func (p *pulls) Merge(ctx context.Context, id string) (api.PullRequest, error) {
	return p.set(id, api.PullMerged)
}

func (p *pulls) Close(ctx context.Context, id string) (api.PullRequest, error) {
	return p.set(id, api.PullClosed)
}
