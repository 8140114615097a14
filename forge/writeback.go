package forge

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"

	"docent/forge/failure"
	"docent/forge/git"
	"docent/internal/disk"
)

func (h *Hub) intendWriteBack(s *session, from, to plumbing.Hash) error {
	if err := h.probe(s, from, to); err != nil {
		return err
	}
	return s.store.Intend(from, to)
}

// resumeWriteBack goes on where a crash, or a folder that could not be written, has left a merge.
func (h *Hub) resumeWriteBack(ctx context.Context, s *session, head plumbing.Hash) error {
	_, to, err := s.store.Intent()
	if err != nil || to.IsZero() {
		return err
	}
	merged := false
	there, err := s.store.Connected(to)
	if err != nil {
		return err
	}
	if there && !head.IsZero() {
		if merged, err = s.store.Contains(head, to); err != nil {
			return err
		}
	}
	if !merged { // the branch never moved
		if err := s.store.DropIntent(); err != nil {
			return err
		}
		return h.setRefs(ctx, s)
	}
	kept, err := h.writeBack(ctx, s, to)
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("%w: the folder cannot be written: %w", ErrMisconfigured, err)
	}
	if err != nil {
		return err
	}
	if len(kept) > 0 {
		h.o.Log.Warn("files that changed in the folder during a merge were left unchanged", "project",
			s.project.ID, "files", failure.Names(kept))
	}
	return nil
}

// probe finds out whether the folder can be written, before anything says that a merge is done.
func (h *Hub) probe(s *session, from, to plumbing.Hash) error {
	differences, err := s.store.Between(from, to)
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(s.source.path)
	if err != nil {
		return fmt.Errorf("%w: open the folder: %w", ErrMisconfigured, failure.Reason(err))
	}
	defer root.Close()
	tried := map[string]bool{}
	for _, d := range differences {
		dir := path.Dir(d.Path)
		for dir != "." {
			info, err := root.Lstat(dir)
			if err == nil && info.IsDir() {
				break
			}
			if err == nil {
				return fmt.Errorf("%w: %q in the folder is no folder", ErrMergeConflict, dir)
			}
			if !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			dir = path.Dir(dir)
		}
		if tried[dir] {
			continue
		}
		tried[dir] = true
		name := path.Join(dir, partPrefix+rand.Text()+partSuffix)
		f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return fmt.Errorf("%w: the folder cannot be written: %w", ErrMisconfigured, err)
		}
		f.Close()
		if err := root.Remove(name); err != nil {
			return err
		}
	}
	return nil
}

// writeBack makes the folder's files what the merge made of them. A file that was changed in the folder meanwhile gets
// both changes if they fit, otherwise it stays and is named. When it is done, the intent is dropped.
func (h *Hub) writeBack(ctx context.Context, s *session, to plumbing.Hash) (kept []string, err error) {
	from, until, err := s.store.Intent()
	if err != nil || until != to {
		return nil, err
	}
	differences, err := s.store.Between(from, to)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(s.source.path)
	if err != nil {
		return nil, fmt.Errorf("%w: open the folder: %w", ErrMisconfigured, failure.Reason(err))
	}
	defer root.Close()
	w := &writer{store: s.store, root: root, limit: h.o.MaxFile}
	if h.shares(s.project) {
		w.left = h.o.Now().Add(-othersWrite)
	}
	if err := w.sweep(differences); err != nil {
		return nil, err
	}
	// Deletions first: a file may make way for a folder.
	for _, deleting := range []bool{true, false} {
		for _, d := range differences {
			if d.New.Hash.IsZero() != deleting {
				continue
			}
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			if err := w.apply(d); err != nil {
				return nil, fmt.Errorf("write %q back: %w", d.Path, err)
			}
			if err := h.step("file written back"); err != nil {
				return nil, err
			}
		}
	}
	if err := s.store.DropIntent(); err != nil {
		return nil, err
	}
	return w.kept, h.setRefs(ctx, s)
}

