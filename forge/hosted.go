package forge

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"docent/api"
	"docent/forge/failure"
)

// A codeHost keeps pull requests of one repository. All of it may be repeated; what it fails with is a *failure.Error, or the
// context's end.
type codeHost interface {
	// repository says what the credentials may do.
	repository(ctx context.Context) (repository, error)
	// find is the open pull request from a branch of the repository, else the youngest; its number is zero where there is none.
	// There says whether the branch exists on the host.
	find(ctx context.Context, branch, base string, there bool) (hostedPull, error)
	get(ctx context.Context, number int) (hostedPull, error)
	// create opens one. Where the branch has one already it fails with errPullExists.
	create(ctx context.Context, p hostedPull) (hostedPull, error)
	// describe sets the body.
	describe(ctx context.Context, number int, body string) error
	// label adds labels to those that the pull request has.
	label(ctx context.Context, number int, labels []string) error
	// redirected says that the host has answered from another address: the repository has a new name.
	redirected() bool
}

var errPullExists = errors.New("the branch has a pull request already")

type repository struct {
	name     string // OWNER/NAME as it is now
	archived bool
	push     bool
	pulls    right // to open pull requests
}

// A right is what the host says of one: many do not tell what a token may do, as opposed to whoever it belongs to.
type right string

const (
	granted right = "granted"
	denied  right = "denied"
	unsaid  right = ""
)

type hostedPull struct {
	number int
	state  api.PullState
	link   string
	title  string
	body   string
	head   string // branch
	base   string // branch
	commit string // that the branch stands at, or stood at when it was merged or closed
	draft  bool
	labels []string
}

// hasPulls says whether a kind of host keeps pull requests itself.
func hasPulls(kind api.HostKind) bool {
	return kind == api.HostGitHub || kind == api.HostGitLab || kind == api.HostGitea
}

