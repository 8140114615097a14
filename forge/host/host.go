// Package host speaks with the code hosts' APIs: GitHub, GitLab and Gitea. It finds, opens and describes pull requests;
// git itself pushes the branches that they are made of.
//
// All requests of all jobs under one credential to one host go one after the other and keep to the host's limits. What
// is no success is a *failure.Error with words for the operator.
package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"docent/api"
	"docent/forge/failure"
)

// A Host keeps pull requests of one repository. All of it may be repeated; what it fails with is a *failure.Error, or
// the context's end.
type Host interface {
	// Repository says what the credentials may do.
	Repository(ctx context.Context) (Repository, error)
	// Find is the open pull request from a branch of the repository, otherwise the youngest; its number is zero if
	// there is none. There says whether the branch exists on the host.
	Find(ctx context.Context, branch, base string, there bool) (Pull, error)
	Get(ctx context.Context, number int) (Pull, error)
	// Create opens one. If the branch has one already it fails with ErrPullExists.
	Create(ctx context.Context, p Pull) (Pull, error)
	// Describe sets the body.
	Describe(ctx context.Context, number int, body string) error
	// Label adds labels to those that the pull request has.
	Label(ctx context.Context, number int, labels []string) error
	// Reviewers are the accounts, and the teams as OWNER/TEAM, that were asked to review a pull request or have done so.
	Reviewers(ctx context.Context, number int) ([]string, error)
	// Ask asks accounts and teams to review it that were not asked yet.
	Ask(ctx context.Context, number int, who []string) error
	// CommitAuthor is the account of a commit's author; empty if the host knows none.
	CommitAuthor(ctx context.Context, commit string) (string, error)
	// Comments are what people wrote on a pull request, and what Docent did, oldest first; not what appeared before
	// since, and nothing that bots or the host itself wrote.
	Comments(ctx context.Context, number int, since time.Time) ([]Comment, error)
	// Reply answers a comment, in its thread if the host has threads, otherwise with a quotation. What is there with the
	// key's mark counts as the answer: it is given once.
	Reply(ctx context.Context, number int, to Comment, key, body string) error
	// Say writes the comment with the key's mark into a pull request's conversation, or gives the one that is there this text;
	// if first is false it writes none.
	Say(ctx context.Context, number int, key, body string, first bool) error
	// OpenIssue opens an issue, unless one with the key's mark is there since a time, and gives its link.
	OpenIssue(ctx context.Context, key, title, body string, since time.Time) (link string, err error)
	// Diff is what a pull request changes, as git writes it.
	Diff(ctx context.Context, number int) (string, error)
	// redirected says that the host has answered from another address: the repository has a new name.
	redirected() bool
}

// ErrPullExists says that a branch has a pull request already.
var ErrPullExists = errors.New("the branch has a pull request already")

// A Repository is what a host says of one, to these credentials.
type Repository struct {
	Name     string // OWNER/NAME as it is now
	Archived bool
	Push     bool
	Pulls    Right // to open pull requests
}

// A Right is what the host says of one: many do not tell what a token may do, as opposed to its owner.
type Right string

const (
	Granted Right = "granted"
	Denied  Right = "denied"
	Unsaid  Right = ""
)

// A Pull is a pull request of a code host.
type Pull struct {
	Number int
	State  api.PullState
	Link   string
	Title  string
	Body   string
	Head   string // branch
	Base   string // branch
	Commit string // that the branch stands at, or stood at when it was merged or closed
	Draft  bool
	Labels []string
}

// KeepsPulls reports whether a kind of host keeps pull requests itself.
func KeepsPulls(kind api.HostKind) bool {
	return kind == api.HostGitHub || kind == api.HostGitLab || kind == api.HostGitea
}

// Options of Hosts.
type Options struct {
	Log      *slog.Logger
	Timeout  time.Duration // of one request; never more than a minute
	WriteGap time.Duration // between two changes on GitHub, which asks for it
	Now      func() time.Time

	// Stored is a secret that was entered on a page, by the name that a project refers to it by.
	Stored func(name string) (string, error)
}

