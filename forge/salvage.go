package forge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"

	"docent/api"
)

// A damaged repository is read as far as it is sound, and a new one is made beside it. Only when that is whole and on disk
// does the damaged one make way, and it stays for a person to look at. A step that cannot be done leaves everything as it was:
// being short of file descriptors, say, must not cost a branch.
//
// Names in the hub's folder: <project>.git is the repository; .new-* is one that is being made; <project>.mended is a new one
// that is whole and about to take the place of the damaged one; <project>.damaged-<time> is one that made way.

func (h *Hub) mended(id api.ProjectID) string { return filepath.Join(h.dir, string(id)+".mended") }

// asides are the damaged repositories that made way, the newest first.
func (h *Hub) asides(id api.ProjectID) ([]string, error) {
	entries, err := os.ReadDir(h.dir)
	if err != nil {
		return nil, err
	}
	var list []string
	for _, e := range entries {
		if at, ok := strings.CutPrefix(e.Name(), string(id)+".damaged-"); ok && e.IsDir() && len(at) > 0 && strings.Trim(at, "0123456789") == "" {
			list = append(list, filepath.Join(h.dir, e.Name()))
		}
	}
	slices.SortFunc(list, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(b, a)) })
	return list, nil
}

// exchange completes the exchange of two repositories that a crash has cut in two.
func (h *Hub) exchange(id api.ProjectID) error {
	switch _, err := os.Lstat(h.mended(id)); {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	}
	switch _, err := os.Lstat(h.path(id)); {
	case err == nil: // the damaged one has not made way: it will be found damaged again
		return os.RemoveAll(h.mended(id))
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if err := os.Rename(h.mended(id), h.path(id)); err != nil {
		return err
	}
	return syncDir(h.dir)
}

// salvage puts a damaged repository aside and a new one in its place. What the source still has is taken from there, the rest
// from the damaged one as far as it is sound; a branch is kept where all that it reaches is found. Where an earlier salvage
// has put the repository aside and broken off, it goes on from there.
func (h *Hub) salvage(ctx context.Context, r *repo, p api.Project) error {
	r.packing.Lock() // it works by names of files, which will be others
	defer r.packing.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	dir := h.path(r.project)
	from, aside := dir, fmt.Sprintf("%s.damaged-%d", strings.TrimSuffix(dir, ".git"), h.o.Now().UnixNano())
	switch _, err := os.Lstat(dir); {
	case errors.Is(err, fs.ErrNotExist):
		list, err := h.asides(r.project)
		if err != nil {
			return err
		}
		if len(list) > 0 {
			from, aside = list[0], ""
		}
	case err != nil:
		return err
	}
	old := salvaged(from, r.project, h.disk)
	head, err := old.defaultBranch()
	if errors.Is(err, errDamaged) {
		head, err = cmp.Or(p.Branch, "main"), nil
	}
	if err != nil {
		return err
	}
	next := filepath.Join(h.dir, ".new-"+string(r.project))
	if err := os.RemoveAll(next); err != nil {
		return fmt.Errorf("clear what an earlier try left: %w", err)
	}
	if err := createStore(next, head); err != nil {
		return fmt.Errorf("create the repository anew: %w", err)
	}
	defer os.RemoveAll(next) // gone by its name when all went well
	fresh, err := openStore(next, r.project, h.disk)
	if err != nil {
		return err
	}
	if err := h.refill(ctx, fresh, p); err != nil {
		if ctx.Err() != nil || exhausted(err) {
			return err
		}
		h.o.Log.Warn("the source did not help to mend the repository", "project", r.project, "error", err)
	}
	lost, err := h.carryOver(old, fresh)
	if err != nil {
		return err
	}
	if err := h.at("salvage written"); err != nil {
		return err
	}
	if err := os.RemoveAll(h.mended(r.project)); err != nil {
		return err
	}
	if err := os.Rename(next, h.mended(r.project)); err != nil {
		return err
	}
	if err := syncDir(h.dir); err != nil {
		return err
	}
	if err := h.at("salvage whole"); err != nil {
		return err
	}
	if aside != "" {
		if err := os.Rename(dir, aside); err != nil {
			return fmt.Errorf("put the damaged repository aside: %w", err)
		}
		if err := h.at("damaged put aside"); err != nil {
			return err
		}
	}
	if err := os.Rename(h.mended(r.project), dir); err != nil {
		return err
	}
	r.store, r.known = nil, nil
	if err := syncDir(h.dir); err != nil {
		return err
	}
	h.tellOwners(ctx, r.project, lost)
	return nil
}

// salvaged is a damaged repository to read from; nothing of it is changed.
func salvaged(dir string, id api.ProjectID, d *disk) *store {
	return &store{dir: dir, project: id, disk: d, cache: cache.NewObjectLRU(objectCache), damaged: true}
}

// tellOwners writes into open pull requests that their repository was damaged. What was lost is also noted in the repository,
// so that a note that could not be written here is no loss.
func (h *Hub) tellOwners(ctx context.Context, id api.ProjectID, lost map[string]string) {
	pulls, err := h.pulls.Pulls(ctx, id, api.PullOpen)
	if err != nil {
		h.o.Log.Error("the pull requests of a damaged repository could not be listed, so nothing is written into them", "project", id, "error", err)
		return
	}
	for _, pull := range pulls {
		note := "its commits are all there"
		if why, ok := lost["refs/heads/"+pull.Head]; ok {
			note = why
		}
		now := h.o.Now().UTC()
		pull.Body = strings.TrimSpace(pull.Body + fmt.Sprintf("\n\n---\n\nThe repository of this pull request was found damaged and was built anew on %s: %s.", now.Format(time.DateTime+" MST"), note))
		pull.UpdatedAt = now
		if _, err := h.pulls.UpdatePull(ctx, pull); err != nil {
			h.o.Log.Error("a pull request of a damaged repository could not be marked", "project", id, "pull", pull.ID, "error", err)
		}
	}
}

// lostFile names the references that a salvage could not keep, one in a line, with what there is to say.
const lostFile = "docent-lost"

// lost are the references that salvages could not keep.
func (s *store) lost() (map[string]string, error) {
	text, err := s.disk.readFile(filepath.Join(s.dir, lostFile))
	if missing(err) {
		return nil, nil
	}
	if err != nil {
		return nil, passing(err)
	}
	out := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if name, why, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			out[name] = why
		}
	}
	return out, nil
}

