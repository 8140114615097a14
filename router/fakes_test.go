package router_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"docent/actors/job"
	"docent/actors/thread"
	"docent/api"
	"docent/api/openapi/openapitest"
	"docent/api/stream"
	"docent/persistence/catalog/listing"
	"docent/persistence/journal"
	"docent/persistence/quota"
	"docent/router"
	"docent/search"
)

// A house is a server with stand-ins for the packages below, and what a test may look at and change in them.
type house struct {
	t       testing.TB
	url     string
	client  *http.Client // checked against the contract; follows no redirects
	web     *httptest.Server
	taken   atomic.Int64 // connections that were taken from net/http
	active  atomic.Int64 // requests that net/http has read
	server  *router.Server
	clock   *clock
	log     *logged
	jobs    *jobs
	threads *threads
	catalog *fakeCatalog
	quotas  *quotas
	docs    *documents
	updates *updates
	pushes  *pushes
	stats   *analytics

	admin, assistant string // secrets of keys of project "acme"
}

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

type logged struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// build starts a server. Options change what it is given.
func build(t testing.TB, options ...func(*router.Deps)) *house {
	t.Helper()
	return buildWith(t, func(*http.Server) {}, options...)
}

// buildWith is build with a change to the HTTP server.
func buildWith(t testing.TB, change func(*http.Server), options ...func(*router.Deps)) *house {
	t.Helper()
	now := &clock{now: time.Date(2026, 11, 21, 10, 0, 0, 123_000_000, time.UTC)}
	claims := &claims{held: map[string]journal.Claim{}}
	h := &house{t: t, clock: now, log: &logged{},
		jobs:    &jobs{clock: now, claims: claims, all: map[api.JobID]*jobState{}},
		threads: &threads{all: map[api.ThreadID]*threadState{}},
		catalog: &fakeCatalog{keys: map[[32]byte]api.Key{}, projects: map[api.ProjectID]api.Project{}},
		quotas:  &quotas{used: map[string]int{}},
		docs:    &documents{},
		updates: &updates{clock: now, all: map[api.UpdateID]api.Update{}},
		pushes:  &pushes{secrets: map[api.ProjectID]string{"acme": "sesame", "acme-two": ""}},
		stats:   &analytics{},
	}
	h.catalog.jobs = h.jobs
	for _, p := range []api.Project{
		{ID: "acme", Org: "org-a", Domain: "docs.acme.example"},
		{ID: "acme-two", Org: "org-a", Domain: "two.acme.example"},
		{ID: "other", Org: "org-b", Domain: "docs.other.example"},
	} {
		h.catalog.projects[p.ID] = p
	}
	h.admin = h.key(api.Key{Kind: api.AdminKey, Org: "org-a", Project: "acme", Name: "ci"})
	h.assistant = h.key(api.Key{Kind: api.AssistantKey, Org: "org-a", Project: "acme"})
	deps := router.Deps{Jobs: h.jobs, Threads: h.threads, Catalog: h.catalog, Quotas: h.quotas, Claims: claims,
		Documents: h.docs, Models: fakeModels{local: true},
		Updates: h.updates, Pushes: h.pushes, Reviews: h.pushes, Analytics: h.stats,
		Log: slog.New(slog.NewJSONHandler(h.log, nil)), Now: now.Now, Version: "test", Secret: bytes.Repeat([]byte{7}, 32),
		TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32"), netip.MustParsePrefix("10.0.0.0/8")}}
	for _, o := range options {
		o(&deps)
	}
	server, err := router.New(deps)
	if err != nil {
		t.Fatal(err)
	}
	h.server = server
	web := httptest.NewUnstartedServer(server)
	change(web.Config)
	web.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		switch state {
		case http.StateHijacked:
			h.taken.Add(1)
		case http.StateActive:
			h.active.Add(1)
		}
	}
	server.Attach(web.Config)
	if *over == "" {
		web.Listener = server.Listener(web.Listener)
	} else {
		web.Listener = server.TLSListener(web.Listener, identity().server)
	}
	web.Start()
	h.web = web
	t.Cleanup(func() {
		server.Close()
		web.CloseClientConnections()
		web.Close()
	})
	h.url = web.URL
	base := web.Client().Transport
	if *over != "" {
		h.url = "https" + strings.TrimPrefix(web.URL, "http")
		base = transport(t, *over)
	}
	h.client = &http.Client{Transport: openapitest.Checked{T: t, Base: base},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return h
}

// eachWay runs a test of streams that their handlers write, and of streams on sockets.
func eachWay(t *testing.T, test func(t *testing.T, way func(*router.Deps))) {
	for name, handler := range map[string]bool{"handler": true, "sockets": false} {
		t.Run(name, func(t *testing.T) {
			test(t, func(d *router.Deps) { d.Models, d.HandlerStreams = fakeModels{}, handler })
		})
	}
}

// key makes a key and gives its secret.
func (h *house) key(k api.Key) string {
	secret := api.NewSecret(k.Kind)
	k.ID = api.KeyID(api.NewID(api.KeyPrefix, h.clock.Now()))
	h.catalog.mu.Lock()
	defer h.catalog.mu.Unlock()
	h.catalog.keys[api.HashSecret(secret)] = k
	return secret
}

// do sends a request with headers as pairs of name and value.
func (h *house) do(method, path, secret, body string, headers ...string) *http.Response {
	h.t.Helper()
	var r io.Reader
	if body != "" {
		r = strings.NewReader(body)
	}
	req, err := http.NewRequest(method, h.url+path, r)
	if err != nil {
		h.t.Fatal(err)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if secret != "" {
		req.Header.Set("Authorization", "Bearer "+secret)
	}
	for i := 0; i < len(headers); i += 2 {
		if headers[i+1] == "" {
			req.Header.Del(headers[i])
			continue
		}
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := h.client.Do(req)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { res.Body.Close() })
	return res
}

// json sends a request and expects that status and a JSON object.
func (h *house) json(status int, method, path, secret, body string, headers ...string) map[string]any {
	h.t.Helper()
	res := h.do(method, path, secret, body, headers...)
	if res.StatusCode != status {
		b, _ := io.ReadAll(res.Body)
		h.t.Fatalf("%s %s: %d, want %d: %s", method, path, res.StatusCode, status, b)
	}
	return decodeJSON(h.t, res.Body)
}

// text sends a request and expects that status.
func (h *house) text(status int, method, path, secret, body string, headers ...string) (string, *http.Response) {
	h.t.Helper()
	res := h.do(method, path, secret, body, headers...)
	b, err := io.ReadAll(res.Body)
	if err != nil {
		h.t.Fatal(err)
	}
	if res.StatusCode != status {
		h.t.Fatalf("%s %s: %d, want %d: %s", method, path, res.StatusCode, status, b)
	}
	return string(b), res
}

// jobs stands in for the actors: it keeps what the contract of job.Command says.
type jobs struct {
	clock   *clock
	claims  *claims
	mu      sync.Mutex
	all     map[api.JobID]*jobState
	refuse  error                  // what the next commands are answered
	before  func(cmd job.Command)  // called before a command is looked at
	last    job.Command            // that was not a Read
	panicOn func(job.Command) bool // a bug of a handler's own
}

type jobState struct {
	row     api.JobRow
	prompts []string
	ids     map[string]bool
	changed chan struct{} // closed at the next event
	log     []job.Entry
	omitted uint64
}

func (j *jobs) Ask(ctx context.Context, id api.JobID, cmd job.Command) (job.Reply, error) {
	if j.before != nil {
		j.before(cmd)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.panicOn != nil && j.panicOn(cmd) {
		panic("a bug")
	}
	if j.refuse != nil {
		return job.Reply{}, j.refuse
	}
	if _, ok := cmd.(job.Read); !ok {
		j.last = cmd
	}
	s := j.all[id]
	now := j.clock.Now()
	find := func(project api.ProjectID) error {
		if s == nil || s.row.Project != project {
			return api.ErrNotFound
		}
		return nil
	}
	switch cmd := cmd.(type) {
	case job.Create:
		if s != nil {
			return job.Reply{Row: s.row}, nil
		}
		if err := j.claims.take(cmd.Claim); err != nil {
			return job.Reply{}, err
		}
		s = &jobState{ids: map[string]bool{}, changed: make(chan struct{}), prompts: []string{cmd.Prompt}}
		s.row = api.JobRow{Project: cmd.Project.ID, User: string(cmd.User), Branch: or(cmd.Branch, "docent/"+string(id)),
			Halt: api.HaltProcessing, Seq: 1,
			Job: api.Job{ID: id, Status: api.JobActive, Source: api.JobSource{Repository: "acme/docs", Ref: "main"},
				Model:     or(cmd.Model, "rules-1"),
				CreatedAt: now, UpdatedAt: now}}
		j.all[id] = s
		return job.Reply{Row: s.row, Fresh: true}, nil
	case job.FollowUp:
		if err := find(cmd.Project); err != nil {
			return job.Reply{}, err
		}
		if s.row.Archived {
			return job.Reply{}, &api.StateError{Kind: api.ErrConflict, Reason: "the job is archived"}
		}
		if s.ids[cmd.ID] {
			return job.Reply{Row: s.row}, nil
		}
		if err := j.claims.take(cmd.Claim); err != nil {
			return job.Reply{}, err
		}
		s.ids[cmd.ID] = true
		s.prompts = append(s.prompts, cmd.Prompt)
		s.change(func(r *api.JobRow) { r.Job.Status, r.Halt = api.JobActive, api.HaltProcessing })
		return job.Reply{Row: s.row, Fresh: true}, nil
	case job.Read:
		return j.reply(s, find(cmd.Project))
	case job.Archive:
		if err := find(cmd.Project); err != nil {
			return job.Reply{}, err
		}
		s.change(func(r *api.JobRow) { r.Archived, r.Job.ArchivedAt = true, &now })
		return job.Reply{Row: s.row, Fresh: true}, nil
	case job.Cancel:
		if err := find(cmd.Project); err != nil {
			return job.Reply{}, err
		}
		if s.row.Job.Status == api.JobActive {
			s.change(func(r *api.JobRow) {
				r.Job.Status, r.Halt, r.Job.Message = api.JobFailed, api.HaltInterrupted, "cancelled"
			})
		}
		return job.Reply{Row: s.row, Fresh: true}, nil
	case job.Watch:
		if err := find(cmd.Project); err != nil {
			return job.Reply{}, err
		}
		until := time.NewTimer(time.Until(cmd.Until))
		defer until.Stop()
		for s.row.Seq <= cmd.After {
			changed := s.changed
			j.mu.Unlock()
			var err error
			over := false
			select {
			case <-changed:
			case <-ctx.Done():
				err = ctx.Err()
			case <-until.C:
				over = true
			}
			j.mu.Lock()
			if err != nil {
				return job.Reply{}, err
			}
			if over {
				break
			}
		}
		r := job.Reply{Row: s.row}
		if cmd.Log {
			for _, e := range s.log {
				if e.Seq > cmd.After {
					r.Log = append(r.Log, e)
				}
			}
			if cmd.After < s.omitted {
				r.Omitted = s.omitted
			}
		}
		return r, nil
	}
	return job.Reply{}, fmt.Errorf("unknown command %T", cmd)
}

func (j *jobs) reply(s *jobState, err error) (job.Reply, error) {
	if err != nil {
		return job.Reply{}, err
	}
	return job.Reply{Row: s.row}, nil
}

func (s *jobState) change(f func(*api.JobRow)) {
	f(&s.row)
	s.row.Seq++
	close(s.changed)
	s.changed = make(chan struct{})
}

// add is an entry in a job's log, and what changes with it.
func (j *jobs) add(id api.JobID, e job.Entry, f func(*api.JobRow)) {
	j.mu.Lock()
	defer j.mu.Unlock()
	s := j.all[id]
	f(&s.row)
	e.Seq, e.At, e.Status = s.row.Seq+1, j.clock.Now(), s.row.Job.Status
	s.log = append(s.log, e)
	s.change(func(*api.JobRow) {})
}

// change is something that happens to a job by itself.
func (j *jobs) change(id api.JobID, f func(*api.JobRow)) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.all[id].change(f)
}

func (j *jobs) count() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.all)
}

