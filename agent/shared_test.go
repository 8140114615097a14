package agent_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"

	"docent/agent"
	"docent/internal/testing/need"
)

// TestManyRunsOnOneSiteShareItsPages keeps the same large site open in many runs at once.
func TestManyRunsOnOneSiteShareItsPages(t *testing.T) {
	need.Everything(t, "it measures memory")
	files := map[string]string{}
	for i := range 300 {
		files[fmt.Sprintf("p%03d.md", i)] = fmt.Sprintf("# Page %d\n\n",
			i) + strings.Repeat("Some [words](p000.md) of *text* and `code`.\n\n", 200)
	}
	repo := tree(files)
	const runs = 20
	heap := func() int64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	var here, done sync.WaitGroup
	here.Add(runs)
	letGo := make(chan struct{})
	a := agent.New(agent.Options{Models: models(func() agent.LanguageModel {
		return &script{say: []any{
			one("write_file", args{"path": "new.md", "content": "# New\n"}), one("check", nil),
			func(agent.Chat) agent.Reply { here.Done(); <-letGo; return finish }, finish,
		}}
	})})
	before := heap()
	first := make(chan struct{})
	go func() { here.Wait(); close(first) }()
	for i := range runs {
		done.Go(func() {
			if res, err := a.Edit(context.Background(), agent.Task{Prompt: fmt.Sprint(i), Tree: repo}, nil); err != nil ||
				len(res.Changes) != 1 {
				t.Errorf("%v, %+v", err, res)
			}
		})
	}
	<-first
	held := heap() - before
	close(letGo)
	done.Wait()
	site := int64(0)
	for _, s := range files {
		site += int64(len(s))
	}
	if held > 30*site {
		t.Errorf("%d runs on a site of %d bytes hold %d bytes", runs, site, held)
	}
	t.Logf("%d runs on a site of %d KB hold %d KB", runs, site>>10, held>>10)
}

// models makes a language model for each run.
type models func() agent.LanguageModel

func (m models) LanguageModel(string) (agent.LanguageModel, error) { return m(), nil }
