package forge

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"

	"docent/api"
)

// Pull is a pull request of the built-in host.
func (h *Hub) Pull(ctx context.Context, id string) (api.PullRequest, error) {
	if !api.ValidID(api.PullPrefix, id) {
		return api.PullRequest{}, api.ErrNotFound
	}
	return h.pulls.Pull(ctx, id)
}

// Pulls lists a project's pull requests, newest first; of any state where state is empty.
func (h *Hub) Pulls(ctx context.Context, project api.ProjectID, state api.PullState) ([]api.PullRequest, error) {
	return h.pulls.Pulls(ctx, project, state)
}

// Diff is what a pull request changes: against the commit that it started from, or was merged into.
func (h *Hub) Diff(ctx context.Context, id string) (Diff, error) {
	_, st, ends, err := h.ends(ctx, id)
	if err != nil {
		return Diff{}, err
	}
	base, err := st.commit(ends.base)
	if err != nil {
		return Diff{}, fmt.Errorf("diff of %s: %w", id, err)
	}
	head, err := st.commit(ends.head)
	if err != nil {
		return Diff{}, fmt.Errorf("diff of %s: %w", id, err)
	}
	d, err := st.diff(base.tree, head.tree)
	if err != nil {
		return Diff{}, fmt.Errorf("diff of %s: %w", id, err)
	}
	return d, nil
}

// Commits lists a pull request's commits, oldest first.
func (h *Hub) Commits(ctx context.Context, id string) ([]Commit, error) {
	_, st, ends, err := h.ends(ctx, id)
	if err != nil {
		return nil, err
	}
	// What the base has is not the pull request's, even where the branch took it in.
	before, err := st.history(ends.base, 2000)
	if err != nil {
		return nil, fmt.Errorf("commits of %s: %w", id, err)
	}
	had := map[plumbing.Hash]bool{}
	for _, b := range before {
		had[b] = true
	}
	shallow, err := st.shallow()
	if err != nil {
		return nil, fmt.Errorf("commits of %s: %w", id, err)
	}
	var out []Commit
	queue := []plumbing.Hash{ends.head}
	for len(queue) > 0 && len(out) < 1000 {
		hash := queue[0]
		queue = queue[1:]
		if had[hash] {
			continue
		}
		had[hash] = true
		c, err := st.commit(hash)
		if err != nil {
			return nil, fmt.Errorf("commits of %s: %w", id, err)
		}
		out = append(out, Commit{Hash: hash.String(), Subject: oneLine(c.subject()), Author: c.author, Time: c.when})
		if !shallow[hash] {
			queue = append(queue, c.parents...)
		}
	}
	slices.Reverse(out)
	return out, nil
}

// The ends of a pull request: the commit it builds on and its newest one.
type ends struct{ base, head plumbing.Hash }

// Where the ends are kept once a pull request is merged or closed: its branches may move on or go.
func endRef(id, which string) string { return "refs/docent/pulls/" + id + "/" + which }

func (h *Hub) ends(ctx context.Context, id string) (api.PullRequest, *store, ends, error) {
	pull, err := h.Pull(ctx, id)
	if err != nil {
		return api.PullRequest{}, nil, ends{}, err
	}
	r, err := h.repo(pull.Project)
	if err != nil {
		return api.PullRequest{}, nil, ends{}, err
	}
	st, err := h.open(r)
	if err != nil {
		return api.PullRequest{}, nil, ends{}, err
	}
	e, err := st.ends(pull)
	if err = r.damaged(err); err != nil {
		return api.PullRequest{}, nil, ends{}, fmt.Errorf("pull request %s: %w", id, err)
	}
	return pull, st, e, nil
}

func (s *store) ends(pull api.PullRequest) (ends, error) {
	if pull.State != api.PullOpen {
		base, err := s.ref(endRef(pull.ID, "base"))
		if err != nil {
			return ends{}, err
		}
		head, err := s.ref(endRef(pull.ID, "head"))
		if err != nil {
			return ends{}, err
		}
		if !base.IsZero() && !head.IsZero() {
			return ends{base, head}, nil
		}
	}
	head, err := s.head(pull.Head)
	if err != nil {
		return ends{}, err
	}
	if head.IsZero() {
		return ends{}, s.gone(pull.Head)
	}
	base, err := s.head(pull.Base)
	if err != nil {
		return ends{}, err
	}
	if base.IsZero() {
		return ends{}, s.gone(pull.Base)
	}
	fork, err := s.mergeBase(base, head)
	if err != nil {
		return ends{}, err
	}
	return ends{fork, head}, nil
}

// gone says what there is to say of a branch that is not there.
func (s *store) gone(branch string) error {
	lost, err := s.lost()
	if err != nil {
		return err
	}
	reason := fmt.Sprintf("the branch %q of this pull request is gone", branch)
	if why, ok := lost["refs/heads/"+branch]; ok {
		reason += ": " + why
	}
	return &api.StateError{Kind: api.ErrNotFound, Reason: reason}
}

