package host

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

// gitHub is a repository on GitHub or a GitHub Enterprise server.
type gitHub struct {
	c           *client
	lib         *github.Client
	owner, name string
	web         string
	app         bool // the credentials are an app's
	// the account that the app writes as; nil if the credentials are somebody's token
	self func(ctx context.Context) (string, error)
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

// githubAPI is the address of the host's API: a host of its own on github.com and ghe.com, a path on an enterprise
// server.
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

func (h *Hosts) github(p api.Project) (*gitHub, error) {
	c, err := h.client(p, "GitHub", githubAPI(p.HostURL), func(header http.Header, secret string) {
		header.Set("Authorization", "Bearer "+secret)
	})
	if err != nil {
		return nil, err
	}
	if p.AppID == 0 {
		return newGitHub(c, p)
	}
	c.renew = func(refused string) bool { return h.dropAppToken(p, refused) }
	g, err := newGitHub(c, p)
	if err == nil {
		g.self = func(ctx context.Context) (string, error) { return h.appLogin(ctx, p) }
	}
	return g, err
}

func newGitHub(c *client, p api.Project) (*gitHub, error) {
	base := c.base.String() + "/"
	// The client keeps the limits, for all hosts alike and for all jobs together.
	lib, err := github.NewClient(github.WithHTTPClient(c.httpClient()), github.WithURLs(&base, &base),
		github.WithDisableRateLimitCheck(),
		github.WithUserAgent("docent"))
	if err != nil {
		return nil, failure.Misconfigured("The host's address is not understood.")
	}
	owner, name, _ := strings.Cut(p.Repository, "/")
	return &gitHub{c: c, lib: lib, owner: owner, name: name, web: githubWeb(p.HostURL), app: p.AppID != 0}, nil
}

func (g *gitHub) redirected() bool { return g.c.moved.Load() }

func (g *gitHub) Repository(ctx context.Context) (Repository, error) {
	r, res, err := g.lib.Repositories.Get(ctx, g.owner, g.name)
	if err != nil {
		return Repository{}, g.c.failure(ctx, err)
	}
	pulls := Unsaid
	if scopes := res.Header.Values("X-OAuth-Scopes"); len(scopes) > 0 && !g.app { // a classic token's; others have none
		pulls = Denied
		for scope := range strings.SplitSeq(strings.Join(scopes, ","), ",") {
			if scope = strings.TrimSpace(scope); scope == "repo" || scope == "public_repo" && !r.GetPrivate() {
				pulls = Granted
			}
		}
	}
	// The permissions are a user's; what an app may do shows with the push itself.
	push := g.app || r.Permissions == nil || r.GetPermissions().GetPush()
	return Repository{Name: r.GetFullName(), Archived: r.GetArchived() || r.GetDisabled(), Push: push, Pulls: pulls}, nil
}

func (g *gitHub) Find(ctx context.Context, branch, _ string, _ bool) (Pull, error) {
	list, _, err := g.lib.PullRequests.List(ctx, g.owner, g.name, &github.PullRequestListOptions{
		State: "all", Head: g.owner + ":" + branch, Sort: "created", Direction: "desc",
		ListOptions: github.ListOptions{PerPage: 100},
	})
	if err != nil {
		return Pull{}, g.c.failure(ctx, err)
	}
	var pulls []Pull
	for _, pr := range list {
		// A filter that the host does not understand is one that it ignores; and a fork's owner may be the same. Names
		// may have changed since the project was set up, numbers have not.
		from, into := pr.GetHead().GetRepo(), pr.GetBase().GetRepo()
		if pr.GetHead().GetRef() != branch || from != nil && into != nil && from.GetID() != into.GetID() {
			continue
		}
		pulls = append(pulls, g.pull(pr))
	}
	return current(pulls), nil
}

func (g *gitHub) pull(pr *github.PullRequest) Pull {
	p := Pull{
		Number: pr.GetNumber(), Link: pr.GetHTMLURL(), Title: pr.GetTitle(), Body: pr.GetBody(), Draft: pr.GetDraft(),
		Head: pr.GetHead().GetRef(), Base: pr.GetBase().GetRef(), Commit: pr.GetHead().GetSHA(), State: api.PullOpen,
	}
	switch {
	case pr.MergedAt != nil || pr.GetMerged():
		p.State = api.PullMerged
	case pr.GetState() == "closed":
		p.State = api.PullClosed
	}
	for _, l := range pr.Labels {
		p.Labels = append(p.Labels, l.GetName())
	}
	if !webLink(p.Link) {
		p.Link = g.web + "/" + g.owner + "/" + g.name + "/pull/" + strconv.Itoa(p.Number)
	}
	return p
}

func (g *gitHub) Get(ctx context.Context, number int) (Pull, error) {
	pr, _, err := g.lib.PullRequests.Get(ctx, g.owner, g.name, number)
	if err != nil {
		return Pull{}, g.c.failure(ctx, err)
	}
	return g.pull(pr), nil
}

func (g *gitHub) Create(ctx context.Context, p Pull) (Pull, error) {
	wanted := github.CreatePullRequest{Title: &p.Title, Head: p.Head, Base: p.Base, Body: &p.Body, Draft: &p.Draft}
	pr, _, err := g.lib.PullRequests.Create(ctx, g.owner, g.name, wanted)
	if err = g.c.failure(ctx, err); p.Draft && answered(err, http.StatusUnprocessableEntity) &&
		said(err, "draft pull requests are not supported") {
		ready := false // a plan without drafts
		wanted.Draft = &ready
		pr, _, err = g.lib.PullRequests.Create(ctx, g.owner, g.name, wanted)
		err = g.c.failure(ctx, err)
	}
	switch {
	case answered(err, http.StatusUnprocessableEntity) && said(err, "already exists"):
		return Pull{}, ErrPullExists
	case answered(err, http.StatusUnprocessableEntity) &&
		said(err, "head sha can't be blank", "head ref must be a branch", "head invalid", "field head"):
		return Pull{}, &failure.Error{Kind: failure.ErrTemporary, Say: "GitHub does not know the pushed branch yet."}
	case err != nil:
		return Pull{}, err
	}
	return g.pull(pr), nil
}

func (g *gitHub) Describe(ctx context.Context, number int, body string) error {
	_, _, err := g.lib.PullRequests.Edit(ctx, g.owner, g.name, number, &github.PullRequest{Body: &body})
	return g.c.failure(ctx, err)
}

func (g *gitHub) Label(ctx context.Context, number int, labels []string) error {
	// The library sends a bare list, which the description of the API does not know.
	req, err := g.lib.NewRequest(ctx, http.MethodPost,
		fmt.Sprintf("repos/%s/%s/issues/%d/labels", g.owner, g.name, number), map[string][]string{"labels": labels})
	if err == nil {
		_, err = g.lib.Do(req, nil)
	}
	return g.c.failure(ctx, err)
}

// split tells accounts from teams, of which the host knows the names without their owners.
func split(who []string) (accounts, teams []string) {
	for _, w := range who {
		if _, team, ok := strings.Cut(w, "/"); ok {
			teams = append(teams, team)
		} else {
			accounts = append(accounts, w)
		}
	}
	return accounts, teams
}

func (g *gitHub) Reviewers(ctx context.Context, number int) ([]string, error) {
	pr, _, err := g.lib.PullRequests.Get(ctx, g.owner, g.name, number)
	if err != nil {
		return nil, g.c.failure(ctx, err)
	}
	var out []string
	for _, u := range pr.RequestedReviewers {
		out = append(out, u.GetLogin())
	}
	for _, t := range pr.RequestedTeams {
		out = append(out, g.owner+"/"+t.GetSlug())
	}
	reviews, _, err := g.lib.PullRequests.ListReviews(ctx, g.owner, g.name, number, &github.ListOptions{PerPage: 100})
	for _, r := range reviews {
		out = append(out, r.GetUser().GetLogin()) // who was asked, and has answered, is not among the others any more
	}
	return out, g.c.failure(ctx, err)
}

func (g *gitHub) Ask(ctx context.Context, number int, who []string) error {
	accounts, teams := split(who)
	_, _, err := g.lib.PullRequests.RequestReviewers(ctx, g.owner, g.name, number,
		github.ReviewersRequest{Reviewers: accounts, TeamReviewers: teams})
	return g.c.failure(ctx, err)
}

func (g *gitHub) CommitAuthor(ctx context.Context, commit string) (string, error) {
	list, _, err := g.lib.Repositories.ListCommits(ctx, g.owner, g.name,
		&github.CommitsListOptions{SHA: commit, ListOptions: github.ListOptions{PerPage: 1}})
	if err != nil || len(list) == 0 || list[0].GetSHA() != commit || list[0].GetAuthor().GetType() == "Bot" {
		return "", g.c.failure(ctx, err)
	}
	return list[0].GetAuthor().GetLogin(), nil
}

// commitName is an account as the author of commits, with the address that the host gives to accounts.
func (g *gitHub) commitName(ctx context.Context, login string) (string, error) {
	user, _, err := g.lib.Users.Get(ctx, login)
	if err != nil {
		return "", g.c.failure(ctx, err)
	}
	_, domain, _ := strings.Cut(g.web, "://")
	return fmt.Sprintf("%s <%d+%[1]s@users.noreply.%[3]s>", login, user.GetID(), domain), nil
}

// githubApp is an app as it speaks for itself, to get the token that it acts with.
type githubApp struct {
	*gitHub
	id int64
}

func (h *Hosts) githubApp(p api.Project) (*githubApp, error) {
	text, err := h.credentials(p)
	if err != nil {
		return nil, err
	}
	key, err := parseAppKey(text)
	if err != nil {
		return nil, failure.Misconfigured("%s does not hold the app's private key: it must be the PEM file that GitHub gave.",
			p.Credentials())
	}
	c, err := h.client(p, "GitHub", githubAPI(p.HostURL), func(header http.Header, secret string) {
		header.Set("Authorization", "Bearer "+secret)
	})
	if err != nil {
		return nil, err
	}
	c.what = "the app's id and private key"
	c.secret = func(context.Context) (string, error) { return appJWT(p.AppID, key, h.o.Now()) }
	g, err := newGitHub(c, p)
	return &githubApp{gitHub: g, id: p.AppID}, err
}

// installation finds the app's installation on the repository.
func (a *githubApp) installation(ctx context.Context) (int64, error) {
	in, _, err := a.lib.Apps.GetRepositoryInstallation(ctx, a.owner, a.name)
	if err = a.c.failure(ctx, err); answered(err, http.StatusNotFound) {
		return 0, failure.Misconfigured("The GitHub app %d is not installed on %s/%s.", a.id, a.owner, a.name)
	}
	return in.GetID(), err
}

// login is the account that the app's comments are by.
func (a *githubApp) login(ctx context.Context) (string, error) {
	app, _, err := a.lib.Apps.Get(ctx, "")
	if err != nil {
		return "", a.c.failure(ctx, err)
	}
	return app.GetSlug() + "[bot]", nil
}

// accessToken makes a token for this one repository, and says when it ends.
func (a *githubApp) accessToken(ctx context.Context, installation int64) (string, time.Time, error) {
	t, _, err := a.lib.Apps.CreateInstallationToken(ctx, installation,
		&github.InstallationTokenOptions{Repositories: []string{a.name}})
	if err != nil {
		return "", time.Time{}, a.c.failure(ctx, err)
	}
	return t.GetToken(), t.GetExpiresAt().Time, nil
}

// webLink reports whether a link is one that may be shown as one.
func webLink(link string) bool {
	u, err := url.Parse(link)
	return err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != "" && u.User == nil
}