// hosted is the project's code host.
func (h *Hub) hosted(p api.Project) (codeHost, error) {
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

// look finds a branch's pull request. Where the repository has a new name, which hosts show to readers alone, everything that
// follows goes to that one.
func (h *Hub) look(ctx context.Context, p api.Project, branch, base string, there bool) (codeHost, hostedPull, error) {
	host, err := h.hosted(p)
	if err != nil {
		return nil, hostedPull{}, err
	}
	pull, err := host.find(ctx, branch, base, there)
	if err != nil || !host.redirected() {
		return host, pull, err
	}
	r, err := host.repository(ctx)
	if err != nil {
		return nil, hostedPull{}, err
	}
	if r.name == p.Repository {
		return host, pull, err
	}
	now := p
	if now.Repository = r.name; r.name == "" || Check(now) != nil {
		return nil, hostedPull{}, failure.Misconfigured("The repository %s has another name now, which its host does not tell: set the project's repository anew.", p.Repository)
	}
	h.o.Log.Warn("the repository has a new name on its host: set it with project set --repository", "project", p.ID, "was", p.Repository, "is", r.name)
	h.mu.Lock()
	h.renamed[hostName(p)] = r.name
	h.mu.Unlock()
	if host, err = h.hosted(p); err != nil {
		return nil, hostedPull{}, err
	}
	pull, err = host.find(ctx, branch, base, there)
	return host, pull, err
}

// hostClient is the way to the host's API with the project's credentials.
func (h *Hub) hostClient(p api.Project, name, base string, authorize func(h http.Header, secret string)) (*hostClient, error) {
	u, err := url.Parse(base)
	if err != nil || u.Host == "" {
		return nil, failure.Misconfigured("The host's address is not understood.")
	}
	what := "the token in " + p.TokenEnv
	if p.AppID != 0 {
		what = "the app's token"
	}
	key := base + " " + p.TokenEnv
	h.mu.Lock()
	if h.gates[key] == nil {
		h.gates[key] = newGate()
	}
	g := h.gates[key]
	h.mu.Unlock()
	gap := time.Duration(0)
	if p.Host == api.HostGitHub {
		gap = h.o.WriteGap // no other host asks for one
	}
	return &hostClient{
		name: name, what: what, repo: p.Repository, base: u, gate: g, gap: gap, timeout: min(h.o.Timeout, time.Minute),
		now: h.o.Now, retry: 200 * time.Millisecond,
		secret:    func(ctx context.Context) (string, error) { return h.secret(ctx, p) },
		authorize: authorize,
	}, nil
}

// Access says whether the project's code host can be published to: the repository is there, and the credentials may write
// to it. The error is a sentence for the operator. It changes nothing.
func (h *Hub) Access(ctx context.Context, p api.Project) error {
	_, err := h.Rights(ctx, p)
	return err
}

// Rights is Access, and says in a sentence what the host does not tell beforehand; nothing where all is known.
func (h *Hub) Rights(ctx context.Context, p api.Project) (open string, err error) {
	if !hasPulls(p.Host) {
		return "", nil
	}
	if err := Check(p); err != nil {
		return "", err
	}
	host, err := h.hosted(p)
	if err != nil {
		return "", err
	}
	r, err := access(ctx, host, p)
	if err != nil {
		return "", err
	}
	// The host says what whoever the credentials belong to may do; what they may do themselves, git says when it is asked
	// for a push that does not follow.
	src, err := resolve(p)
	if err != nil {
		return "", err
	}
	remote, err := h.dial(ctx, src, p)
	if err != nil {
		return "", err
	}
	if err := remote.mayPush(ctx); errors.Is(err, ErrMisconfigured) {
		return "", failure.Misconfigured("The credentials in %s may read %s but not write to it: git is refused a push. A token needs the right to write the repository's contents and its pull requests.", p.TokenEnv, p.Repository)
	} else if err != nil {
		return "", err
	}
	switch r.pulls {
	case denied:
		return "", failure.Misconfigured("The credentials in %s may write to %s but not open pull requests in it: the token lacks the right to use the host's API for that.", p.TokenEnv, p.Repository)
	case unsaid:
		open = fmt.Sprintf("The host does not tell beforehand whether the credentials in %s may open pull requests: the first job shows it.", p.TokenEnv)
	}
	return open, nil
}

func access(ctx context.Context, host codeHost, p api.Project) (repository, error) {
	r, err := host.repository(ctx)
	switch {
	case err != nil:
		return r, err
	case r.archived:
		return r, failure.Misconfigured("The repository %s is archived on its host: nothing can be changed in it.", p.Repository)
	case !r.push:
		return r, failure.Misconfigured("The credentials in %s may read %s but not write to it.", p.TokenEnv, p.Repository)
	}
	return r, nil
}

// better explains a refused push by what the host's API knows of the repository, where it knows more than git said.
func better(ctx context.Context, host codeHost, p api.Project, err error) error {
	if err == nil || !errors.Is(err, ErrMisconfigured) {
		return err
	}
	if _, why := access(ctx, host, p); errors.Is(why, ErrMisconfigured) {
		return why
	}
	return err
}

// standHosted is a branch's tip where the code host keeps the pull requests.
func (h *Hub) standHosted(ctx context.Context, s *site, t Tip, base plumbing.Hash) (Tip, error) {
	head, err := h.fetchHead(ctx, s, t.Branch, base)
	if err != nil {
		return t, err
	}
	_, pull, err := h.look(ctx, s.project, t.Branch, s.base, !head.IsZero())
	if err != nil {
		return t, err
	}
	t.Pull = pull.state
	if !head.IsZero() && (t.Pull == "" || t.Pull == api.PullOpen) {
		t.Commit = head.String()
	}
	return t, nil
}

// publishHosted brings a commit to its branch and to a pull request of the code host. ours is not yet stored.
func (h *Hub) publishHosted(ctx context.Context, s *site, p Publication, ours object, objects []object, parent plumbing.Hash) (Published, error) {
	host, err := h.hosted(p.Project)
	if err != nil {
		return Published{}, err
	}
	head, err := h.fetchHead(ctx, s, p.Branch, parent)
	if err != nil {
		return Published{}, better(ctx, host, p.Project, err)
	}
	host, pull, err := h.look(ctx, p.Project, p.Branch, p.Base, !head.IsZero())
	if err != nil {
		return Published{}, err
	}
	if p.Project.Direct && !p.Review && head.IsZero() && pull.number == 0 {
		done, err := h.publishDirect(ctx, s, p, ours, objects, parent)
		if !failure.Declined(err) {
			return done, better(ctx, host, p.Project, err)
		}
		h.o.Log.Info("the branch is protected: opening a pull request", "project", p.Project.ID, "job", p.Job, "branch", p.Base, "error", err)
	}
	done := head == ours.hash
	switch {
	case done:
	case head.IsZero() && pull.number != 0 && pull.commit == ours.hash.String():
		done = true // merged or closed since, and its branch removed
	case !head.IsZero() && head != parent:
		// Others may have added to it since: then it took effect too.
		if done, err = s.store.contains(head, ours.hash); err != nil {
			return Published{}, err
		}
		if !done {
			return Published{}, ErrMoved
		}
	}
	if !done {
		if pull.number != 0 && pull.state != api.PullOpen {
			// Nobody would look at it.
			return Published{}, misstated(pull.state)
		}
		if err := s.store.write(objects); err != nil {
			return Published{}, fmt.Errorf("store the commit: %w", err)
		}
		if err := h.at("objects"); err != nil {
			return Published{}, err
		}
		if err := h.advance(ctx, s, p.Branch, head, ours.hash, parent); err != nil {
			return Published{}, better(ctx, host, p.Project, err)
		}
	}
	if err := h.at("branch"); err != nil {
		return Published{}, err
	}
	newest := head.IsZero() || head == parent || head == ours.hash
	pull, isNew, err := h.openHosted(ctx, s, host, p, pull, ours.hash.String(), done, newest)
	if err != nil {
		return Published{}, err
	}
	if err := h.at("pull"); err != nil {
		return Published{}, err
	}
	return Published{Commit: ours.hash.String(), Number: pull.number, Link: pull.link, New: isNew}, nil
}

func misstated(state api.PullState) error {
	return fmt.Errorf("%w: its pull request is %s", ErrMoved, state)
}

// openHosted makes sure that a pushed branch has a pull request that says what the newest publication says. pull is what
// was found before the push.
func (h *Hub) openHosted(ctx context.Context, s *site, host codeHost, p Publication, pull hostedPull, commit string, repeated, newest bool) (hostedPull, bool, error) {
	if pull.number != 0 && pull.state != api.PullOpen {
		return pull, false, nil // it took effect before that
	}
	template, err := s.store.pullTemplate(s.base, p.Project.Host)
	if err != nil {
		return pull, false, err
	}
	report := marked(p.Body)
	isNew := false
	if pull.number == 0 {
		wanted := hostedPull{head: p.Branch, base: p.Base, title: oneLine(p.Title), body: fill(template, report), draft: p.Draft, labels: p.Project.LabelList()}
		made, err := host.create(ctx, wanted)
		if err == nil {
			pull, isNew = made, true
		} else {
			// Its answer may be lost, or somebody was faster.
			found, lookErr := h.findAgain(ctx, host, p, err)
			if lookErr != nil {
				return pull, false, lookErr
			}
			pull = found
		}
		if err := h.at("created"); err != nil {
			return pull, isNew, err
		}
	} else if !repeated {
		// It may have been merged in the moment before the push; then the commit is on a branch that nobody looks at.
		if pull, err = host.get(ctx, pull.number); err != nil {
			return pull, false, err
		}
		if pull.state != api.PullOpen {
			return pull, false, misstated(pull.state)
		}
	}
	if newest && !isNew && p.Body != "" {
		if body, ok := replaceReport(pull.body, report); ok && body != pull.body {
			if err := host.describe(ctx, pull.number, body); err != nil {
				return pull, false, err
			}
		}
	}
	var missing []string
	for _, l := range p.Project.LabelList() {
		if !slices.ContainsFunc(pull.labels, func(has string) bool { return strings.EqualFold(has, l) }) {
			missing = append(missing, l)
		}
	}
	if len(missing) > 0 {
		err := host.label(ctx, pull.number, missing)
		if errors.Is(err, ErrMisconfigured) { // the pull request is there; a label is not worth losing it
			h.o.Log.Warn("the pull request could not be labelled", "project", p.Project.ID, "job", p.Job, "pull", pull.link, "labels", missing, "error", err)
			err = nil
		}
		if err != nil {
			return pull, isNew, err
		}
	}
	return pull, isNew, nil
}

// findAgain looks for the pull request that could not be created; err is why.
func (h *Hub) findAgain(ctx context.Context, host codeHost, p Publication, err error) (hostedPull, error) {
	if !errors.Is(err, errPullExists) && !errors.Is(err, ErrTemporary) {
		return hostedPull{}, err
	}
	if ctx.Err() != nil {
		return hostedPull{}, err
	}
	found, lookErr := host.find(ctx, p.Branch, p.Base, true)
	switch {
	case lookErr == nil && found.number != 0:
		return found, nil
	case errors.Is(err, errPullExists) && lookErr != nil:
		return hostedPull{}, lookErr
	case errors.Is(err, errPullExists):
		return hostedPull{}, &failure.Error{Kind: ErrTemporary, Say: "The code host says that the branch has a pull request, but does not show it yet."}
	}
	return hostedPull{}, err
}
