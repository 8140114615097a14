package host

import (
	"cmp"
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

// gitLab is a project on gitlab.com or another GitLab server. Its pull requests are merge requests.
type gitLab struct {
	c    *client
	lib  *gitlab.Client
	repo string
	web  string
}

// unlimited leaves it to the client to keep the host's limits.
type unlimited struct{}

func (unlimited) Wait(context.Context) error { return nil }

func (h *Hosts) gitlab(p api.Project) (*gitLab, error) {
	web := strings.TrimSuffix(strings.TrimRight(p.HostURL, "/"), "/api/v4")
	web = cmp.Or(web, "https://gitlab.com")
	c, err := h.client(p, "GitLab", web+"/api/v4", func(header http.Header, secret string) {
		header.Set("Private-Token", secret)
	})
	if err != nil {
		return nil, err
	}
	c.gap = 0 // GitLab asks for none
	lib, err := gitlab.NewClient("", gitlab.WithBaseURL(web), gitlab.WithHTTPClient(c.httpClient()),
		gitlab.WithoutRetries(),
		gitlab.WithCustomLimiter(unlimited{}), gitlab.WithUserAgent("docent"))
	if err != nil {
		return nil, failure.Misconfigured("The host's address is not understood.")
	}
	return &gitLab{c: c, lib: lib, repo: p.Repository, web: web}, nil
}

func (g *gitLab) redirected() bool { return g.c.moved.Load() }

func (g *gitLab) Repository(ctx context.Context) (Repository, error) {
	p, _, err := g.lib.Projects.GetProject(g.repo, nil, gitlab.WithContext(ctx))
	if err != nil {
		return Repository{}, g.c.failure(ctx, err)
	}
	out := Repository{Name: p.PathWithNamespace, Archived: p.Archived, Push: true}
	var token struct {
		Scopes []string `json:"scopes"`
	}
	switch err := g.c.ask(ctx, http.MethodGet, "/personal_access_tokens/self", nil, nil, &token); {
	case err == nil && slices.Contains(token.Scopes, "api"):
		out.Pulls = Granted
	case err == nil && len(token.Scopes) > 0:
		out.Pulls = Denied
	case err != nil && !errors.Is(err, failure.ErrMisconfigured): // a token of another kind is not known there
		return Repository{}, err
	}
	if perms := p.Permissions; perms != nil && (perms.ProjectAccess != nil || perms.GroupAccess != nil) {
		out.Push = perms.ProjectAccess != nil && perms.ProjectAccess.AccessLevel >= gitlab.DeveloperPermissions ||
			perms.GroupAccess != nil && perms.GroupAccess.AccessLevel >= gitlab.DeveloperPermissions
	}
	return out, nil
}

func (g *gitLab) Find(ctx context.Context, branch, _ string, _ bool) (Pull, error) {
	list, _, err := g.lib.MergeRequests.ListProjectMergeRequests(g.repo, &gitlab.ListProjectMergeRequestsOptions{
		ListOptions: gitlab.ListOptions{PerPage: 100}, State: gitlab.Ptr("all"), SourceBranch: &branch,
		OrderBy: gitlab.Ptr("created_at"), Sort: gitlab.Ptr("desc"),
	}, gitlab.WithContext(ctx))
	if err != nil {
		return Pull{}, g.c.failure(ctx, err)
	}
	var pulls []Pull
	for _, mr := range list {
		if mr.SourceBranch != branch || mr.SourceProjectID != mr.TargetProjectID { // a fork's branch may have the same name
			continue
		}
		pulls = append(pulls, g.pull(mr))
	}
	return current(pulls), nil
}

func (g *gitLab) pull(mr *gitlab.BasicMergeRequest) Pull {
	p := Pull{
		Number: int(mr.IID), Link: mr.WebURL, Title: mr.Title, Body: mr.Description, Draft: mr.Draft,
		Head: mr.SourceBranch, Base: mr.TargetBranch,
		Commit: mr.SHA, Labels: mr.Labels, State: api.PullOpen,
	}
	switch mr.State {
	case "merged":
		p.State = api.PullMerged
	case "closed":
		p.State = api.PullClosed
	} // "locked" is a merge that goes on: it ends open or merged
	if !webLink(p.Link) {
		p.Link = g.web + "/" + g.repo + "/-/merge_requests/" + strconv.Itoa(p.Number)
	}
	return p
}

func (g *gitLab) Get(ctx context.Context, number int) (Pull, error) {
	mr, _, err := g.lib.MergeRequests.GetMergeRequest(g.repo, int64(number), nil, gitlab.WithContext(ctx))
	if err != nil {
		return Pull{}, g.c.failure(ctx, err)
	}
	return g.pull(&mr.BasicMergeRequest), nil
}

func (g *gitLab) Create(ctx context.Context, p Pull) (Pull, error) {
	title := p.Title
	if p.Draft {
		title = "Draft: " + title
	}
	opt := &gitlab.CreateMergeRequestOptions{Title: &title, Description: &p.Body, SourceBranch: &p.Head,
		TargetBranch: &p.Base}
	if len(p.Labels) > 0 {
		labels := gitlab.LabelOptions(p.Labels)
		opt.Labels = &labels
	}
	mr, _, err := g.lib.MergeRequests.CreateMergeRequest(g.repo, opt, gitlab.WithContext(ctx))
	if err = g.c.failure(ctx, err); answered(err, http.StatusConflict) {
		return Pull{}, ErrPullExists // the status decides: the words are in the server's language
	}
	if err != nil {
		return Pull{}, err
	}
	return g.pull(&mr.BasicMergeRequest), nil
}

func (g *gitLab) Describe(ctx context.Context, number int, body string) error {
	_, _, err := g.lib.MergeRequests.UpdateMergeRequest(g.repo, int64(number),
		&gitlab.UpdateMergeRequestOptions{Description: &body}, gitlab.WithContext(ctx))
	return g.c.failure(ctx, err)
}

func (g *gitLab) Label(ctx context.Context, number int, labels []string) error {
	add := gitlab.LabelOptions(labels)
	_, _, err := g.lib.MergeRequests.UpdateMergeRequest(g.repo, int64(number),
		&gitlab.UpdateMergeRequestOptions{AddLabels: &add}, gitlab.WithContext(ctx))
	return g.c.failure(ctx, err)
}

func (g *gitLab) Reviewers(ctx context.Context, number int) ([]string, error) {
	list, err := g.reviewers(ctx, number)
	var out []string
	for _, u := range list {
		out = append(out, u.Username)
	}
	return out, err
}

func (g *gitLab) reviewers(ctx context.Context, number int) ([]*gitlab.BasicUser, error) {
	mr, _, err := g.lib.MergeRequests.GetMergeRequest(g.repo, int64(number), nil, gitlab.WithContext(ctx))
	if err != nil {
		return nil, g.c.failure(ctx, err)
	}
	return mr.Reviewers, nil
}

// Ask sets the whole list of reviewers, with those who are there: the host cannot add one.
func (g *gitLab) Ask(ctx context.Context, number int, who []string) error {
	had, err := g.reviewers(ctx, number)
	if err != nil {
		return err
	}
	var ids []int64
	for _, u := range had {
		ids = append(ids, u.ID)
	}
	for _, name := range who {
		users, _, err := g.lib.Users.ListUsers(&gitlab.ListUsersOptions{Username: &name}, gitlab.WithContext(ctx))
		if err != nil {
			return g.c.failure(ctx, err)
		}
		if len(users) == 0 {
			return failure.Misconfigured("GitLab knows no account %s; groups cannot be asked to review.", name)
		}
		ids = append(ids, users[0].ID)
	}
	_, _, err = g.lib.MergeRequests.UpdateMergeRequest(g.repo, int64(number),
		&gitlab.UpdateMergeRequestOptions{ReviewerIDs: &ids}, gitlab.WithContext(ctx))
	return g.c.failure(ctx, err)
}

// CommitAuthor is who opened the merge request that a commit came with: commits here have addresses, and no accounts.
func (g *gitLab) CommitAuthor(ctx context.Context, commit string) (string, error) {
	list, _, err := g.lib.Commits.ListMergeRequestsByCommit(g.repo, commit, gitlab.WithContext(ctx))
	if err != nil || len(list) == 0 || list[0].Author == nil || gitlabBot.MatchString(list[0].Author.Username) {
		return "", g.c.failure(ctx, err)
	}
	return list[0].Author.Username, nil
}
