package forge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"docent/api"
	"docent/forge/failure"
	"docent/forge/git"
	"docent/forge/host"
	"docent/forge/shared"
	"docent/internal/background"
)

// If several nodes serve the same projects, what the built-in host keeps is in their database (package shared), and a
// node's bare repository is a copy of it. A reader of a branch's head asks the database first, which costs one
// row while nothing has changed, and brings what is new; a node that moves one sends the objects with it, in one
// transaction, and only then moves its own copy. A branch that another node has moved meanwhile is ErrMoved, as at a
// remote. What is pushed to other hosts is kept there, and its repository here was a copy before.

var errGone = errors.New("another node has removed the repository")

// shares reports whether a project's repository is kept for several nodes.
func (h *Hub) shares(p api.Project) bool {
	return h.o.Shared != nil && p.Host != api.HostGit && !host.KeepsPulls(p.Host)
}

// A copied repository is what is known of the database's: how far this node's copy has come, and what it holds beside
// objects; nil if that was not asked for yet. Guarded by the repository's turn.
type copied struct {
	place  shared.Place
	values map[string]string
}

const refPrefix = "refs/"

// current brings a project's copy up to date for somebody who has not got the repository's turn, and opens it.
func (h *Hub) current(ctx context.Context, r *repo, p api.Project) (*git.Store, error) {
	if !h.shares(p) {
		return h.open(r)
	}
	release, err := r.acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	return h.pull(ctx, r)
}

// opened opens a repository for somebody who has its turn, up to date.
func (h *Hub) opened(ctx context.Context, r *repo, p api.Project) (*git.Store, error) {
	if h.shares(p) {
		return h.pull(ctx, r)
	}
	return h.open(r)
}

// pull brings a copy up to date, and opens it. Called with the repository's turn, for a project that is shared. If
// nothing was ever stored of a project, the repository is an empty one.
func (h *Hub) pull(ctx context.Context, r *repo) (*git.Store, error) {
	at, err := h.o.Shared.Place(ctx, string(r.project))
	if err != nil {
		return nil, err
	}
	st, err := h.copyOf(r)
	if err != nil {
		return nil, err
	}
	c := &r.copied
	if c.values == nil {
		if st, at, err = h.beginCopy(ctx, r, st, at); err != nil {
			return nil, err
		}
	}
	if c.values != nil && c.place == at {
		return st, nil
	}
	// Another repository under the name, or an older state of it out of a backup: nothing here counts any more.
	if c.place != (shared.Place{}) && (at.Life != c.place.Life || at.Version < c.place.Version) {
		if st, err = h.startOver(r, ""); err != nil {
			return nil, err
		}
	}
	if at == (shared.Place{}) {
		c.values = map[string]string{}
		return st, nil
	}
	return h.bring(ctx, r, st)
}

// copyOf opens a node's copy, or makes an empty one.
func (h *Hub) copyOf(r *repo) (*git.Store, error) {
	if _, err := os.Lstat(h.path(r.project)); errors.Is(err, fs.ErrNotExist) {
		if err := git.Create(h.path(r.project), defaultFolderBranch, h.disk); err != nil {
			return nil, fmt.Errorf("create the repository: %w", err)
		}
	}
	return h.open(r)
}

