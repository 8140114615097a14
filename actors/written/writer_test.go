package written_test

import (
	"context"
	"encoding/hex"
	"log/slog"
	"maps"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"docent/actors/written"
	"docent/api"
	"docent/bench/corpora"
	"docent/internal/task/tasktest"
	"docent/model"
	"docent/model/modeltest"
	"docent/model/registry"
	"docent/model/remote"
	"docent/persistence/catalog"
	"docent/search"
)

// bench is a writer over a real catalog and a real index, whose model is played by a stand-in for its provider.
type bench struct {
	*written.Writer
	t       *testing.T
	deps    written.Deps
	queue   *tasktest.Queue
	server  *modeltest.Server
	catalog *catalog.Catalog
	library *search.Library
	tree    corpora.Tree
	now     time.Time
	project api.Project
}

const fallback = `{"questions": ["Where does it say nothing else?"]}`

func newBench(t *testing.T) *bench {
	b := &bench{t: t, now: time.Date(2026, 11, 28, 22, 0, 0, 0, time.UTC), queue: new(tasktest.Queue), project: api.Project{
		ID: "docs", Domain: "docs.example.com", Source: "/src", Host: api.HostBuiltin, SiteURL: "https://docs.example.com"},
		tree: corpora.Tree{
			"keys.md":   []byte("# Rotation of credentials\n\nRun `rotate` and replace the value on each client.\n\n## Expiry\n\nA value ends after ninety days.\n"),
			"deploy.md": []byte("# Deployment\n\nPush an image to the registry and let the cluster pull it.\n"),
			"logs.md":   []byte("# Logs\n\nEach line is an object of JSON with a level.\n"),
		}}
	log := slog.New(slog.DiscardHandler)
	var err error
	if b.catalog, err = catalog.Open(t.Context(), "sqlite:"+filepath.Join(t.TempDir(), "c.db"),
		catalog.Options{Log: log, Now: func() time.Time { return b.now }}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.catalog.Close() })
	if b.project, err = b.catalog.AddProject(t.Context(), b.project); err != nil {
		t.Fatal(err)
	}
	b.library, err = search.Open(t.TempDir(), search.Options{Log: log, Written: b.stored})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.library.Close() })
	b.index()
	b.server = modeltest.New(modeltest.Script{Match: "Run `rotate`", Shared: true, Steps: []modeltest.Step{{
		Text: `{"questions": ["My laptop was stolen, what now?", "How do I swap a password?"]}`}}},
		modeltest.Script{Shared: true, Steps: []modeltest.Step{{Text: fallback}}})
	models, err := registry.New(registry.Config{Models: []registry.Named{{Name: "small", Provider: model.OpenAI, Remote: remote.Config{
		BaseURL: "http://models.example/v1", Model: "s", Key: modeltest.Key("sk-test-0123456789"), Transport: modeltest.InProcess(b.server),
		Price: remote.Price{Prompt: 10, Completion: 10}}}}})
	if err != nil {
		t.Fatal(err)
	}
	b.deps = written.Deps{Catalog: b.catalog, Library: b.library, Models: models, Model: "small", Tasks: b.queue,
		Now: func() time.Time { return b.now }, Log: log}
	b.begin()
	return b
}

// begin makes another writer, as a process that starts does.
func (b *bench) begin() {
	b.t.Helper()
	var err error
	if b.Writer, err = written.New(b.deps); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) stored(keys []search.SectionKey) (map[search.SectionKey][]string, error) {
	out := map[search.SectionKey][]string{}
	for _, k := range keys {
		list, err := b.catalog.WrittenQuestions(context.Background(), []string{hex.EncodeToString(k[:])})
		if err != nil {
			return nil, err
		}
		for _, w := range list {
			out[k] = w.Questions
		}
	}
	return out, nil
}

func (b *bench) index() {
	b.t.Helper()
	if _, err := b.library.Update(b.t.Context(), b.project, maps.Clone(b.tree), func(int, int) {}); err != nil {
		b.t.Fatal(err)
	}
}

// run does what is due, twice: what was written is read at the second look.
func (b *bench) run() api.WrittenState {
	b.t.Helper()
	for range 2 {
		b.Start()
		b.queue.Run(b.t.Context())
	}
	state, err := b.catalog.WrittenState(b.t.Context(), "docs")
	if err != nil {
		b.t.Fatal(err)
	}
	return state
}

func (b *bench) first(query string) string {
	b.t.Helper()
	hits, err := b.library.Search(b.t.Context(), "docs", search.Query{Text: query})
	if err != nil {
		b.t.Fatal(err)
	}
	if len(hits) == 0 {
		return ""
	}
	return hits[0].Path
}

const leaked = "my laptop was stolen"

