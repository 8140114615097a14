package forge

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/google/go-github/v92/github"

	"docent/api"
	"docent/forge/failure"
)

// githubHost is a repository on GitHub or a GitHub Enterprise server.
type githubHost struct {
	c           *hostClient
	lib         *github.Client
	owner, name string
	web         string
	app         bool // the credentials are an app's
}

// githubWeb is the host's address for people.
func githubWeb(hostURL string) string {
	web := strings.TrimSuffix(strings.TrimRight(hostURL, "/"), "/api/v3")
	switch web {
	case "", "https://api.github.com", "https://www.github.com":
		return "https://github.com"
	}
	return web
}

// githubAPI is the address of the host's API: a host of its own on github.com and ghe.com, a path on an enterprise server.
func githubAPI(hostURL string) string {
	web := githubWeb(hostURL)
	u, err := url.Parse(web)
	switch {
	case web == "https://github.com":
		return "https://api.github.com"
	case err == nil && strings.HasSuffix(u.Hostname(), ".ghe.com"):
		return u.Scheme + "://api." + u.Host
	}
	return web + "/api/v3"
}

func (h *Hub) github(p api.Project) (*githubHost, error) {
	c, err := h.hostClient(p, "GitHub", githubAPI(p.HostURL), func(header http.Header, secret string) {
		header.Set("Authorization", "Bearer "+secret)
	})
	if err != nil {
		return nil, err
	}
	if p.AppID != 0 {
		c.renew = func(refused string) bool { return h.dropAppToken(p, refused) }
	}
	return newGitHub(c, p)
}

func newGitHub(c *hostClient, p api.Project) (*githubHost, error) {
	base := c.base.String() + "/"
	// The client keeps the limits, for all hosts alike and for all jobs together.
	lib, err := github.NewClient(github.WithHTTPClient(c.client()), github.WithURLs(&base, &base), github.WithDisableRateLimitCheck(),
		github.WithUserAgent("docent"))
	if err != nil {
		return nil, failure.Misconfigured("The host's address is not understood.")
	}
	owner, name, _ := strings.Cut(p.Repository, "/")
	return &githubHost{c: c, lib: lib, owner: owner, name: name, web: githubWeb(p.HostURL), app: p.AppID != 0}, nil
}

func (g *githubHost) redirected() bool { return g.c.moved.Load() }

func (g *githubHost) repository(ctx context.Context) (repository, error) {
	r, res, err := g.lib.Repositories.Get(ctx, g.owner, g.name)
	if err != nil {
		return repository{}, g.c.failure(ctx, err)
	}
	pulls := unsaid
	if scopes := res.Header.Values("X-OAuth-Scopes"); len(scopes) > 0 && !g.app { // a classic token's; others have none
		pulls = denied
		for scope := range strings.SplitSeq(strings.Join(scopes, ","), ",") {
			if scope = strings.TrimSpace(scope); scope == "repo" || scope == "public_repo" && !r.GetPrivate() {
				pulls = granted
			}
		}
	}
	// The permissions are a user's; what an app may do shows with the push itself.
	push := g.app || r.Permissions == nil || r.GetPermissions().GetPush()
	return repository{name: r.GetFullName(), archived: r.GetArchived() || r.GetDisabled(), push: push, pulls: pulls}, nil
}

func (g *githubHost) find(ctx context.Context, branch, _ string, _ bool) (hostedPull, error) {
	list, _, err := g.lib.PullRequests.List(ctx, g.owner, g.name, &github.PullRequestListOptions{
		State: "all", Head: g.owner + ":" + branch, Sort: "created", Direction: "desc", ListOptions: github.ListOptions{PerPage: 100},
	})
	if err != nil {
		return hostedPull{}, g.c.failure(ctx, err)
	}
	var best hostedPull
	for _, pr := range list {
		// A filter that the host does not understand is one that it ignores; and a fork's owner may be the same. Names may have
		// changed since the project was set up, numbers have not.
		from, into := pr.GetHead().GetRepo(), pr.GetBase().GetRepo()
		if pr.GetHead().GetRef() != branch || from != nil && into != nil && from.GetID() != into.GetID() {
			continue
		}
		p := g.pull(pr)
		if p.state == api.PullOpen {
			return p, nil
		}
		if p.number > best.number {
			best = p
		}
	}
	return best, nil
}