func (j *jobs) prompts(id api.JobID) []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.all[id].prompts)
}

type claims struct {
	mu     sync.Mutex
	held   map[string]journal.Claim
	hidden bool // lookups find nothing, as when two requests race
}

func (c *claims) take(claim *journal.Claim) error {
	if claim == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if held, ok := c.held[claim.Key]; ok {
		return fmt.Errorf("append: %w", &journal.ClaimedError{Claim: held})
	}
	c.held[claim.Key] = *claim
	return nil
}

func (c *claims) Claim(key string, now time.Time) (journal.Claim, bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	held, ok := c.held[key]
	return held, ok && !c.hidden && now.Before(held.Expires), nil
}

// threads stands in for the actors of conversations; a test writes the answers.
type threads struct {
	mu      sync.Mutex
	all     map[api.ThreadID]*threadState
	refuse  error
	repeat  bool                                  // the next questions are answered as repeats
	answer  func(cmd thread.Ask, log *stream.Log) // writes the answer; a short one if nil
	hold    func(cmd thread.Ask)                  // is called before a question is answered
	last    thread.Ask
	resumed thread.Resume
	asked   int
	rated   []thread.Rate
	handed  []thread.HandOver
	read    map[api.ThreadID]thread.Conversation
}

type threadState struct {
	project api.ProjectID
	caller  string
	chat    string
	turn    thread.Turn
}

