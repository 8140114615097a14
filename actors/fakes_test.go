package actors_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"docent/actors"
	"docent/agent"
	"docent/api"
	"docent/forge"
	"docent/model"
	"docent/persistence/cluster"
	"docent/persistence/journal"
	"docent/search"
)

// memory is a journal without a disk. It keeps the same contract as the real one (TestJournals).
type memory struct {
	mu      sync.Mutex
	streams map[string]*memoryStream
	claims  map[string]journal.Claim
	fail    func(a journal.Append) error // refuses appends
	lose    func(a journal.Append) error // loses the answers to those that were stored
	listed  func()                       // called when what is pending was listed
	unread  bool                         // streams cannot be read now
	appends int
}

type memoryStream struct {
	events   []journal.Event
	snapshot []byte
	snapSeq  uint64
	pending  bool
	corrupt  bool
}

func newMemory() *memory {
	return &memory{streams: make(map[string]*memoryStream), claims: make(map[string]journal.Claim)}
}

func (m *memory) Append(_ context.Context, a journal.Append) (uint64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fail != nil {
		if err := m.fail(a); err != nil {
			return 0, err
		}
	}
	if len(a.Events) == 0 {
		return 0, errors.New("an append has at least one event")
	}
	s := m.streams[a.Stream]
	if s == nil {
		s = &memoryStream{}
	}
	if uint64(len(s.events)) != a.After {
		return 0, fmt.Errorf("append to %s: %w", a.Stream, journal.ErrSequence)
	}
	if a.Claim != nil {
		if c, ok := m.claims[a.Claim.Key]; ok && !a.Claim.Replaces && c.Expires.After(time.Now()) {
			return 0, &journal.ClaimedError{Claim: c}
		}
		m.claims[a.Claim.Key] = *a.Claim
	}
	if m.claims[a.Release].Owner == a.Stream {
		delete(m.claims, a.Release)
	}
	m.streams[a.Stream] = s
	for _, e := range a.Events {
		s.events = append(s.events, journal.Event{Type: e.Type, Data: slices.Clone(e.Data)})
	}
	s.pending = a.Pending
	m.appends++
	if m.lose != nil {
		if err := m.lose(a); err != nil {
			return 0, err
		}
	}
	return uint64(len(s.events)), nil
}

func (m *memory) Load(stream string) (journal.Recovered, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.unread {
		return journal.Recovered{}, fmt.Errorf("load %s: %w", stream, api.ErrUnavailable)
	}
	s := m.streams[stream]
	if s == nil {
		return journal.Recovered{}, nil
	}
	if s.corrupt {
		return journal.Recovered{}, fmt.Errorf("%w: %s", journal.ErrCorrupt, stream)
	}
	return journal.Recovered{Seq: uint64(len(s.events)), Snapshot: s.snapshot, SnapSeq: s.snapSeq,
		Events: slices.Clone(s.events[s.snapSeq:])}, nil
}

func (m *memory) Snapshot(stream string, seq uint64, state []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s := m.streams[stream]; s != nil && seq > s.snapSeq && seq <= uint64(len(s.events)) {
		s.snapshot, s.snapSeq = slices.Clone(state), seq
	}
}

func (m *memory) Delete(stream string, claims ...string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.streams, stream)
	maps.DeleteFunc(m.claims, func(key string, c journal.Claim) bool {
		return c.Owner == stream && slices.Contains(claims,
			key)
	})
	return nil
}

func (m *memory) Pending(yield func(string) bool) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(m.streams)) {
		if m.streams[name].pending && !yield(name) {
			break
		}
	}
	if m.listed != nil {
		m.listed()
	}
	return nil
}

func (m *memory) Claim(key string, now time.Time) (journal.Claim, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c, ok := m.claims[key]
	if !ok || !c.Expires.After(now) {
		return journal.Claim{}, false, nil
	}
	return c, true, nil
}

