package forge

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"docent/api"
	"docent/forge/failure"
	"docent/forge/git"
)

// Pull is a pull request of the built-in host.
func (h *Hub) Pull(ctx context.Context, id string) (api.PullRequest, error) {
	if !api.ValidID(api.PullPrefix, id) {
		return api.PullRequest{}, api.ErrNotFound
	}
	return h.pulls.Pull(ctx, id)
}

// Pulls lists a project's pull requests, newest first; of any state if state is empty.
func (h *Hub) Pulls(ctx context.Context, project api.ProjectID, state api.PullState) ([]api.PullRequest, error) {
	return h.pulls.Pulls(ctx, project, state)
}

// Diff is what a pull request changes: against the commit that it started from, or was merged into.
func (h *Hub) Diff(ctx context.Context, id string) (Diff, error) {
	_, st, ends, err := h.ends(ctx, id)
	if err != nil {
		return Diff{}, err
	}
	base, err := st.Commit(ends.base)
	if err != nil {
		return Diff{}, fmt.Errorf("diff of %s: %w", id, err)
	}
	head, err := st.Commit(ends.head)
	if err != nil {
		return Diff{}, fmt.Errorf("diff of %s: %w", id, err)
	}
	trees := [2]plumbing.Hash{base.Tree, head.Tree}
	if d, ok := h.diffs.Get(trees); ok {
		return d, nil
	}
	d, err := st.Diff(base.Tree, head.Tree)
	if err != nil {
		return Diff{}, fmt.Errorf("diff of %s: %w", id, err)
	}
	h.diffs.Add(trees, d)
	return d, nil
}

// CommitDiff is what one of a pull request's commits changes. What is none of them is api.ErrNotFound.
func (h *Hub) CommitDiff(ctx context.Context, id, commit string) (Diff, error) {
	none := &api.StateError{Kind: api.ErrNotFound, Reason: "this pull request has no such commit"}
	if !plumbing.IsHash(commit) {
		return Diff{}, none
	}
	_, st, ends, err := h.ends(ctx, id)
	if err != nil {
		return Diff{}, err
	}
	hash := plumbing.NewHash(commit)
	for _, part := range []struct {
		of   plumbing.Hash
		want bool
	}{{ends.head, true}, {ends.base, false}} {
		in, err := st.Contains(part.of, hash)
		if err != nil {
			return Diff{}, fmt.Errorf("commit of %s: %w", id, err)
		}
		if in != part.want {
			return Diff{}, none
		}
	}
	at, err := st.Commit(hash)
	if err != nil {
		return Diff{}, fmt.Errorf("commit of %s: %w", id, err)
	}
	if len(at.Parents) == 0 {
		return Diff{}, none // somebody merged another history into the branch
	}
	before, err := st.Commit(at.Parents[0])
	if err != nil {
		return Diff{}, fmt.Errorf("commit of %s: %w", id, err)
	}
	return st.Diff(before.Tree, at.Tree)
}

// diffsKept is how many diffs are remembered: the files of a large pull request are opened one after the other. One has
// at most some megabytes.
const diffsKept = 8

// Ends are the commit that a pull request builds on, and its newest one.
func (h *Hub) Ends(ctx context.Context, id string) (base, head string, err error) {
	_, _, ends, err := h.ends(ctx, id)
	return ends.base.String(), ends.head.String(), err
}

// PullFile is a file as a pull request has it, or as it was before. It fails with fs.ErrNotExist if that version has
// no such file.
func (h *Hub) PullFile(ctx context.Context, id, path string, before bool) ([]byte, error) {
	pull, st, ends, err := h.ends(ctx, id)
	if err != nil {
		return nil, err
	}
	r, err := h.repo(pull.Project)
	if err != nil {
		return nil, err
	}
	at := ends.head
	if before {
		at = ends.base
	}
	c, err := st.Commit(at)
	if err != nil {
		return nil, fmt.Errorf("%s of %s: %w", path, id, r.damaged(err))
	}
	tree := &Tree{repo: r, store: st, commit: at, root: c.Tree, max: h.o.MaxFile, byDir: map[plumbing.Hash][]git.Entry{}}
	return tree.Read(ctx, path)
}

