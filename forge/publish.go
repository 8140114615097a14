package forge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/mail"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"docent/api"
	"docent/forge/failure"
	"docent/forge/git"
	"docent/forge/host"
	"docent/forge/remote"
)

// ErrNoChange says that a publication's changes leave every file as it is.
var ErrNoChange = errors.New("the changes leave every file as it is")

// Tip says where a branch stands after the source was read anew. Where the branch does not exist, or its pull request is
// merged or closed, Commit is the head of the documentation's branch.
func (h *Hub) Tip(ctx context.Context, p api.Project, branch string) (Tip, error) {
	return h.TipAfter(ctx, p, branch, "")
}

// TipAfter is Tip for a branch that a commit was published to, which is empty where none was. On the built-in host, where
// nobody else moves it, the branch of an open pull request must hold that commit: where it does not, it is brought back, and
// where the commit is nowhere any more that is ErrLost. On other hosts the people there decide what becomes of a branch.
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

// Source is what the project's jobs work on, without asking the source: the repository as the API shows it, and its branch as it
// was read last. The branch is empty where the project names none and its repository was not read yet.
func (h *Hub) Source(p api.Project) api.Source {
	known := api.Source{Repository: cmp.Or(p.Repository, string(p.ID)), Ref: p.Branch}
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

// readBranch is the default branch of a project's repository as it was read last; empty where it was not.
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

func (h *Hub) tip(ctx context.Context, r *repo, p api.Project, branch, published string, asked time.Time) (Tip, bool, error) {
	if err := git.CheckBranch(branch); err != nil {
		return Tip{}, false, err
	}
	s, base, moved, err := h.sync(ctx, r, p, asked, func(string) {})
	if err != nil {
		return Tip{}, false, err
	}
	t, err := h.tipOf(ctx, s, base, branch, published)
	if errors.Is(err, git.ErrDamaged) {
		r.suspect.Store(true)
		if s, base, moved, err = h.sync(ctx, r, p, time.Now(), func(string) {}); err != nil {
			return Tip{}, false, err
		}
		t, err = h.tipOf(ctx, s, base, branch, published)
	}
	if err == nil {
		t.Fork, err = s.store.Fork(base, t.Commit)
	}
	return t, moved, r.damaged(err)
}

// tipOf is the branch's tip, given the head of the documentation's branch.
func (h *Hub) tipOf(ctx context.Context, s *session, base plumbing.Hash, branch, published string) (Tip, error) {
	t := Tip{Branch: branch, Base: s.base, Commit: base.String(), Repo: s.source.name}
	if branch == s.base {
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
		t.Pull, t.Commit = api.PullOpen, head.String()
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
		if head, t.Restored, err = h.ensureHolds(s, branch, head, published); err != nil {
			return Tip{}, err
		}
	}
	if !head.IsZero() && (t.Pull == "" || t.Pull == api.PullOpen) {
		t.Commit = head.String()
	}
	return t, nil
}

// ensureHolds makes sure that a branch holds a commit that was published to it.
func (h *Hub) ensureHolds(s *session, branch string, head plumbing.Hash, published string) (plumbing.Hash, bool, error) {
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
			h.o.Log.Error("a published commit is lost", "project", s.project.ID, "branch", branch, "commit", published, "error", err)
			err = &failure.Error{Kind: ErrLost, Say: fmt.Sprintf("The commit %.12s that this job published before is lost: the branch %s does not hold it, and it cannot be read from the repository. "+
				"Nothing was changed. Restore the repository from a backup, or send all instructions again as a new job.", published, branch)}
		}
		return head, false, err
	}
	if !head.IsZero() {
		ahead, err := s.store.Contains(want, head)
		if err != nil {
			return head, false, err
		}
		if !ahead {
			return head, false, &failure.Error{Kind: ErrLost, Say: fmt.Sprintf("The branch %s does not hold the commit %.12s that this job published before: it was moved to other commits. "+
				"Nothing was changed. Send the instruction as a new job, or set the branch to a commit that holds both.", branch, published)}
		}
	}
	if err := s.store.SetRef("refs/heads/"+branch, head, want); err != nil {
		return head, false, err
	}
	h.o.Log.Warn("a branch had lost a published git.Commit, which was found and brought back", "project", s.project.ID, "branch", branch, "commit", published)
	return want, true, s.store.Found("refs/heads/" + branch)
}