// beginCopy finds out how far a copy has come that was there when the process began. A repository that is none, of the
// time when one node was alone, is taken into the database if that has none; otherwise it is put aside. It says where the
// database stands then.
func (h *Hub) beginCopy(ctx context.Context, r *repo, st *git.Store, at shared.Place) (*git.Store, shared.Place, error) {
	text, err := st.CopyOf()
	if err != nil {
		return nil, at, err
	}
	if n, err := fmt.Sscanf(text, "%s %d", &r.copied.place.Life, &r.copied.place.Version); n == 2 && err == nil {
		return st, at, nil
	}
	r.copied.place = shared.Place{}
	refs, err := st.Refs()
	if err != nil || len(refs) == 0 {
		return st, at, err
	}
	if at.Version > 0 {
		now, values, err := h.o.Shared.Fetch(ctx, string(r.project), at, st.ReadPack)
		if err != nil {
			return nil, at, err
		}
		if sameRefs(refs, values) { // it was copied there, or back from there
			r.copied = copied{place: now, values: values}
			return st, now, st.SetCopyOf(markOf(now))
		}
		if now, values, err = h.o.Shared.Fetch(ctx, string(r.project), shared.Place{}, st.ReadPack); err != nil {
			return nil, at, err
		}
		if older, err := holdsAll(st, refs, values); err != nil && !errors.Is(err, git.ErrDamaged) {
			return nil, at, err
		} else if older { // a crash took the mark
			r.copied.place = now
			return st, now, nil
		}
		aside := fmt.Sprintf("%s.before-%d", strings.TrimSuffix(h.path(r.project), ".git"), h.o.Now().UnixNano())
		h.o.Log.Warn("the database has this repository: setting aside the one in the data directory", "project", r.project,
			"folder", aside)
		st, err = h.startOver(r, aside)
		return st, now, err
	}
	r.copied.values = map[string]string{}
	h.o.Log.Info("moving a repository from the data directory into the database", "project", r.project)
	if err := h.push(ctx, r, st, movesTo(refs)); err != nil {
		r.copied.values = nil
		return nil, at, err
	}
	at, err = h.o.Shared.Place(ctx, string(r.project))
	return st, at, err
}

// markOf is how a copy says what it is a copy of.
func markOf(at shared.Place) string { return fmt.Sprintf("%s %d\n", at.Life, at.Version) }

// sameRefs reports whether a repository has the references that the database has.
func sameRefs(refs map[string]plumbing.Hash, values map[string]string) bool {
	n := 0
	for name, value := range values {
		if !strings.HasPrefix(name, refPrefix) {
			continue
		}
		if n++; refs[name] != plumbing.NewHash(value) {
			return false
		}
	}
	return n == len(refs)
}

// holdsAll reports whether the database's references hold all that a repository's do.
func holdsAll(st *git.Store, refs map[string]plumbing.Hash, values map[string]string) (bool, error) {
	for name, hash := range refs {
		if values[name] == "" {
			return false, nil
		}
		if ok, err := st.Contains(plumbing.NewHash(values[name]), hash); err != nil || !ok {
			return false, err
		}
	}
	return true, nil
}

func movesTo(refs map[string]plumbing.Hash) []refMove {
	var moves []refMove
	for name, hash := range refs {
		moves = append(moves, refMove{name: name, new: hash})
	}
	return moves
}

// startOver puts a copy aside, or removes it, and begins an empty one.
func (h *Hub) startOver(r *repo, aside string) (*git.Store, error) {
	r.packing.Lock()
	r.mu.Lock()
	var err error
	if aside != "" {
		if err = h.disk.Rename(h.path(r.project), aside); err == nil {
			err = h.disk.SyncFolder(h.dir)
		}
	} else {
		err = h.disk.RemoveAll(h.path(r.project))
	}
	r.store, r.known, r.listed, r.copied = nil, nil, nil, copied{}
	r.mu.Unlock()
	r.packing.Unlock()
	if err != nil {
		return nil, fmt.Errorf("begin the copy of the repository again: %w", err)
	}
	return h.copyOf(r)
}

// mend replaces a damaged repository: by what the database has, or by what is sound of it.
func (h *Hub) mend(ctx context.Context, r *repo, p api.Project, why error) error {
	if !h.shares(p) {
		return h.salvage(ctx, r, p, why)
	}
	_, err := h.startOver(r, "")
	if err == nil {
		_, err = h.pull(ctx, r)
	}
	return err
}

// alone runs f while no other node publishes to a repository or merges in it, as the repository's turn does within this
// node. Nothing is lost without it; with it, the same change published on two nodes at once opens one pull request.
func (h *Hub) alone(ctx context.Context, p api.Project, f func()) error {
	if !h.shares(p) {
		f()
		return nil
	}
	return h.o.Shared.Turn(ctx, string(p.ID), f)
}