// change alters a stream behind the actors' back.
func (m *memory) change(stream string, f func(*memoryStream)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f(m.streams[stream])
}

func (m *memory) types(stream string) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []string
	if s := m.streams[stream]; s != nil {
		for _, e := range s.events {
			out = append(out, e.Type)
		}
	}
	return out
}

// host is a code host with one repository for each project: enough of one to see branches and pull requests.
type host struct {
	mu        sync.Mutex
	branches  map[string][]string // commits
	pulls     map[string]*api.PullRequest
	published int
	opened    int
	keeps     bool                            // it can bring a lost commit back
	fail      func(p forge.Publication) error // before a publication takes effect
	lose      func(p forge.Publication) error // after it has
}

func newHost() *host {
	return &host{branches: make(map[string][]string), pulls: make(map[string]*api.PullRequest)}
}

const base = "main"

func (h *host) TipAfter(_ context.Context, p api.Project, branch, published string) (forge.Tip, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	tip := forge.Tip{Branch: branch, Base: base, Commit: "base", Repo: string(p.ID)}
	if pull := h.pulls[branch]; pull != nil {
		tip.Pull = pull.State
	}
	if published != "" && tip.Pull == api.PullOpen && !slices.Contains(h.branches[branch], published) {
		if h.keeps {
			h.branches[branch] = []string{published}
			tip.Restored, tip.Commit = true, published
			return tip, nil
		}
		return forge.Tip{}, &forge.HostError{Kind: forge.ErrLost, Say: "The commit " + published + " is lost."}
	}
	tip.There = len(h.branches[branch]) > 0
	if commits := h.branches[branch]; len(commits) > 0 && (tip.Pull == "" || tip.Pull == api.PullOpen) {
		tip.Commit = commits[len(commits)-1]
	}
	return tip, nil
}

func (h *host) Source(p api.Project) api.JobSource {
	return api.JobSource{Repository: string(p.ID), Ref: base}
}

func (h *host) Tree(_ context.Context, _ api.Project, commit string) (agent.Tree, error) {
	return tree(commit), nil
}

func (h *host) Publish(_ context.Context, p forge.Publication) (forge.Published, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.published++
	if h.fail != nil {
		if err := h.fail(p); err != nil {
			return forge.Published{}, err
		}
	}
	commit := fmt.Sprintf("commit(%s,%s,%d)", p.Parent, p.Message, p.At.UnixMilli())
	commits := h.branches[p.Branch]
	if !slices.Contains(commits, commit) {
		head := "base"
		if len(commits) > 0 {
			head = commits[len(commits)-1]
		}
		if head != p.Parent {
			return forge.Published{}, forge.ErrMoved
		}
		h.branches[p.Branch] = append(commits, commit)
	}
	pull, open := h.pulls[p.Branch]
	if !open {
		h.opened++
		pull = &api.PullRequest{ID: fmt.Sprint("pr", h.opened), State: api.PullOpen}
		h.pulls[p.Branch] = pull
	}
	if h.lose != nil {
		if err := h.lose(p); err != nil {
			return forge.Published{}, err
		}
	}
	return forge.Published{Commit: commit, Number: 1, Link: "/pulls/" + pull.ID, New: !open}, nil
}

func (h *host) merge(branch string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.pulls[branch].State = api.PullMerged
}

func (h *host) commits(branch string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.branches[branch])
}

type tree string

func (t tree) Commit() string                                 { return string(t) }
func (tree) Files(context.Context) ([]api.File, error)        { return nil, nil }
func (tree) Read(_ context.Context, p string) ([]byte, error) { return nil, fs.ErrNotExist }
func (h *host) Project(_ context.Context, id api.ProjectID) (api.Project, error) {
	if id == "gone" {
		return api.Project{}, api.ErrNotFound
	}
	return project(id), nil
}

func project(id api.ProjectID) api.Project {
	return api.Project{ID: id, Domain: string(id), Repository: "org/" + string(id), Branch: base}
}