// found strikes a reference off the list of those that were lost.
func (s *store) found(name string) error {
	lost, err := s.lost()
	if err != nil || lost[name] == "" {
		return err
	}
	delete(lost, name)
	if len(lost) == 0 {
		return os.Remove(filepath.Join(s.dir, lostFile))
	}
	return s.setLost(lost)
}

func (s *store) setLost(lost map[string]string) error {
	if len(lost) == 0 {
		return nil
	}
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(lost)) {
		b.WriteString(name + " " + lost[name] + "\n")
	}
	return replaceFile(filepath.Join(s.dir, lostFile), []byte(b.String()))
}

// refill stores what the source holds now, without a reference to it: contents have the same names wherever they come from.
func (h *Hub) refill(ctx context.Context, st *store, p api.Project) error {
	src, err := resolve(p)
	if err != nil {
		return err
	}
	if src.kind == gitRemote {
		remote, err := h.dial(ctx, src, p)
		if err != nil {
			return err
		}
		_, _, _, err = remote.fetch(ctx, st, p.Branch, nil)
		return err
	}
	root, err := os.OpenRoot(src.path)
	if err != nil {
		return err
	}
	defer root.Close()
	im := &importer{store: st, root: root, max: h.o.MaxFile, limit: h.o.MaxFiles, now: h.o.Now()}
	if err := im.track(plumbing.ZeroHash, src); err != nil {
		return err
	}
	if err := im.list(ctx, "", false); err != nil {
		return err
	}
	if err := im.read(ctx, func(string) {}); err != nil {
		return err
	}
	_, err = im.tree()
	return err
}

