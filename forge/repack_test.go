package forge_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"docent/forge"
	"docent/forge/forgetest"
)

// packs counts the packs of a repository.
func packs(t testing.TB, dir string) int {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(dir, "docs.git", "objects", "pack", "*.pack"))
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

// looseObjects counts the objects in files of their own.
func looseObjects(t testing.TB, dir string) int {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(dir, "docs.git", "objects", "[0-9a-f][0-9a-f]", "*"))
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

// many publishes a number of branches, each with a page.
func (r *rig) many(t *testing.T, from, to int) {
	t.Helper()
	for n := from; n < to; n++ {
		r.publish(t, fmt.Sprintf("docent/job_%d", n), put(fmt.Sprintf("made/%d.md", n), fmt.Sprintf("# Page %d\n", n)))
	}
}

// whole reads every branch that many has made.
func (r *rig) whole(t *testing.T, to int) {
	t.Helper()
	for n := range to {
		tip := r.tip(t, fmt.Sprintf("docent/job_%d", n))
		if got := r.files(t, tip.Commit)[fmt.Sprintf("made/%d.md", n)]; got != fmt.Sprintf("# Page %d\n", n) {
			t.Errorf("the page of job %d is %q", n, got)
		}
	}
}

func packed(t *testing.T, dir, folder string, pulls *forgetest.Pulls, fault func(string) error) *rig {
	t.Helper()
	return open(t, dir, project(folder), pulls, forge.Packing(forge.Failing(quick, fault), 40))
}

func TestLooseObjectsArePutIntoFewPacks(t *testing.T) {
	dir, folder := t.TempDir(), t.TempDir()
	write(t, folder, map[string]string{"index.md": "# Home\n"})
	pulls := &forgetest.Pulls{}
	r := packed(t, dir, folder, pulls, nil)
	const jobs = 150 // with four objects each
	for n := 0; n < jobs; n += 10 {
		r.many(t, n, n+10)
		forge.Packed(r.Hub, r.project.ID)
	}
	if loose := looseObjects(t, dir); loose >= 80 {
		t.Errorf("%d loose objects of %d jobs", loose, jobs)
	}
	if n := packs(t, dir); n < 1 || n > 5 {
		t.Errorf("%d packs of 15 packings", n)
	}
	r.whole(t, jobs)
	fsck(t, filepath.Join(dir, "docs.git"))
	if err := r.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	packed(t, dir, folder, pulls, nil).whole(t, jobs)
}

// A crash at any step leaves a repository that is whole, and what was left over is taken up.
func TestPackingThatIsCutOffLosesNothing(t *testing.T) {
	for _, step := range []string{"pack written", "pack installed", "pack noted", "half of the loose objects removed",
		"an old pack removed"} {
		t.Run(step, func(t *testing.T) {
			dir, folder := t.TempDir(), t.TempDir()
			write(t, folder, map[string]string{"index.md": "# Home\n"})
			pulls := &forgetest.Pulls{}
			cut := make(chan struct{})
			var once sync.Once
			r := packed(t, dir, folder, pulls, func(at string) error {
				select {
				case <-cut: // dead since
					return errors.New("the process has ended")
				default:
				}
				if at == step {
					once.Do(func() { close(cut) })
					return errors.New("the process ends")
				}
				return nil
			})
			jobs := 0
			for dead := false; !dead; {
				if jobs == 100 {
					t.Fatal("the step was not reached")
				}
				r.many(t, jobs, jobs+5)
				jobs += 5
				forge.Packed(r.Hub, r.project.ID)
				select {
				case <-cut:
					dead = true
				default:
				}
			}
			if step == "pack written" { // what a killed process leaves
				write(t, filepath.Join(dir, "docs.git", "objects", "pack"), map[string]string{"tmp_pack_123": "half a pack"})
			}
			r = packed(t, dir, folder, pulls, nil)
			r.whole(t, jobs)
			forge.Packed(r.Hub, r.project.ID) // or loose objects go while they are checked
			fsck(t, filepath.Join(dir, "docs.git"))
			r.many(t, jobs, jobs+20)
			forge.Packed(r.Hub, r.project.ID)
			r.whole(t, jobs+20)
			fsck(t, filepath.Join(dir, "docs.git"))
			if loose := looseObjects(t, dir); loose >= 80 {
				t.Errorf("%d loose objects are left", loose)
			}
			if leftover, _ := filepath.Glob(filepath.Join(dir, "docs.git", "objects", "pack", "tmp_*")); len(leftover) > 0 {
				t.Errorf("left over: %v", leftover)
			}
		})
	}
}

