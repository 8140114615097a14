package forge_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"docent/api"
	"docent/forge"
	"docent/forge/forgetest"
	"docent/internal/testing/need"
)

// setAside are the repositories that were put aside.
func (r *rig) asides(t *testing.T) []string {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(r.dir, "*.damaged-*"))
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// open pull requests of a rig, each on a branch of its own with a page of its own.
func (r *rig) pages(t *testing.T, n int) {
	t.Helper()
	for i := range n {
		r.publish(t, fmt.Sprintf("docent/job_%d", i), put(fmt.Sprintf("page-%d.md", i), fmt.Sprintf("# Page %d\n", i)))
	}
}

// complete checks that all of the pull requests show what they change.
func (r *rig) complete(t *testing.T, n int) {
	t.Helper()
	for i := range n {
		d, err := r.Diff(t.Context(), r.pullOf(t, fmt.Sprintf("docent/job_%d", i)).ID)
		if err != nil || len(d.Files) != 1 || !strings.Contains(d.Files[0].Unified, fmt.Sprintf("+# Page %d\n", i)) {
			t.Errorf("pull request %d shows %+v, %v", i, d, err)
		}
	}
}

func TestATroubledMachineIsNoDamage(t *testing.T) {
	for op, troubles := range map[string][]syscall.Errno{"open": {syscall.EMFILE, syscall.ENFILE, syscall.EACCES,
		syscall.EIO}, "read": {syscall.EIO, syscall.ENOMEM}} {
		step := int64(1)
		if !need.All {
			troubles, step = troubles[:1], 7
		}
		for _, trouble := range troubles {
			t.Run(fmt.Sprintf("%s on %s", trouble.Error(), op), func(t *testing.T) {
				const n = 3
				folder := t.TempDir()
				write(t, folder, forgetest.Files)
				var failing atomic.Bool
				var left, met atomic.Int64
				o := forge.OnDisk(forge.Options{}, func(at, name string) error {
					if !failing.Load() || at != op || left.Add(-1) >= 0 {
						return nil
					}
					met.Add(1)
					return &fs.PathError{Op: at, Path: name, Err: trouble}
				})
				r := open(t, t.TempDir(), project(folder), &forgetest.Pulls{}, o)
				r.pages(t, n)
				tip := r.tip(t, "docent/job_0")
				// The trouble begins a little later each time, so that each reading meets it once when everything runs.
				for start := int64(0); ; start += step {
					r = open(t, r.dir, r.project, r.pulls, o)
					failing.Store(true)
					left.Store(start)
					met.Store(0)
					var errs []error
					_, err := r.Tip(t.Context(), r.project, "docent/job_0")
					errs = append(errs, err)
					tree, err := r.Tree(t.Context(), r.project, tip.Commit)
					if errs = append(errs, err); err == nil {
						_, err = tree.Files(t.Context())
						errs = append(errs, err)
						_, err = tree.Read(t.Context(), "page-0.md")
						errs = append(errs, err)
					}
					_, err = r.Diff(t.Context(), r.pullOf(t, "docent/job_1").ID)
					errs = append(errs, err)
					_, err = r.Commits(t.Context(), r.pullOf(t, "docent/job_1").ID)
					errs = append(errs, err)
					p := forgetest.Publication(r.project, tip, "")
					p.Changes = []forge.Change{put("page-0.md", fmt.Sprintf("# Page %d\n", start+100))}
					_, err = r.Publish(t.Context(), p)
					errs = append(errs, err)
					failing.Store(false)
					for i, err := range errs {
						if err != nil && !errors.Is(err, forge.ErrTemporary) {
							t.Errorf("from the %d. time on, call %d: %v", start, i, err)
						}
					}
					if met.Load() == 0 {
						if start < 20 {
							t.Errorf("only %d readings", start)
						}
						break
					}
					if list := r.asides(t); len(list) > 0 {
						t.Fatalf("put aside: %v", list)
					}
					if err == nil {
						tip = r.tip(t, "docent/job_0")
						r.publish(t, "docent/job_0", put("page-0.md", "# Page 0\n"))
						tip = r.tip(t, "docent/job_0")
					}
					r.complete(t, n)
				}
			})
		}
	}
}

