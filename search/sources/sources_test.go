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
)

// written collects the same page each time, or fails.
type written struct {
	text string
	err  error
	n    int
}

func (w *written) Collect(_ context.Context, _ api.Project, dir string, _ Progress) (Collected, error) {
	if w.n++; w.err != nil {
		return Collected{}, w.err
	}
	page := filepath.Join(dir, PagesDir, "page.md")
	return Collected{Pages: 1, SiteURL: "https://site.example.com"}, os.WriteFile(page, []byte(w.text), 0o600)
}

func quiet(string, int, int) {}

func withCollector(t *testing.T) (*Reader, api.Project, *written) {
	t.Helper()
	reader := newTestReader(t, slog.New(slog.DiscardHandler))
	w := &written{text: "# Pelicans\n\nA pelican eats fish.\n"}
	reader.Collectors, reader.Collecting = map[api.SourceKind]Collector{api.SourceWeb: w}, t.TempDir()
	return reader, addProject(t, reader, "docs"), w
}

func TestAFurtherSourceIsReadChangedAndRemoved(t *testing.T) {
	t.Parallel()
	reader, p, w := withCollector(t)
	web := api.Source{Label: "site", Kind: api.SourceWeb, Address: "https://site.example.com"}
	s, err := reader.AddSource(t.Context(), p.ID, web, quiet)
	if err != nil || s.Pages != 1 || s.Editable || s.Collection == nil || w.n != 1 {
		t.Fatalf("added %+v, %v", s, err)
	}
	if _, err := reader.AddSource(t.Context(), p.ID, web, quiet); !errors.Is(err, api.ErrConflict) {
		t.Errorf("added twice: %v", err)
	}
	if reader.Index.Commit("docs@site") == "" {
		t.Error("it has no index of its own")
	}
	web.Weight, web.Groups = 2, []string{"staff"}
	if s, err = reader.SetSource(t.Context(), p.ID, web, quiet); err != nil || s.Counts != 2 || w.n != 1 {
		t.Errorf("a weight has it read again (%d times): %+v, %v", w.n, s, err)
	}
	// The project's own settings leave its sources alone.
	p.Name = "Ferries"
	if _, err := reader.Set(t.Context(), p, quiet); err != nil {
		t.Fatal(err)
	}
	if now, _ := reader.Catalog.Project(t.Context(), p.ID); len(now.Sources) != 1 || now.Sources[0].Weight != 2 {
		t.Errorf("the sources are %+v", now.Sources)
	}
	if err := reader.RemoveSource(t.Context(), p.ID, "site"); err != nil {
		t.Fatal(err)
	}
	if reader.Index.Commit("docs@site") != "" || reader.Repositories.Holds("docs@site") {
		t.Error("something of it is left")
	}
	if _, err := os.Stat(reader.CollectedDir("docs@site")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("its pages are left: %v", err)
	}
	if err := reader.RemoveSource(t.Context(), p.ID, "site"); !errors.Is(err, api.ErrNotFound) {
		t.Errorf("removed twice: %v", err)
	}
}

func TestASourceThatCannotBeReadIsNotAdded(t *testing.T) {
	t.Parallel()
	reader, p, w := withCollector(t)
	w.err = errors.New("no such host")
	if _, err := reader.AddSource(t.Context(), p.ID, api.Source{Label: "site", Kind: api.SourceWeb, Address: "https://x.example"},
		quiet); err == nil {
		t.Error("it was added")
	}
	if _, err := reader.AddSource(t.Context(), p.ID, api.Source{Label: "gone", Address: filepath.Join(t.TempDir(), "none")},
		quiet); err == nil {
		t.Error("a folder that is not there was added")
	}
	now, err := reader.Sources(t.Context(), p.ID)
	if err != nil || len(now) != 1 || !now[0].First || !now[0].Editable {
		t.Errorf("the sources are %+v, %v", now, err)
	}
	if reader.Repositories.Holds("docs@site") {
		t.Error("its repository is left")
	}
}

// A source that fails takes no other down, and the pages that were read of it before go on to answer.
func TestABrokenSourceHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	reader, p, w := withCollector(t)
	other := t.TempDir()
	if err := os.WriteFile(filepath.Join(other, "a.md"), []byte("# A\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, s := range []api.Source{{Label: "site", Kind: api.SourceWeb, Address: "https://x.example"},
		{Label: "other", Address: other}} {
		if _, err := reader.AddSource(t.Context(), p.ID, s, quiet); err != nil {
			t.Fatal(err)
		}
	}
	w.err = errors.New("no such host")
	if err := os.WriteFile(filepath.Join(other, "b.md"), []byte("# B\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p, _ = reader.Catalog.Project(t.Context(), p.ID)
	failed := reader.RefreshAll(t.Context(), p, quiet)
	if len(failed) != 1 || failed["site"] == nil {
		t.Errorf("failed: %v", failed)
	}
	list, err := reader.Sources(t.Context(), p.ID)
	if err != nil {
		t.Fatal(err)
	}
	if site := list[1]; site.Pages != 1 || !strings.HasPrefix(site.Error, "failed") {
		t.Errorf("the broken one: %+v", site)
	}
	if other := list[2]; other.Pages != 2 || other.Error != "" {
		t.Errorf("the other one: %+v", other)
	}
}

// A collected source is not fetched again for an index alone, nor more often than it says.
func TestACollectedSourceIsFetchedAsOftenAsItSays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reader := New(Deps{Nodes: Single{}, Guard: &Guard{now: time.Now}, Collecting: t.TempDir()})
		p := api.Project{ID: "docs@site", Kind: api.SourceWeb, Every: "2h"}
		if !reader.due(p) {
			t.Error("one that was never collected is not due")
		}
		if err := os.MkdirAll(reader.CollectedDir(p.ID), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := reader.keepCollection(reader.CollectedDir(p.ID), Collection{At: time.Now()}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2*time.Hour - time.Second)
		if reader.due(p) {
			t.Error("it is due too early")
		}
		time.Sleep(time.Second)
		if !reader.due(p) {
			t.Error("it is not due")
		}
		if p.Kind = api.SourceFiles; !reader.due(p) {
			t.Error("a folder that was never read is not due")
		}
	})
}