func (s *threads) Ask(ctx context.Context, id api.ThreadID, cmd thread.Ask) (thread.Turn, error) {
	if s.hold != nil {
		s.hold(cmd)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refuse != nil {
		return thread.Turn{}, s.refuse
	}
	t := s.all[id]
	if !cmd.New && (t == nil || t.project != cmd.Project.ID || t.caller != cmd.Caller || cmd.ThreadKey != "" &&
		cmd.ThreadKey != "tk_secret") {
		return thread.Turn{}, api.ErrNotFound
	}
	s.last = cmd
	s.asked++
	prepared := make(chan struct{})
	close(prepared) // what remains is to write the answer
	turn := thread.Turn{Thread: id, ID: cmd.Turn, Log: stream.NewLog(), Fresh: !s.repeat, Prepared: prepared}
	if cmd.New {
		turn.Key = "tk_secret"
	}
	s.all[id] = &threadState{project: cmd.Project.ID, caller: cmd.Caller, chat: cmd.Chat, turn: turn}
	turn.Log.Append(stream.Part{Kind: stream.Start, Message: string(cmd.Turn), Thread: string(id)})
	if s.answer != nil {
		s.answer(cmd, turn.Log)
		return turn, nil
	}
	turn.Log.Append(
		stream.Part{Kind: stream.Source, ID: "s1", URL: "https://docs.acme.example/page", Title: "Page"},
		stream.Part{Kind: stream.Text, Text: "Hello "},
		stream.Part{Kind: stream.Text, Text: "\"world\"\n"},
		stream.Part{Kind: stream.Finish, Thread: string(id), Reason: "stop"})
	turn.Log.Close()
	return turn, nil
}

func (s *threads) Resume(ctx context.Context, id api.ThreadID, cmd thread.Resume) (thread.Turn, error) {
	if err := ctx.Err(); err != nil {
		return thread.Turn{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.all[id]
	if t == nil || t.project != cmd.Project.ID || cmd.Chat != t.chat && cmd.Chat != "" || t.caller != cmd.Caller &&
		(cmd.Chat == "" || cmd.Caller != "") {
		return thread.Turn{}, api.ErrNotFound
	}
	if cmd.ThreadKey != "tk_secret" && (cmd.ThreadKey != "" || cmd.Project.Options.RequireThreadKey) {
		return thread.Turn{}, thread.ErrKey
	}
	s.resumed = cmd
	turn := t.turn
	turn.Key, turn.Fresh = "", false
	return turn, nil
}

func (s *threads) Forget(_ context.Context, id api.ThreadID, _ thread.Forget) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, id)
	return nil
}

func (s *threads) Read(_ context.Context, id api.ThreadID, cmd thread.Read) (thread.Conversation, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c, ok := s.read[id]; ok && c.Project == cmd.Project {
		return c, nil
	}
	return thread.Conversation{}, api.ErrNotFound
}

func (s *threads) Rate(_ context.Context, id api.ThreadID, cmd thread.Rate) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refuse != nil {
		return s.refuse
	}
	t := s.all[id]
	if t == nil || t.project != cmd.Project.ID || t.turn.ID != cmd.Turn || cmd.Caller != "" && cmd.Caller != t.caller ||
		cmd.ThreadKey != "" && cmd.ThreadKey != "tk_secret" {
		return api.ErrNotFound
	}
	s.rated = append(s.rated, cmd)
	return nil
}