// writer is an editor that changes one file for each prompt. A prompt says what else it does:
// "nothing", "fail", "panic", "block" (until let go or stopped).
type writer struct {
	mu     sync.Mutex
	tasks  []agent.Task
	begun  chan string   // gets the prompt of each edit that begins, if it is not nil
	letGo  chan struct{} // lets a blocked edit go on
	onEdit func(agent.Task)
}

func (w *writer) Edit(ctx context.Context, task agent.Task, progress func(agent.Progress)) (agent.Result, error) {
	w.mu.Lock()
	w.tasks = append(w.tasks, task)
	w.mu.Unlock()
	if w.onEdit != nil {
		w.onEdit(task)
	}
	if w.begun != nil {
		w.begun <- task.Prompt
	}
	progress(agent.Progress{Title: "Working on " + task.Prompt,
		Todos: []api.Todo{{ID: "1", Content: task.Prompt, Status: "in_progress", Priority: "medium"}}, Text: "reading"})
	switch {
	case strings.Contains(task.Prompt, "panic"):
		panic("the editor fell over")
	case strings.Contains(task.Prompt, "fail"):
		return agent.Result{}, errors.New("the model answered nonsense")
	case strings.Contains(task.Prompt, "nothing"):
		return agent.Result{Model: "rules-1", Message: "Nothing to change."}, nil
	case strings.Contains(task.Prompt, "block"):
		select {
		case <-w.letGo:
		case <-ctx.Done():
			return agent.Result{}, ctx.Err()
		}
	}
	return agent.Result{Model: "rules-1", Title: "Did " + task.Prompt, Commit: task.Prompt, Body: "body",
		Message: "Done: " + task.Prompt,
		Changes: []agent.Change{{Path: "a.md", Content: []byte(task.Prompt)}},
		Todos:   []api.Todo{{ID: "1", Content: task.Prompt, Status: "completed", Priority: "medium"}}}, nil
}

func (w *writer) Model(name string) string {
	if name != "" {
		return "the model called " + name
	}
	return "rules-1"
}

func (w *writer) seen() []agent.Task {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.tasks)
}

// docs finds three sections, two of them of one page.
type docs struct{}

func (docs) Indexed(context.Context, api.ProjectID) error { return nil }
func (docs) Around(context.Context, api.ProjectID, search.Place, []string) ([]search.Hit, error) {
	return nil, nil
}

func (docs) Search(_ context.Context, p api.ProjectID, q search.Query) ([]search.Hit, error) {
	if strings.Contains(q.Text, "broken index") {
		return nil, errors.New("the index is broken")
	}
	return []search.Hit{
		{Path: "a.md", URL: "/a", Title: "A", Heading: "First", Content: "a says"},
		{Path: "b.md", URL: "/b", Title: "B", Heading: "Second", Content: "b says"},
		{Path: "c.md", URL: "/c", Title: "C", Heading: "Third?", Content: "c says"},
	}, nil
}

// talker answers with the question, in words. Words of the question say what else it does, as with writer.
type talker struct {
	mu       sync.Mutex
	requests []model.Request
	begun    chan string
	letGo    chan struct{}
}

func (t *talker) Answer(ctx context.Context, _ string, req model.Request, emit func(model.Delta) error) (model.Result,
	error) {
	t.mu.Lock()
	t.requests = append(t.requests, req)
	t.mu.Unlock()
	if t.begun != nil {
		t.begun <- req.Question
	}
	if err := emit(model.Delta{Text: "You ask: ", Cite: []int{0, 1, 0}}); err != nil {
		return model.Result{}, err
	}
	switch {
	case strings.Contains(req.Question, "panic"):
		panic("the model fell over")
	case strings.Contains(req.Question, "fail"):
		return model.Result{}, errors.New("the model is down")
	case strings.Contains(req.Question, "endless"):
		for {
			if err := emit(model.Delta{Text: strings.Repeat("x", 1000)}); err != nil {
				return model.Result{}, err
			}
		}
	case strings.Contains(req.Question, "block"):
		select {
		case <-t.letGo:
		case <-ctx.Done():
			return model.Result{}, ctx.Err()
		}
	}
	for w := range strings.FieldsSeq(req.Question) {
		if err := emit(model.Delta{Text: w + " "}); err != nil {
			return model.Result{}, err
		}
	}
	return model.Result{Model: "talker", Reason: "stop", Answered: true, PromptTokens: 10, CompletionTokens: 5}, nil
}

