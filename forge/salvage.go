package forge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"docent/api"
	"docent/forge/git"
	"docent/internal/disk"
)

// A damaged repository is read as far as it is sound, and a new one is made beside it. Only when that is whole and on
// disk does the damaged one make way, and it stays for a person to look at. A step that cannot be done leaves
// everything as it was: being short of file descriptors, say, must not cost a branch.
//
// Names in the hub's folder: <project>.git is the repository; .new-* is one that is being made; <project>.mended is a
// new one that is whole and about to take the place of the damaged one; <project>.damaged-<time> is one that made way.

func (h *Hub) mended(id api.ProjectID) string { return filepath.Join(h.dir, string(id)+".mended") }

// setAside are the damaged repositories that made way, the newest first.
func (h *Hub) setAside(id api.ProjectID) ([]string, error) {
	entries, err := os.ReadDir(h.dir)
	if err != nil {
		return nil, err
	}
	var list []string
	for _, e := range entries {
		if at, ok := strings.CutPrefix(e.Name(), string(id)+".damaged-"); ok && e.IsDir() && len(at) > 0 &&
			strings.Trim(at, "0123456789") == "" {
			list = append(list, filepath.Join(h.dir, e.Name()))
		}
	}
	slices.SortFunc(list, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(b, a)) })
	return list, nil
}