// Readers and writers go on while objects move into packs, and miss none.
func TestReadersMissNothingWhileObjectsArePacked(t *testing.T) {
	dir, folder := t.TempDir(), t.TempDir()
	write(t, folder, map[string]string{"index.md": "# Home\n", "guide/a.md": "a\n", "guide/b.md": "b\n"})
	packings := 0
	var mu sync.Mutex
	r := packed(t, dir, folder, &forgetest.Pulls{}, func(at string) error {
		if at == "pack noted" {
			mu.Lock()
			packings++
			mu.Unlock()
		}
		return nil
	})
	r.many(t, 0, 1)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var readers sync.WaitGroup
	for range 3 {
		readers.Go(func() {
			for ctx.Err() == nil {
				tip, err := r.Tip(t.Context(), r.project, "docent/job_0")
				if err != nil {
					t.Error(err)
					return
				}
				tree, err := r.Tree(t.Context(), r.project, tip.Commit)
				if err != nil {
					t.Error(err)
					return
				}
				files, err := tree.Files(t.Context())
				if err != nil || len(files) != 4 {
					t.Errorf("%d files: %v", len(files), err)
					return
				}
				for _, f := range files {
					if _, err := tree.Read(t.Context(), f.Path); err != nil {
						t.Error(err)
						return
					}
				}
			}
		})
	}
	r.many(t, 1, 120)
	stop()
	readers.Wait()
	forge.Packed(r.Hub, r.project.ID)
	if mu.Lock(); packings < 3 {
		t.Errorf("only %d packings", packings)
	}
	mu.Unlock()
	r.whole(t, 120)
	fsck(t, filepath.Join(dir, "docs.git"))
}

// An object moves into a pack between the moment that it is found in a file of its own and the one that this is opened.
func TestAnObjectThatMovesIntoAPackMeanwhileIsRead(t *testing.T) {
	dir, folder := t.TempDir(), t.TempDir()
	write(t, folder, map[string]string{"index.md": "# Home\n", "a.md": "a page\n"})
	blob := plumbing.ComputeHash(plumbing.BlobObject, []byte("a page\n")).String()
	file := filepath.Join(dir, "docs.git", "objects", blob[:2], blob[2:])
	var armed atomic.Bool
	noted, opening, moved := make(chan struct{}), make(chan struct{}), make(chan struct{})
	r := open(t, dir, project(folder), &forgetest.Pulls{}, forge.OnDisk(forge.Failing(quick, func(at string) error {
		if at == "pack noted" {
			close(noted)
			<-opening
		}
		return nil
	}), func(op, name string) error {
		if op == "open" && name == file && armed.CompareAndSwap(true, false) {
			close(opening)
			<-moved
		}
		return nil
	}))
	tip, err := r.Tip(t.Context(), r.project, "main")
	if err != nil {
		t.Fatal(err)
	}
	tree, err := r.Tree(t.Context(), r.project, tip.Commit)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(moved)
		if err := forge.Pack(t.Context(), r.Hub, r.project.ID); err != nil {
			t.Error(err)
		}
	}()
	<-noted
	armed.Store(true)
	if text, err := tree.Read(t.Context(), "a.md"); err != nil || string(text) != "a page\n" {
		t.Errorf("read %q, %v", text, err)
	}
	if armed.Load() {
		t.Error("the object was not opened while it moved")
	}
}

