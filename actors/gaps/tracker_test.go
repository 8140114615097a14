package gaps_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"docent/actors/gaps"
	"docent/actors/gaps/topics"
	"docent/actors/job"
	"docent/actors/job/startjob"
	"docent/api"
	"docent/model"
	"docent/persistence/catalog"
	"docent/persistence/catalog/catalogtest"
	"docent/persistence/catalog/listing"
	"docent/persistence/cluster"
	"docent/search"
)

// ask asks a question as a reader, and returns its id.
func (b *bench) ask(asker, text string, at time.Time, change ...func(*api.QuestionRow)) string {
	q := api.QuestionRow{ID: api.TurnID(api.NewID(api.TurnPrefix, at)), Question: text, Asked: at, Ended: at}
	for _, c := range change {
		c(&q)
	}
	b.threads.Put(api.ThreadRow{ID: api.ThreadID(fmt.Sprintf("thr_%d", b.threads.Position()+1)), Project: "docs",
		Caller: asker, Questions: []api.QuestionRow{q}})
	// Topics wait for the listing by themselves, but not for as long as a machine may stand still.
	if err := b.listing.Wait(context.Background(), listing.Newest); err != nil {
		panic(err)
	}
	return string(q.ID)
}

func answered(q *api.QuestionRow) { q.Answered = true }

// outside stands in for the documentation, the model, the jobs and the code hosts.
type outside struct {
	mu       sync.Mutex
	docs     string // what the documentation says
	made     map[string]api.JobID
	requests []startjob.Request
	refuse   error
	lost     bool // the job is created, and the process ends before that is known
	row      api.JobRow
	pull     api.PullState
	put      []model.Request // to the model
}

func (o *outside) Around(context.Context, api.ProjectID, search.Place, []string) ([]search.Hit, error) {
	return nil, nil
}

func (o *outside) Search(_ context.Context, _ api.ProjectID, q search.Query) ([]search.Hit, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.docs == "" {
		return nil, search.ErrNotIndexed
	}
	return []search.Hit{{Path: "guides/keys.md", Title: "Keys", Heading: "Make one", Content: o.docs, URL: "/guides/keys"}}, nil
}

func (o *outside) Rarity(_ context.Context, _ api.ProjectID, terms []string) ([]int, int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.docs == "" {
		return nil, 0, search.ErrNotIndexed
	}
	return make([]int, len(terms)), 100, nil
}

func (o *outside) Commit(api.ProjectID) string { o.mu.Lock(); defer o.mu.Unlock(); return o.docs }

func (o *outside) Answer(_ context.Context, _ string, r model.Request, emit func(model.Delta) error) (model.Result, error) {
	o.mu.Lock()
	o.put = append(o.put, r)
	o.mu.Unlock()
	for i, p := range r.Passages {
		if strings.Contains(p.Text, "rotate") && strings.Contains(r.Question, "rotate") {
			return model.Result{Answered: true}, emit(model.Delta{Text: "so", Cite: []int{i}})
		}
	}
	return model.Result{}, emit(model.Delta{Text: "not"})
}

func (o *outside) Create(_ context.Context, r startjob.Request) (job.Reply, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.refuse != nil {
		return job.Reply{}, o.refuse
	}
	id, ok := o.made[r.Key]
	if !ok {
		id = api.JobID(api.NewID(api.JobPrefix, time.Now()))
		o.made[r.Key] = id
		o.requests = append(o.requests, r)
	}
	if o.lost {
		return job.Reply{}, context.DeadlineExceeded
	}
	return job.Reply{Row: api.JobRow{Job: api.Job{ID: id}}, Fresh: !ok}, nil
}

func (o *outside) Started(_ api.ProjectID, key string) (api.JobID, bool, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	id, ok := o.made[key]
	return id, ok, nil
}

func (o *outside) Ask(_ context.Context, id api.JobID, _ job.Command) (job.Reply, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	row := o.row
	row.Job.ID = id
	return job.Reply{Row: row}, nil
}

func (o *outside) PullState(context.Context, api.Project, string) (api.PullState, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.pull, nil
}