// Hosts are the code hosts of all projects: what is remembered of them between requests.
type Hosts struct {
	o Options

	mu       sync.Mutex
	limiters map[string]*limiter      // by address and credential
	installs map[string]*installation // of GitHub Apps
	renamed  map[string]string        // repositories that have another name than projects say, by hostName
	verdicts map[string]verdict       // who may write, by address, credential, repository and account
}

// New has met no host yet.
func New(o Options) *Hosts {
	return &Hosts{o: o, limiters: map[string]*limiter{}, installs: map[string]*installation{},
		renamed: map[string]string{}, verdicts: map[string]verdict{}}
}

// For is the project's code host.
func (h *Hosts) For(p api.Project) (Host, error) {
	h.mu.Lock()
	if name := h.renamed[hostName(p)]; name != "" {
		p.Repository = name
	}
	h.mu.Unlock()
	switch p.Host {
	case api.HostGitHub:
		return h.github(p)
	case api.HostGitLab:
		return h.gitlab(p)
	case api.HostGitea:
		return h.gitea(p)
	}
	return nil, failure.Misconfigured("There is no code host of kind %q.", p.Host)
}

// hostName names a repository among those of all hosts, as a project does.
func hostName(p api.Project) string {
	return fmt.Sprint(p.Host, " ", p.HostURL, " ", strings.ToLower(p.Repository))
}

// Find finds a branch's pull request. If the repository has a new name, which hosts show to readers alone,
// everything that follows goes to that one.
func (h *Hosts) Find(ctx context.Context, p api.Project, branch, base string, there bool) (Host, Pull, error) {
	host, err := h.For(p)
	if err != nil {
		return nil, Pull{}, err
	}
	pull, err := host.Find(ctx, branch, base, there)
	if err != nil {
		return host, pull, err
	}
	host, moved, err := h.Renamed(ctx, p, host)
	if err == nil && moved {
		pull, err = host.Find(ctx, branch, base, there)
	}
	return host, pull, err
}

// Renamed is the project's code host under the repository's new name, if it has answered from there.
func (h *Hosts) Renamed(ctx context.Context, p api.Project, host Host) (_ Host, moved bool, err error) {
	if !host.redirected() {
		return host, false, nil
	}
	r, err := host.Repository(ctx)
	switch {
	case err != nil:
		return nil, false, err
	case r.Name == p.Repository:
		return host, false, nil
	case r.Name == "":
		return nil, false, failure.Misconfigured(
			"The repository %s was renamed, and its host does not say to what. Update the project's repository.",
			p.Repository)
	}
	h.o.Log.Warn("the repository was renamed on its host: update it with project set --repository", "project", p.ID, "was",
		p.Repository, "is", r.Name)
	h.mu.Lock()
	h.renamed[hostName(p)] = r.Name
	h.mu.Unlock()
	host, err = h.For(p)
	return host, true, err
}

// Access says what the credentials may do with a repository, if that is enough to publish to it.
func Access(ctx context.Context, host Host, p api.Project) (Repository, error) {
	r, err := host.Repository(ctx)
	switch {
	case err != nil:
		return r, err
	case r.Archived:
		return r, failure.Misconfigured("The repository %s is archived on its host: nothing can be changed in it.",
			p.Repository)
	case !r.Push:
		return r, failure.Misconfigured("The credentials in %s may read %s but not write to it.", p.Credentials(), p.Repository)
	}
	return r, nil
}

// Explain explains a refused push by what the host's API knows of the repository, if it knows more than git said.
func Explain(ctx context.Context, host Host, p api.Project, err error) error {
	if err == nil || !errors.Is(err, failure.ErrMisconfigured) {
		return err
	}
	if _, why := Access(ctx, host, p); errors.Is(why, failure.ErrMisconfigured) {
		return why
	}
	return err
}

// current is the first open one of a branch's pull requests, otherwise the youngest; none of no list.
func current(pulls []Pull) (best Pull) {
	for _, p := range pulls {
		if p.State == api.PullOpen {
			return p
		}
		if p.Number > best.Number {
			best = p
		}
	}
	return best
}
