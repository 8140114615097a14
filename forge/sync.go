package forge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"docent/api"
	"docent/forge/git"
	"docent/forge/host"
	"docent/forge/remote"
)

// A session is a project with its repository at hand.
type session struct {
	project api.Project
	source  source
	repo    *repo
	store   *git.Store
	base    string    // the documentation's branch
	asked   time.Time // what the source said after this is new enough
}

func (s *session) pushes() bool {
	return s.project.Host == api.HostGit || host.KeepsPulls(s.project.Host)
}

// Sync brings the documentation's branch up to the source: a folder is imported, a repository fetched. It returns where
// the branch stands and whether it has moved.
func (h *Hub) Sync(ctx context.Context, p api.Project, progress func(text string)) (Tip, bool, error) {
	if progress == nil {
		progress = func(string) {}
	}
	r, err := h.repo(p.ID)
	if err != nil {
		return Tip{}, false, err
	}
	asked := time.Now()
	release, err := r.acquire(ctx)
	if err != nil {
		return Tip{}, false, err
	}
	defer release()
	s, head, changed, err := h.sync(ctx, r, p, asked, progress)
	if err != nil {
		return Tip{}, false, fmt.Errorf("sync %s: %w", p.ID, err)
	}
	return Tip{Branch: s.base, Base: s.base, Commit: head.String(), Repo: s.source.name}, changed, nil
}

// sync is called with the repository's turn, by somebody who asked for it at some time before. A damaged repository is
// put aside and what is sound of it is kept.
func (h *Hub) sync(
	ctx context.Context, r *repo, p api.Project, asked time.Time, progress func(string),
) (*session, plumbing.Hash, bool, error) {
	err := h.sound(ctx, r, p)
	for try := 1; err == nil; try++ {
		var s *session
		var head plumbing.Hash
		var changed bool
		s, head, changed, err = h.syncOnce(ctx, r, p, asked, progress)
		if errors.Is(err, ErrMoved) && h.shares(p) && try < 5 {
			err = nil
			continue // another node was faster: its state is brought, and the source read on top of it
		}
		if errors.Is(err, git.ErrDamaged) {
			break
		}
		return s, head, changed, r.damaged(err)
	}
	if err != nil && !errors.Is(err, git.ErrDamaged) && !errors.Is(err, errSeveralEnds) {
		return nil, plumbing.ZeroHash, false, r.damaged(err)
	}
	if errors.Is(err, git.ErrDamaged) {
		r.suspects(err)
	}
	h.o.Log.Warn("rebuilding the repository", "project", p.ID, "error", err)
	switch saveErr := h.mend(ctx, r, p, err); {
	case saveErr == nil:
	case errors.Is(err, errSeveralEnds):
		h.o.Log.Warn("the repository's history stays shallow until its source responds", "project", p.ID,
			"error", saveErr)
	default:
		return nil, plumbing.ZeroHash, false, errors.Join(err, saveErr)
	}
	r.suspect.Store(false)
	r.listed = nil
	s, head, _, err := h.syncOnce(ctx, r, p, time.Now(), progress)
	return s, head, true, r.damaged(err)
}

// errSeveralEnds says that a repository's history ends at several places: a rebuild by a version of Docent before may
// have left it so, with less history than it had.
var errSeveralEnds = errors.New("the history ends at several commits")

// sound says whether a repository may be used as it is. If damage was met, it is looked for in all that references
// reach; else the repository is checked once in its life.
func (h *Hub) sound(ctx context.Context, r *repo, p api.Project) error {
	st, err := h.open(r)
	if errors.Is(err, git.ErrNoRepository) {
		return nil
	}
	if errors.Is(err, git.ErrDamaged) {
		return err
	}
	if err != nil {
		return err
	}
	if r.suspect.Load() {
		if err := st.Check(); err != nil {
			return err
		}
		h.o.Log.Warn("damage not found again", "project", p.ID)
		if err := st.NoDamage(); err != nil {
			return err
		}
		r.suspect.Store(false)
	}
	if st.Verified() {
		return nil
	}
	if err := st.Verify(); err != nil {
		return err
	}
	r.packing.Lock()
	err = st.MendPacks(ctx, h.unlessPinned)
	r.packing.Unlock()
	if err != nil {
		return err
	}
	if ends, err := st.Ends(); err != nil {
		return err
	} else if ends > 1 && !h.shares(p) {
		if src, err := resolve(p); err == nil && src.kind == gitRemote {
			return errSeveralEnds
		}
	}
	return st.SetVerified()
}

