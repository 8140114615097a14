package forge

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"docent/api"
	"docent/forge/failure"
	"docent/forge/host"
	"docent/internal/tracing"
)

// Access says whether the project's code host can be published to: the repository is there, and the credentials may
// write to it. The error is a sentence for the operator. It changes nothing.
func (h *Hub) Access(ctx context.Context, p api.Project) error {
	_, err := h.Rights(ctx, p)
	return err
}

// Rights is Access, and says in a sentence what the host does not tell beforehand; nothing if all is known.
func (h *Hub) Rights(ctx context.Context, p api.Project) (open string, err error) {
	if !host.KeepsPulls(p.Host) {
		return "", nil
	}
	src, err := checked(p)
	if err != nil {
		return "", err
	}
	server, err := h.hosts.For(p)
	if err != nil {
		return "", err
	}
	r, err := host.Access(ctx, server, p)
	if err != nil {
		return "", err
	}
	// The host says what the owner of the credentials may do; what they may do themselves, git says when it is asked
	// for a push that does not follow.
	origin, err := h.dial(ctx, src, p)
	if err != nil {
		return "", err
	}
	if err := origin.MayPush(ctx); errors.Is(err, ErrMisconfigured) {
		return "", failure.Misconfigured(
			"The credentials in %s may read %s but not write to it: git is refused a push. A token needs the right to write the repository's contents and its pull requests.", p.Credentials(), p.Repository)
	} else if err != nil {
		return "", err
	}
	switch r.Pulls {
	case host.Denied:
		return "", failure.Misconfigured(
			"The credentials in %s may write to %s but not open pull requests in it: the token lacks the right to use the host's API for that.", p.Credentials(), p.Repository)
	case host.Unsaid:
		open = fmt.Sprintf("The host does not tell beforehand whether the credentials in %s may open pull requests: the first job shows it.", p.Credentials())
	}
	return open, nil
}

// publishHosted brings a commit to its branch and to a pull request of the code host.
func (h *Hub) publishHosted(ctx context.Context, s *session, c proposal) (Published, error) {
	server, err := h.hosts.For(c.Project)
	if err != nil {
		return Published{}, err
	}
	head, err := h.fetchHead(ctx, s, c.Branch, c.parent)
	if err != nil {
		return Published{}, host.Explain(ctx, server, c.Project, err)
	}
	server, pull, err := h.hosts.Find(ctx, c.Project, c.Branch, c.Base, !head.IsZero())
	if err != nil {
		return Published{}, err
	}
	if c.Project.Direct && !c.Review && head.IsZero() && pull.Number == 0 {
		done, err := h.publishDirect(ctx, s, c)
		if !failure.Declined(err) {
			return done, host.Explain(ctx, server, c.Project, err)
		}
		h.o.Log.Info("the branch is protected: opening a pull request", "project", c.Project.ID, "job", c.Job, "branch",
			c.Base, "error", err)
	}
	// Merged or closed since, and its branch removed: then it took effect.
	done := head.IsZero() && pull.Number != 0 && pull.Commit == c.hash()
	if !done {
		if done, err = c.standsOn(s.store, head); err != nil {
			return Published{}, err
		}
	}
	if pull.Number == 0 && (head.IsZero() || done) {
		if equal, ok, err := h.equalHosted(ctx, s, c); ok || err != nil {
			return equal, err
		}
	}
	if !done {
		if pull.Number != 0 && pull.State != api.PullOpen {
			return Published{}, pullEnded(pull.State) // nobody would look at it
		}
		if err := h.commitTo(ctx, s, c.Branch, head, c); err != nil {
			return Published{}, host.Explain(ctx, server, c.Project, err)
		}
	}
	if err := h.step("branch"); err != nil {
		return Published{}, err
	}
	opening, span := tracing.Start(ctx, "open the pull request")
	pull, isNew, err := h.openHosted(opening, s, server, c, pull, done, c.newest(head))
	span.Done(err)
	if err != nil {
		return Published{}, err
	}
	if err := h.step("pull"); err != nil {
		return Published{}, err
	}
	return Published{Commit: c.hash(), Number: pull.Number, Link: pull.Link, New: isNew}, nil
}

