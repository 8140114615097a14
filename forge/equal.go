package forge

import (
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
	// mostCompared is how many pull requests are compared with a publication, the newest.
	mostCompared = 300
)

// equalPull is an open pull request of the built-in host that changes the same as a publication, if there is one.
func (h *Hub) equalPull(ctx context.Context, st *git.Store, c proposal) (Published, bool, error) {
	if !c.Join {
		return Published{}, false, nil
	}
	open, err := h.pulls.Pulls(ctx, c.Project.ID, api.PullOpen)
	if err != nil {
		return Published{}, false, err
	}
	for _, pull := range open[:min(len(open), mostCompared)] {
		if pull.Base != c.Base || pull.Head == c.Branch {
			continue
		}
		head, err := st.Head(pull.Head)
		if err != nil {
			return Published{}, false, err
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

// equalHosted is the same where the code host keeps the pull requests: the branches of jobs that are known here are
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
	for i := len(branches) - 1; i >= max(0, len(branches)-mostCompared); i-- { // jobs' ids are in the order of time
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

// sameAs says whether a branch with this head changes the same as the publication: merged into the commit that the
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
	var conflict *failure.ConflictError
	if errors.As(err, &conflict) {
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