// findCommit makes sure that a commit is there with all that it reaches: in the repository, or in a damaged one that made way.
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
		if err := s.store.TakeFrom(git.OpenDamaged(dir, string(s.project.ID), h.disk), want); !errors.Is(err, git.ErrDamaged) {
			return err
		}
	}
	return err
}

// fetchHead brings a remote branch into the store under the same name; zero where the remote has no such branch.
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
		err = s.store.SetRef("refs/heads/"+branch, old, head)
	}
	return head, err
}

// Publish makes the commit stand on its branch with a pull request. A repeat of a publication that took effect, in part
// or in whole, completes it and changes nothing else. A branch that has other commits than the changes build on is
// ErrMoved; so is one whose pull request was merged or closed meanwhile.
func (h *Hub) Publish(ctx context.Context, p Publication) (Published, error) {
	h.steps.RLock()
	defer h.steps.RUnlock()
	done, err := h.publish(ctx, p)
	if err != nil {
		return Published{}, fmt.Errorf("publish %s of %s: %w", p.Branch, p.Project.ID, err)
	}
	return done, nil
}

func (h *Hub) publish(ctx context.Context, p Publication) (Published, error) {
	if err := Check(p.Project); err != nil {
		return Published{}, err
	}
	if err := git.CheckBranch(p.Branch); err != nil {
		return Published{}, err
	}
	if err := git.CheckBranch(p.Base); err != nil {
		return Published{}, err
	}
	if git.Fold(p.Branch) == git.Fold(p.Base) {
		return Published{}, fmt.Errorf("%w: %q is the branch that the documentation is served from", ErrRefused, p.Branch)
	}
	docs, err := docsDir(p.Project)
	if err != nil {
		return Published{}, err
	}
	src, err := resolve(p.Project)
	if err != nil {
		return Published{}, err
	}
	r, err := h.repo(p.Project.ID)
	if err != nil {
		return Published{}, err
	}
	asked := time.Now()
	release, err := r.acquire(ctx)
	if err != nil {
		return Published{}, err
	}
	defer release()
	if r.suspect.Load() {
		if _, _, _, err := h.sync(ctx, r, p.Project, asked, func(string) {}); err != nil {
			return Published{}, err
		}
	}
	done, err := h.publishTo(ctx, r, src, docs, p, asked)
	return done, r.damaged(err)
}

