package sources

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"docent/api"
	"docent/search"
)

// TestATaskGoesOnWhenNobodyWatches follows a task, looks at its steps, and begins another one meanwhile.
func TestATaskGoesOnWhenNobodyWatches(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tasks := NewTasks(time.Now, slog.New(slog.DiscardHandler))
		goOn := make(chan struct{})
		work := func(_ context.Context, progress Progress) (Outcome, error) {
			progress("fetching the repository", 0, 0)
			for i := range 100 {
				progress("indexing docs", i+1, 100)
			}
			<-goOn
			return Outcome{Read: &Project{Pages: 7}, Check: &search.Check{Project: "docs", Commit: "c1"}}, nil
		}
		began, err := tasks.Begin(TaskAdd, "docs", work)
		if err != nil || !began.Running() {
			t.Fatalf("%+v, %v", began, err)
		}
		watching, leave := context.WithCancel(t.Context())
		news := tasks.Watch(watching, began.ID)
		synctest.Wait()
		now, err := tasks.Task(began.ID)
		if err != nil || len(now.Steps) != 2 || now.Steps[1].Done != 100 || now.Steps[1].Total != 100 {
			t.Errorf("on the way: %+v, %v", now, err)
		}
		if len(news) > 1 {
			t.Errorf("%d changes wait to be looked at", len(news))
		}
		if same, err := tasks.Begin(TaskCheck, "DOCS", work); !errors.Is(err, api.ErrConflict) || same.ID != began.ID {
			t.Errorf("a second one at the same time: %+v, %v", same, err)
		}
		leave()
		close(goOn)
		synctest.Wait()
		if done, ok := tasks.Newest("docs"); !ok || done.Running() || done.Failed() || done.Read.Pages != 7 {
			t.Errorf("after it: %+v", done)
		}
		if c, _, ok := tasks.LastCheck("docs"); !ok || c.Commit != "c1" {
			t.Errorf("the last check is %+v", c)
		}
		if _, err := tasks.Task("another-servers"); !errors.Is(err, api.ErrNotFound) {
			t.Errorf("a task of an earlier server: %v", err)
		}
		tasks.Forget("docs")
		if _, _, ok := tasks.LastCheck("docs"); ok {
			t.Error("a removed project is remembered")
		}
		if err := tasks.Close(); err != nil {
			t.Error(err)
		}
		if _, err := tasks.Begin(TaskAdd, "docs", work); !errors.Is(err, api.ErrUnavailable) {
			t.Errorf("one that begins after the end: %v", err)
		}
	})
}

// TestATaskEndsWithItsReason calls one off, lets one panic, and stops the server in one.
func TestATaskEndsWithItsReason(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tasks := NewTasks(time.Now, slog.New(slog.DiscardHandler))
		wait := func(ctx context.Context, _ Progress) (Outcome, error) {
			<-ctx.Done()
			return Outcome{}, ctx.Err()
		}
		a, _ := tasks.Begin(TaskLook, "a", wait)
		b, _ := tasks.Begin(
			TaskLook,
			"b",
			func(context.Context, Progress) (Outcome, error) { panic("an odd repository") },
		)
		c, _ := tasks.Begin(TaskLook, "c", wait)
		if err := tasks.Cancel(a.ID); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if err := tasks.Close(); err != nil {
			t.Error(err)
		}
		for id, want := range map[string]string{a.ID: "called off", b.ID: "odd repository", c.ID: "server stopped"} {
			if task, err := tasks.Task(id); err != nil || !task.Failed() || !strings.Contains(task.Err.Error(), want) {
				t.Errorf("%v, %v, want %s", task.Err, err, want)
			}
		}
	})
}

// TestALookLeavesNothingBehind looks at folders before there is a project: what is found, which folder is proposed, and
// what is wrong.
func TestALookLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	reader := newTestReader(t, slog.New(slog.DiscardHandler))
	silent := func(string, int, int) {}
	write := func(files map[string]string) string {
		dir := t.TempDir()
		for name, text := range files {
			path := filepath.Join(dir, name)
			if err := errors.Join(
				os.MkdirAll(filepath.Dir(path), 0o755),
				os.WriteFile(path, []byte(text), 0o644),
			); err != nil {
				t.Fatal(err)
			}
		}
		return dir
	}
	mintlify := write(
		map[string]string{
			"README.md":          "# Code\n",
			"handbook/docs.json": `{"name":"Acme","navigation":{"pages":["index"]}}`,
			"handbook/index.mdx": "# Home\n\n[x](/nowhere)\n",
		},
	)
	l, err := reader.Look(t.Context(), api.Project{ID: "new", Source: mintlify}, silent)
	if err != nil || l.Project.DocsDir != "handbook" || l.Guessed != "handbook/docs.json" || len(l.Check.Pages) != 1 ||
		l.Check.Pages[0].Title != "Home" || l.Check.Pages[0].Sections == 0 || len(l.Check.DeadLinks) != 1 || l.Commit == "" {
		t.Fatalf("%+v, %v", l, err)
	}
	if err := reader.Discard(t.Context(), "new"); err != nil || reader.Repositories.Holds("new") {
		t.Errorf("after it is discarded the repository is there: %v", err)
	}
	if l, err = reader.Look(t.Context(), api.Project{ID: "new", Source: write(map[string]string{"main.go": "x"})},
		silent); err != nil || len(l.Check.Pages) > 0 || l.Folders != "" {
		t.Errorf("a folder without pages: %+v, %v", l, err)
	}
	for source, field := range map[string]string{filepath.Join(mintlify, "nowhere"): "", "-oProxyCommand=x": "source"} {
		_, err := reader.Look(t.Context(), api.Project{ID: "odd", Source: source}, silent)
		var invalid *api.InvalidError
		if err == nil || field != "" && (!errors.As(err, &invalid) || invalid.Problems[0].Field != field) {
			t.Errorf("%s: %v", source, err)
		}
		if reader.Repositories.Holds("odd") {
			t.Errorf("%s leaves a repository behind", source)
		}
	}
	addProject(t, reader, "old")
	if _, err := reader.Look(
		t.Context(),
		api.Project{ID: "old", Source: mintlify},
		silent,
	); !errors.Is(
		err,
		api.ErrInvalid,
	) {
		t.Errorf("under the name of another project: %v", err)
	}
	if err := reader.Discard(t.Context(), "old"); err != nil {
		t.Error(err)
	}
	if list, err := reader.Catalog.Projects(t.Context()); err != nil || len(list) != 1 {
		t.Errorf("the projects are %v, %v", list, err)
	}
}