// sweep removes what an interrupted write-back has left beside the files.
func (w *writer) sweep(differences []git.Difference) error {
	done := map[string]bool{}
	for _, d := range differences {
		dir := path.Dir(d.Path)
		if done[dir] {
			continue
		}
		done[dir] = true
		entries, err := fs.ReadDir(w.root.FS(), dir)
		if err != nil {
			continue // no such folder, or none of ours
		}
		for _, e := range entries {
			if isPart(e.Name()) {
				if info, err := e.Info(); err != nil || !w.left.IsZero() && info.ModTime().After(w.left) {
					continue // gone, or another node is writing it
				}
				if err := w.root.Remove(path.Join(dir, e.Name())); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// othersWrite is how long another node may take to write a file of the folder.
const othersWrite = 10 * time.Minute

type writer struct {
	store *git.Store
	root  *os.Root
	limit int64
	kept  []string  // files that stay as they are
	left  time.Time // what is younger may be another node's; zero if there is none
}

func (w *writer) apply(d git.Difference) error {
	if git.CheckPath(d.Path) != nil || !d.Old.Textual() || !d.New.Textual() {
		return nil // never imported, so never written
	}
	if ok, err := w.plain(path.Dir(d.Path)); err != nil {
		return err
	} else if !ok {
		w.kept = append(w.kept, d.Path)
		return nil
	}
	have, err := readRegular(w.root, d.Path, w.limit)
	missing := errors.Is(err, fs.ErrNotExist)
	if missing {
		if info, err := w.root.Lstat(d.Path); err == nil { // a link or a folder: not ours to replace
			if d.New.Hash.IsZero() || info.IsDir() || info.Mode()&fs.ModeSymlink != 0 {
				w.kept = append(w.kept, d.Path)
				return nil
			}
		}
	} else if err != nil {
		return err
	}
	var now plumbing.Hash
	if !missing {
		now = git.NewBlob(have).Hash
	}
	switch {
	case now == d.New.Hash && (d.New.Hash.IsZero() || d.Old.Mode == d.New.Mode):
		return nil // done before
	case d.New.Hash.IsZero():
		if now != d.Old.Hash {
			w.kept = append(w.kept, d.Path)
			return nil
		}
		return w.remove(d.Path)
	}
	want, err := w.store.Blob(d.New.Hash)
	if err != nil {
		return err
	}
	if now != d.Old.Hash && now != d.New.Hash {
		var old []byte
		if d.Old.Hash.IsZero() || missing {
			w.kept = append(w.kept, d.Path)
			return nil
		}
		if old, err = w.store.Blob(d.Old.Hash); err != nil {
			return err
		}
		both, ok := git.Merge(old, have, want)
		if !ok {
			w.kept = append(w.kept, d.Path)
			return nil
		}
		want = both
	}
	return w.replace(d, want)
}

// plain reports whether a folder, as far as it exists, is made of folders only: no link leads elsewhere.
func (w *writer) plain(dir string) (bool, error) {
	if dir == "." {
		return true, nil
	}
	if ok, err := w.plain(path.Dir(dir)); !ok || err != nil {
		return ok, err
	}
	info, err := w.root.Lstat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	return err == nil && info.IsDir(), err
}

func (w *writer) replace(d git.Difference, data []byte) error {
	dir := path.Dir(d.Path)
	if err := w.root.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	mode := fs.FileMode(0o644)
	if info, err := w.root.Lstat(d.Path); err == nil {
		mode = info.Mode().Perm()
	}
	if d.New.Mode == filemode.Executable {
		mode |= 0o111 & (mode >> 2)
	} else if d.Old.Mode == filemode.Executable {
		mode &^= 0o111
	}
	part := path.Join(dir, partPrefix+rand.Text()+partSuffix)
	f, err := w.root.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer w.root.Remove(part)
	defer f.Close()
	if _, err := f.Write(data); err != nil {
		return err
	}
	if err := f.Chmod(mode); err != nil {
		return err
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := w.root.Rename(part, d.Path); err != nil {
		return err
	}
	return w.sync(dir)
}

func (w *writer) remove(name string) error {
	if err := w.root.Remove(name); err != nil {
		return err
	}
	dir := path.Dir(name)
	for ; dir != "."; dir = path.Dir(dir) { // git has no empty folders
		if w.root.Remove(dir) != nil {
			break
		}
	}
	return w.sync(dir)
}

func (w *writer) sync(dir string) error {
	f, err := w.root.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	return disk.Sync(f)
}