// A salvage that meets trouble of the machine changes nothing; the next one does the work.
func TestASalvageNeedsAWorkingMachine(t *testing.T) {
	need.Everything(t, "it breaks every reading of a file")
	for _, op := range []string{"open", "read"} {
		for _, kind := range []string{"folder", "repository"} {
			t.Run(op+"/"+kind, func(t *testing.T) {
				const n = 3
				source := t.TempDir()
				if write(t, source, forgetest.Files); kind == "repository" {
					source = bareSource(t)
				}
				var failing, met atomic.Bool
				var left atomic.Int64
				o := forge.OnDisk(forge.Options{}, func(at, name string) error {
					if !failing.Load() || at != op || left.Add(-1) >= 0 {
						return nil
					}
					met.Store(true)
					return &fs.PathError{Op: at, Path: name, Err: syscall.EMFILE}
				})
				r := open(t, t.TempDir(), project(source), &forgetest.Pulls{}, o)
				r.pages(t, n)
				if err := os.Remove(filepath.Join(r.repository(), "HEAD")); err != nil { // all else is sound
					t.Fatal(err)
				}
				for start := int64(0); ; start++ {
					r = open(t, r.dir, r.project, r.pulls, o)
					left.Store(start)
					met.Store(false)
					failing.Store(true)
					_, _, err := r.Sync(t.Context(), r.project, nil)
					failing.Store(false)
					if !met.Load() {
						if err != nil {
							t.Fatal(err)
						}
						break
					}
					if len(r.asides(t)) > 0 {
						break // the salvage was through before the trouble began
					}
					if !errors.Is(err, forge.ErrTemporary) {
						t.Fatalf("from the %d. time on: %v", start, err)
					}
				}
				if _, _, err := r.Sync(t.Context(), r.project, nil); err != nil {
					t.Fatal(err)
				}
				if list := r.asides(t); len(list) != 1 {
					t.Errorf("put aside: %v", list)
				}
				r.complete(t, n)
				fsck(t, r.repository())
			})
		}
	}
}

func TestASalvageThatBrokeOffGoesOn(t *testing.T) {
	const n = 4
	for _, step := range []string{"salvage written", "salvage whole", "damaged put aside",
		"put aside by an earlier version"} {
		t.Run(step, func(t *testing.T) {
			folder := t.TempDir()
			write(t, folder, forgetest.Files)
			o := forge.Failing(forge.Options{}, func(at string) error {
				if at == step {
					return errors.New("the process dies here")
				}
				return nil
			})
			r := open(t, t.TempDir(), project(folder), &forgetest.Pulls{}, o)
			r.pages(t, n)
			if step == "put aside by an earlier version" { // which renamed first, and then could not make a new one
				if err := os.Rename(r.repository(), filepath.Join(r.dir, "docs.damaged-1795389550911520331")); err != nil {
					t.Fatal(err)
				}
			} else if err := os.Remove(filepath.Join(r.repository(), "HEAD")); err != nil {
				t.Fatal(err)
			} else {
				r = open(t, r.dir, r.project, r.pulls, o)
				if _, _, err := r.Sync(t.Context(), r.project, nil); err == nil {
					t.Fatal("the salvage did not break off")
				}
			}
			r = open(t, r.dir, r.project, r.pulls, forge.Options{})
			if _, _, err := r.Sync(t.Context(), r.project, nil); err != nil {
				t.Fatal(err)
			}
			r.complete(t, n)
			fsck(t, r.repository())
			if list := r.asides(t); len(list) != 1 {
				t.Errorf("put aside: %v", list)
			}
			for _, rest := range []string{".new-*", "*.mended"} {
				if left, _ := filepath.Glob(filepath.Join(r.dir, rest)); len(left) > 0 {
					t.Errorf("left behind: %v", left)
				}
			}
		})
	}
}

