package forge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"docent/api"
	"docent/forge/failure"
	"docent/forge/git"
	"docent/forge/host"
	"docent/forge/remote"
)

// Tip returns the state of a branch after the source was read again. If the branch does not exist, or its pull request
// is merged or closed, Commit is the head of the documentation's branch.
func (h *Hub) Tip(ctx context.Context, p api.Project, branch string) (Tip, error) {
	return h.TipAfter(ctx, p, branch, "")
}

// TipAfter is Tip for a branch that a commit was published to, which is empty if none was. On the built-in host,
// if nobody else moves it, the branch of an open pull request must hold that commit: if it does not, it is
// brought back, and if the commit is nowhere any more that is ErrLost. On other hosts the people there decide what
// becomes of a branch.
func (h *Hub) TipAfter(ctx context.Context, p api.Project, branch, published string) (Tip, error) {
	r, err := h.repo(p.ID)
	if err != nil {
		return Tip{}, err
	}
	asked := time.Now()
	release, err := r.acquire(ctx)
	if err != nil {
		return Tip{}, err
	}
	tip, moved, err := h.tip(ctx, r, p, branch, published, asked)
	release()
	if moved && h.o.Merged != nil {
		h.o.Merged(p.ID)
	}
	if err != nil {
		return Tip{}, fmt.Errorf("look up %s in %s: %w", branch, p.ID, err)
	}
	return tip, nil
}

// Source is what the project's jobs work on, without asking the source: the repository as the API shows it, and its
// branch as it was read last. The branch is empty if the project names none and its repository was not read yet.
func (h *Hub) Source(p api.Project) api.JobSource {
	known := api.JobSource{Repository: cmp.Or(p.Repository, string(p.ID)), Ref: p.Branch}
	src, err := resolve(p)
	if err != nil {
		return known // the job will say what is wrong
	}
	known.Repository = src.name
	switch {
	case known.Ref != "":
	case src.kind == gitRemote:
		known.Ref = h.readBranch(p.ID)
	default:
		known.Ref = defaultFolderBranch
	}
	return known
}

// readBranch is the default branch of a project's repository as it was read last; empty if it was not.
func (h *Hub) readBranch(id api.ProjectID) string {
	r, err := h.repo(id)
	if err != nil {
		return ""
	}
	st, err := h.open(r)
	if err != nil {
		return ""
	}
	branch, err := st.Default()
	if err != nil {
		return ""
	}
	if head, err := st.Head(branch); err != nil || head.IsZero() {
		return "" // it was made, and nothing was fetched yet
	}
	return branch
}

func (h *Hub) tip(
	ctx context.Context, r *repo, p api.Project, branch, published string, asked time.Time,
) (Tip, bool, error) {
	if err := git.CheckBranch(branch); err != nil {
		return Tip{}, false, err
	}
	s, base, moved, err := h.sync(ctx, r, p, asked, func(string) {})
	if err != nil {
		return Tip{}, false, err
	}
	t, err := h.tipOf(ctx, s, base, branch, published)
	if errors.Is(err, git.ErrDamaged) {
		r.suspects(err)
		if s, base, moved, err = h.sync(ctx, r, p, time.Now(), func(string) {}); err != nil {
			return Tip{}, false, err
		}
		t, err = h.tipOf(ctx, s, base, branch, published)
	}
	if err == nil {
		t.Fork, err = s.store.Fork(base, t.Commit)
	}
	if err == nil {
		t.Author, err = h.author(ctx, p)
	}
	return t, moved, r.damaged(err)
}

// tipOf is the branch's tip, given the head of the documentation's branch.
func (h *Hub) tipOf(ctx context.Context, s *session, base plumbing.Hash, branch, published string) (Tip, error) {
	t := Tip{Branch: branch, Base: s.base, Commit: base.String(), Repo: s.source.name}
	if branch == s.base {
		t.There = true
		return t, nil
	}
	if host.KeepsPulls(s.project.Host) {
		return h.hostedTip(ctx, s, t, base)
	}
	if s.pushes() {
		head, err := h.fetchHead(ctx, s, branch, base)
		if err != nil || head.IsZero() {
			return t, err
		}
		merged, err := s.store.Contains(base, head)
		if err != nil {
			return Tip{}, err
		}
		if merged {
			t.Pull = api.PullMerged
			return t, nil
		}
		t.Pull, t.Commit, t.There = api.PullOpen, head.String(), true
		return t, nil
	}
	head, err := s.store.Head(branch)
	if err != nil {
		return Tip{}, err
	}
	if !head.IsZero() {
		if _, err := s.store.Commit(head); err != nil {
			return Tip{}, err
		}
	}
	pull, err := h.pulls.LatestPull(ctx, s.project.ID, branch)
	switch {
	case errors.Is(err, api.ErrNotFound):
	case err != nil:
		return Tip{}, err
	default:
		t.Pull = pull.State
	}
	if t.Pull == api.PullOpen && published != "" {
		if head, t.Restored, err = h.ensureHolds(ctx, s, branch, head, published); err != nil {
			return Tip{}, err
		}
	}
	t.There = !head.IsZero()
	if t.There && (t.Pull == "" || t.Pull == api.PullOpen) {
		t.Commit = head.String()
	}
	return t, nil
}

