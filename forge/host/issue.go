package host

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"docent/forge/failure"
)

const (
	issuesPerPage = 50 // Gitea gives no more
	issuePages    = 20 // of a busy repository that are looked through
	clocksDiffer  = 5 * time.Minute
)

// An opened issue, in the words of all hosts.
type opened struct {
	HTMLURL     string `json:"html_url"`
	WebURL      string `json:"web_url"`
	Body        string `json:"body"`
	Description string `json:"description"`
}

func (o *opened) link() string {
	for _, link := range []string{o.HTMLURL, o.WebURL} {
		if webLink(link) {
			return link
		}
	}
	return ""
}

// openIssue opens an issue, unless one with the key's mark is there since a time. The query asks the host for those; text
// is how it calls an issue's body.
func (c *client) openIssue(ctx context.Context, path string, query url.Values, text, key, title, body string) (string, error) {
	query.Set("per_page", strconv.Itoa(issuesPerPage))
	query.Set("limit", strconv.Itoa(issuesPerPage)) // in Gitea's words
	for page := 1; page <= issuePages; page++ {
		query.Set("page", strconv.Itoa(page))
		var list []opened
		if err := c.ask(ctx, http.MethodGet, path, query, nil, &list); err != nil {
			return "", err
		}
		for i := range list {
			if has, ok := marked(list[i].Body + list[i].Description); ok && has == key {
				return list[i].link(), nil
			}
		}
		if len(list) < issuesPerPage {
			break
		}
	}
	if c.moved.Load() {
		return "", failure.Misconfigured("The repository %s was renamed: update the project's repository.", c.repo)
	}
	var made opened
	err := c.ask(ctx, http.MethodPost, path, nil, map[string]string{"title": title, text: body + "\n" + mark(key)}, &made)
	return made.link(), err
}

func (g *gitHub) OpenIssue(ctx context.Context, key, title, body string, since time.Time) (string, error) {
	return g.c.openIssue(ctx, "/repos/"+url.PathEscape(g.owner)+"/"+url.PathEscape(g.name)+"/issues",
		url.Values{"state": {"all"}, "since": {stamp(since)}}, "body", key, title, body)
}

func (g *gitea) OpenIssue(ctx context.Context, key, title, body string, since time.Time) (string, error) {
	return g.c.openIssue(ctx, g.path("/issues"), url.Values{"state": {"all"}, "type": {"issues"}, "since": {stamp(since)}}, "body",
		key, title, body)
}

func (g *gitLab) OpenIssue(ctx context.Context, key, title, body string, since time.Time) (string, error) {
	return g.c.openIssue(ctx, "/projects/"+url.PathEscape(g.repo)+"/issues", url.Values{"scope": {"all"}, "created_after": {stamp(since)}},
		"description", key, title, body)
}

func stamp(since time.Time) string { return since.Add(-clocksDiffer).UTC().Format(time.RFC3339) }