// exchange completes the exchange of two repositories that a crash has cut in two. It is called before anything else is
// done with the damaged one: the new one is whole, and nothing has changed since it was made.
func (h *Hub) exchange(id api.ProjectID) error {
	switch _, err := os.Lstat(h.mended(id)); {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	}
	switch _, err := os.Lstat(h.path(id)); {
	case err == nil: // the damaged one has not made way
		if err := h.disk.Rename(h.path(id), h.asideName(id)); err != nil {
			return err
		}
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if err := h.disk.Rename(h.mended(id), h.path(id)); err != nil {
		return err
	}
	return h.disk.SyncFolder(h.dir)
}

// asideName is the folder that a damaged repository is moved to.
func (h *Hub) asideName(id api.ProjectID) string {
	return fmt.Sprintf("%s.damaged-%d", strings.TrimSuffix(h.path(id), ".git"), h.o.Now().UnixNano())
}

// salvage puts a damaged repository aside and a new one in its place. What the source still has is taken from there,
// the rest from the damaged one as far as it is sound; a branch is kept if all that it reaches is found. If an
// earlier salvage has put the repository aside and broken off, it goes on from there. Why is what is wrong with it.
// While the source does not answer, a rebuild that would lose something waits.
func (h *Hub) salvage(ctx context.Context, r *repo, p api.Project, why error) error {
	r.packing.Lock() // it works by names of files, which will be others
	defer r.packing.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	dir := h.path(r.project)
	from, aside := dir, h.asideName(r.project)
	switch _, err := os.Lstat(dir); {
	case errors.Is(err, fs.ErrNotExist):
		list, err := h.setAside(r.project)
		if err != nil {
			return err
		}
		if len(list) > 0 {
			from, aside = list[0], ""
		}
	case err != nil:
		return err
	}
	old := git.OpenDamaged(from, string(r.project), h.disk)
	head, err := old.Default()
	if errors.Is(err, git.ErrDamaged) {
		head, err = cmp.Or(p.Branch, "main"), nil
	}
	if err != nil {
		return err
	}
	next := filepath.Join(h.dir, ".new-"+string(r.project))
	if err := h.disk.RemoveAll(next); err != nil {
		return fmt.Errorf("clear what an earlier try left: %w", err)
	}
	if err := git.Create(next, head, h.disk); err != nil {
		return fmt.Errorf("create the repository: %w", err)
	}
	defer h.disk.RemoveAll(next) // gone by its name when all went well
	fresh, err := git.Open(next, string(r.project), h.disk)
	if err != nil {
		return err
	}
	away := h.refill(ctx, fresh, old, p)
	if err := away; err != nil {
		if ctx.Err() != nil || disk.Exhausted(err) {
			return err
		}
		if errors.Is(why, errSeveralEnds) {
			return fmt.Errorf("%w: %w", errSeveralEnds, err)
		}
		h.o.Log.Warn("could not repair the repository from its source", "project", r.project, "error", err)
	}
	when := h.o.Now().UTC().Format(time.DateTime + " MST")
	lost, err := fresh.CarryOver(old, func(name string, why error) string {
		if errors.Is(away, ErrTemporary) {
			return ""
		}
		h.o.Log.Error("lost a reference to damage", "project", r.project, "reference", name, "error", why)
		return "its commits could not be read any more when the repository was rebuilt on " + when +
			"; they are lost, unless the job's next instruction finds them or a backup has them"
	})
	if err != nil {
		return err
	}
	if len(lost) > 0 && errors.Is(away, ErrTemporary) {
		return fmt.Errorf("%w: %d references of the damaged repository cannot be read, and the source that may have their commits does not answer: %w",
			ErrTemporary, len(lost), away)
	}
	if err := h.step("salvage written"); err != nil {
		return err
	}
	if err := h.replace(r, next, aside); err != nil {
		return err
	}
	h.o.Log.Warn("repository rebuilt", "project", r.project, "aside", cmp.Or(aside, from), "lost", len(lost),
		"error", why)
	h.tellOwners(ctx, r.project, lost)
	return nil
}

// replace puts a whole repository in the place of a damaged one, which is moved aside if it is still there.
// Called with the repository's lock.
func (h *Hub) replace(r *repo, next, aside string) error {
	dir := h.path(r.project)
	if err := h.disk.RemoveAll(h.mended(r.project)); err != nil {
		return err
	}
	if err := h.disk.Rename(next, h.mended(r.project)); err != nil {
		return err
	}
	if err := h.disk.SyncFolder(h.dir); err != nil {
		return err
	}
	if err := h.step("salvage whole"); err != nil {
		return err
	}
	if aside != "" {
		if err := h.disk.Rename(dir, aside); err != nil {
			return fmt.Errorf("put the damaged repository aside: %w", err)
		}
		if err := h.step("damaged put aside"); err != nil {
			return err
		}
	}
	if err := h.disk.Rename(h.mended(r.project), dir); err != nil {
		return err
	}
	r.store, r.known = nil, nil
	return h.disk.SyncFolder(h.dir)
}

// tellOwners writes into open pull requests that their repository was damaged. What was lost is also noted in the
// repository, so that a note that could not be written here is no loss.
func (h *Hub) tellOwners(ctx context.Context, id api.ProjectID, lost map[string]string) {
	pulls, err := h.pulls.Pulls(ctx, id, api.PullOpen)
	if err != nil {
		h.o.Log.Error("could not list a damaged repository's pull requests; not labeling them",
			"project", id, "error", err)
		return
	}
	st := git.OpenDamaged(h.path(id), string(id), h.disk) // to read from
	for _, pull := range pulls {
		note := "its commits are all there"
		if why, ok := lost["refs/heads/"+pull.Head]; ok {
			note = why
		} else if head, err := st.Head(pull.Head); err != nil || head.IsZero() {
			note = "its branch was not there before either"
		}
		now := h.o.Now().UTC()
		pull.Body = strings.TrimSpace(
			pull.Body + fmt.Sprintf(
				"\n\n---\n\nThe repository of this pull request was found damaged and was rebuilt on %s: %s.",
				now.Format(time.DateTime+" MST"), note))
		pull.UpdatedAt = now
		if _, err := h.pulls.UpdatePull(ctx, pull); err != nil {
			h.o.Log.Error("could not label a pull request of a damaged repository", "project", id, "pull", pull.ID,
				"error", err)
		}
	}
}

// refill stores what the source holds now, without a reference to it: contents have the same names wherever they come
// from.
func (h *Hub) refill(ctx context.Context, st, old *git.Store, p api.Project) error {
	src, err := resolve(p)
	if err != nil {
		return err
	}
	if src.kind == gitRemote {
		origin, err := h.dial(ctx, src, p)
		if err != nil {
			return err
		}
		// All of the history that the damaged one has, down to the first of its ends; all that there is if it has none.
		var haves []plumbing.Hash
		switch end, err := st.TakeEnd(old); {
		case err != nil:
			return err
		case !end.IsZero():
			haves = []plumbing.Hash{end}
		}
		origin.Whole = true
		_, _, _, err = origin.Fetch(ctx, st, p.Branch, haves)
		if errors.Is(err, git.ErrTooMuch) {
			h.o.Log.Warn("the source's history is too large to fetch: fetching only the latest commit", "project", p.ID,
				"error", err)
			origin.Whole = false
			_, _, _, err = origin.Fetch(ctx, st, p.Branch, nil)
		}
		return err
	}
	root, err := os.OpenRoot(src.path)
	if err != nil {
		return err
	}
	defer root.Close()
	im := &importer{store: st, disk: h.disk, root: root, max: h.o.MaxFile, limit: h.o.MaxFiles, now: h.o.Now()}
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