func (*talker) Local(string) bool { return false }

func (*talker) FallsBack(string, error) bool { return false }

func (*talker) Fallback(context.Context, string, model.Request, func(model.Delta) error) (model.Result, error) {
	panic("no model answers in its place")
}

func (t *talker) seen() []model.Request {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.requests)
}

// world is a service's surroundings, with what outlives a restart of the actors.
type world struct {
	t       testing.TB
	journal actors.Journal
	memory  *memory // the journal, if it is in memory
	host    *host
	writer  *writer
	talker  *talker
	log     *logLines
	system  *actors.System
	change  func(*actors.Deps)
}

func newWorld(t testing.TB, change func(*actors.Deps)) *world {
	m := newMemory()
	w := &world{t: t, journal: m, memory: m, host: newHost(), writer: &writer{letGo: make(chan struct{})},
		talker: &talker{letGo: make(chan struct{})}, log: &logLines{}, change: change}
	return w
}

// start starts the actors. A test that starts them in a bubble of synctest stops them in it.
func (w *world) start() *world {
	w.t.Helper()
	deps := actors.Deps{
		Journal: w.journal, Projects: w.host, Editor: w.writer, Forge: w.host, Searcher: docs{}, Model: w.talker,
		Place: cluster.Single{}, Log: slog.New(w.log), Shards: 4,
		RunningJobs: 4, OpenJobs: 64, RunningTurns: 10_000, Idle: 5 * time.Minute, RunLimit: time.Hour,
		TurnLimit: 5 * time.Minute,
	}
	if w.change != nil {
		w.change(&deps)
	}
	s, err := actors.Start(w.t.Context(), deps)
	if err != nil {
		w.t.Fatal(err)
	}
	w.system = s
	return w
}

func (w *world) stop() {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := w.system.Stop(ctx); err != nil {
		w.t.Error(err)
	}
	if n := w.system.Stats().Live; n != 0 {
		w.t.Errorf("%d actors live after the stop", n)
	}
	if n := w.system.Stats().Unhandled; n != 0 {
		w.t.Errorf("%d messages were not understood:\n%s", n, w.log)
	}
	// The runtime counts dead letters in a goroutine, for a millisecond after the first: a bubble must not end before it.
	time.Sleep(2 * time.Millisecond)
}

// crash ends the process at once, as far as the journal can tell: nothing of its end is stored.
func (w *world) crash() {
	w.t.Helper()
	refuse := func(to func(journal.Append) error) {
		w.memory.mu.Lock()
		defer w.memory.mu.Unlock()
		w.memory.fail = to
	}
	refuse(func(journal.Append) error { return errors.New("the process is gone") })
	w.stop()
	refuse(nil)
}

// logLines keeps what is logged.
type logLines struct {
	mu    sync.Mutex
	lines []string
}

func (l *logLines) Enabled(context.Context, slog.Level) bool { return true }
func (l *logLines) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l *logLines) WithGroup(string) slog.Handler            { return l }
func (l *logLines) Handle(_ context.Context, r slog.Record) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%v %s", r.Level, r.Message)
	r.Attrs(func(a slog.Attr) bool { fmt.Fprintf(&b, " %s=%v", a.Key, a.Value); return true })
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, b.String())
	return nil
}

func (l *logLines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.lines, "\n")
}

var discard = slog.New(slog.DiscardHandler)

type agentTask = agent.Task