// defaultFolderBranch is the branch of a folder's repository if the project names none.
const defaultFolderBranch = "main"

func (h *Hub) syncOnce(
	ctx context.Context, r *repo, p api.Project, asked time.Time, progress func(string),
) (*session, plumbing.Hash, bool, error) {
	none := plumbing.ZeroHash
	src, err := h.checked(p)
	if err != nil {
		return nil, none, false, err
	}
	st, err := h.openOrCreate(ctx, r, p)
	if err != nil {
		return nil, none, false, err
	}
	s := &session{project: p, source: src, repo: r, store: st, asked: asked}
	if src.kind == gitRemote {
		return h.fetch(ctx, s, progress)
	}
	if s.base = p.Branch; s.base == "" {
		s.base = defaultFolderBranch
	}
	if err := st.SetDefault(s.base); err != nil {
		return nil, none, false, err
	}
	old, err := st.Head(s.base)
	if err != nil {
		return nil, none, false, err
	}
	if l := r.listingOf(src.path, asked); l != nil && l.Base == s.base && l.Heads[s.base] == old {
		return s, old, false, nil // the folder was read since, and nothing was merged into it after that
	}
	if src.absent {
		return h.withoutFolder(s, old)
	}
	began := time.Now()
	if err := h.resumeWriteBack(ctx, s, old); err != nil {
		return nil, none, false, err
	}
	head, err := h.importFolder(ctx, s, old, progress)
	if err != nil {
		return nil, none, false, err
	}
	r.listed = &remote.Listing{Began: began, Source: src.path, Heads: map[string]plumbing.Hash{s.base: head}, Base: s.base}
	return s, head, head != old, nil
}

// openOrCreate opens a project's repository, if there is none after it was made. One that several nodes have is up to
// date then.
func (h *Hub) openOrCreate(ctx context.Context, r *repo, p api.Project) (*git.Store, error) {
	if h.shares(p) {
		return h.pull(ctx, r)
	}
	st, err := h.open(r)
	if !errors.Is(err, git.ErrNoRepository) {
		return st, err
	}
	if err := git.Create(h.path(p.ID), cmp.Or(p.Branch, defaultFolderBranch), h.disk); err != nil {
		return nil, fmt.Errorf("create the repository: %w", err)
	}
	return h.open(r)
}

