package forge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/mail"
	"regexp"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"docent/api"
	"docent/forge/failure"
	"docent/forge/git"
	"docent/forge/host"
	"docent/internal/brief"
	"docent/internal/tracing"
)

// ErrNoChange says that a publication's changes leave every file as it is.
var ErrNoChange = errors.New("the changes leave every file as it is")

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
	src, err := h.checked(p.Project)
	if err != nil {
		return Published{}, err
	}
	for _, branch := range []string{p.Branch, p.Base} {
		if err := git.CheckBranch(branch); err != nil {
			return Published{}, err
		}
	}
	if git.Fold(p.Branch) == git.Fold(p.Base) {
		return Published{}, servedFrom(p.Branch)
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
	var done Published
	if busy := h.alone(ctx, p.Project, func() { done, err = h.publishTo(ctx, r, src, p, asked) }); busy != nil {
		return Published{}, busy
	}
	return done, r.damaged(err)
}

// publishTo is called with the repository's turn, once the publication has a form that may be tried.
func (h *Hub) publishTo(ctx context.Context, r *repo, src source, p Publication, asked time.Time) (Published, error) {
	st, err := h.holdingParent(ctx, r, p, asked)
	if err != nil {
		return Published{}, err
	}
	s := &session{project: p.Project, source: src, repo: r, store: st, base: p.Base, asked: asked}
	if def, err := st.Default(); err != nil {
		return Published{}, err
	} else if git.Fold(p.Branch) == git.Fold(def) {
		return Published{}, servedFrom(p.Branch)
	}
	c, err := h.propose(ctx, st, src.docs, p)
	if err != nil {
		return Published{}, err
	}
	if host.KeepsPulls(p.Project.Host) {
		return h.publishHosted(ctx, s, c)
	}
	head, err := h.branchHead(ctx, s, p.Branch, c.parent)
	if err != nil {
		return Published{}, err
	}
	if p.Project.Direct && !p.Review && s.pushes() && head.IsZero() {
		done, err := h.publishDirect(ctx, s, c)
		if !failure.Declined(err) {
			return done, err
		}
		h.o.Log.Info("the branch is protected: publishing to a separate branch", "project", p.Project.ID, "job", p.Job,
			"branch", p.Base, "error", err)
	}
	done, err := c.standsOn(st, head)
	if err != nil {
		return Published{}, err
	}
	if !s.pushes() && (head.IsZero() || done) {
		if equal, ok, err := h.joins(ctx, s, c); ok || err != nil {
			return equal, err
		}
	}
	if !done {
		if err := h.stillOpen(ctx, s, p.Branch, head); err != nil {
			return Published{}, err
		}
		if err := h.commitTo(ctx, s, p.Branch, head, c); err != nil {
			return Published{}, err
		}
	}
	if err := h.step("branch"); err != nil {
		return Published{}, err
	}
	if s.pushes() {
		return Published{
			Commit: c.hash(), Link: src.compareLink(p.Base, p.Branch), New: head.IsZero(), Text: requestPull(src, p, c.hash()),
		}, nil
	}
	ctx, span := tracing.Start(ctx, "open the pull request")
	opened, err := h.openPull(ctx, st, c, done, c.newest(head))
	span.Done(err)
	return opened, err
}

// holdingParent opens the repository that a publication is for. If it lacks the commit that the changes build on,
// another node has published that, and perhaps the changes too: it is brought up to date with its source first.
func (h *Hub) holdingParent(ctx context.Context, r *repo, p Publication, asked time.Time) (*git.Store, error) {
	st, err := h.opened(ctx, r, p.Project)
	if err != nil {
		return nil, err
	}
	if there, err := st.Connected(plumbing.NewHash(p.Parent)); err != nil || there {
		return st, err
	}
	if _, _, err := h.tip(ctx, r, p.Project, p.Branch, "", asked); err != nil {
		return nil, err
	}
	return h.opened(ctx, r, p.Project)
}