// carryOver copies the references that are sound, and the write-back that may be under way. It says which references are
// lost. It fails where what can be read now does not tell that.
func (h *Hub) carryOver(old, fresh *store) (map[string]string, error) {
	cut, err := fresh.shallow()
	if err != nil {
		return nil, err
	}
	if cut == nil {
		cut = map[plumbing.Hash]bool{}
	}
	before, err := old.shallow()
	if err != nil {
		return nil, err
	}
	maps.Copy(cut, before)
	refs, damaged, err := old.refs()
	if err != nil {
		return nil, err
	}
	lost, err := old.lost()
	if err != nil {
		return nil, err
	}
	if lost == nil {
		lost = map[string]string{}
	}
	sound := map[string]plumbing.Hash{}
	for name, hash := range refs {
		if err := fresh.copyFrom(old, hash, cut); errors.Is(err, errDamaged) || errors.Is(err, ErrMisconfigured) {
			damaged[name] = err
			continue
		} else if err != nil {
			return nil, err
		}
		sound[name] = hash
		delete(lost, name)
	}
	when := h.o.Now().UTC().Format(time.DateTime + " MST")
	for name, err := range damaged {
		h.o.Log.Error("reference lost to damage", "project", old.project, "reference", name, "error", err)
		lost[name] = "its commits could not be read any more when the repository was built anew on " + when +
			"; they are lost, unless the job's next instruction finds them or a backup has them"
	}
	if err := fresh.cutOff(cut); err != nil {
		return nil, err
	}
	switch b, err := old.disk.readFile(filepath.Join(old.dir, intentFile)); {
	case err == nil:
		if err := replaceFile(filepath.Join(fresh.dir, intentFile), b); err != nil {
			return nil, err
		}
	case !missing(err):
		return nil, err
	}
	for name, hash := range sound {
		if err := fresh.setRef(name, plumbing.ZeroHash, hash); err != nil {
			return nil, err
		}
	}
	return lost, fresh.setLost(lost)
}

// cutOff notes where the history ends, of the commits where it may.
func (s *store) cutOff(cut map[plumbing.Hash]bool) error {
	for hash := range cut { // the history ends where the parents are not there, and nowhere else
		c, err := s.commit(hash)
		if errors.Is(err, errDamaged) {
			delete(cut, hash)
			continue
		}
		if err != nil {
			return err
		}
		whole := true
		for _, p := range c.parents {
			there, err := s.has(p)
			if err != nil {
				return err
			}
			whole = whole && there
		}
		if whole {
			delete(cut, hash)
		}
	}
	if len(cut) > 0 {
		return s.setShallow(cut)
	}
	if err := os.Remove(filepath.Join(s.dir, "shallow")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// copyFrom copies what a commit reaches and is not there yet; each object is checked on the way. From itself, a repository
// copies nothing and checks all. Parents of the commits
// in cut may be missing.
func (s *store) copyFrom(old *store, head plumbing.Hash, cut map[plumbing.Hash]bool) error {
	var (
		objects []object
		size    int
		done    = map[plumbing.Hash]bool{}
	)
	take := func(kind plumbing.ObjectType, hash plumbing.Hash) ([]byte, error) {
		if s != old {
			if there, err := s.has(hash); err != nil {
				return nil, err
			} else if there {
				if done[hash] = true; kind == plumbing.BlobObject {
					return nil, nil
				}
				return s.read(kind, hash)
			}
		}
		data, err := old.read(kind, hash)
		if err != nil {
			return nil, err
		}
		done[hash] = true
		objects = append(objects, object{kind: kind, hash: hash, data: data})
		if size += len(data); size > importBatch {
			if err := s.write(objects); err != nil {
				return nil, err
			}
			objects, size = nil, 0
		}
		return data, nil
	}
	var takeTree func(hash plumbing.Hash, depth int) error
	takeTree = func(hash plumbing.Hash, depth int) error {
		if done[hash] {
			return nil
		}
		if depth > maxDepth {
			return s.tooDeep()
		}
		data, err := take(plumbing.TreeObject, hash)
		if err != nil {
			return err
		}
		entries, err := decodeTree(data)
		if err != nil {
			return fmt.Errorf("%w: tree %s: %w", errDamaged, hash, err)
		}
		for _, e := range entries {
			switch {
			case done[e.hash]:
			case e.isDir():
				err = takeTree(e.hash, depth+1)
			case e.mode.IsFile():
				_, err = take(plumbing.BlobObject, e.hash)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	queue := []plumbing.Hash{head}
	for len(queue) > 0 {
		hash := queue[0]
		queue = queue[1:]
		if done[hash] {
			continue
		}
		data, err := take(plumbing.CommitObject, hash)
		if err != nil {
			return err
		}
		c, err := decodeCommit(hash, data)
		if err != nil {
			return fmt.Errorf("%w: commit %s: %w", errDamaged, hash, err)
		}
		if err := takeTree(c.tree, 0); err != nil {
			return err
		}
		for _, p := range c.parents {
			if cut[hash] {
				there, err := s.has(p)
				if err != nil {
					return err
				}
				if _, _, err := old.load(p); !there && errors.Is(err, errDamaged) {
					continue
				}
			}
			queue = append(queue, p)
		}
	}
	return s.write(objects)
}
