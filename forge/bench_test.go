package forge_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"docent/api"
	"docent/forge"
	"docent/forge/forgetest"
	"docent/persistence/catalog/catalogtest"
)

func benchHub(b *testing.B, source string) (*forge.Hub, api.Project, *forgetest.Pulls) {
	b.Helper()
	p := project(source)
	pulls := &forgetest.Pulls{Known: map[api.ProjectID]api.Project{p.ID: p}}
	hub, err := forge.Open(b.TempDir(), pulls, forge.Options{})
	if err != nil {
		b.Fatal(err)
	}
	return hub, p, pulls
}

// How long until a folder of real documentation can be worked on.
func BenchmarkImportFolder(b *testing.B) {
	folder := mintlify(b)
	for b.Loop() {
		hub, p, _ := benchHub(b, folder)
		if _, _, err := hub.Sync(b.Context(), p, nil); err != nil {
			b.Fatal(err)
		}
	}
}

// What each job pays to learn that nothing has changed in the folder.
func BenchmarkTipOfUnchangedFolder(b *testing.B) {
	hub, p, _ := benchHub(b, mintlify(b))
	for b.Loop() {
		if _, err := hub.Tip(b.Context(), p, "docent/job"); err != nil {
			b.Fatal(err)
		}
	}
}

// Five edits, from the decision to a commit and a pull request on disk.
func BenchmarkPublishFiveEdits(b *testing.B) {
	b.Run("disk", func(b *testing.B) {
		hub, p, _ := benchHub(b, mintlify(b))
		publishFiveEdits(b, hub, p)
	})
	b.Run("database", func(b *testing.B) {
		p := project(mintlify(b))
		store, _ := database(b, catalogtest.Postgres(b))
		pulls := &forgetest.Pulls{Known: map[api.ProjectID]api.Project{p.ID: p}}
		hub, err := forge.Open(b.TempDir(), pulls, forge.Options{Shared: store})
		if err != nil {
			b.Fatal(err)
		}
		publishFiveEdits(b, hub, p)
		if err := hub.Shutdown(context.Background()); err != nil { // before the database goes
			b.Fatal(err)
		}
	})
}

func publishFiveEdits(b *testing.B, hub *forge.Hub, p api.Project) {
	b.Helper()
	tip, err := hub.Tip(b.Context(), p, "docent/job")
	if err != nil {
		b.Fatal(err)
	}
	tree, err := hub.Tree(b.Context(), p, tip.Commit)
	if err != nil {
		b.Fatal(err)
	}
	files, err := tree.Files(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	var pages []string
	for _, f := range files {
		if f.Size < 20_000 && len(pages) < 5 && !slices.Contains(pages, f.Path) && f.Size > 1000 {
			pages = append(pages, f.Path)
		}
	}
	n := 0
	for b.Loop() {
		n++
		tip.Branch = fmt.Sprintf("docent/job_%d", n)
		pub := forgetest.Publication(p, tip, "")
		pub.Changes = nil
		for _, page := range pages {
			pub.Changes = append(pub.Changes, put(page, fmt.Sprintf("# Page\n\nEdit %d.\n", n)))
		}
		if _, err := hub.Publish(b.Context(), pub); err != nil {
			b.Fatal(err)
		}
	}
}

// Reading every page of a commit, as a first indexing does.
func BenchmarkReadAllFiles(b *testing.B) {
	hub, p, _ := benchHub(b, mintlify(b))
	tip, err := hub.Tip(b.Context(), p, "docent/job")
	if err != nil {
		b.Fatal(err)
	}
	bytes := int64(0)
	for b.Loop() {
		tree, err := hub.Tree(b.Context(), p, tip.Commit)
		if err != nil {
			b.Fatal(err)
		}
		files, err := tree.Files(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		bytes = 0
		for _, f := range files {
			bytes += f.Size
			if _, err := tree.Read(b.Context(), f.Path); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.SetBytes(bytes)
}