// A damaged object is not put into a pack, where it would be lost permanently, and does not keep the others out.
func TestDamagedObjectsAreLeftWhereTheyAre(t *testing.T) {
	dir, folder := t.TempDir(), t.TempDir()
	write(t, folder, map[string]string{"index.md": "# Home\n"})
	r := packed(t, dir, folder, &forgetest.Pulls{}, nil)
	r.many(t, 0, 8)
	if n := looseObjects(t, dir); n < 20 {
		t.Fatalf("%d loose objects", n)
	}
	r = packed(t, dir, folder, r.pulls, nil) // which remembers nothing of what was published
	// one that was not read, and so is not in memory
	page := plumbing.ComputeHash(plumbing.BlobObject, []byte("# Page 3\n")).String()
	hurt := filepath.Join(dir, "docs.git", "objects", page[:2], page[2:])
	if err := errors.Join(os.Chmod(hurt, 0o600), os.WriteFile(hurt, []byte("not an object"), 0o444)); err != nil {
		t.Fatal(err)
	}
	if err := forge.Pack(t.Context(), r.Hub, r.project.ID); err != nil {
		t.Fatal(err)
	}
	left, err := filepath.Glob(filepath.Join(dir, "docs.git", "objects", "[0-9a-f][0-9a-f]", "*"))
	if err != nil || len(left) != 1 || left[0] != hurt {
		t.Errorf("left are %v, %v; damaged is %s", left, err, hurt)
	}
	if packs(t, dir) != 1 {
		t.Errorf("%d packs", packs(t, dir))
	}
}

// While somebody copies the files nothing is removed; the next packing does it.
func TestNothingIsRemovedWhileItIsPinned(t *testing.T) {
	dir, folder := t.TempDir(), t.TempDir()
	write(t, folder, map[string]string{"index.md": "# Home\n"})
	r := packed(t, dir, folder, &forgetest.Pulls{}, nil)
	release := r.Pin()
	r.many(t, 0, 9)
	before := looseObjects(t, dir)
	if err := forge.Pack(t.Context(), r.Hub, r.project.ID); err != nil {
		t.Fatal(err)
	}
	if now := looseObjects(t, dir); now != before || packs(t, dir) != 1 {
		t.Errorf("%d loose objects became %d, with %d packs, while they were held", before, now, packs(t, dir))
	}
	release()
	if err := forge.Pack(t.Context(), r.Hub, r.project.ID); err != nil {
		t.Fatal(err)
	}
	if now := looseObjects(t, dir); now != 0 || packs(t, dir) != 1 {
		t.Errorf("%d loose objects are left, and %d packs", now, packs(t, dir))
	}
	r.whole(t, 9)
	fsck(t, filepath.Join(dir, "docs.git"))
}

// A packing that hangs does not keep the service from ending when its time is up.
func TestShutdownEndsWithItsContext(t *testing.T) {
	folder := t.TempDir()
	write(t, folder, map[string]string{"index.md": "# Home\n"})
	hangs, goesOn := make(chan struct{}), make(chan struct{})
	var once sync.Once
	r := packed(t, t.TempDir(), folder, &forgetest.Pulls{}, func(at string) error {
		if at == "pack written" {
			once.Do(func() { close(hangs) })
			<-goesOn
		}
		return nil
	})
	r.many(t, 0, 20)
	<-hangs
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errStop)
	ended := make(chan error, 1)
	go func() { ended <- r.Shutdown(ctx) }()
	select {
	case err := <-ended:
		if !errors.Is(err, errStop) {
			t.Errorf("shut down: %v", err)
		}
	case <-time.After(time.Minute):
		t.Error("it waits for a packing although its time is up")
	}
	close(goesOn)
	if err := r.Shutdown(t.Context()); err != nil { // what was under way is over
		t.Error(err)
	}
}
