package forge

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"docent/api"
	"docent/forge/failure"
	"docent/forge/git"
	"docent/forge/host"
)

// An open pull request of the built-in host stands in the catalog, what was published for it in its job's journal, and
// its commits in the repository. The first two are never lost with the third: if a branch is gone, its commits are
// looked for in repositories that made way, and else made again. A commit follows from what the journal has.

// A Record is a publication as a job's journal has it, with the commit that it became.
type Record struct {
	Publication
	Commit string
}

// Broken lists the open pull requests of the built-in host whose branch is not there, or not with all that it reaches.
func (h *Hub) Broken(ctx context.Context, p api.Project) ([]api.PullRequest, error) {
	if p.Host == api.HostGit || host.KeepsPulls(p.Host) {
		return nil, nil
	}
	open, err := h.pulls.Pulls(ctx, p.ID, api.PullOpen)
	if err != nil || len(open) == 0 {
		return nil, err
	}
	r, err := h.repo(p.ID)
	if err != nil {
		return nil, err
	}
	st, err := h.current(ctx, r, p)
	if errors.Is(err, git.ErrNoRepository) {
		return open, nil
	}
	if err != nil {
		return nil, err
	}
	var broken []api.PullRequest
	for _, pull := range open {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		head, err := st.Head(pull.Head)
		there := false
		if err == nil && !head.IsZero() {
			there, err = st.Connected(head)
		}
		if errors.Is(err, git.ErrDamaged) {
			r.suspects(err)
		} else if err != nil {
			return nil, err
		}
		if !there {
			broken = append(broken, pull)
		}
	}
	return broken, nil
}

// Restore brings the branch of a pull request back to what was published to it, the oldest record first. It is ErrLost
// if that can no longer be had. If the branch exists, it stays as it is.
func (h *Hub) Restore(ctx context.Context, p api.Project, pull api.PullRequest, records []Record) error {
	h.steps.RLock()
	defer h.steps.RUnlock()
	if len(records) == 0 {
		return lostPull(pull, "the journal does not say what was published to it")
	}
	r, err := h.repo(p.ID)
	if err != nil {
		return err
	}
	asked := time.Now()
	release, err := r.acquire(ctx)
	if err != nil {
		return err
	}
	defer release()
	s, _, _, err := h.sync(ctx, r, p, asked, func(string) {})
	if err != nil {
		return err
	}
	return r.damaged(h.restore(ctx, s, pull, records))
}

// restore is called with the repository's turn.
func (h *Hub) restore(ctx context.Context, s *session, pull api.PullRequest, records []Record) error {
	head, err := s.store.Head(pull.Head)
	if err != nil {
		return err
	}
	newest := records[len(records)-1].Commit
	_, _, err = h.ensureHolds(ctx, s, pull.Head, head, newest)
	if !errors.Is(err, ErrLost) || !head.IsZero() {
		return err
	}
	for _, rec := range records {
		c, err := h.propose(ctx, s.store, s.source.docs, rec.Publication)
		if err != nil {
			return lostPull(pull, err.Error())
		}
		if c.hash() != rec.Commit {
			return lostPull(pull, fmt.Sprintf("the commit %.12s cannot be made again", rec.Commit))
		}
		if err := s.store.Write(c.objects); err != nil {
			return err
		}
		if ok, err := s.store.Connected(c.commit.Hash); err != nil || !ok {
			return errors.Join(err, lostPull(pull, "what it builds on is not there any more"))
		}
	}
	return h.bringBack(ctx, s, pull.Head, plumbing.ZeroHash, plumbing.NewHash(newest))
}

func lostPull(pull api.PullRequest, why string) error {
	return &failure.Error{Kind: ErrLost, Say: fmt.Sprintf("The branch %s of pull request #%d is lost: %s.", pull.Head,
		pull.Number, strings.TrimRight(why, "."))}
}

// bringBack sets a branch to a commit that was published to it, and forgets that it was lost.
func (h *Hub) bringBack(ctx context.Context, s *session, branch string, head, want plumbing.Hash) error {
	if err := h.setRefs(ctx, s, refMove{"refs/heads/" + branch, head, want}); err != nil {
		return err
	}
	h.o.Log.Warn("published commit restored", "project", s.project.ID, "branch", branch, "commit", want.String())
	if err := s.store.Found("refs/heads/" + branch); err != nil {
		return err
	}
	return h.setRefs(ctx, s)
}

// TellLost writes into a pull request that its branch is lost. It says whether it was not written there yet.
func (h *Hub) TellLost(ctx context.Context, pull api.PullRequest, note string) (fresh bool, err error) {
	pull, err = h.pulls.Pull(ctx, pull.ID)
	if err != nil || strings.Contains(pull.Body, note) {
		return false, err
	}
	pull.Body = strings.TrimSpace(pull.Body + "\n\n---\n\n" + note)
	pull.UpdatedAt = h.o.Now().UTC()
	_, err = h.pulls.UpdatePull(ctx, pull)
	return true, err
}