func TestASectionIsFoundByTheQuestionsThatWereWrittenForIt(t *testing.T) {
	b := newBench(t)
	if got := b.first(leaked); got != "" {
		t.Fatalf("%s is found without", got)
	}
	state := b.run()
	if state.Sections != 4 || state.Written != 4 || state.Asked != 4 || state.Cost == 0 || state.Tokens == 0 || state.Problem != "" ||
		state.Generation == "" || state.ToGo() != 0 || state.Model != "small" {
		t.Errorf("the state is %+v", state)
	}
	if got := b.first(leaked); got != "keys.md" {
		t.Errorf("found is %q", got)
	}
	e, err := b.library.Explain(t.Context(), "docs", search.Query{Text: leaked})
	if err != nil || len(e.Hits) == 0 {
		t.Fatal(e, err)
	}
	fields := ""
	for _, w := range e.Hits[0].Words {
		fields += strings.Join(w.Fields, " ")
	}
	if !strings.Contains(fields, "written questions") {
		t.Errorf("the explanation names %q", fields)
	}
	for _, asked := range b.server.Asked() {
		if !strings.HasPrefix(asked.Key, "questions.") || asked.MaxTokens > 400 || !strings.Contains(asked.System, "never instructions") {
			t.Errorf("asked %+v", asked)
		}
	}
}

// A section is asked about once for what it says, whatever starts again and whatever else changes.
func TestASectionIsAskedAboutOnce(t *testing.T) {
	b := newBench(t)
	b.run()
	asked := len(b.server.Asked())
	b.begin()
	if b.run(); len(b.server.Asked()) != asked {
		t.Errorf("another process asks %d times more", len(b.server.Asked())-asked)
	}
	b.tree["logs.md"] = []byte("# Logs\n\nEach line is plain text.\n")
	b.index()
	if state := b.run(); len(b.server.Asked()) != asked+1 || state.Written != 4 || state.Asked != 5 {
		t.Errorf("after a change of one page: asked %d times more, %+v", len(b.server.Asked())-asked, state)
	}
	if got := b.first(leaked); got != "keys.md" {
		t.Errorf("found is %q", got)
	}
}

// keeping tells of each section whose questions are kept.
type keeping struct {
	*catalog.Catalog
	told chan struct{}
}

func (k keeping) KeepWritten(ctx context.Context, index api.ProjectID, w api.WrittenSection, tokens, cost int64) error {
	err := k.Catalog.KeepWritten(ctx, index, w, tokens, cost)
	k.told <- struct{}{}
	return err
}

// What was written before a stop is kept, and only the rest is asked for.
func TestAStopLosesNothingThatWasPaidFor(t *testing.T) {
	b := newBench(t)
	ctx, kill := context.WithCancel(t.Context())
	b.server.Load(modeltest.Script{Match: "ninety days", Steps: []modeltest.Step{{Text: fallback, Hold: "never"}}},
		modeltest.Script{Shared: true, Steps: []modeltest.Step{{Text: fallback}}})
	kept := keeping{b.catalog, make(chan struct{}, 4)}
	b.deps.Catalog = kept
	b.begin()
	b.Start()
	done := make(chan struct{})
	go func() { defer close(done); b.queue.Run(ctx) }()
	for range 3 {
		<-kept.told
	}
	kill()
	<-done
	b.server.Load(modeltest.Script{Shared: true, Steps: []modeltest.Step{{Text: fallback}}})
	b.queue = new(tasktest.Queue)
	b.deps.Tasks = b.queue
	b.begin()
	if state := b.run(); len(b.server.Asked()) != 1 || state.Asked != 4 || state.Written != 4 {
		t.Errorf("asked %d times, %+v", len(b.server.Asked()), state)
	}
}

// What the model makes of a section may be nothing, and is bounded in form.
func TestAReplyOfAnotherFormIsNoQuestion(t *testing.T) {
	b := newBench(t)
	b.server.Load(modeltest.Script{Shared: true, Steps: []modeltest.Step{{Text: "Here you are: laptop, stolen"},
		{Text: `{"questions": []}`}, {Text: `{"questions": ["` + strings.Repeat("stolen ", 60) + `"]}`}, {Text: `{"questions": ["a\u0007b"]}`}}})
	if state := b.run(); state.Written != 4 || state.Asked != 4 {
		t.Errorf("the state is %+v", state)
	}
	if got := b.first(leaked); got != "" {
		t.Errorf("found is %q", got)
	}
}

func TestADayCostsNoMoreThanItMay(t *testing.T) {
	b := newBench(t)
	for i := range 40 {
		b.tree["more-"+strings.Repeat("x", i+1)+".md"] = []byte("# More " + strings.Repeat("x", i+1) + "\n\nIt is so.\n")
	}
	b.index()
	b.deps.DayCost = 1 // used up with the first calls
	b.begin()
	first := b.run()
	if first.Asked == 0 || first.Asked > 8 || !strings.Contains(first.Problem, "limit") || first.Generation != "" || first.ToGo() == 0 {
		t.Errorf("on the first day: %+v", first)
	}
	if again := b.run(); again.Asked != first.Asked {
		t.Errorf("later that day %d more are asked for", again.Asked-first.Asked)
	}
	b.now = b.now.Add(3 * time.Hour)
	if next := b.run(); next.Asked <= first.Asked || next.Asked > 2*8 {
		t.Errorf("on the next day: %+v", next)
	}
}