// What was cut off before a pull request is asked for must be taken up by that too.
func TestAPullRequestIsShownAfterASalvageThatBrokeOff(t *testing.T) {
	folder := t.TempDir()
	write(t, folder, forgetest.Files)
	r := open(t, t.TempDir(), project(folder), &forgetest.Pulls{}, forge.Options{})
	r.pages(t, 1)
	if err := os.Rename(r.repository(), filepath.Join(r.dir, "docs.mended")); err != nil {
		t.Fatal(err)
	}
	r = open(t, r.dir, r.project, r.pulls, forge.Options{})
	r.complete(t, 1)
}

func TestOwnersHearOfDamage(t *testing.T) {
	folder := t.TempDir()
	write(t, folder, forgetest.Files)
	r := open(t, t.TempDir(), project(folder), &forgetest.Pulls{}, forge.Options{})
	r.pages(t, 2)
	// One branch is lost, and the other one is not.
	if err := os.WriteFile(filepath.Join(r.repository(), "refs/heads/docent/job_1"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r = open(t, r.dir, r.project, r.pulls, forge.Options{})
	if _, err := r.Tip(t.Context(), r.project, "docent/job_1"); err != nil {
		t.Fatal(err)
	}
	kept, lost := r.pullOf(t, "docent/job_0"), r.pullOf(t, "docent/job_1")
	if !strings.Contains(kept.Body, "found damaged") || !strings.Contains(kept.Body, "its commits are all there") {
		t.Errorf("the pull request that was kept says %q", kept.Body)
	}
	if !strings.Contains(lost.Body, "found damaged") || !strings.Contains(lost.Body, "lost") {
		t.Errorf("the pull request that was lost says %q", lost.Body)
	}
	var said *api.StateError
	if _, err := r.Diff(t.Context(), lost.ID); !errors.As(err, &said) || !strings.Contains(said.Reason, "rebuilt") {
		t.Errorf("its diff: %v", err)
	}
	r.complete(t, 1)
}

// Files of single objects were left open until the garbage collector ran.
func TestReadingLeavesNoFileOpen(t *testing.T) {
	if _, err := os.Stat("/proc/self/fd"); err != nil {
		t.Skip("no list of open files here")
	}
	folder := t.TempDir()
	files := map[string]string{}
	for i := range 200 {
		files[fmt.Sprintf("page-%d.md", i)] = fmt.Sprintf("# Page %d\n", i)
	}
	write(t, folder, files)
	r := open(t, t.TempDir(), project(folder), &forgetest.Pulls{}, forge.Options{})
	r.publish(t, "docent/job_1", put("page-1.md", "# New\n"))
	for _, packed := range []bool{false, true} {
		if packed {
			if err := forge.Pack(t.Context(), r.Hub, r.project.ID); err != nil {
				t.Fatal(err)
			}
		}
		r = open(t, r.dir, r.project, r.pulls, forge.Options{}) // nothing is remembered
		tip := r.tip(t, "docent/job_1")
		defer debug.SetGCPercent(debug.SetGCPercent(-1))
		before := descriptors(t)
		r.files(t, tip.Commit)
		if _, err := r.Diff(t.Context(), r.pullOf(t, "docent/job_1").ID); err != nil {
			t.Fatal(err)
		}
		after := descriptors(t)
		for _, name := range after {
			if !slices.Contains(before, name) && strings.HasPrefix(name, r.dir) {
				t.Errorf("packed %v: %s is open", packed, name)
			}
		}
	}
}

// descriptors are the files that this process has open.
func descriptors(t *testing.T) []string {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, e := range entries {
		if to, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil {
			list = append(list, to)
		}
	}
	return list
}