type bench struct {
	*gaps.Tracker
	threads *catalogtest.Threads
	listing *listing.Projector
	*outside
	catalog *catalog.Catalog
	now     time.Time
	project api.Project
}

func newBench(t testing.TB) *bench {
	t.Helper()
	b := &bench{threads: catalogtest.NewThreads(), outside: &outside{made: map[string]api.JobID{}},
		now: time.Date(2026, 11, 23, 9, 0, 0, 0, time.UTC)}
	log := slog.New(slog.DiscardHandler)
	c, err := catalog.Open(t.Context(), catalogtest.SQLite(t), catalog.Options{Log: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	b.catalog = c
	if b.project, err = c.AddProject(t.Context(), api.Project{ID: "docs", Domain: "docs.example.com", Source: "/src",
		Host: api.HostBuiltin}); err != nil {
		t.Fatal(err)
	}
	p := c.NewThreadProjector(b.threads, b.threads.Load, log)
	b.listing = p
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); p.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	b.Tracker, err = gaps.New(gaps.Deps{Catalog: c, Documents: b.outside, Model: b.outside, Starter: b.outside,
		Jobs: b.outside, Pulls: b.outside, Now: func() time.Time { return b.now }, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// rotation asks, as three readers, how keys are rotated, and once something else; it returns the first question's id.
func (b *bench) rotation() string {
	first := b.ask("ann", "How do I rotate an API key?", b.now.Add(-3*time.Hour))
	b.ask("bob", "rotate API key", b.now.Add(-2*time.Hour))
	b.ask("anonymous", "rotate an api key", b.now.Add(-time.Hour))
	b.ask("cid", "Is there a mobile app?", b.now.Add(-time.Hour))
	b.ask("dan", "How do I begin?", b.now.Add(-time.Hour), answered)
	return first
}

func (b *bench) list(t *testing.T) gaps.Listing {
	t.Helper()
	list, err := b.Topics(t.Context(), "docs", b.now.Add(-24*time.Hour), b.now.Add(24*time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func order(attempt int, prompt string) gaps.Order {
	return gaps.Order{Attempt: attempt, Prompt: prompt, By: "per_1", Name: "Maria"}
}

func TestTopicsAreFoundByAnyOfTheirQuestions(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	first := b.rotation()
	list := b.list(t)
	if len(list.Topics) != 2 || list.Questions != 4 || list.Topics[0].ID != first || list.Topics[0].Askers != 3 {
		t.Fatalf("listed are %+v", list)
	}
	for _, q := range list.Topics[0].Questions {
		if found, err := b.Find(t.Context(), "docs", q.ID, b.now); err != nil || found.ID != first {
			t.Errorf("by %s: %+v, %v", q.ID, found.ID, err)
		}
	}
	// A link stays good while more questions come.
	b.ask("eve", "how can keys be rotated, the API ones", b.now)
	if found, err := b.Find(t.Context(), "docs", first, b.now); err != nil || len(found.Questions) != 4 {
		t.Errorf("later: %d questions, %v", len(found.Questions), err)
	}
	old := b.ask("eve", "what about the fax number", b.now.AddDate(-1, 0, 0))
	if found, err := b.Find(t.Context(), "docs", old, b.now); err != nil || found.Question != "what about the fax number" {
		t.Errorf("an old one: %+v, %v", found, err)
	}
	good := b.ask("eve", "answered well", b.now, answered)
	for _, id := range []string{good, "gap_none", "nonsense", api.NewID(api.TurnPrefix, b.now)} {
		if _, err := b.Find(t.Context(), "docs", id, b.now); !errors.Is(err, api.ErrNotFound) {
			t.Errorf("%s: %v", id, err)
		}
	}
	if _, err := b.Find(t.Context(), "other", first, b.now); !errors.Is(err, api.ErrNotFound) {
		t.Errorf("of another project: %v", err)
	}
}

func TestAnOrderThatComesTwiceOpensOneJob(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	first := b.rotation()
	var wait sync.WaitGroup
	ids := make(chan api.JobID, 4)
	for range cap(ids) {
		wait.Go(func() {
			g, err := b.Open(context.Background(), b.project, first, order(1, "do it"))
			if err != nil {
				t.Error(err)
			}
			ids <- g.Job
		})
	}
	wait.Wait()
	id := <-ids
	if id == "" || len(b.requests) != 1 || b.requests[0].Prompt != "do it" || b.requests[0].By != "per_1" {
		t.Fatalf("job %q, requests %+v", id, b.requests)
	}
	for range cap(ids) - 1 {
		if other := <-ids; other != id {
			t.Errorf("another one got %q", other)
		}
	}
	list := b.list(t)
	if topic := list.Topics[0]; topic.State() != api.GapJob || topic.Gap.Job != id || topic.Gap.OpenedBy != "Maria" ||
		!api.ValidID(api.GapPrefix, topic.ID) {
		t.Errorf("the topic is %+v", topic.Gap)
	}
	// The address by the question still leads there.
	if found, err := b.Find(t.Context(), "docs", first, b.now); err != nil || found.ID != list.Topics[0].ID {
		t.Errorf("by its question: %v, %v", found.ID, err)
	}
	if _, err := b.Open(t.Context(), b.project, first, order(2, "again")); !errors.Is(err, api.ErrConflict) {
		t.Errorf("a second job at once: %v", err)
	}
	if _, err := b.Dismiss(t.Context(), "docs", first, "Maria", ""); !errors.Is(err, api.ErrConflict) {
		t.Errorf("dismissed while a job works: %v", err)
	}
}

func TestAJobWhoseCreationWasLostIsFound(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	first := b.rotation()
	b.lost = true
	if _, err := b.Open(t.Context(), b.project, first, order(1, "do it")); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
	stored, err := b.catalog.Gaps(t.Context(), "docs")
	if err != nil || len(stored) != 1 || stored[0].State != api.GapOpening {
		t.Fatalf("stored is %+v, %v", stored, err)
	}
	if topic := b.list(t).Topics[0]; topic.State() != api.GapJob || topic.Gap.Job != b.made["gap "+topic.ID+" 1"] {
		t.Errorf("after a look: %+v", topic.Gap)
	}
	if len(b.requests) != 1 {
		t.Errorf("%d jobs", len(b.requests))
	}
}

func TestAnOrderThatWasBrokenOffIsTakenUpWithItsFirstText(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	first := b.rotation()
	b.refuse = context.DeadlineExceeded // the process ends before the job is there
	_, err := b.Open(t.Context(), b.project, first, order(1, "do it"))
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
	b.refuse = nil
	if topic := b.list(t).Topics[0]; topic.State() != api.GapOpening {
		t.Errorf("it is %s", topic.State())
	}
	if g, err := b.Open(t.Context(), b.project, first, order(1, "another text")); err != nil || g.State != api.GapJob {
		t.Errorf("%+v, %v", g, err)
	}
	if len(b.requests) != 1 || b.requests[0].Prompt != "do it" {
		t.Errorf("requests are %+v", b.requests)
	}
}

// An order that comes to two nodes at once is carried out by the one whose job it has: the other one's request goes
// there.
func TestAnOrderThatAnotherNodeCarriesOutStaysAsItIs(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	first := b.rotation()
	b.refuse = &cluster.ElsewhereError{Name: "job/1", Node: cluster.Node{Name: "b"}}
	if _, err := b.Open(t.Context(), b.project, first, order(1, "do it")); !errors.As(err, new(*cluster.ElsewhereError)) {
		t.Fatal(err)
	}
	if topic := b.list(t).Topics[0]; topic.State() != api.GapOpening {
		t.Errorf("it is %s", topic.State())
	}
	b.refuse = nil // at the other node
	if g, err := b.Open(t.Context(), b.project, first, order(1, "do it")); err != nil || g.State != api.GapJob || g.Job == "" {
		t.Errorf("%+v, %v", g, err)
	}
}

func TestARefusedOrderLeavesTheTopicOpen(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	first := b.rotation()
	b.refuse = &api.LimitError{Name: "project-hour"}
	if _, err := b.Open(t.Context(), b.project, first, order(1, "do it")); !errors.Is(err, api.ErrLimited) {
		t.Fatal(err)
	}
	topic := b.list(t).Topics[0]
	if topic.State() != api.GapOpen {
		t.Errorf("it is %s", topic.State())
	}
	b.refuse = nil
	if _, err := b.Open(t.Context(), b.project, first, order(topic.Gap.Attempt+1, "do it")); err != nil {
		t.Error(err)
	}
	for _, prompt := range []string{"", "add " + topics.Placeholder} {
		if _, err := b.Open(t.Context(), b.project, first, order(9, prompt)); !errors.Is(err, api.ErrInvalid) {
			t.Errorf("%q: %v", prompt, err)
		}
	}
}

func TestDismissedTopicsStayDismissedAsQuestionsCome(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	first := b.rotation()
	if _, err := b.Dismiss(t.Context(), "docs", first, "Maria", " not ours \n"); err != nil {
		t.Fatal(err)
	}
	b.ask("eve", "rotate API keys please", b.now)
	topic := b.list(t).Topics[0]
	if topic.State() != api.GapDismissed || topic.Gap.Reason != "not ours" || topic.Gap.DismissedBy != "Maria" ||
		len(topic.Questions) != 4 {
		t.Errorf("%+v of %d questions", topic.Gap, len(topic.Questions))
	}
	if g, err := b.Restore(t.Context(), "docs", topic.ID); err != nil || g.State != api.GapOpen || g.Reason != "" {
		t.Errorf("%+v, %v", g, err)
	}
}

func TestAfterTheMergeItIsSeenWhetherSuchQuestionsAreAnswered(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	first := b.rotation()
	b.docs = "Keys open doors."
	gap, err := b.Open(t.Context(), b.project, first, order(1, "do it"))
	if err != nil {
		t.Fatal(err)
	}
	b.row = api.JobRow{Branch: "docent/1", Job: api.Job{Status: api.JobCompleted, Outcome: api.OutcomeChanged,
		PRLink: new(string)}}
	pull, err := b.catalog.AddPull(t.Context(), api.PullRequest{Project: "docs", Head: "docent/1", Base: "main", Title: "T"})
	if err != nil {
		t.Fatal(err)
	}
	if topic, err := b.Find(t.Context(), "docs", string(gap.ID), b.now); err != nil || topic.State() != api.GapJob {
		t.Errorf("before the merge: %v, %v", topic.State(), err)
	}
	pull.State, pull.ClosedAt = api.PullMerged, &b.now
	if _, err := b.catalog.UpdatePull(t.Context(), pull); err != nil {
		t.Fatal(err)
	}
	topic, err := b.Find(t.Context(), "docs", string(gap.ID), b.now)
	if err != nil || topic.State() != api.GapMerged || !topic.Gap.MergedAt.Equal(b.now) {
		t.Fatalf("after it: %+v, %v", topic.Gap, err)
	}
	before, err := b.AskAgain(t.Context(), b.project, &topic)
	if err != nil || len(before) != 3 || before[0].Answered {
		t.Errorf("asked again before the documentation is read: %+v, %v", before, err)
	}
	b.docs = "To rotate a key, make a new one."
	after, err := b.AskAgain(t.Context(), b.project, &topic)
	if err != nil || !after[0].Answered || after[0].Title != "Keys" || after[0].URL != "/guides/keys" {
		t.Errorf("and after: %+v, %v", after, err)
	}
	b.ask("eve", "how do I rotate an API key", b.now.Add(time.Hour), answered)
	b.ask("fay", "rotate the API key", b.now.Add(2*time.Hour))
	b.ask("gil", "is there a mobile app", b.now.Add(2*time.Hour))
	since, err := b.SinceMerge(t.Context(), *topic.Gap)
	if err != nil || since.Answered != 1 || since.Bad != 1 || len(since.Questions) != 2 {
		t.Errorf("since the merge: %+v, %v", since, err)
	}
}

func TestAMergeOnAnotherHostIsHeardOf(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.project.Host, b.project.HostURL = api.HostGit, ""
	if _, err := b.catalog.UpdateProject(t.Context(), b.project); err != nil {
		t.Fatal(err)
	}
	first := b.rotation()
	gap, err := b.Open(t.Context(), b.project, first, order(1, "do it"))
	if err != nil {
		t.Fatal(err)
	}
	b.row = api.JobRow{Branch: "docent/1", Job: api.Job{Status: api.JobCompleted, PRLink: new(string)}}
	for _, state := range []api.PullState{api.PullOpen, api.PullMerged} {
		b.pull = state
		if err := b.Follow(t.Context()); err != nil {
			t.Fatal(err)
		}
		got, err := b.catalog.Gap(t.Context(), "docs", gap.ID)
		if want := state == api.PullMerged; err != nil || want != (got.State == api.GapMerged) {
			t.Errorf("with the pull request %s the topic is %s, %v", state, got.State, err)
		}
	}
}

// A follow-up is grouped, named and asked again as the question that it stands for.
func TestCourtesiesAreNoGap(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.docs = "Parcels travel by train."
	b.ask("ann", "How much is shipping to Sweden?", b.now.Add(-4*time.Hour))
	b.ask("bob", "hello", b.now.Add(-3*time.Hour))
	b.ask("cid", "ok, thanks!", b.now.Add(-2*time.Hour), func(q *api.QuestionRow) { q.Before = "Is there a mobile app?" })
	if list := b.list(t); len(list.Topics) != 1 || len(list.Topics[0].Questions) != 1 || list.Questions != 1 {
		t.Errorf("listed are %+v", list.Topics)
	}
}

func TestAFollowUpIsWhatItStandsFor(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.docs = "Parcels travel by train."
	b.ask("ann", "How much is shipping to Sweden?", b.now.Add(-4*time.Hour))
	b.ask("bob", "And for Norway?", b.now.Add(-3*time.Hour),
		func(q *api.QuestionRow) { q.Before = "How much is shipping to Sweden?" })
	b.ask("cid", "And there?", b.now.Add(-2*time.Hour), func(q *api.QuestionRow) {
		q.Before, q.Rewritten = "What is Norway?", "How much is shipping to Norway?"
	})
	b.ask("dan", "Is there a mobile app?", b.now.Add(-time.Hour))
	list := b.list(t)
	if len(list.Topics) != 2 || len(list.Topics[0].Questions) != 3 || list.Topics[0].Askers != 3 {
		t.Fatalf("listed are %+v", list.Topics)
	}
	var texts []string
	for _, q := range list.Topics[0].Questions {
		texts = append(texts, q.Text)
	}
	want := []string{"How much is shipping to Norway?", "How much is shipping to Sweden? And for Norway?",
		"How much is shipping to Sweden?"}
	if !slices.Equal(texts, want) {
		t.Errorf("they are %q", texts)
	}
	b.put = nil
	if _, err := b.AskAgain(t.Context(), b.project, &list.Topics[0]); err != nil {
		t.Fatal(err)
	}
	for _, r := range b.put {
		if r.Question == "And for Norway?" && len(r.History) == 1 && r.History[0].Text == "How much is shipping to Sweden?" {
			return
		}
	}
	t.Errorf("put were %+v", b.put)
}

// What the documentation answers is no gap, and to know it costs a question once.
func TestWhatIsAnsweredNowIsNoGap(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.docs = "Keys open doors."
	b.rotation()
	b.ask("eve", "who may rotate the master password", b.now.Add(-time.Hour), func(q *api.QuestionRow) {
		q.Rating, q.Rated = api.RatedDown, b.now
	})
	state := func() (answered []bool) {
		for _, topic := range b.list(t).Topics {
			answered = append(answered, topic.Answered)
		}
		return answered
	}
	if got := state(); !slices.Equal(got, []bool{false, false, false}) {
		t.Errorf("before: %v", got)
	}
	asked := len(b.put)
	if state(); len(b.put) != asked || asked == 0 {
		t.Errorf("%d questions are asked again for nothing", len(b.put)-asked)
	}
	b.docs = "To rotate a key, make a new one."
	if got := state(); got[0] != true || got[1] || got[2] {
		t.Errorf("after: %v", got)
	}
	if asked = len(b.put); asked > 16 {
		t.Errorf("%d questions were asked again", asked)
	}
	b.now = b.now.Add(2 * time.Hour)
	if state(); len(b.put) == asked {
		t.Error("a verdict holds forever")
	}
}