// fetch brings the remote's branch. If the remote does not answer and the branch was fetched before, work goes on
// with that: pull requests of the built-in host need the remote only when they are merged.
func (h *Hub) fetch(ctx context.Context, s *session, progress func(string)) (*session, plumbing.Hash, bool, error) {
	none := plumbing.ZeroHash
	origin, err := h.dial(ctx, s.source, s.project)
	if err != nil {
		return nil, none, false, err
	}
	last := s.project.Branch
	if last == "" {
		if last, err = s.store.Default(); err != nil {
			return nil, none, false, err
		}
	}
	old, err := s.store.Head(last)
	if err != nil {
		return nil, none, false, err
	}
	haves, err := s.haves(old)
	if err != nil {
		return nil, none, false, err
	}
	if len(haves) == 0 {
		progress("fetching the repository")
		origin.Progress = progress
	}
	branch, head, err := s.bring(ctx, origin, s.project.Branch, haves)
	if errors.Is(err, git.ErrTooMuch) && old.IsZero() && len(haves) > 0 { // its newest commit alone, as of a first branch
		branch, head, err = s.bring(ctx, origin, s.project.Branch, nil)
	}
	if errors.Is(err, ErrTemporary) && !old.IsZero() && !s.pushes() {
		if _, err := s.store.Commit(old); err != nil {
			return nil, none, false, err
		}
		h.o.Log.Warn("source does not respond; using the last fetched version", "project", s.project.ID, "error", err)
		s.base = last
		return s, old, false, nil
	}
	if err != nil {
		return nil, none, false, err
	}
	s.base = branch
	if branch != last {
		if old, err = s.store.Head(branch); err != nil {
			return nil, none, false, err
		}
	}
	// What the reference is about to name must be whole: a commit without its tree is worth fetching again.
	c, err := s.store.Commit(head)
	if err != nil {
		return nil, none, false, err
	}
	if _, err := s.store.Tree(c.Tree); err != nil {
		return nil, none, false, err
	}
	if err := h.step("fetched"); err != nil {
		return nil, none, false, err
	}
	if head != old {
		if err := h.setRefs(ctx, s, refMove{"refs/heads/" + branch, old, head}); err != nil {
			return nil, none, false, err
		}
	}
	if err := s.store.SetDefault(branch); err != nil {
		return nil, none, false, err
	}
	if err := h.setRefs(ctx, s); err != nil { // HEAD, if it is another one
		return nil, none, false, err
	}
	return s, head, head != old, nil
}

// haves are commits that the source need not send again: the newest of a branch, or of the default branch if that is
// another one. What both have in common then stays one history.
func (s *session) haves(head plumbing.Hash) ([]plumbing.Hash, error) {
	if head.IsZero() {
		branch, err := s.store.Default()
		if err != nil {
			return nil, err
		}
		if head, err = s.store.Head(branch); err != nil || head.IsZero() {
			return nil, err
		}
	}
	return s.store.History(head, 64)
}

// bring brings a branch of the source into the store, without a reference to it. The source is asked only if the
// newest listing does not tell the branch's head, or the store does not have that. An empty name is the default
// branch.
func (s *session) bring(
	ctx context.Context, origin *remote.Remote, branch string, haves []plumbing.Hash,
) (string, plumbing.Hash, error) {
	l := s.repo.listingOf(s.source.url, s.asked)
	if l == nil && len(haves) > 0 {
		if l = origin.List(ctx); l != nil {
			s.repo.listed = l
		}
	}
	if l != nil {
		name := cmp.Or(branch, l.Base)
		head, ok := l.Heads[name]
		if !ok && name != "" {
			return "", plumbing.ZeroHash, remote.NoBranch(name)
		}
		if ok {
			if there, err := s.store.Connected(head); err != nil || there {
				return name, head, err
			}
		}
	}
	name, head, l, err := origin.Fetch(ctx, s.store, branch, haves)
	if l != nil {
		s.repo.listed = l
	}
	return name, head, err
}

// push moves a branch at the source. What was listed before stays true if the source says that it did, and is
// forgotten if it does not.
func (s *session) push(
	ctx context.Context, origin *remote.Remote, branch string, old, new plumbing.Hash, known ...plumbing.Hash,
) error {
	err := origin.Push(ctx, s.store, branch, old, new, known)
	switch l := s.repo.listed; {
	case err != nil:
		s.repo.listed = nil
	case l != nil:
		l.Heads[branch] = new
	}
	return err
}

// dial prepares to talk to a project's source.
func (h *Hub) dial(ctx context.Context, src source, p api.Project) (*remote.Remote, error) {
	return h.remotes.Dial(src.url, func(protocol string) (string, error) {
		// Over ssh the token of a code host opens nothing: then the key is the agent's, or one of the usual files.
		if protocol == "ssh" && host.KeepsPulls(p.Host) {
			return "", nil
		}
		return h.hosts.Secret(ctx, p)
	})
}

// listingOf returns the repository's listing of a source if it is no older than a question that was asked at some
// time.
func (r *repo) listingOf(source string, asked time.Time) *remote.Listing {
	if l := r.listed; l != nil && l.Source == source && l.Began.After(asked) && !r.suspect.Load() {
		return l
	}
	return nil
}
