package forge

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"

	gitlab "gitlab.com/gitlab-org/api/client-go/v2"

	"docent/api"
	"docent/forge/failure"
)

// gitlabHost is a project on gitlab.com or another GitLab server. Its pull requests are merge requests.
type gitlabHost struct {
	c    *hostClient
	lib  *gitlab.Client
	repo string
	web  string
}

// unlimited leaves it to the hostClient to keep the host's limits.
type unlimited struct{}

func (unlimited) Wait(context.Context) error { return nil }

func (h *Hub) gitlab(p api.Project) (*gitlabHost, error) {
	web := strings.TrimSuffix(strings.TrimRight(p.HostURL, "/"), "/api/v4")
	if web == "" {
		web = "https://gitlab.com"
	}
	c, err := h.hostClient(p, "GitLab", web+"/api/v4", func(header http.Header, secret string) {
		header.Set("Private-Token", secret)
	})
	if err != nil {
		return nil, err
	}
	c.gap = 0 // GitLab asks for none
	lib, err := gitlab.NewClient("", gitlab.WithBaseURL(web), gitlab.WithHTTPClient(c.client()), gitlab.WithoutRetries(),
		gitlab.WithCustomLimiter(unlimited{}), gitlab.WithUserAgent("docent"))
	if err != nil {
		return nil, failure.Misconfigured("The host's address is not understood.")
	}
	return &gitlabHost{c: c, lib: lib, repo: p.Repository, web: web}, nil
}

func (g *gitlabHost) redirected() bool { return g.c.moved.Load() }

func (g *gitlabHost) repository(ctx context.Context) (repository, error) {
	p, _, err := g.lib.Projects.GetProject(g.repo, nil, gitlab.WithContext(ctx))
	if err != nil {
		return repository{}, g.c.failure(ctx, err)
	}
	out := repository{name: p.PathWithNamespace, archived: p.Archived, push: true}
	var token struct {
		Scopes []string `json:"scopes"`
	}
	switch err := g.c.ask(ctx, http.MethodGet, "/personal_access_tokens/self", nil, nil, &token); {
	case err == nil && slices.Contains(token.Scopes, "api"):
		out.pulls = granted
	case err == nil && len(token.Scopes) > 0:
		out.pulls = denied
	case err != nil && !errors.Is(err, ErrMisconfigured): // a token of another kind is not known there
		return repository{}, err
	}
	if perms := p.Permissions; perms != nil && (perms.ProjectAccess != nil || perms.GroupAccess != nil) {
		out.push = perms.ProjectAccess != nil && perms.ProjectAccess.AccessLevel >= gitlab.DeveloperPermissions ||
			perms.GroupAccess != nil && perms.GroupAccess.AccessLevel >= gitlab.DeveloperPermissions
	}
	return out, nil
}

func (g *gitlabHost) find(ctx context.Context, branch, _ string, _ bool) (hostedPull, error) {
	list, _, err := g.lib.MergeRequests.ListProjectMergeRequests(g.repo, &gitlab.ListProjectMergeRequestsOptions{
		ListOptions: gitlab.ListOptions{PerPage: 100}, State: gitlab.Ptr("all"), SourceBranch: &branch,
		OrderBy: gitlab.Ptr("created_at"), Sort: gitlab.Ptr("desc"),
	}, gitlab.WithContext(ctx))
	if err != nil {
		return hostedPull{}, g.c.failure(ctx, err)
	}
	var best hostedPull
	for _, mr := range list {
		if mr.SourceBranch != branch || mr.SourceProjectID != mr.TargetProjectID { // a fork's branch may have the same name
			continue
		}
		p := g.pull(mr)
		if p.state == api.PullOpen {
			return p, nil
		}
		if p.number > best.number {
			best = p
		}
	}
	return best, nil
}

func (g *gitlabHost) pull(mr *gitlab.BasicMergeRequest) hostedPull {
	p := hostedPull{
		number: int(mr.IID), link: mr.WebURL, title: mr.Title, body: mr.Description, draft: mr.Draft, head: mr.SourceBranch, base: mr.TargetBranch,
		commit: mr.SHA, labels: mr.Labels, state: api.PullOpen,
	}
	switch mr.State {
	case "merged":
		p.state = api.PullMerged
	case "closed":
		p.state = api.PullClosed
	} // "locked" is a merge that goes on: it ends open or merged
	if !webLink(p.link) {
		p.link = g.web + "/" + g.repo + "/-/merge_requests/" + strconv.Itoa(p.number)
	}
	return p
}

func (g *gitlabHost) get(ctx context.Context, number int) (hostedPull, error) {
	mr, _, err := g.lib.MergeRequests.GetMergeRequest(g.repo, int64(number), nil, gitlab.WithContext(ctx))
	if err != nil {
		return hostedPull{}, g.c.failure(ctx, err)
	}
	return g.pull(&mr.BasicMergeRequest), nil
}

func (g *gitlabHost) create(ctx context.Context, p hostedPull) (hostedPull, error) {
	title := p.title
	if p.draft {
		title = "Draft: " + title
	}
	opt := &gitlab.CreateMergeRequestOptions{Title: &title, Description: &p.body, SourceBranch: &p.head, TargetBranch: &p.base}
	if len(p.labels) > 0 {
		labels := gitlab.LabelOptions(p.labels)
		opt.Labels = &labels
	}
	mr, _, err := g.lib.MergeRequests.CreateMergeRequest(g.repo, opt, gitlab.WithContext(ctx))
	if err = g.c.failure(ctx, err); answered(err, http.StatusConflict) {
		return hostedPull{}, errPullExists // the status decides: the words are in the server's language
	}
	if err != nil {
		return hostedPull{}, err
	}
	return g.pull(&mr.BasicMergeRequest), nil
}

func (g *gitlabHost) describe(ctx context.Context, number int, body string) error {
	_, _, err := g.lib.MergeRequests.UpdateMergeRequest(g.repo, int64(number), &gitlab.UpdateMergeRequestOptions{Description: &body}, gitlab.WithContext(ctx))
	return g.c.failure(ctx, err)
}

func (g *gitlabHost) label(ctx context.Context, number int, labels []string) error {
	add := gitlab.LabelOptions(labels)
	_, _, err := g.lib.MergeRequests.UpdateMergeRequest(g.repo, int64(number), &gitlab.UpdateMergeRequestOptions{AddLabels: &add}, gitlab.WithContext(ctx))
	return g.c.failure(ctx, err)
}