// Commits lists a pull request's commits, oldest first.
func (h *Hub) Commits(ctx context.Context, id string) ([]Commit, error) {
	_, st, ends, err := h.ends(ctx, id)
	if err != nil {
		return nil, err
	}
	// What the base has is not the pull request's, even if the branch took it in.
	before, err := st.History(ends.base, 2000)
	if err != nil {
		return nil, fmt.Errorf("commits of %s: %w", id, err)
	}
	had := map[plumbing.Hash]bool{}
	for _, b := range before {
		had[b] = true
	}
	shallow, err := st.Shallow()
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
		c, err := st.Commit(hash)
		if err != nil {
			return nil, fmt.Errorf("commits of %s: %w", id, err)
		}
		out = append(out, Commit{Hash: hash.String(), Subject: oneLine(c.Subject()), Author: c.Author, Time: c.When})
		if !shallow[hash] {
			queue = append(queue, c.Parents...)
		}
	}
	slices.Reverse(out)
	return out, nil
}

// The ends of a pull request: the commit it builds on and its newest one.
type ends struct{ base, head plumbing.Hash }

// Where the ends are kept once a pull request is merged or closed: its branches may move on or go.
func endRef(id, which string) string { return "refs/docent/pulls/" + id + "/" + which }

func (h *Hub) ends(ctx context.Context, id string) (api.PullRequest, *git.Store, ends, error) {
	pull, err := h.Pull(ctx, id)
	if err != nil {
		return api.PullRequest{}, nil, ends{}, err
	}
	r, err := h.repo(pull.Project)
	if err != nil {
		return api.PullRequest{}, nil, ends{}, err
	}
	st, err := h.currentFor(ctx, r)
	if err != nil {
		return api.PullRequest{}, nil, ends{}, err
	}
	e, err := endsOf(st, pull)
	if err = r.damaged(err); err != nil {
		return api.PullRequest{}, nil, ends{}, fmt.Errorf("pull request %s: %w", id, err)
	}
	return pull, st, e, nil
}

func endsOf(s *git.Store, pull api.PullRequest) (ends, error) {
	if pull.State != api.PullOpen {
		base, err := s.Ref(endRef(pull.ID, "base"))
		if err != nil {
			return ends{}, err
		}
		head, err := s.Ref(endRef(pull.ID, "head"))
		if err != nil {
			return ends{}, err
		}
		if !base.IsZero() && !head.IsZero() {
			return ends{base, head}, nil
		}
	}
	head, err := s.Head(pull.Head)
	if err != nil {
		return ends{}, err
	}
	if head.IsZero() {
		return ends{}, gone(s, pull.Head)
	}
	base, err := s.Head(pull.Base)
	if err != nil {
		return ends{}, err
	}
	if base.IsZero() {
		return ends{}, gone(s, pull.Base)
	}
	fork, err := s.MergeBase(base, head)
	if err != nil {
		return ends{}, err
	}
	return ends{fork, head}, nil
}

