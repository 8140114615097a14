package forge

import (
	"context"
	"errors"
	"time"

	"docent/api"
	"docent/forge/failure"
	"docent/forge/host"
)

// A Comment is what somebody wrote on a pull request of a code host.
type Comment = host.Comment

// Comments are what people wrote on a pull request of the project's code host, and what Docent answered, oldest first;
// not what appeared before since. The error is a sentence for the operator.
func (h *Hub) Comments(ctx context.Context, p api.Project, number int, since time.Time) ([]Comment, error) {
	server, err := h.keeper(p)
	if err != nil {
		return nil, err
	}
	return server.Comments(ctx, number, since)
}

// Reply answers a comment on a pull request of the project's code host. It may be repeated: the key's answer is given
// once.
func (h *Hub) Reply(ctx context.Context, p api.Project, number int, to Comment, key, body string) error {
	server, err := h.keeper(p)
	if err != nil {
		return err
	}
	err = server.Reply(ctx, number, to, key, body)
	if err == nil || !errors.Is(err, ErrMisconfigured) {
		return err
	}
	// What is written is not sent on to a repository's new name, other than what is read.
	server, moved, lookErr := h.hosts.Renamed(ctx, p, server)
	if lookErr != nil || !moved {
		return err
	}
	return server.Reply(ctx, number, to, key, body)
}

// Say writes a comment into the conversation of a pull request, or gives the one with the key this text. If first is false
// it writes none.
func (h *Hub) Say(ctx context.Context, p api.Project, number int, key, body string, first bool) error {
	server, err := h.keeper(p)
	if err != nil {
		return err
	}
	return server.Say(ctx, number, key, body, first)
}

// OpenIssue opens an issue in the project's repository. It may be repeated: there is one for a key.
func (h *Hub) OpenIssue(ctx context.Context, p api.Project, key, title, body string, since time.Time) (link string, err error) {
	server, err := h.keeper(p)
	if err != nil {
		return "", err
	}
	return server.OpenIssue(ctx, key, title, body, since)
}

// PullChange is a pull request of a code host, and what it changes, as git writes it.
func (h *Hub) PullChange(ctx context.Context, p api.Project, number int) (host.Pull, string, error) {
	server, err := h.keeper(p)
	if err != nil {
		return host.Pull{}, "", err
	}
	pull, err := server.Get(ctx, number)
	if err != nil {
		return host.Pull{}, "", err
	}
	diff, err := server.Diff(ctx, number)
	return pull, diff, err
}

// PullState is how a pull request of the project's code host stands.
func (h *Hub) PullState(ctx context.Context, p api.Project, number int) (api.PullState, error) {
	server, err := h.keeper(p)
	if err != nil {
		return "", err
	}
	pull, err := server.Get(ctx, number)
	return pull.State, err
}

// Threads are the issues and discussions of repositories, read with their projects' credentials.
func (h *Hub) Threads() *host.Hosts { return h.hosts }

// keeper is the code host that keeps the project's pull requests.
func (h *Hub) keeper(p api.Project) (host.Host, error) {
	if !host.KeepsPulls(p.Host) {
		return nil, failure.Misconfigured(
			"The project's code host is %q: only GitHub, GitLab, Gitea and Forgejo have pull requests with comments, and issues.", p.Host)
	}
	return h.hosts.For(p)
}
