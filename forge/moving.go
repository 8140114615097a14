package forge

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"docent/api"
	"docent/forge/git"
	"docent/forge/shared"
)

// Moved says what became of one project's repository.
type Moved struct {
	Project    api.ProjectID
	References int
	Before     bool // it was there already, the same
}

// ToShared copies the repositories below a hub's folder into the database: those that are kept here alone, of the
// projects that are given. What was copied is read back and checked, commit by commit and file by file. A repository
// that is there with other references is refused, and nothing of it is changed. The folder stays as it is. No process
// may use it meanwhile.
func ToShared(ctx context.Context, dir string, projects []api.Project, to *shared.Store, o Options) ([]Moved, error) {
	o.Shared = to
	return moveAll(ctx, dir, projects, o, (*Hub).moveTo)
}

// FromShared copies the repositories of projects from the database into a hub's folder, and checks them there. A
// repository that is there with other references is refused. The database stays as it is.
func FromShared(ctx context.Context, from *shared.Store, dir string, projects []api.Project, o Options) ([]Moved, error) {
	o.Shared = from
	return moveAll(ctx, dir, projects, o, (*Hub).moveFrom)
}

func moveAll(
	ctx context.Context, dir string, projects []api.Project, o Options,
	move func(h *Hub, ctx context.Context, r *repo, at shared.Place) (Moved, bool, error),
) (list []Moved, err error) {
	h, err := Open(dir, nil, o)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, h.Shutdown(ctx)) }()
	for _, p := range projects {
		if !h.shares(p) {
			continue
		}
		r, err := h.repo(p.ID)
		if err != nil {
			return list, err
		}
		release, err := r.acquire(ctx)
		if err != nil {
			return list, err
		}
		at, err := h.o.Shared.Place(ctx, string(p.ID))
		var done Moved
		var any bool
		if err == nil {
			done, any, err = move(h, ctx, r, at)
		}
		release()
		if err != nil {
			return list, fmt.Errorf("copy the repository of %s: %w", p.ID, err)
		}
		if any {
			list = append(list, done)
		}
	}
	return list, nil
}

func (h *Hub) moveTo(ctx context.Context, r *repo, at shared.Place) (Moved, bool, error) {
	st, err := h.open(r)
	if errors.Is(err, git.ErrNoRepository) {
		return Moved{}, false, nil
	}
	if err != nil {
		return Moved{}, false, err
	}
	refs, err := st.Refs()
	if err != nil || len(refs) == 0 {
		return Moved{}, false, err
	}
	r.copied.values = map[string]string{}
	if at.Version == 0 {
		if err := h.push(ctx, r, st, movesTo(refs)); err != nil {
			return Moved{}, false, err
		}
		// It is the only one that counts until the database is served: a node on this folder looks again.
		if err := st.SetCopyOf(""); err != nil {
			return Moved{}, false, err
		}
	}
	return Moved{r.project, len(refs), at.Version > 0}, true, h.readBack(ctx, r, refs)
}

// readBack checks that the database holds references with all that they reach.
func (h *Hub) readBack(ctx context.Context, r *repo, refs map[string]plumbing.Hash) error {
	dir := filepath.Join(h.dir, ".new-"+string(r.project))
	if err := h.disk.RemoveAll(dir); err != nil {
		return err
	}
	if err := git.Create(dir, defaultFolderBranch, h.disk); err != nil {
		return err
	}
	defer h.disk.RemoveAll(dir)
	st, err := git.Open(dir, string(r.project), h.disk)
	if err != nil {
		return err
	}
	_, values, err := h.o.Shared.Fetch(ctx, string(r.project), shared.Place{}, st.ReadPack)
	if err != nil {
		return err
	}
	if !sameRefs(refs, values) {
		return fmt.Errorf("%w: the database has this repository with other references: remove it there, or from the data directory, whichever is the older one",
			ErrRefused)
	}
	return wholeCopy(st, values)
}

// wholeCopy checks that a repository holds what the database's references reach.
func wholeCopy(st *git.Store, values map[string]string) error {
	for _, name := range git.Notes {
		if text := values[name]; text != "" {
			if err := st.SetNote(name, text); err != nil {
				return err
			}
		}
	}
	for name, value := range values {
		if strings.HasPrefix(name, refPrefix) {
			if err := st.Whole(plumbing.NewHash(value)); err != nil {
				return fmt.Errorf("reference %s: %w", name, err)
			}
		}
	}
	return nil
}

func (h *Hub) moveFrom(ctx context.Context, r *repo, at shared.Place) (Moved, bool, error) {
	if at.Version == 0 {
		return Moved{}, false, nil
	}
	before := false
	st, err := h.open(r)
	if err == nil {
		refs, err := st.Refs()
		if err != nil {
			return Moved{}, false, err
		}
		if before = len(refs) > 0; before {
			if err := h.readBack(ctx, r, refs); err != nil {
				return Moved{}, false, err
			}
		}
	} else if !errors.Is(err, git.ErrNoRepository) {
		return Moved{}, false, err
	}
	if st, err = h.copyOf(r); err == nil {
		r.copied = copied{}
		st, err = h.bring(ctx, r, st)
	}
	if err == nil {
		err = wholeCopy(st, r.copied.values)
	}
	if err == nil {
		err = st.SetCopyOf("")
	}
	refs := 0
	for name := range r.copied.values {
		if strings.HasPrefix(name, refPrefix) {
			refs++
		}
	}
	return Moved{r.project, refs, before}, true, err
}

// TakeIn takes into the database what the hub's folder holds of the time when one node was alone, as far as the database
// has no repository of a project. It is called before anything else is asked of the hub, and costs a look at the disk
// if there is nothing to do.
func (h *Hub) TakeIn(ctx context.Context, projects []api.Project) error {
	for _, p := range projects {
		if _, err := os.Lstat(h.path(p.ID)); err != nil || !h.shares(p) {
			continue
		}
		r, err := h.repo(p.ID)
		if err != nil {
			return err
		}
		release, err := r.acquire(ctx)
		if err != nil {
			return err
		}
		_, err = h.pull(ctx, r)
		release()
		if err != nil {
			return fmt.Errorf("take the repository of %s into the database: %w", p.ID, r.damaged(err))
		}
	}
	return nil
}