// keepEnds makes the ends of a pull request stay what they are now.
func (s *store) keepEnds(id string, e ends) error {
	for _, r := range []struct {
		name string
		hash plumbing.Hash
	}{{"base", e.base}, {"head", e.head}} {
		old, err := s.ref(endRef(id, r.name))
		if err != nil {
			return err
		}
		if old == r.hash {
			continue
		}
		if err := s.setRef(endRef(id, r.name), old, r.hash); err != nil {
			return err
		}
	}
	return nil
}

// mergeBase is the newest commit that two commits have in common. Where the history is cut off before one, it is
// errUnrelated.
func (s *store) mergeBase(a, b plumbing.Hash) (plumbing.Hash, error) {
	shallow, err := s.shallow()
	if err != nil {
		return plumbing.ZeroHash, err
	}
	const fromA, fromB = 1, 2
	marks := map[plumbing.Hash]int{a: fromA}
	marks[b] |= fromB
	type item struct{ c commit }
	var queue []item
	load := func(h plumbing.Hash) error {
		c, err := s.commit(h)
		if err == nil {
			queue = append(queue, item{c})
		}
		return err
	}
	if err := load(a); err != nil {
		return plumbing.ZeroHash, err
	}
	if a != b {
		if err := load(b); err != nil {
			return plumbing.ZeroHash, err
		}
	}
	for steps := 0; len(queue) > 0 && steps < 100_000; steps++ {
		newest := 0
		for i := range queue {
			if queue[i].c.when.After(queue[newest].c.when) {
				newest = i
			}
		}
		c := queue[newest].c
		queue = slices.Delete(queue, newest, newest+1)
		if marks[c.hash] == fromA|fromB {
			return c.hash, nil
		}
		if shallow[c.hash] {
			continue
		}
		for _, p := range c.parents {
			if marks[p]&marks[c.hash] == marks[c.hash] {
				continue
			}
			marks[p] |= marks[c.hash]
			if err := load(p); err != nil {
				return plumbing.ZeroHash, err
			}
		}
	}
	return plumbing.ZeroHash, errUnrelated
}

var errUnrelated = errors.New("the branches have no commit in common")

// Merge brings a pull request into its base branch, and from there into the source: a folder's files are written, a
// repository is pushed to. A pull request that is merged already stays as it is.
func (h *Hub) Merge(ctx context.Context, id string) (api.PullRequest, error) {
	h.steps.RLock()
	defer h.steps.RUnlock()
	pull, r, p, release, err := h.claim(ctx, id)
	if err != nil {
		return api.PullRequest{}, err
	}
	merged, err := func() (api.PullRequest, error) {
		defer release()
		for try := 1; ; try++ {
			merged, err := h.merge(ctx, r, p, pull.ID)
			err = r.damaged(err)
			if !errors.Is(err, ErrMoved) || try == 3 {
				return merged, err
			}
			// Somebody was faster at the source: merge with what is there now.
		}
	}()
	if merged.State == api.PullMerged && h.o.Merged != nil {
		h.o.Merged(p.ID)
	}
	if err != nil {
		return merged, fmt.Errorf("merge %s: %w", id, spoken(err))
	}
	return merged, nil
}

// spoken gives what the source has against a merge the form of an answer to the person who asked for it.
func spoken(err error) error {
	var said *api.StateError
	if errors.As(err, &said) || errors.Is(err, ErrMergeConflict) {
		return err
	}
	for _, kind := range []error{ErrMisconfigured, ErrTemporary, ErrMoved, ErrRefused} {
		if errors.Is(err, kind) {
			return fmt.Errorf("%w: %w", &api.StateError{Kind: api.ErrConflict, Reason: "not merged: " + err.Error()}, err)
		}
	}
	return err
}

// claim finds a pull request with its project and takes the repository's turn.
func (h *Hub) claim(ctx context.Context, id string) (api.PullRequest, *repo, api.Project, func(), error) {
	pull, err := h.Pull(ctx, id)
	if err != nil {
		return api.PullRequest{}, nil, api.Project{}, nil, err
	}
	p, err := h.pulls.Project(ctx, pull.Project)
	if err != nil {
		return api.PullRequest{}, nil, api.Project{}, nil, err
	}
	r, err := h.repo(p.ID)
	if err != nil {
		return api.PullRequest{}, nil, api.Project{}, nil, err
	}
	release, err := r.acquire(ctx)
	if err != nil {
		return api.PullRequest{}, nil, api.Project{}, nil, err
	}
	return pull, r, p, release, nil
}