func (s *threads) HandOver(ctx context.Context, id api.ThreadID, cmd thread.HandOver) error {
	err := s.Rate(ctx, id, thread.Rate{Project: cmd.Project, Caller: cmd.Caller, ThreadKey: cmd.ThreadKey, Turn: cmd.Turn})
	if err == nil {
		s.handed = append(s.handed, cmd)
	}
	return err
}

func (s *threads) Chat(chat string) (api.ThreadID, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, t := range s.all {
		if chat != "" && t.chat == chat {
			return id, true
		}
	}
	return "", false
}

type fakeCatalog struct {
	mu       sync.Mutex
	keys     map[[32]byte]api.Key
	projects map[api.ProjectID]api.Project
	jobs     *jobs
	touched  []api.KeyID
	fail     error
}

func (c *fakeCatalog) Project(ctx context.Context, id api.ProjectID) (api.Project, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p, ok := c.projects[id]; ok {
		return p, nil
	}
	return api.Project{}, fmt.Errorf("project %s: %w", id, api.ErrNotFound)
}

func (c *fakeCatalog) ProjectByDomain(ctx context.Context, domain string) (api.Project, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return api.Project{}, err
	}
	for _, p := range c.projects {
		if p.Domain == domain {
			return p, nil
		}
	}
	return api.Project{}, fmt.Errorf("domain %s: %w", domain, api.ErrNotFound)
}