func (g *githubHost) pull(pr *github.PullRequest) hostedPull {
	p := hostedPull{
		number: pr.GetNumber(), link: pr.GetHTMLURL(), title: pr.GetTitle(), body: pr.GetBody(), draft: pr.GetDraft(),
		head: pr.GetHead().GetRef(), base: pr.GetBase().GetRef(), commit: pr.GetHead().GetSHA(), state: api.PullOpen,
	}
	switch {
	case pr.MergedAt != nil || pr.GetMerged():
		p.state = api.PullMerged
	case pr.GetState() == "closed":
		p.state = api.PullClosed
	}
	for _, l := range pr.Labels {
		p.labels = append(p.labels, l.GetName())
	}
	if !webLink(p.link) {
		p.link = g.web + "/" + g.owner + "/" + g.name + "/pull/" + strconv.Itoa(p.number)
	}
	return p
}

func (g *githubHost) get(ctx context.Context, number int) (hostedPull, error) {
	pr, _, err := g.lib.PullRequests.Get(ctx, g.owner, g.name, number)
	if err != nil {
		return hostedPull{}, g.c.failure(ctx, err)
	}
	return g.pull(pr), nil
}

func (g *githubHost) create(ctx context.Context, p hostedPull) (hostedPull, error) {
	wanted := github.CreatePullRequest{Title: &p.title, Head: p.head, Base: p.base, Body: &p.body, Draft: &p.draft}
	pr, _, err := g.lib.PullRequests.Create(ctx, g.owner, g.name, wanted)
	if err = g.c.failure(ctx, err); p.draft && answered(err, http.StatusUnprocessableEntity) && said(err, "draft pull requests are not supported") {
		ready := false // a plan without drafts
		wanted.Draft = &ready
		pr, _, err = g.lib.PullRequests.Create(ctx, g.owner, g.name, wanted)
		err = g.c.failure(ctx, err)
	}
	switch {
	case answered(err, http.StatusUnprocessableEntity) && said(err, "already exists"):
		return hostedPull{}, errPullExists
	case answered(err, http.StatusUnprocessableEntity) && said(err, "head sha can't be blank", "head ref must be a branch", "head invalid", "field head"):
		return hostedPull{}, &failure.Error{Kind: ErrTemporary, Say: "GitHub does not know the pushed branch yet."}
	case err != nil:
		return hostedPull{}, err
	}
	return g.pull(pr), nil
}

func (g *githubHost) describe(ctx context.Context, number int, body string) error {
	_, _, err := g.lib.PullRequests.Edit(ctx, g.owner, g.name, number, &github.PullRequest{Body: &body})
	return g.c.failure(ctx, err)
}

func (g *githubHost) label(ctx context.Context, number int, labels []string) error {
	// The library sends a bare list, which the description of the API does not know.
	req, err := g.lib.NewRequest(ctx, http.MethodPost, fmt.Sprintf("repos/%s/%s/issues/%d/labels", g.owner, g.name, number), map[string][]string{"labels": labels})
	if err == nil {
		_, err = g.lib.Do(req, nil)
	}
	return g.c.failure(ctx, err)
}

// githubApp is an app as it speaks for itself, to get the token that it acts with.
type githubApp struct {
	*githubHost
	id int64
}

func (h *Hub) githubApp(p api.Project) (*githubApp, error) {
	text, err := readSecret(p.TokenEnv)
	if err != nil {
		return nil, err
	}
	key, err := parseAppKey(text)
	if err != nil {
		return nil, failure.Misconfigured("%s does not hold the app's private key: it must be the PEM file that GitHub gave.", p.TokenEnv)
	}
	c, err := h.hostClient(p, "GitHub", githubAPI(p.HostURL), func(header http.Header, secret string) {
		header.Set("Authorization", "Bearer "+secret)
	})
	if err != nil {
		return nil, err
	}
	c.what = "the app's id and private key"
	c.secret = func(context.Context) (string, error) { return appJWT(p.AppID, key, h.o.Now()) }
	g, err := newGitHub(c, p)
	return &githubApp{githubHost: g, id: p.AppID}, err
}

// installation finds the app's installation on the repository.
func (a *githubApp) installation(ctx context.Context) (int64, error) {
	in, _, err := a.lib.Apps.GetRepositoryInstallation(ctx, a.owner, a.name)
	if err = a.c.failure(ctx, err); answered(err, http.StatusNotFound) {
		return 0, failure.Misconfigured("The GitHub app %d is not installed on %s/%s.", a.id, a.owner, a.name)
	}
	return in.GetID(), err
}

// accessToken makes a token for this one repository, and says when it ends.
func (a *githubApp) accessToken(ctx context.Context, installation int64) (string, time.Time, error) {
	t, _, err := a.lib.Apps.CreateInstallationToken(ctx, installation, &github.InstallationTokenOptions{Repositories: []string{a.name}})
	if err != nil {
		return "", time.Time{}, a.c.failure(ctx, err)
	}
	return t.GetToken(), t.GetExpiresAt().Time, nil
}

// webLink says whether a link is one that may be shown as one.
func webLink(link string) bool {
	u, err := url.Parse(link)
	return err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != "" && u.User == nil
}