func (h *Hub) merge(ctx context.Context, r *repo, p api.Project, id string) (api.PullRequest, error) {
	pull, err := h.pulls.Pull(ctx, id) // again: it may have changed while we waited
	if err != nil {
		return api.PullRequest{}, err
	}
	switch pull.State {
	case api.PullMerged:
		return pull, nil
	case api.PullClosed:
		return pull, &api.StateError{Kind: api.ErrConflict, Reason: "the pull request is closed"}
	}
	s, base, _, err := h.sync(ctx, r, p, time.Now(), func(string) {})
	if err != nil {
		return pull, err
	}
	if pull.Base != s.base {
		return pull, &api.StateError{Kind: api.ErrConflict, Reason: fmt.Sprintf("the pull request is meant for the branch %q, but the documentation is on %q now", pull.Base, s.base)}
	}
	st := s.store
	head, err := st.head(pull.Head)
	if err != nil {
		return pull, err
	}
	if head.IsZero() {
		return pull, &api.StateError{Kind: api.ErrConflict, Reason: "not merged: " + st.gone(pull.Head).Error()}
	}
	if in, err := st.contains(base, head); err != nil {
		return pull, err
	} else if in { // an earlier attempt, or somebody else, has merged it
		return h.settle(ctx, s, pull, base)
	}
	fork, err := st.mergeBase(base, head)
	if errors.Is(err, errUnrelated) {
		return pull, fmt.Errorf("%w: %w", ErrMergeConflict, err)
	}
	if err != nil {
		return pull, err
	}
	var at [3]commit
	for i, hash := range []plumbing.Hash{fork, base, head} {
		if at[i], err = st.commit(hash); err != nil {
			return pull, err
		}
	}
	tree, objects, err := st.mergeTrees(at[0].tree, at[1].tree, at[2].tree)
	if err != nil {
		return pull, err
	}
	message := fmt.Sprintf("Merge pull request #%d from %s\n\n%s\n", pull.Number, pull.Head, pull.Title)
	c := newObject(plumbing.CommitObject, encodeCommit(tree, []plumbing.Hash{base, head}, h.o.Author, h.o.Now(), message))
	if err := st.write(append(objects, c)); err != nil {
		return pull, err
	}
	if err := st.keepEnds(pull.ID, ends{fork, head}); err != nil {
		return pull, err
	}
	if err := h.at("merge written"); err != nil {
		return pull, err
	}
	if s.source.kind == gitRemote {
		remote, err := h.dial(ctx, s.source, p)
		if err != nil {
			return pull, err
		}
		if err := s.push(ctx, remote, s.base, base, c.hash, base, fork); err != nil {
			return pull, err
		}
		if err := h.at("merge pushed"); err != nil {
			return pull, err
		}
	} else if err := h.intendWriteBack(s, base, c.hash); err != nil {
		return pull, err
	}
	if err := st.setRef("refs/heads/"+s.base, base, c.hash); err != nil {
		return pull, err
	}
	if err := h.at("merge set"); err != nil {
		return pull, err
	}
	var clash error
	if s.source.kind != gitRemote {
		var kept []string
		if kept, err = h.writeBack(ctx, s, c.hash); err != nil {
			return pull, err // the intent stays: the next sync goes on with it
		}
		if len(kept) > 0 {
			clash = &api.StateError{Kind: api.ErrConflict, Reason: "merged, but files of the folder were changed in the same moment and stay as they are: " + names(kept)}
		}
	}
	if err := h.at("merge back"); err != nil {
		return pull, err
	}
	if pull, err = h.settle(ctx, s, pull, c.hash); err != nil {
		return pull, err
	}
	return pull, clash
}

// settle records that a pull request is merged.
func (h *Hub) settle(ctx context.Context, s *site, pull api.PullRequest, as plumbing.Hash) (api.PullRequest, error) {
	// Where an earlier attempt got as far as the branch, its merge commit is found again.
	list, err := s.store.history(as, 1000)
	if err != nil {
		return pull, err
	}
	head, err := s.store.head(pull.Head)
	if err != nil {
		return pull, err
	}
	for _, hash := range list {
		c, err := s.store.commit(hash)
		if err != nil {
			return pull, err
		}
		if len(c.parents) == 2 && c.parents[1] == head {
			as = hash
			break
		}
	}
	now := h.o.Now().UTC()
	done := pull
	done.State, done.MergedAs, done.UpdatedAt, done.ClosedAt = api.PullMerged, as.String(), now, &now
	if done, err = h.pulls.UpdatePull(ctx, done); err != nil {
		return pull, fmt.Errorf("record the merge: %w", err)
	}
	return done, nil
}