// bring fetches what is new in the database.
func (h *Hub) bring(ctx context.Context, r *repo, st *git.Store) (*git.Store, error) {
	c := &r.copied
	if c.values != nil {
		if torn, err := h.torn(st, c.values); err != nil {
			return nil, err
		} else if torn {
			if st, err = h.startOver(r, ""); err != nil {
				return nil, err
			}
		}
	}
	at, values, err := h.o.Shared.Fetch(ctx, string(r.project), c.place, st.ReadPack)
	if err != nil {
		return nil, fmt.Errorf("bring the repository from the database: %w", err)
	}
	if at == (shared.Place{}) {
		return nil, fmt.Errorf("%w: %w", ErrTemporary, errGone)
	}
	if err := h.step("brought"); err != nil {
		return nil, err
	}
	for _, name := range git.Notes {
		if values[name] == "" && name == "HEAD" {
			continue
		}
		if err := st.SetNote(name, values[name]); err != nil {
			return nil, err
		}
	}
	for name, value := range values {
		if !strings.HasPrefix(name, refPrefix) {
			continue
		}
		old, err := st.Ref(name)
		if hash := plumbing.NewHash(value); err == nil && old != hash {
			if err = connected(st, []refMove{{name, old, hash}}); err == nil {
				err = st.SetRef(name, old, hash)
			}
		}
		if err != nil {
			return nil, err
		}
	}
	if err := st.SetCopyOf(markOf(at)); err != nil {
		return nil, err
	}
	c.place, c.values = at, values
	r.listed = nil // what was heard of the source before may be older than what another node has stored
	return st, nil
}

// torn reports whether the copy's history ends elsewhere than the database's did: it had fetched from the source when
// another node was faster, and what lies between is not there.
func (h *Hub) torn(st *git.Store, values map[string]string) (bool, error) {
	const shallow = "shallow"
	have, err := st.Note(shallow)
	return have != values[shallow], err
}

// A refMove is a reference on its way from one commit to another.
type refMove struct {
	name     string
	old, new plumbing.Hash
}

// setRefs moves references, and keeps the repository's notes, first where all nodes have them.
func (h *Hub) setRefs(ctx context.Context, s *session, moves ...refMove) error {
	if h.shares(s.project) {
		return h.push(ctx, s.repo, s.store, moves)
	}
	if err := connected(s.store, moves); err != nil {
		return err
	}
	for _, m := range moves {
		if err := s.store.SetRef(m.name, m.old, m.new); err != nil {
			return err
		}
	}
	return nil
}

// connected fails if a reference is about to name a commit that is not here with all that it reaches.
func connected(st *git.Store, moves []refMove) error {
	for _, m := range moves {
		if err := st.CheckConnected(m.new); err != nil {
			return fmt.Errorf("set %s: %w", m.name, err)
		}
	}
	return nil
}

// push sends to the database what references reach that is not there, moves them there and then here. Notes of the copy
// that differ go along.
func (h *Hub) push(ctx context.Context, r *repo, st *git.Store, moves []refMove) error {
	if err := connected(st, moves); err != nil {
		return err
	}
	c := &r.copied
	var all []shared.Move
	var heads []plumbing.Hash
	for _, m := range moves {
		all = append(all, shared.Move{Name: m.name, Old: text(m.old), New: text(m.new)})
		heads = append(heads, m.new)
	}
	for _, name := range git.Notes {
		have, err := st.Note(name)
		if err != nil {
			return err
		}
		if have != c.values[name] {
			all = append(all, shared.Move{Name: name, Old: c.values[name], New: have})
		}
	}
	if len(all) == 0 {
		return nil
	}
	there := map[plumbing.Hash]bool{}
	for name, value := range c.values {
		if strings.HasPrefix(name, refPrefix) {
			there[plumbing.NewHash(value)] = true
		}
	}
	at, packs, err := h.o.Shared.Push(ctx, string(r.project), all, func(w io.Writer) (int, int64, error) {
		return st.PackTo(w, heads, there, h.o.MaxBytes)
	})
	if err != nil {
		return err
	}
	if err := h.step("shared"); err != nil {
		return err
	}
	for _, m := range moves {
		old, err := st.Ref(m.name)
		if err == nil && old != m.new {
			err = st.SetRef(m.name, old, m.new)
		}
		if err != nil {
			return err
		}
	}
	for _, m := range all {
		c.values[m.Name] = m.New
	}
	if at.Version == c.place.Version+1 && (at.Life == c.place.Life || c.place.Life == "") {
		c.place = at // else others have pushed too: the next one to ask brings that
		if err := st.SetCopyOf(markOf(at)); err != nil {
			return err
		}
	}
	if packs >= joinAfter {
		h.joinInBackground(r)
	}
	return nil
}