// joins is the equal pull request that a publication joins, if its branch has none of its own. The branch may be
// there, if an earlier attempt got no further.
func (h *Hub) joins(ctx context.Context, s *session, c proposal) (Published, bool, error) {
	_, err := h.pulls.LatestPull(ctx, c.Project.ID, c.Branch)
	if !errors.Is(err, api.ErrNotFound) {
		return Published{}, false, err
	}
	return h.equalPull(ctx, s.store, c)
}

func servedFrom(branch string) error {
	return fmt.Errorf("%w: %q is the branch that the documentation is served from", ErrRefused, branch)
}

// A proposal is a publication with its commit, which is not yet stored.
type proposal struct {
	Publication
	tree    plumbing.Hash
	commit  git.Object
	objects []git.Object // what the repository needs for the commit, and the commit
	parent  plumbing.Hash
}

func (c proposal) hash() string { return c.commit.Hash.String() }

// standsOn reports whether a branch with this head has the commit already. One with other commits is ErrMoved.
func (c proposal) standsOn(st *git.Store, head plumbing.Hash) (bool, error) {
	switch head {
	case c.commit.Hash:
		return true, nil
	case plumbing.ZeroHash, c.parent:
		return false, nil
	}
	done, err := st.Contains(head, c.commit.Hash) // others may have added to it since
	if err == nil && !done {
		err = ErrMoved
	}
	return done, err
}

// newest reports whether nothing came after the commit, on a branch that had this head before.
func (c proposal) newest(head plumbing.Hash) bool {
	return head.IsZero() || head == c.parent || head == c.commit.Hash
}

// propose makes the commit that a publication asks for.
func (h *Hub) propose(ctx context.Context, st *git.Store, docs string, p Publication) (proposal, error) {
	c := proposal{Publication: p, parent: plumbing.NewHash(p.Parent)}
	there, err := st.Connected(c.parent)
	if err != nil {
		return c, err
	}
	if !plumbing.IsHash(p.Parent) || !there {
		return c, fmt.Errorf("%w: the commit %q that the changes build on is not there", ErrMoved, brief.Bytes(p.Parent, 60, "…"))
	}
	from, err := st.Commit(c.parent)
	if err != nil {
		return c, err
	}
	tree, objects, err := st.Edit(from.Tree, docs, p.Changes, h.o.MaxFile)
	if err != nil {
		return c, err
	}
	if tree == from.Tree {
		return c, ErrNoChange
	}
	message, err := h.credited(ctx, p.Asker, cmp.Or(strings.TrimSpace(p.Message), p.Title))
	if err != nil {
		return c, err
	}
	c.tree = tree
	author := cmp.Or(p.Author, ownName)
	if p.SignOff {
		message = signedOff(message, author)
	}
	c.commit = git.NewCommit(tree, []plumbing.Hash{c.parent}, author, p.At, message)
	c.objects = append(objects, c.commit)
	return c, nil
}

// commitTo stores the commit and moves the branch to it.
func (h *Hub) commitTo(ctx context.Context, s *session, branch string, head plumbing.Hash, c proposal) error {
	if err := s.store.Write(c.objects); err != nil {
		return fmt.Errorf("store the commit: %w", err)
	}
	if err := h.step("objects"); err != nil {
		return err
	}
	ctx, span := tracing.Start(ctx, "push")
	err := h.advance(ctx, s, branch, head, c.commit.Hash, c.parent)
	span.Done(err)
	return err
}

// credited adds the person who asked for the commit to its message.
func (h *Hub) credited(ctx context.Context, asker api.KeyID, message string) (string, error) {
	if h.o.CoAuthor == nil || asker == "" {
		return message, nil
	}
	who, err := h.o.CoAuthor(ctx, asker)
	if err != nil {
		return "", fmt.Errorf("%w: look up who asked: %w", ErrTemporary, err)
	}
	a, err := mail.ParseAddress(strings.TrimSpace(oneLine(who)))
	if err != nil || a.Name == "" || strings.ContainsAny(a.Name+a.Address, "<>\n") ||
		strings.Contains(message, "<"+a.Address+">") {
		return message, nil
	}
	return message + "\n\nCo-authored-by: " + a.Name + " <" + a.Address + ">", nil
}