// Close ends a pull request without merging it. Its branch stays. One that is closed already stays as it is.
func (h *Hub) Close(ctx context.Context, id string) (api.PullRequest, error) {
	h.steps.RLock()
	defer h.steps.RUnlock()
	pull, r, _, release, err := h.claim(ctx, id)
	if err != nil {
		return api.PullRequest{}, err
	}
	defer release()
	if pull, err = h.pulls.Pull(ctx, id); err != nil {
		return api.PullRequest{}, err
	}
	switch pull.State {
	case api.PullClosed:
		return pull, nil
	case api.PullMerged:
		return pull, &api.StateError{Kind: api.ErrConflict, Reason: "the pull request is merged"}
	}
	st, err := h.open(r)
	if err != nil {
		return pull, err
	}
	if e, err := st.ends(pull); err == nil { // a branch that is gone must not keep its pull request open
		if err := st.keepEnds(pull.ID, e); err != nil {
			return pull, fmt.Errorf("close %s: %w", id, err)
		}
	}
	now := h.o.Now().UTC()
	done := pull
	done.State, done.UpdatedAt, done.ClosedAt = api.PullClosed, now, &now
	if done, err = h.pulls.UpdatePull(ctx, done); err != nil {
		return pull, fmt.Errorf("close %s: %w", id, err)
	}
	return done, nil
}

// mergeTrees brings what changed from base to theirs into ours. Files that both sides changed are merged by lines.
func (s *store) mergeTrees(base, ours, theirs plumbing.Hash) (plumbing.Hash, []object, error) {
	m := &treeMerge{store: s, met: walk{store: s}}
	hash, err := m.merge("", base, ours, theirs)
	if err != nil {
		return plumbing.ZeroHash, nil, err
	}
	if len(m.conflicts) > 0 {
		return plumbing.ZeroHash, nil, conflict(m.conflicts)
	}
	if hash.IsZero() {
		o := newObject(plumbing.TreeObject, nil)
		hash, m.objects = o.hash, append(m.objects, o)
	}
	return hash, m.objects, nil
}

func conflict(files []string) error { return &ConflictError{Files: files} }

func names(files []string) string {
	const most = 20
	if len(files) <= most {
		return strings.Join(files, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(files[:most], ", "), len(files)-most)
}

type treeMerge struct {
	store     *store
	met       walk // met on the way
	objects   []object
	conflicts []string
}

func (m *treeMerge) merge(prefix string, base, ours, theirs plumbing.Hash) (plumbing.Hash, error) {
	switch {
	case ours == theirs, base == theirs:
		return ours, nil
	case base == ours:
		return theirs, nil
	}
	sides := map[string]*[3]entry{}
	var order []string
	for i, hash := range []plumbing.Hash{base, ours, theirs} {
		if hash.IsZero() {
			continue
		}
		entries, err := m.store.tree(hash)
		if err != nil {
			return plumbing.ZeroHash, err
		}
		for _, e := range entries {
			if sides[e.name] == nil {
				sides[e.name] = new([3]entry)
				order = append(order, e.name)
				if err := m.met.add(prefix+e.name, e); err != nil {
					return plumbing.ZeroHash, err
				}
			}
			sides[e.name][i] = e
		}
	}
	slices.Sort(order)
	var out []entry
	for _, name := range order {
		e, err := m.entry(prefix+name, *sides[name])
		if err != nil {
			return plumbing.ZeroHash, err
		}
		if !e.hash.IsZero() {
			e.name = name
			out = append(out, e)
		}
	}
	if len(out) == 0 {
		return plumbing.ZeroHash, nil
	}
	o := newObject(plumbing.TreeObject, encodeTree(out))
	m.objects = append(m.objects, o)
	return o.hash, nil
}

// entry merges one name; the zero entry where nothing stays there.
func (m *treeMerge) entry(path string, e [3]entry) (entry, error) {
	base, ours, theirs := e[0], e[1], e[2]
	switch {
	case ours == theirs, base == theirs:
		return ours, nil
	case base == ours:
		return theirs, nil
	}
	folders, files := true, true
	for _, x := range e {
		folders = folders && (x.hash.IsZero() || x.isDir())
		files = files && x.isFile()
	}
	if folders { // one that is not there is empty
		hash, err := m.merge(path+"/", base.hash, ours.hash, theirs.hash)
		return entry{mode: filemode.Dir, hash: hash}, err
	}
	if !files {
		m.conflicts = append(m.conflicts, path)
		return entry{}, nil
	}
	var text [3][]byte
	for i, x := range e {
		var err error
		if text[i], err = m.store.read(plumbing.BlobObject, x.hash); err != nil {
			return entry{}, err
		}
	}
	both, ok := merge3(text[0], text[1], text[2])
	if !ok {
		m.conflicts = append(m.conflicts, path)
		return entry{}, nil
	}
	o := newObject(plumbing.BlobObject, both)
	m.objects = append(m.objects, o)
	mode := ours.mode
	if mode == base.mode {
		mode = theirs.mode
	}
	return entry{mode: mode, hash: o.hash}, nil
}
