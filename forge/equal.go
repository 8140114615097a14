package forge

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"

	"docent/api"
	"docent/forge/failure"
	"docent/forge/git"
)

const (
	// branchFolder is where jobs have their branches, unless they were given one.
	branchFolder = "docent"
	// maxCompared is how many pull requests are compared with a publication, the newest.
	maxCompared = 300
)

// equalPull is an open pull request of the built-in host that changes the same as a publication, if there is one.
func (h *Hub) equalPull(ctx context.Context, st *git.Store, c proposal) (Published, bool, error) {
	if !c.Join {
		return Published{}, false, nil
	}
	from, err := st.Commit(c.parent)
	if err != nil {
		return Published{}, false, err
	}
	digest, err := st.DigestOf(from.Tree, c.Changes)
	if err != nil {
		return Published{}, false, err
	}
	open, err := h.pulls.EqualPulls(ctx, c.Project.ID, digest, maxCompared)
	if err != nil {
		return Published{}, false, err
	}
	for _, pull := range open {
		if pull.Head == c.Branch {
			continue
		}
		head, err := st.Head(pull.Head)
		if err != nil {
			return Published{}, false, err
		}
		if pull.Change == "" { // of before digests were kept: it is compared this once
			if err := h.digestPull(ctx, st, pull, head); err != nil {
				return Published{}, false, err
			}
		}
		if pull.Base != c.Base {
			continue
		}
		if same, err := c.sameAs(st, head); err != nil || !same {
			if err != nil {
				return Published{}, false, err
			}
			continue
		}
		return Published{Commit: head.String(), Number: pull.Number, Link: PullLink(pull.ID), Joined: pull.Head}, true, nil
	}
	return Published{}, false, nil
}

// unknownChange is the digest of a pull request whose change cannot be read.
const unknownChange = "unknown"

// digestPull stores the digest of a pull request's change.
func (h *Hub) digestPull(ctx context.Context, st *git.Store, pull api.PullRequest, head plumbing.Hash) error {
	pull.Change = unknownChange
	base, err := st.Head(pull.Base)
	if err != nil {
		return err
	}
	if !head.IsZero() && !base.IsZero() {
		digest, err := changeOf(st, base, head)
		if notWhole(err) != nil {
			return err
		}
		pull.Change = cmp.Or(digest, unknownChange)
	}
	_, err = h.pulls.UpdatePull(ctx, pull)
	return err
}

// changeOf is a digest of what a branch changes since it left its base.
func changeOf(st *git.Store, base, head plumbing.Hash) (string, error) {
	fork, err := st.MergeBase(base, head)
	if err != nil {
		return "", err
	}
	var trees [2]plumbing.Hash
	for i, hash := range []plumbing.Hash{fork, head} {
		c, err := st.Commit(hash)
		if err != nil {
			return "", err
		}
		trees[i] = c.Tree
	}
	return st.Digest(trees[0], trees[1])
}

// equalHosted is the same if the code host keeps the pull requests: the branches of jobs that are known here are
// compared, and of an equal one the host is asked how it stands.
func (h *Hub) equalHosted(ctx context.Context, s *session, c proposal) (Published, bool, error) {
	if !c.Join {
		return Published{}, false, nil
	}
	branches, err := s.store.Branches(branchFolder)
	if err != nil {
		return Published{}, false, err
	}
	branches = slices.DeleteFunc(branches, func(name string) bool { return name == c.Branch })
	for i := len(branches) - 1; i >= max(0, len(branches)-maxCompared); i-- { // jobs' ids are in the order of time
		branch := branches[i]
		head, err := s.store.Head(branch)
		if err != nil {
			return Published{}, false, err
		}
		if same, err := c.sameAs(s.store, head); err != nil || !same {
			if err != nil {
				return Published{}, false, err
			}
			continue
		}
		if head, err = h.fetchHead(ctx, s, branch, c.parent); err != nil { // others may have added to it
			return Published{}, false, err
		}
		if same, err := c.sameAs(s.store, head); err != nil || !same {
			if err != nil {
				return Published{}, false, err
			}
			continue
		}
		_, pull, err := h.hosts.Find(ctx, c.Project, branch, c.Base, true)
		if err != nil {
			return Published{}, false, err
		}
		if pull.Number != 0 && pull.State == api.PullOpen && pull.Base == c.Base {
			return Published{Commit: head.String(), Number: pull.Number, Link: pull.Link, Joined: branch}, true, nil
		}
	}
	return Published{}, false, nil
}

// sameAs reports whether a branch with this head changes the same as the publication: merged into the commit that the
// publication builds on, it gives the same files.
func (c proposal) sameAs(st *git.Store, head plumbing.Hash) (bool, error) {
	if head.IsZero() || head == c.parent {
		return false, nil
	}
	of, err := st.Commit(head)
	if err != nil {
		return false, notWhole(err)
	}
	fork, err := st.MergeBase(c.parent, head)
	if err != nil {
		return false, notWhole(err)
	}
	if fork == c.parent { // nothing is to be merged
		return of.Tree == c.tree, nil
	}
	var at [2]git.Commit
	for i, hash := range []plumbing.Hash{fork, c.parent} {
		if at[i], err = st.Commit(hash); err != nil {
			return false, notWhole(err)
		}
	}
	tree, _, err := st.MergeTrees(at[0].Tree, at[1].Tree, of.Tree)
	if _, ok := errors.AsType[*failure.ConflictError](err); ok {
		return false, nil
	}
	return tree == c.tree, notWhole(err)
}

// notWhole leaves out what cannot be compared: a branch whose history is not all here, or that is damaged, is another
// change. Its own job mends it.
func notWhole(err error) error {
	if errors.Is(err, git.ErrUnrelated) || errors.Is(err, git.ErrDamaged) {
		return nil
	}
	return err
}
