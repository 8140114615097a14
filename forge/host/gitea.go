package host

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"docent/api"
	"docent/forge/failure"
)

// gitea is a repository on a Gitea or Forgejo server.
type gitea struct {
	c           *client
	owner, name string
	web         string
}

func (h *Hosts) gitea(p api.Project) (*gitea, error) {
	web := strings.TrimSuffix(strings.TrimRight(p.HostURL, "/"), "/api/v1")
	c, err := h.client(p, "Gitea", web+"/api/v1", func(header http.Header, secret string) {
		header.Set("Authorization", "token "+secret)
	})
	if err != nil {
		return nil, err
	}
	c.gap = 0 // Gitea has no limits of its own
	owner, name, _ := strings.Cut(p.Repository, "/")
	return &gitea{c: c, owner: owner, name: name, web: web}, nil
}

// giteaPull is what is read of a pull request.
type giteaPull struct {
	Number  int    `json:"number"`
	Title   string `json:"title"`
	Body    string `json:"body"`
	State   string `json:"state"`
	Merged  bool   `json:"merged"`
	Draft   bool   `json:"draft"`
	HTMLURL string `json:"html_url"`
	Labels  []struct {
		Name string `json:"name"`
	} `json:"labels"`
	Head giteaBranch `json:"head"`
	Base giteaBranch `json:"base"`
}

type giteaBranch struct {
	Label  string `json:"label"`
	Ref    string `json:"ref"` // refs/pull/N/head once the branch is gone
	SHA    string `json:"sha"`
	RepoID int64  `json:"repo_id"`
}

func (g *gitea) path(rest string) string {
	return "/repos/" + url.PathEscape(g.owner) + "/" + url.PathEscape(g.name) + rest
}

func (g *gitea) redirected() bool { return g.c.moved.Load() }

func (g *gitea) Repository(ctx context.Context) (Repository, error) {
	var r struct {
		FullName    string `json:"full_name"`
		Archived    bool   `json:"archived"`
		Permissions *struct {
			Push bool `json:"push"`
		} `json:"permissions"`
	}
	if err := g.c.ask(ctx, http.MethodGet, g.path(""), nil, nil, &r); err != nil {
		return Repository{}, err
	}
	return Repository{Name: r.FullName, Archived: r.Archived, Push: r.Permissions == nil || r.Permissions.Push}, nil
}

// Find asks for the one between two branches, which tells of closed ones too. There may be an open one beside a closed
// one, or toward another base: those the list of open ones tells. It is long when many jobs are open, and names the
// pull requests of a branch that is gone otherwise: it is not read for one that is not there.
func (g *gitea) Find(ctx context.Context, branch, base string, there bool) (Pull, error) {
	var one giteaPull
	parts := strings.Split(branch, "/")
	for i := range parts {
		parts[i] = url.PathEscape(parts[i]) // its slashes stay
	}
	err := g.c.ask(ctx, http.MethodGet, g.path("/pulls/"+url.PathEscape(base)+"/"+strings.Join(parts, "/")), nil,
		nil, &one)
	var found Pull
	switch {
	case answered(err, http.StatusNotFound):
	case err != nil:
		return Pull{}, err
	default:
		if found = g.pull(one); found.State == api.PullOpen {
			return found, nil
		}
	}
	perPage, pages := 50, 40
	if !there {
		perPage, pages = 1, 1 // only to hear whether the repository is there
	}
	for page := 1; page <= pages; page++ {
		var list []giteaPull
		query := url.Values{"state": {"open"}, "sort": {"newest"}, "page": {strconv.Itoa(page)},
			"limit": {strconv.Itoa(perPage)}}
		if err := g.c.ask(ctx, http.MethodGet, g.path("/pulls"), query, nil, &list); err != nil {
			return Pull{}, err // of a repository that is not there, too
		}
		for _, pr := range list {
			if pr.State == "open" && pr.Head.Ref == branch && pr.Head.RepoID == pr.Base.RepoID {
				return g.pull(pr), nil
			}
		}
		if len(list) < 10 { // a server may give shorter pages than were asked for, but not that short
			break
		}
	}
	return found, nil
}