// publishTo is called with the repository's turn, once the publication has a form that may be tried.
func (h *Hub) publishTo(ctx context.Context, r *repo, src source, docs string, p Publication, asked time.Time) (Published, error) {
	st, err := h.open(r)
	if err != nil {
		return Published{}, err
	}
	s := &session{project: p.Project, source: src, repo: r, store: st, base: p.Base, asked: asked}
	if def, err := st.Default(); err != nil {
		return Published{}, err
	} else if git.Fold(p.Branch) == git.Fold(def) {
		return Published{}, fmt.Errorf("%w: %q is the branch that the documentation is served from", ErrRefused, p.Branch)
	}
	parent := plumbing.NewHash(p.Parent)
	there, err := st.Has(parent)
	if err != nil {
		return Published{}, err
	}
	if !plumbing.IsHash(p.Parent) || !there {
		return Published{}, fmt.Errorf("%w: the commit %q that the changes build on is not there", ErrMoved, failure.Cut(p.Parent, 60))
	}
	from, err := st.Commit(parent)
	if err != nil {
		return Published{}, err
	}
	tree, objects, err := st.Edit(from.Tree, docs, p.Changes, h.o.MaxFile)
	if err != nil {
		return Published{}, err
	}
	if tree == from.Tree {
		return Published{}, ErrNoChange
	}
	message := strings.TrimSpace(p.Message)
	if message == "" {
		message = p.Title
	}
	if message, err = h.credited(ctx, p.Asker, message); err != nil {
		return Published{}, err
	}
	ours := git.NewCommit(tree, []plumbing.Hash{parent}, h.o.Author, p.At, message)
	objects = append(objects, ours)

	if host.KeepsPulls(p.Project.Host) {
		return h.publishHosted(ctx, s, p, ours, objects, parent)
	}
	head, err := h.branchHead(ctx, s, p.Branch, parent)
	if err != nil {
		return Published{}, err
	}
	if p.Project.Direct && !p.Review && s.pushes() && head.IsZero() {
		done, err := h.publishDirect(ctx, s, p, ours, objects, parent)
		if !failure.Declined(err) {
			return done, err
		}
		h.o.Log.Info("the branch is protected: publishing to a branch of its own", "project", p.Project.ID, "job", p.Job, "branch", p.Base, "error", err)
	}
	done := head == ours.Hash
	if !done && !head.IsZero() && head != parent {
		// Others may have added to it since: then it took effect too.
		if done, err = st.Contains(head, ours.Hash); err != nil {
			return Published{}, err
		}
		if !done {
			return Published{}, ErrMoved
		}
	}
	if !done {
		if err := h.stillOpen(ctx, s, p.Branch, head); err != nil {
			return Published{}, err
		}
		if err := st.Write(objects); err != nil {
			return Published{}, fmt.Errorf("store the commit: %w", err)
		}
		if err := h.step("objects"); err != nil {
			return Published{}, err
		}
		if err := h.advance(ctx, s, p.Branch, head, ours.Hash, parent); err != nil {
			return Published{}, err
		}
	}
	if err := h.step("branch"); err != nil {
		return Published{}, err
	}
	if s.pushes() {
		return Published{
			Commit: ours.Hash.String(), Link: src.compareLink(p.Base, p.Branch), New: head.IsZero(),
			Text: requestPull(src, p, ours.Hash.String()),
		}, nil
	}
	return h.openPull(ctx, p, ours.Hash.String(), done, head.IsZero() || head == parent || head == ours.Hash)
}

// credited adds whoever asked for the commit to its message.
func (h *Hub) credited(ctx context.Context, asker api.KeyID, message string) (string, error) {
	if h.o.CoAuthor == nil || asker == "" {
		return message, nil
	}
	who, err := h.o.CoAuthor(ctx, asker)
	if err != nil {
		return "", fmt.Errorf("%w: look up who asked: %w", ErrTemporary, err)
	}
	a, err := mail.ParseAddress(strings.TrimSpace(oneLine(who)))
	if err != nil || a.Name == "" || strings.ContainsAny(a.Name+a.Address, "<>\n") || strings.Contains(message, "<"+a.Address+">") {
		return message, nil
	}
	return message + "\n\nCo-authored-by: " + a.Name + " <" + a.Address + ">", nil
}

// publishDirect brings the commit to the documentation's branch itself. A branch that is protected is a declined push.
func (h *Hub) publishDirect(ctx context.Context, s *session, p Publication, ours git.Object, objects []git.Object, parent plumbing.Hash) (Published, error) {
	head, err := h.fetchHead(ctx, s, p.Base, parent)
	if err != nil {
		return Published{}, err
	}
	there, err := s.store.Contains(head, ours.Hash)
	if err != nil {
		return Published{}, err
	}
	if !there {
		if head != parent {
			return Published{}, ErrMoved
		}
		if err := s.store.Write(objects); err != nil {
			return Published{}, fmt.Errorf("store the commit: %w", err)
		}
		if err := h.advance(ctx, s, p.Base, head, ours.Hash, parent); err != nil {
			return Published{}, err
		}
		if err := h.step("branch"); err != nil {
			return Published{}, err
		}
	}
	if h.o.Merged != nil {
		h.o.Merged(p.Project.ID)
	}
	commit := ours.Hash.String()
	return Published{Commit: commit, Text: fmt.Sprintf("This is commit %.12s on %s itself.", commit, p.Base)}, nil
}