// ownName is the author of commits for which there is no other.
const ownName = "Docent agent <agent@docent.invalid>"

// author is who the project's commits are by; empty for Docent itself. An app that the host tells nothing of is no
// reason to publish nothing.
func (h *Hub) author(ctx context.Context, p api.Project) (string, error) {
	if p.Pulls.Author != "" {
		return p.Pulls.Author, nil
	}
	who, err := h.hosts.AppAuthor(ctx, p)
	if errors.Is(err, ErrMisconfigured) {
		h.o.Log.Warn("the app's account is unknown; committing as "+ownName, "project", p.ID, "error", err)
		return "", nil
	}
	return who, err
}

var trailer = regexp.MustCompile(`^[A-Z][A-Za-z-]*: \S`)

// signedOff ends a message with its author's sign-off, among the trailers if it has some.
func signedOff(message, author string) string {
	message = strings.TrimSpace(message)
	gap := "\n\n"
	if i := strings.LastIndex(message, "\n\n"); i >= 0 && trailer.MatchString(message[i+2:]) {
		gap = "\n"
	}
	return message + gap + "Signed-off-by: " + author
}

// publishDirect brings the commit to the documentation's branch itself. A branch that is protected is a declined push.
func (h *Hub) publishDirect(ctx context.Context, s *session, c proposal) (Published, error) {
	head, err := h.fetchHead(ctx, s, c.Base, c.parent)
	if err != nil {
		return Published{}, err
	}
	there, err := s.store.Contains(head, c.commit.Hash)
	if err != nil {
		return Published{}, err
	}
	if !there {
		if head != c.parent {
			return Published{}, ErrMoved
		}
		if err := h.commitTo(ctx, s, c.Base, head, c); err != nil {
			return Published{}, err
		}
		if err := h.step("branch"); err != nil {
			return Published{}, err
		}
	}
	if h.o.Merged != nil {
		h.o.Merged(c.Project.ID)
	}
	return Published{Commit: c.hash(), Text: fmt.Sprintf("This is commit %.12s on %s itself.", c.hash(), c.Base)}, nil
}

// branchHead is the branch's current head, at the place where it is published.
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
		return pullEnded(pull.State)
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
	return h.setRefs(ctx, s, refMove{"refs/heads/" + branch, old, new})
}

// openPull finds the branch's pull request or opens it. Its title and its being a draft stay; its body says what the
// newest publication says.
func (h *Hub) openPull(
	ctx context.Context, st *git.Store, p proposal, repeated, newest bool,
) (Published, error) {
	change := h.changeWith(st, p)
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
			Change: change,
		}
		if pull, err = h.pulls.AddPull(ctx, fresh); err != nil {
			return Published{}, fmt.Errorf("open the pull request: %w", err)
		}
		isNew = pull.ID == fresh.ID
	case err != nil:
		return Published{}, fmt.Errorf("find the pull request: %w", err)
	case newest && pull.State == api.PullOpen &&
		(pull.Change != change || p.Body != "" && (pull.Body != p.Body || !repeated)):
		pull.Body, pull.Change, pull.UpdatedAt = cmp.Or(p.Body, pull.Body), change, h.o.Now().UTC()
		if pull, err = h.pulls.UpdatePull(ctx, pull); err != nil {
			return Published{}, fmt.Errorf("update the pull request: %w", err)
		}
	}
	if err := h.step("pull"); err != nil {
		return Published{}, err
	}
	return Published{Commit: p.hash(), Number: pull.Number, Link: PullLink(pull.ID), New: isNew}, nil
}

// changeWith is the digest of what the branch changes with a publication. The branch has moved already: trouble in
// reading it leaves the digest unknown until the pull request is compared, and does not fail what is published.
func (h *Hub) changeWith(st *git.Store, p proposal) string {
	base, err := st.Head(p.Base)
	if err != nil {
		return unknownChange
	}
	digest, err := changeOf(st, base, p.commit.Hash)
	if err != nil {
		return unknownChange
	}
	return cmp.Or(digest, unknownChange)
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