// gone says what there is to say of a branch that is not there.
func gone(s *git.Store, branch string) error {
	lost, err := s.Lost()
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
func (h *Hub) keepEnds(ctx context.Context, s *session, id string, e ends) error {
	var moves []refMove
	for _, r := range []struct {
		name string
		hash plumbing.Hash
	}{{"base", e.base}, {"head", e.head}} {
		old, err := s.store.Ref(endRef(id, r.name))
		if err != nil {
			return err
		}
		if old != r.hash {
			moves = append(moves, refMove{endRef(id, r.name), old, r.hash})
		}
	}
	return h.setRefs(ctx, s, moves...)
}

// Merge brings a pull request into its base branch, and from there into the source: a folder's files are written, a
// repository is pushed to. A pull request that is merged already stays as it is.
func (h *Hub) Merge(ctx context.Context, id string) (api.PullRequest, error) {
	h.steps.RLock()
	defer h.steps.RUnlock()
	pull, r, p, release, err := h.lockPull(ctx, id)
	if err != nil {
		return api.PullRequest{}, err
	}
	merged, err := func() (api.PullRequest, error) {
		defer release()
		for try := 1; ; try++ {
			var merged api.PullRequest
			var err error
			if busy := h.alone(ctx, p, func() { merged, err = h.merge(ctx, r, p, pull.ID) }); busy != nil {
				return pull, busy
			}
			err = r.damaged(err)
			if !errors.Is(err, ErrMoved) || try == 3 {
				return merged, err
			}
			// Somebody was faster at the source: merge with what is there now.
		}
	}()
	if merged.State == api.PullMerged {
		h.turned()
		if h.o.Merged != nil {
			h.o.Merged(p.ID)
		}
	}
	if err != nil {
		return merged, fmt.Errorf("merge %s: %w", id, asAnswer(err))
	}
	return merged, nil
}

// asAnswer gives what the source has against a merge the form of an answer to the person who asked for it.
func asAnswer(err error) error {
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

// lockPull finds a pull request with its project and takes the repository's turn.
func (h *Hub) lockPull(ctx context.Context, id string) (api.PullRequest, *repo, api.Project, func(), error) {
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
	if s.source.absent {
		return pull, notMounted(s.source.path)
	}
	if pull.Base != s.base {
		return pull, &api.StateError{Kind: api.ErrConflict,
			Reason: fmt.Sprintf("the pull request is meant for the branch %q, but the documentation is on %q now", pull.Base,
				s.base)}
	}
	head, err := s.store.Head(pull.Head)
	if err != nil {
		return pull, err
	}
	if head.IsZero() {
		return pull, &api.StateError{Kind: api.ErrConflict, Reason: "not merged: " + gone(s.store, pull.Head).Error()}
	}
	if in, err := s.store.Contains(base, head); err != nil {
		return pull, err
	} else if in { // an earlier attempt, or somebody else, has merged it
		return h.recordMerge(ctx, s, pull, base)
	}
	merged, fork, err := h.writeMerge(ctx, s, pull, base, head)
	if err != nil {
		return pull, err
	}
	kept, err := h.deliverMerge(ctx, s, base, merged, fork)
	if err != nil {
		return pull, err
	}
	if pull, err = h.recordMerge(ctx, s, pull, merged); err != nil {
		return pull, err
	}
	if len(kept) > 0 {
		return pull, &api.StateError{Kind: api.ErrConflict, Reason: "merged, but files of the folder were changed " +
			"in the same moment and stay as they are: " + failure.Names(kept)}
	}
	return pull, nil
}

// writeMerge stores the commit that merges a pull request into its base, and names the commit that both build on.
func (h *Hub) writeMerge(
	ctx context.Context, s *session, pull api.PullRequest, base, head plumbing.Hash,
) (merged, fork plumbing.Hash, err error) {
	st := s.store
	fork, err = st.MergeBase(base, head)
	if errors.Is(err, git.ErrUnrelated) {
		return merged, fork, fmt.Errorf("%w: %w", ErrMergeConflict, err)
	}
	if err != nil {
		return merged, fork, err
	}
	var at [3]git.Commit
	for i, hash := range []plumbing.Hash{fork, base, head} {
		if at[i], err = st.Commit(hash); err != nil {
			return merged, fork, err
		}
	}
	tree, objects, err := st.MergeTrees(at[0].Tree, at[1].Tree, at[2].Tree)
	if err != nil {
		return merged, fork, err
	}
	author := ownName
	if a := s.project.Pulls.Author; a != "" {
		author = a
	}
	message := fmt.Sprintf("Merge pull request #%d from %s\n\n%s\n", pull.Number, pull.Head, pull.Title)
	c := git.NewCommit(tree, []plumbing.Hash{base, head}, author, h.o.Now(), message)
	if err := st.Write(append(objects, c)); err != nil {
		return merged, fork, err
	}
	if err := h.keepEnds(ctx, s, pull.ID, ends{fork, head}); err != nil {
		return merged, fork, err
	}
	return c.Hash, fork, h.step("merge written")
}

// deliverMerge moves the base branch to a merge, first where others see it, and writes it back to a folder. It names
// the files of the folder that were changed meanwhile and stay as they are.
func (h *Hub) deliverMerge(
	ctx context.Context, s *session, base, merged, fork plumbing.Hash,
) (kept []string, err error) {
	if s.source.kind == gitRemote {
		origin, err := h.dial(ctx, s.source, s.project)
		if err != nil {
			return nil, err
		}
		if err := s.push(ctx, origin, s.base, base, merged, base, fork); err != nil {
			return nil, err
		}
		if err := h.step("merge pushed"); err != nil {
			return nil, err
		}
	} else if err := h.intendWriteBack(s, base, merged); err != nil {
		return nil, err
	}
	if err := h.setRefs(ctx, s, refMove{"refs/heads/" + s.base, base, merged}); err != nil {
		return nil, err
	}
	if err := h.step("merge set"); err != nil {
		return nil, err
	}
	if s.source.kind != gitRemote {
		if kept, err = h.writeBack(ctx, s, merged); err != nil {
			return nil, err // the intent stays: the next sync goes on with it
		}
	}
	return kept, h.step("merge back")
}

// recordMerge records that a pull request is merged.
func (h *Hub) recordMerge(
	ctx context.Context, s *session, pull api.PullRequest, as plumbing.Hash,
) (api.PullRequest, error) {
	// If an earlier attempt got as far as the branch, its merge commit is found again.
	list, err := s.store.History(as, 1000)
	if err != nil {
		return pull, err
	}
	head, err := s.store.Head(pull.Head)
	if err != nil {
		return pull, err
	}
	for _, hash := range list {
		c, err := s.store.Commit(hash)
		if err != nil {
			return pull, err
		}
		if len(c.Parents) == 2 && c.Parents[1] == head {
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
	pull, r, p, release, err := h.lockPull(ctx, id)
	if err != nil {
		return api.PullRequest{}, err
	}
	defer release()
	closed := pull
	if busy := h.alone(ctx, p, func() { closed, err = h.close(ctx, r, p, id) }); busy != nil {
		return pull, busy
	}
	return closed, err
}

// close does it for somebody who has the repository's turn.
func (h *Hub) close(ctx context.Context, r *repo, p api.Project, id string) (api.PullRequest, error) {
	pull, err := h.pulls.Pull(ctx, id)
	if err != nil {
		return api.PullRequest{}, err
	}
	switch pull.State {
	case api.PullClosed:
		return pull, nil
	case api.PullMerged:
		return pull, &api.StateError{Kind: api.ErrConflict, Reason: "the pull request is merged"}
	}
	st, err := h.opened(ctx, r, p)
	if err != nil {
		return pull, err
	}
	if e, err := endsOf(st, pull); err == nil { // a branch that is gone must not keep its pull request open
		if err := h.keepEnds(ctx, &session{project: p, repo: r, store: st}, pull.ID, e); err != nil {
			return pull, fmt.Errorf("close %s: %w", id, err)
		}
	}
	now := h.o.Now().UTC()
	done := pull
	done.State, done.UpdatedAt, done.ClosedAt = api.PullClosed, now, &now
	if done, err = h.pulls.UpdatePull(ctx, done); err != nil {
		return pull, fmt.Errorf("close %s: %w", id, err)
	}
	h.turned()
	return done, nil
}

func (h *Hub) turned() {
	if h.o.Turned != nil {
		h.o.Turned()
	}
}