func (c *fakeCatalog) KeyByHash(ctx context.Context, hash [32]byte) (api.Key, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return api.Key{}, err
	}
	if c.fail != nil {
		return api.Key{}, c.fail
	}
	if k, ok := c.keys[hash]; ok {
		return k, nil
	}
	return api.Key{}, api.ErrNotFound
}

func (c *fakeCatalog) TouchKey(id api.KeyID, at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.touched = append(c.touched, id)
}

func (c *fakeCatalog) Jobs(ctx context.Context, q listing.JobQuery) ([]api.JobRow, error) {
	c.jobs.mu.Lock()
	defer c.jobs.mu.Unlock()
	var rows []api.JobRow
	for _, s := range c.jobs.all {
		r := s.row
		if r.Project == q.Project && (q.Status == "" || r.Job.Status == q.Status) &&
			(q.Archived == nil || r.Archived == *q.Archived) &&
			(q.Before == "" || r.Job.ID < q.Before) {
			rows = append(rows, r)
		}
	}
	slices.SortFunc(rows, func(a, b api.JobRow) int { return strings.Compare(string(b.Job.ID), string(a.Job.ID)) })
	rows = rows[min(q.Skip, len(rows)):]
	if q.Limit > 0 {
		rows = rows[:min(q.Limit, len(rows))]
	}
	return rows, nil
}

