package forge

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"

	"docent/forge/failure"
)

// A merge reaches a source folder after the branch has moved. The intent is on disk before: were it lost in between, the
// next import would take the folder's old files for new edits and undo the merge.
const intentFile = "docent-writeback"

func (h *Hub) intendWriteBack(s *site, from, to plumbing.Hash) error {
	if err := h.probe(s, from, to); err != nil {
		return err
	}
	return replaceFile(filepath.Join(s.store.dir, intentFile), []byte(from.String()+" "+to.String()+"\n"))
}

// intent reads what is still to be written back; zero where nothing is.
func (s *store) intent() (from, to plumbing.Hash, err error) {
	b, err := s.disk.readFile(filepath.Join(s.dir, intentFile))
	if missing(err) {
		return from, to, nil
	}
	if err != nil {
		return from, to, passing(err)
	}
	a, z, _ := strings.Cut(strings.TrimSpace(string(b)), " ")
	if !plumbing.IsHash(a) || !plumbing.IsHash(z) {
		return from, to, fmt.Errorf("%w: %s is not understood", errDamaged, intentFile)
	}
	return plumbing.NewHash(a), plumbing.NewHash(z), nil
}

func (s *store) dropIntent() error {
	if err := os.Remove(filepath.Join(s.dir, intentFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return syncDir(s.dir)
}

// resumeWriteBack goes on where a crash, or a folder that could not be written, has left a merge.
func (h *Hub) resumeWriteBack(ctx context.Context, s *site, head plumbing.Hash) error {
	_, to, err := s.store.intent()
	if err != nil || to.IsZero() {
		return err
	}
	merged := false
	there, err := s.store.has(to)
	if err != nil {
		return err
	}
	if there && !head.IsZero() {
		if merged, err = s.store.contains(head, to); err != nil {
			return err
		}
	}
	if !merged { // the branch never moved
		return s.store.dropIntent()
	}
	kept, err := h.writeBack(ctx, s, to)
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("%w: the folder cannot be written: %w", ErrMisconfigured, err)
	}
	if err != nil {
		return err
	}
	if len(kept) > 0 {
		h.o.Log.Warn("files of the folder were changed while a merge was on its way and stay as they are", "project", s.project.ID, "files", names(kept))
	}
	return nil
}

// probe finds out whether the folder can be written, before anything says that a merge is done.
func (h *Hub) probe(s *site, from, to plumbing.Hash) error {
	deltas, err := s.store.between(from, to)
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(s.source.path)
	if err != nil {
		return fmt.Errorf("%w: open the folder: %w", ErrMisconfigured, failure.Reason(err))
	}
	defer root.Close()
	tried := map[string]bool{}
	for _, d := range deltas {
		dir := path.Dir(d.path)
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

// between lists the files that differ between two commits.
func (s *store) between(from, to plumbing.Hash) ([]delta, error) {
	a, err := s.commit(from)
	if err != nil {
		return nil, err
	}
	b, err := s.commit(to)
	if err != nil {
		return nil, err
	}
	return s.compare(a.tree, b.tree)
}

// writeBack makes the folder's files what the merge made of them. A file that was changed in the folder meanwhile gets
// both changes where they fit, else it stays and is named. When it is done, the intent is dropped.
func (h *Hub) writeBack(ctx context.Context, s *site, to plumbing.Hash) (kept []string, err error) {
	from, until, err := s.store.intent()
	if err != nil || until != to {
		return nil, err
	}
	deltas, err := s.store.between(from, to)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(s.source.path)
	if err != nil {
		return nil, fmt.Errorf("%w: open the folder: %w", ErrMisconfigured, failure.Reason(err))
	}
	defer root.Close()
	w := &writer{store: s.store, root: root, limit: h.o.MaxFile}
	if err := w.sweep(deltas); err != nil {
		return nil, err
	}
	// Deletions first: a file may make way for a folder.
	for _, deleting := range []bool{true, false} {
		for _, d := range deltas {
			if d.new.hash.IsZero() != deleting {
				continue
			}
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			if err := w.apply(d); err != nil {
				return nil, fmt.Errorf("write %q back: %w", d.path, err)
			}
			if err := h.at("file written back"); err != nil {
				return nil, err
			}
		}
	}
	if err := s.store.dropIntent(); err != nil {
		return nil, err
	}
	return w.kept, nil
}

// sweep removes what an interrupted write-back has left beside the files.
func (w *writer) sweep(deltas []delta) error {
	done := map[string]bool{}
	for _, d := range deltas {
		dir := path.Dir(d.path)
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
				if err := w.root.Remove(path.Join(dir, e.Name())); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

type writer struct {
	store *store
	root  *os.Root
	limit int64
	kept  []string // files that stay as they are
}

func (w *writer) apply(d delta) error {
	if checkPath(d.path) != nil || !textual(d.old) || !textual(d.new) {
		return nil // never imported, so never written
	}
	if ok, err := w.plain(path.Dir(d.path)); err != nil {
		return err
	} else if !ok {
		w.kept = append(w.kept, d.path)
		return nil
	}
	have, err := readRegular(w.root, d.path, w.limit)
	missing := errors.Is(err, fs.ErrNotExist)
	if missing {
		if info, err := w.root.Lstat(d.path); err == nil { // a link or a folder: not ours to replace
			if d.new.hash.IsZero() || info.IsDir() || info.Mode()&fs.ModeSymlink != 0 {
				w.kept = append(w.kept, d.path)
				return nil
			}
		}
	} else if err != nil {
		return err
	}
	var now plumbing.Hash
	if !missing {
		now = hashObject(plumbing.BlobObject, have)
	}
	switch {
	case now == d.new.hash && (d.new.hash.IsZero() || d.old.mode == d.new.mode):
		return nil // done before
	case d.new.hash.IsZero():
		if now != d.old.hash {
			w.kept = append(w.kept, d.path)
			return nil
		}
		return w.remove(d.path)
	}
	want, err := w.store.read(plumbing.BlobObject, d.new.hash)
	if err != nil {
		return err
	}
	if now != d.old.hash && now != d.new.hash {
		var old []byte
		if d.old.hash.IsZero() || missing {
			w.kept = append(w.kept, d.path)
			return nil
		}
		if old, err = w.store.read(plumbing.BlobObject, d.old.hash); err != nil {
			return err
		}
		both, ok := merge3(old, have, want)
		if !ok {
			w.kept = append(w.kept, d.path)
			return nil
		}
		want = both
	}
	return w.replace(d, want)
}

// plain says whether a folder, as far as it exists, is made of folders only: no link leads elsewhere.
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

func (w *writer) replace(d delta, data []byte) error {
	dir := path.Dir(d.path)
	if err := w.root.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	mode := fs.FileMode(0o644)
	if info, err := w.root.Lstat(d.path); err == nil {
		mode = info.Mode().Perm()
	}
	if d.new.mode == filemode.Executable {
		mode |= 0o111 & (mode >> 2)
	} else if d.old.mode == filemode.Executable {
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
	if err := f.Sync(); err != nil {
		return err
	}
	if err := w.root.Rename(part, d.path); err != nil {
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
	return f.Sync()
}
