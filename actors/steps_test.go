package actors_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"docent/actors"
	"docent/actors/job"
	"docent/agent"
	"docent/api"
)

// steady is a language model that writes one file after another and then finishes, each answer a second after it was
// asked. It holds back its answer to call number stop until the caller goes.
type steady struct {
	mu    sync.Mutex
	files int
	stop  int
	keys  []string
	held  chan struct{} // gets a word when a call is held back
}

func (s *steady) LanguageModel(string) (agent.LanguageModel, error) { return s, nil }
func (s *steady) Priced() bool                                      { return true }
func (s *steady) Sees() bool                                        { return false }
func (s *steady) Window() int                                       { return 100_000 }
func (s *steady) Name() string                                      { return "steady" }

func (s *steady) Chat(ctx context.Context, c agent.Chat) (agent.Reply, error) {
	s.mu.Lock()
	s.keys = append(s.keys, c.Key)
	held := len(s.keys) == s.stop
	s.mu.Unlock()
	if held {
		s.held <- struct{}{}
		<-ctx.Done()
		return agent.Reply{}, ctx.Err()
	}
	select {
	case <-time.After(time.Second):
	case <-ctx.Done():
		return agent.Reply{}, ctx.Err()
	}
	said := 0
	for _, t := range c.Turns {
		if t.Role == "assistant" {
			said++
		}
	}
	r := agent.Reply{Model: "steady-1", Reason: "tools", Usage: agent.Usage{PromptTokens: 10, CompletionTokens: 1}}
	if said < s.files {
		r.Calls = []agent.Call{{ID: fmt.Sprint("c", said), Name: "write_file",
			Arguments: fmt.Sprintf(`{"path":"p%d.md","content":"# Page %d\n"}`, said, said)}}
	} else {
		r.Calls = []agent.Call{{ID: fmt.Sprint("c", said), Name: "finish",
			Arguments: `{"summary":"Wrote the pages.","title":"Write pages"}`}}
	}
	return r, nil
}

func TestARestartGoesOnBehindTheLastAnswerOfTheModel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &steady{files: 5, stop: 4, held: make(chan struct{}, 1)}
		w := newWorld(t, func(d *actors.Deps) { d.Editor = agent.New(agent.Options{Models: m}) }).start()
		id := newJob()
		w.create(id, "write five pages")
		<-m.held
		w.stop()
		w.start()
		defer w.stop()
		row := w.settled(id)
		if row.Job.Status != api.JobCompleted || row.Job.Model != "steady-1" || row.Job.PRLink == nil ||
			w.host.commits(branch(id)) != 1 {
			t.Fatalf("%+v", row)
		}
		if len(m.keys) != 8 || m.keys[3] != m.keys[4] || len(slices.Compact(slices.Clone(m.keys))) != 7 {
			t.Errorf("the model was asked under %q", m.keys)
		}
		r, err := w.system.Jobs().Ask(t.Context(), id, job.Watch{Project: "p", Log: true})
		if err != nil {
			t.Fatal(err)
		}
		tools := 0
		for _, e := range r.Log {
			for _, call := range e.Calls {
				if call.Name == "write_file" || call.Name == "finish" {
					tools++
				}
			}
		}
		if tools != 7 {
			t.Errorf("the log shows %d uses of tools", tools)
		}
		// A follow-up asks the same model, and the job's state holds no step of before.
		m.mu.Lock()
		m.keys, m.stop = nil, 0
		m.mu.Unlock()
		w.ask(id, job.FollowUp{Project: "p", ID: "f1", Prompt: "and again"})
		if row := w.settled(id); row.Job.Status != api.JobCompleted || !strings.HasPrefix(m.keys[0], string(id)+"/f1/1/1") {
			t.Errorf("%+v, keys %q", row, m.keys)
		}
	})
}

func TestCancelEndsACallOfTheModel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &steady{files: 5, stop: 3, held: make(chan struct{}, 1)}
		w := newWorld(t, func(d *actors.Deps) { d.Editor = agent.New(agent.Options{Models: m}) }).start()
		defer w.stop()
		id := newJob()
		w.create(id, "write five pages")
		<-m.held
		w.ask(id, job.Cancel{Project: "p"})
		row := w.settled(id)
		if row.Job.Status != api.JobFailed || row.Halt != api.HaltInterrupted || row.Job.PRLink != nil {
			t.Errorf("%+v", row)
		}
		synctest.Wait()
		if len(m.keys) != 3 {
			t.Errorf("asked %d times", len(m.keys))
		}
	})
}

// Who follows a job sees what a language model has changed before the edit is done, and what its calls gave and took.
func TestWhatIsEditedIsSeenWhileItGrows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &steady{files: 2, stop: 4, held: make(chan struct{}, 1)}
		w := newWorld(t, func(d *actors.Deps) { d.Editor = agent.New(agent.Options{Models: m}) }).start()
		defer w.stop()
		id := newJob()
		w.create(id, "write two pages")
		seen, after := uint64(0), uint64(0)
		var grown []int
		for len(grown) < 2 {
			r, err := w.system.Jobs().Ask(t.Context(), id, job.Watch{Project: "p", After: after, Log: true, Edits: true,
				Seen: seen, Until: time.Now().Add(time.Hour)})
			if err != nil {
				t.Fatal(err)
			}
			after = r.Row.Seq
			if r.Edits != nil {
				seen = r.Edits.Version
				grown = append(grown, len(r.Edits.Files))
				if n := len(r.Edits.Files); !strings.Contains(r.Edits.Diff, fmt.Sprintf("+# Page %d", n-1)) {
					t.Errorf("the diff is %q", r.Edits.Diff)
				}
			}
		}
		if !slices.Equal(grown, []int{1, 2}) {
			t.Errorf("so many files were seen: %v", grown)
		}
		<-m.held
		w.ask(id, job.Cancel{Project: "p"})
		w.settled(id)
		r, err := w.system.Jobs().Ask(t.Context(), id, job.Watch{Project: "p", Log: true, Edits: true})
		if err != nil {
			t.Fatal(err)
		}
		if r.Edits == nil || r.Edits.Diff != "" || r.Row.Spent.Steps != 3 || r.Row.Spent.Tokens != 33 {
			t.Errorf("afterwards %+v, spent %+v", r.Edits, r.Row.Spent)
		}
		outputs := map[string]string{}
		calls := 0
		for _, e := range r.Log {
			if e.Type != job.EntryCreated && e.Instruction != string(id) {
				t.Errorf("%s is of the instruction %q", e.Type, e.Instruction)
			}
			for _, res := range e.Results {
				outputs[res.ID] = res.Output
			}
			for _, c := range e.Calls {
				calls++
				if c.Name != "write_file" && c.Name != "finish" || !strings.Contains(c.Input, `"`) {
					t.Errorf("a call is %+v", c)
				}
			}
			if e.Type == job.EntryTool && (e.Usage.PromptTokens != 10 || e.Spent.Tokens%11 != 0 || e.Model != "steady-1") {
				t.Errorf("%+v took %+v, %+v", e, e.Usage, e.Spent)
			}
		}
		if calls != 3 || len(outputs) < 2 || outputs["1/c0"] == "" {
			t.Errorf("%d calls gave %q", calls, outputs)
		}
	})
}