func (g *gitea) pull(pr giteaPull) Pull {
	p := Pull{
		Number: pr.Number, Link: pr.HTMLURL, Title: pr.Title, Body: pr.Body, Draft: pr.Draft,
		Head: pr.Head.Label, Base: pr.Base.Ref, Commit: pr.Head.SHA, State: api.PullOpen,
	}
	switch {
	case pr.Merged:
		p.State = api.PullMerged
	case pr.State == "closed":
		p.State = api.PullClosed
	}
	for _, l := range pr.Labels {
		p.Labels = append(p.Labels, l.Name)
	}
	if !webLink(p.Link) {
		p.Link = fmt.Sprintf("%s/%s/%s/pulls/%d", g.web, g.owner, g.name, p.Number)
	}
	return p
}

func (g *gitea) Get(ctx context.Context, number int) (Pull, error) {
	var pr giteaPull
	err := g.c.ask(ctx, http.MethodGet, g.path("/pulls/"+strconv.Itoa(number)), nil, nil, &pr)
	return g.pull(pr), err
}

func (g *gitea) Create(ctx context.Context, p Pull) (Pull, error) {
	title := p.Title
	if p.Draft {
		title = "WIP: " + title
	}
	var pr giteaPull
	err := g.c.ask(ctx, http.MethodPost, g.path("/pulls"), nil,
		map[string]string{"title": title, "head": p.Head, "base": p.Base, "body": p.Body}, &pr)
	switch {
	case answered(err, http.StatusConflict):
		return Pull{}, ErrPullExists
	case answered(err, http.StatusNotFound):
		// The branch was pushed a moment ago and may not be known yet.
		if _, gone := g.Repository(ctx); gone != nil {
			return Pull{}, gone
		}
		return Pull{}, &failure.Error{Kind: failure.ErrTemporary, Say: "Gitea does not know the pushed branch yet."}
	case err != nil:
		return Pull{}, err
	}
	return g.pull(pr), nil
}

func (g *gitea) Describe(ctx context.Context, number int, body string) error {
	return g.c.ask(ctx, http.MethodPatch, g.path("/pulls/"+strconv.Itoa(number)), nil,
		map[string]string{"body": body}, nil)
}

// Label goes by name here; on creation the host knows labels by number only.
func (g *gitea) Label(ctx context.Context, number int, labels []string) error {
	return g.c.ask(ctx, http.MethodPost, g.path("/issues/"+strconv.Itoa(number)+"/labels"), nil,
		map[string][]string{"labels": labels}, nil)
}

// Reviewers go by the reviews alone, where the host keeps requests for them too.
func (g *gitea) Reviewers(ctx context.Context, number int) ([]string, error) {
	var reviews []struct {
		User giteaUser `json:"user"`
		Team struct {
			Name string `json:"name"`
		} `json:"team"`
	}
	err := g.c.ask(ctx, http.MethodGet, g.path("/pulls/"+strconv.Itoa(number)+"/reviews"),
		url.Values{"limit": {strconv.Itoa(perPage)}}, nil, &reviews)
	var out []string
	for _, r := range reviews {
		if r.Team.Name != "" {
			out = append(out, g.owner+"/"+r.Team.Name)
		} else {
			out = append(out, r.User.Login)
		}
	}
	return out, err
}

func (g *gitea) Ask(ctx context.Context, number int, who []string) error {
	accounts, teams := split(who)
	return g.c.ask(ctx, http.MethodPost, g.path("/pulls/"+strconv.Itoa(number)+"/requested_reviewers"), nil,
		map[string][]string{"reviewers": accounts, "team_reviewers": teams}, nil)
}

func (g *gitea) CommitAuthor(ctx context.Context, commit string) (string, error) {
	var c struct {
		Author giteaUser `json:"author"`
	}
	err := g.c.ask(ctx, http.MethodGet, g.path("/git/commits/"+url.PathEscape(commit)),
		url.Values{"stat": {"false"}, "verification": {"false"}, "files": {"false"}}, nil, &c)
	return c.Author.Login, err
}