func pullEnded(state api.PullState) error {
	return fmt.Errorf("%w: its pull request is %s", ErrMoved, state)
}

// openHosted makes sure that a pushed branch has a pull request that says what the newest publication says. pull is
// what was found before the push.
func (h *Hub) openHosted(
	ctx context.Context, s *session, server host.Host, p proposal, pull host.Pull, repeated, newest bool,
) (host.Pull, bool, error) {
	if pull.Number != 0 && pull.State != api.PullOpen {
		return pull, false, nil // it took effect before that
	}
	template := p.Project.Pulls.Body
	if template == "" {
		var err error
		if template, err = pullTemplate(s.store, s.base, p.Project.Host); err != nil {
			return pull, false, err
		}
	}
	report := marked(p.Body)
	isNew := false
	if pull.Number == 0 {
		wanted := host.Pull{
			Head: p.Branch, Base: p.Base, Title: oneLine(p.Title), Body: fill(template, report), Draft: p.Draft,
			Labels: p.Project.LabelList(),
		}
		made, err := server.Create(ctx, wanted)
		if err == nil {
			pull, isNew = made, true
		} else {
			// Its answer may be lost, or somebody was faster.
			found, lookErr := h.findAgain(ctx, server, p.Publication, err)
			if lookErr != nil {
				return pull, false, lookErr
			}
			pull = found
		}
		if err := h.step("created"); err != nil {
			return pull, isNew, err
		}
	} else if !repeated {
		// It may have been merged in the moment before the push; then the commit is on a branch that nobody looks at.
		var err error
		if pull, err = server.Get(ctx, pull.Number); err != nil {
			return pull, false, err
		}
		if pull.State != api.PullOpen {
			return pull, false, pullEnded(pull.State)
		}
	}
	if newest && !isNew && p.Body != "" {
		if body, ok := replaceReport(pull.Body, report); ok && body != pull.Body {
			if err := server.Describe(ctx, pull.Number, body); err != nil {
				return pull, false, err
			}
		}
	}
	if err := h.labelPull(ctx, server, p.Publication, pull); err != nil {
		return pull, isNew, err
	}
	return pull, isNew, h.askReviews(ctx, s, server, p, pull, isNew)
}

// labelPull adds the project's labels to a pull request. Labels that the host refuses are no reason to lose it.
func (h *Hub) labelPull(ctx context.Context, server host.Host, p Publication, pull host.Pull) error {
	var missing []string
	for _, l := range p.Project.LabelList() {
		if !slices.ContainsFunc(pull.Labels, func(has string) bool { return strings.EqualFold(has, l) }) {
			missing = append(missing, l)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	err := server.Label(ctx, pull.Number, missing)
	if errors.Is(err, ErrMisconfigured) {
		h.o.Log.Warn("could not label the pull request", "project", p.Project.ID, "job", p.Job, "pull", pull.Link,
			"labels", missing, "error", err)
		return nil
	}
	return err
}

// findAgain looks for the pull request that could not be created; err is why.
func (h *Hub) findAgain(ctx context.Context, server host.Host, p Publication, err error) (host.Pull, error) {
	if !errors.Is(err, host.ErrPullExists) && !errors.Is(err, ErrTemporary) {
		return host.Pull{}, err
	}
	if ctx.Err() != nil {
		return host.Pull{}, err
	}
	found, lookErr := server.Find(ctx, p.Branch, p.Base, true)
	switch {
	case lookErr == nil && found.Number != 0:
		return found, nil
	case errors.Is(err, host.ErrPullExists) && lookErr != nil:
		return host.Pull{}, lookErr
	case errors.Is(err, host.ErrPullExists):
		return host.Pull{}, &failure.Error{Kind: ErrTemporary,
			Say: "The code host says that the branch has a pull request, but does not show it yet."}
	}
	return host.Pull{}, err
}