// branchHead is where the branch stands now, at the place where it is published.
func (h *Hub) branchHead(ctx context.Context, s *session, branch string, near plumbing.Hash) (plumbing.Hash, error) {
	if s.pushes() {
		return h.fetchHead(ctx, s, branch, near)
	}
	return s.store.Head(branch)
}

// stillOpen refuses to add to a branch whose pull request is merged or closed: nobody would look at it.
func (h *Hub) stillOpen(ctx context.Context, s *session, branch string, head plumbing.Hash) error {
	if s.pushes() || head.IsZero() {
		return nil
	}
	pull, err := h.pulls.LatestPull(ctx, s.project.ID, branch)
	switch {
	case errors.Is(err, api.ErrNotFound):
		return nil
	case err != nil:
		return err
	case pull.State != api.PullOpen:
		return fmt.Errorf("%w: its pull request is %s", ErrMoved, pull.State)
	}
	return nil
}

// advance moves the branch, first where others see it.
func (h *Hub) advance(ctx context.Context, s *session, branch string, old, new, parent plumbing.Hash) error {
	if s.pushes() {
		origin, err := h.dial(ctx, s.source, s.project)
		if err != nil {
			return err
		}
		if err := s.push(ctx, origin, branch, old, new, parent); err != nil {
			return err
		}
		if err := h.step("pushed"); err != nil {
			return err
		}
		if old, err = s.store.Head(branch); err != nil { // the remote's word counts, whatever ours was
			return err
		}
	}
	return s.store.SetRef("refs/heads/"+branch, old, new)
}

// openPull finds the branch's pull request or opens it. Its title and its being a draft stay; its body says what the
// newest publication says.
func (h *Hub) openPull(ctx context.Context, p Publication, commit string, repeated, newest bool) (Published, error) {
	pull, err := h.pulls.FindPull(ctx, p.Project.ID, p.Branch)
	if errors.Is(err, api.ErrNotFound) && repeated {
		// The pull request may have been merged or closed since; a second one would be one too many.
		pull, err = h.pulls.LatestPull(ctx, p.Project.ID, p.Branch)
	}
	isNew := errors.Is(err, api.ErrNotFound)
	switch {
	case isNew:
		now := h.o.Now().UTC()
		fresh := api.PullRequest{
			ID: api.NewID(api.PullPrefix, now), Project: p.Project.ID, Job: p.Job, Head: p.Branch, Base: p.Base,
			Title: oneLine(p.Title), Body: p.Body, Draft: p.Draft, State: api.PullOpen, CreatedAt: now, UpdatedAt: now,
		}
		if pull, err = h.pulls.AddPull(ctx, fresh); err != nil {
			return Published{}, fmt.Errorf("open the pull request: %w", err)
		}
		isNew = pull.ID == fresh.ID
	case err != nil:
		return Published{}, fmt.Errorf("find the pull request: %w", err)
	case newest && pull.State == api.PullOpen && p.Body != "" && (pull.Body != p.Body || !repeated):
		pull.Body, pull.UpdatedAt = p.Body, h.o.Now().UTC()
		if pull, err = h.pulls.UpdatePull(ctx, pull); err != nil {
			return Published{}, fmt.Errorf("update the pull request: %w", err)
		}
	}
	if err := h.step("pull"); err != nil {
		return Published{}, err
	}
	return Published{Commit: commit, Number: pull.Number, Link: PullLink(pull.ID), New: isNew}, nil
}

// PullLink is the path of a pull request's page under the service's own address.
func PullLink(id string) string { return "/pulls/" + id }

func oneLine(s string) string {
	return failure.Line(s, 250)
}

// requestPull is what git's own request-pull says: all that a maintainer needs to fetch and merge.
func requestPull(src source, p Publication, commit string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Changes since commit %.12s are available in the git repository at:\n\n", p.Parent)
	fmt.Fprintf(&b, "  %s %s\n\nfor you to fetch up to %.12s:\n\n  %s\n", src.name, p.Branch, commit, oneLine(p.Title))
	if body := strings.TrimSpace(p.Body); body != "" {
		fmt.Fprintf(&b, "\n%s\n", body)
	}
	return b.String()
}