func text(hash plumbing.Hash) string {
	if hash.IsZero() {
		return ""
	}
	return hash.String()
}

// joinAfter is how many packs of a repository are joined in the database.
const joinAfter = 32

// joinInBackground joins the packs of a repository if no other does on this node.
func (h *Hub) joinInBackground(r *repo) {
	if !r.joining.CompareAndSwap(false, true) {
		return
	}
	if !h.inBackground(func() {
		defer r.joining.Store(false)
		ctx, cancel := context.WithTimeout(h.work, time.Hour)
		defer cancel()
		err := background.Guard(func() error { return h.o.Shared.Join(ctx, string(r.project)) })
		if err != nil && h.work.Err() == nil {
			h.o.Log.Error("could not merge a repository's packs in the database", "project", r.project, "error", err)
		}
	}) {
		r.joining.Store(false)
	}
}

// SweepShared removes from the database what pushes that broke off have left. One node does it for all.
func (h *Hub) SweepShared(ctx context.Context) error { return h.o.Shared.Sweep(ctx) }

// currentFor is current for a repository whose project is not at hand: one that has pull requests here.
func (h *Hub) currentFor(ctx context.Context, r *repo) (*git.Store, error) {
	if h.o.Shared == nil {
		return h.open(r)
	}
	p, err := h.pulls.Project(ctx, r.project)
	if err != nil {
		return nil, err
	}
	return h.current(ctx, r, p)
}

// holding opens a project's repository, and brings it up to date if it does not hold a commit.
func (h *Hub) holding(ctx context.Context, r *repo, p api.Project, commit string) (*git.Store, error) {
	st, err := h.open(r)
	if !h.shares(p) || err != nil && !errors.Is(err, git.ErrNoRepository) {
		return st, err
	}
	if err == nil {
		if there, err := st.HasFiles(plumbing.NewHash(commit)); err != nil || there {
			return st, r.damaged(err)
		}
	}
	return h.current(ctx, r, p)
}

// checked is the source of a project that can be served. A folder that this node has not got is absent if others may
// have it.
func (h *Hub) checked(p api.Project) (source, error) {
	src, err := checked(p)
	if err == nil || !h.shares(p) || strings.Contains(p.Source, "://") || !filepath.IsAbs(p.Source) {
		return src, err
	}
	if _, gone := os.Lstat(p.Source); !errors.Is(gone, fs.ErrNotExist) {
		return src, err
	}
	docs, err := docsDir(p)
	return source{kind: plainFolder, path: p.Source, name: cmp.Or(p.Repository, string(p.ID)), docs: docs, absent: true}, err
}

// withoutFolder works with what other nodes have read of a folder that is not on this one.
func (h *Hub) withoutFolder(s *session, head plumbing.Hash) (*session, plumbing.Hash, bool, error) {
	if head.IsZero() {
		return nil, head, false, notMounted(s.source.path)
	}
	h.o.Log.Warn("the folder is not on this node; using what another node read", "project", s.project.ID,
		"folder", s.source.path)
	return s, head, false, nil
}

func notMounted(path string) error {
	return failure.Misconfigured("The folder %q is not on this node. If several nodes serve a project, each needs the same folder at the same place (a shared mount). Otherwise take the documentation from a git repository.",
		path)
}