// ensureHolds makes sure that a branch holds a commit that was published to it.
func (h *Hub) ensureHolds(
	ctx context.Context, s *session, branch string, head plumbing.Hash, published string,
) (plumbing.Hash, bool, error) {
	want := plumbing.NewHash(published)
	if !plumbing.IsHash(published) || head == want {
		return head, false, nil
	}
	if !head.IsZero() {
		if ok, err := s.store.Contains(head, want); err != nil || ok {
			return head, false, err
		}
	}
	if err := h.findCommit(s, want); err != nil {
		if errors.Is(err, git.ErrDamaged) {
			h.o.Log.Error("a published commit is lost", "project", s.project.ID, "branch", branch, "commit", published,
				"error", err)
			err = &failure.Error{Kind: ErrLost,
				Say: fmt.Sprintf("The commit %.12s that this job published before is lost: the branch %s does not hold it, and it cannot be read from the repository. "+
					"Nothing was changed. Restore the repository from a backup, or send all instructions again as a new job.",
					published, branch)}
		}
		return head, false, err
	}
	if !head.IsZero() {
		ahead, err := s.store.Contains(want, head)
		if err != nil {
			return head, false, err
		}
		if !ahead {
			return head, false, &failure.Error{Kind: ErrLost,
				Say: fmt.Sprintf("The branch %s does not hold the commit %.12s that this job published before: it was moved to other commits. "+
					"Nothing was changed. Send the instruction as a new job, or set the branch to a commit that holds both.", branch,
					published)}
		}
	}
	if err := h.bringBack(ctx, s, branch, head, want); err != nil {
		return head, false, err
	}
	return want, true, nil
}

// findCommit makes sure that a commit is there with all that it reaches: in the repository, or in a damaged one that
// made way.
func (h *Hub) findCommit(s *session, want plumbing.Hash) error {
	err := s.store.Whole(want)
	if !errors.Is(err, git.ErrDamaged) {
		return err
	}
	list, listErr := h.setAside(s.project.ID)
	if listErr != nil {
		return listErr
	}
	for _, dir := range list {
		err := s.store.TakeFrom(git.OpenDamaged(dir, string(s.project.ID), h.disk), want)
		if !errors.Is(err, git.ErrDamaged) {
			return err
		}
	}
	return err
}

// fetchHead brings a remote branch into the store under the same name; zero if the remote has no such branch.
func (h *Hub) fetchHead(ctx context.Context, s *session, branch string, base plumbing.Hash) (plumbing.Hash, error) {
	origin, err := h.dial(ctx, s.source, s.project)
	if err != nil {
		return plumbing.ZeroHash, err
	}
	haves, err := s.store.History(base, 64)
	if err != nil {
		return plumbing.ZeroHash, err
	}
	old, err := s.store.Head(branch)
	if err != nil {
		return plumbing.ZeroHash, err
	}
	if !old.IsZero() {
		haves = append(haves, old)
	}
	_, head, err := s.bring(ctx, origin, branch, haves)
	if errors.Is(err, remote.ErrNoBranch) {
		return plumbing.ZeroHash, nil
	}
	if err != nil {
		return plumbing.ZeroHash, err
	}
	if head != old {
		err = h.setRefs(ctx, s, refMove{"refs/heads/" + branch, old, head})
	}
	return head, err
}

// hostedTip is a branch's tip if the code host keeps the pull requests.
func (h *Hub) hostedTip(ctx context.Context, s *session, t Tip, base plumbing.Hash) (Tip, error) {
	head, err := h.fetchHead(ctx, s, t.Branch, base)
	if err != nil {
		return t, err
	}
	_, pull, err := h.hosts.Find(ctx, s.project, t.Branch, s.base, !head.IsZero())
	if err != nil {
		return t, err
	}
	t.Pull, t.There = pull.State, !head.IsZero()
	if t.There && (t.Pull == "" || t.Pull == api.PullOpen) {
		t.Commit = head.String()
	}
	return t, nil
}

// A Tip is where a job stands or starts: a branch with its head, and the state of its pull request.
type Tip struct {
	Branch string
	Base   string
	Commit string
	Pull   api.PullState // of the branch's pull request; empty if there is none
	Repo   string        // the repository as the API shows it
	Fork   string        // newest commit that the base has too: changes are counted from it; empty if there is none
	Author string        // of commits, see Publication

	There    bool // the branch exists
	Restored bool // the branch had lost a commit that was published to it, and has it again
}