// quotas counts without windows.
type quotas struct {
	mu   sync.Mutex
	used map[string]int
}

func (q *quotas) Reserve(now time.Time, uses []quota.Use) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, u := range uses {
		if q.used[u.Key+u.Name] >= u.Limit {
			return fmt.Errorf("reserve: %w", &api.LimitError{Name: u.Name, Limit: u.Limit, Window: time.Hour,
				RetryAfter: 90*time.Second + time.Millisecond})
		}
	}
	for _, u := range uses {
		q.used[u.Key+u.Name]++
	}
	return nil
}

func (q *quotas) Release(now time.Time, uses []quota.Use) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, u := range uses {
		q.used[u.Key+u.Name]--
	}
}

func (q *quotas) Remaining(now time.Time, u quota.Use) (int, time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return u.Limit - q.used[u.Key+u.Name], 30 * time.Minute
}

func (q *quotas) count(name string) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.used[name]
}

func (q *quotas) total() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := 0
	for _, v := range q.used {
		n += v
	}
	return n
}

type documents struct {
	address string // of the site, as its configuration states it
	mu      sync.Mutex
	last    search.Query
}

func (d *documents) Search(ctx context.Context, project api.ProjectID, q search.Query) ([]search.Hit, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.last = q
	switch q.Text {
	case "nothing":
		return nil, nil
	case "no index":
		return nil, fmt.Errorf("%w: gen-1/text is damaged", search.ErrNotIndexed)
	}
	return []search.Hit{{Path: "guide/start.mdx", Anchor: "run", URL: "https://docs.acme.example/guide/start#run",
		Title: "Start", Heading: "Run",
		Trail: []string{"Start", "Run"}, Content: "Run it.", Score: .75, Tags: []string{"how-to"}}}, nil
}

func (d *documents) Published(context.Context, api.ProjectID) ([]search.PageInfo, error) {
	return []search.PageInfo{{Path: "guide/start", Title: "Start [here]", Description: "How it\nbegins.", Current: true, Own: true},
		{Path: "v1/start.mdx", Title: "Start", Version: "1", Own: true}}, nil
}

func (d *documents) Commit(api.ProjectID) string { return "c1" }

func (d *documents) Address(api.ProjectID) string { return d.address }

func (d *documents) Page(ctx context.Context, project api.ProjectID, path string, groups []string) (search.Page,
	error) {
	if path != "guide/start" && path != "staff" || path == "staff" && !slices.Contains(groups, "staff") {
		return search.Page{}, api.ErrNotFound
	}
	return search.Page{Path: path + ".mdx", Content: "# Start\n\nRun `a <b> && c`.\n"}, nil
}

func or[T comparable](v, otherwise T) T {
	var zero T
	if v == zero {
		return otherwise
	}
	return v
}

// pushes stands in for what waits for pushes.
type pushes struct {
	delivered []api.Delivery
	mu        sync.Mutex
	secrets   map[api.ProjectID]string
	got       []api.Push
	hints     []api.PullHint
	update    api.UpdateID // that the next ones begin
	refuse    error
}

func (p *pushes) Secret(_ context.Context, project api.ProjectID) (string, error) {
	secret, ok := p.secrets[project]
	if !ok {
		return "", fmt.Errorf("project: %w", api.ErrNotFound)
	}
	return secret, nil
}

func (p *pushes) Delivered(_ context.Context, _ api.ProjectID, d api.Delivery) {
	p.delivered = append(p.delivered, d)
}

func (p *pushes) Hint(_ context.Context, _ api.ProjectID, hint api.PullHint) (bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hints = append(p.hints, hint)
	return hint.Number != 99, p.refuse
}

func (p *pushes) Pull(_ context.Context, _ api.ProjectID, hint api.PullHint) (bool, error) {
	return hint.Repository == "acme/code", nil
}

func (p *pushes) Push(_ context.Context, _ api.ProjectID, push api.Push) (api.UpdateID, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.refuse != nil {
		return "", p.refuse
	}
	p.got = append(p.got, push)
	return p.update, nil
}
