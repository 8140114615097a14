package host

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"docent/api"
	"docent/forge/failure"
)

// A Thread is an issue or a discussion of a repository.
type Thread struct {
	Number     int       `json:"number"`
	Discussion bool      `json:"discussion,omitempty"`
	Title      string    `json:"title"`
	Body       string    `json:"body"`
	Link       string    `json:"link"`
	Author     string    `json:"author"`
	Bot        bool      `json:"bot,omitempty"`
	Labels     []string  `json:"labels,omitempty"`
	Closed     bool      `json:"closed,omitempty"`   // an issue that is done, not one that was turned down
	Declined   bool      `json:"declined,omitempty"` // closed as not planned, or as a duplicate
	Answered   bool      `json:"answered,omitempty"` // a discussion with an answer
	Ended      time.Time `json:"ended,omitzero"`
	Updated    time.Time `json:"updated"`
	Said       []Said    `json:"said,omitempty"`
	Comments   int       `json:"comments"`
}

// A Said is a comment in a thread.
type Said struct {
	Author     string    `json:"author"`
	Bot        bool      `json:"bot,omitempty"`
	Maintainer bool      `json:"maintainer,omitempty"` // of somebody who may decide in the repository
	Answer     bool      `json:"answer,omitempty"`     // accepted
	Body       string    `json:"body"`
	At         time.Time `json:"at"`
}

const (
	threadPage  = 100
	saidMost    = 100 // comments of one thread that are read
	threadsMost = 100_000
	discussions = 25 // of one request, with their comments
)

type wireIssue struct {
	Number      int              `json:"number"`
	Title       string           `json:"title"`
	Body        string           `json:"body"`
	HTMLURL     string           `json:"html_url"`
	State       string           `json:"state"`
	StateReason string           `json:"state_reason"`
	Comments    int              `json:"comments"`
	ClosedAt    *time.Time       `json:"closed_at"`
	UpdatedAt   time.Time        `json:"updated_at"`
	PullRequest *json.RawMessage `json:"pull_request"`
	User        wireAccount      `json:"user"`
	Labels      []struct {
		Name string `json:"name"`
	} `json:"labels"`
}

type wireAccount struct {
	Login string `json:"login"`
	Type  string `json:"type"`
}

func (a wireAccount) bot() bool {
	return a.Type == "Bot" || strings.HasSuffix(a.Login, "[bot]")
}

// maintains reports whether an association of GitHub's is one of those who look after a repository.
func maintains(association string) bool {
	return association == "OWNER" || association == "MEMBER" || association == "COLLABORATOR"
}

// threadClient is the way to a repository whose threads are read; a public one can be read without credentials.
func (h *Hosts) threadClient(p api.Project, base string) (*client, error) {
	c, err := h.client(p, "GitHub", base, func(header http.Header, secret string) {
		if secret != "" {
			header.Set("Authorization", "Bearer "+secret)
		}
	})
	if err == nil && p.AppID != 0 {
		c.renew = func(refused string) bool { return h.dropAppToken(p, refused) }
	}
	return c, err
}

// Issues tells every issue that was changed since a time, the longest unchanged first, without its comments.
func (h *Hosts) Issues(ctx context.Context, p api.Project, since time.Time, tell func(Thread) error) error {
	c, err := h.threadClient(p, githubAPI(p.HostURL))
	if err != nil {
		return err
	}
	for page := 1; page <= threadsMost/threadPage; page++ {
		query := url.Values{"state": {"all"}, "sort": {"updated"}, "direction": {"asc"}, "per_page": {strconv.Itoa(threadPage)},
			"page": {strconv.Itoa(page)}}
		if !since.IsZero() {
			query.Set("since", since.UTC().Format(time.RFC3339))
		}
		var list []wireIssue
		if err := c.ask(ctx, http.MethodGet, repositoryPath(p)+"/issues", query, nil, &list); err != nil {
			return err
		}
		for _, i := range list {
			if i.PullRequest != nil {
				continue
			}
			if err := tell(i.thread()); err != nil {
				return err
			}
		}
		if len(list) < threadPage {
			return nil
		}
	}
	return tooMany(p)
}

func tooMany(p api.Project) error {
	return failure.Misconfigured("%s has more than %d threads: it cannot be read whole.", p.Repository, threadsMost)
}

func repositoryPath(p api.Project) string {
	owner, name, _ := strings.Cut(p.Repository, "/")
	return "/repos/" + url.PathEscape(owner) + "/" + url.PathEscape(name)
}

func (i *wireIssue) thread() Thread {
	t := Thread{Number: i.Number, Title: i.Title, Body: i.Body, Author: i.User.Login, Bot: i.User.bot(),
		Updated: i.UpdatedAt, Comments: i.Comments}
	if webLink(i.HTMLURL) {
		t.Link = i.HTMLURL
	}
	for _, l := range i.Labels {
		t.Labels = append(t.Labels, l.Name)
	}
	if i.State == "closed" {
		t.Declined = i.StateReason == "not_planned" || i.StateReason == "duplicate"
		t.Closed = !t.Declined
		if i.ClosedAt != nil {
			t.Ended = *i.ClosedAt
		}
	}
	return t
}

// IssueComments are what was said in an issue, oldest first.
func (h *Hosts) IssueComments(ctx context.Context, p api.Project, number int) ([]Said, error) {
	c, err := h.threadClient(p, githubAPI(p.HostURL))
	if err != nil {
		return nil, err
	}
	var list []struct {
		Body              string      `json:"body"`
		User              wireAccount `json:"user"`
		AuthorAssociation string      `json:"author_association"`
		CreatedAt         time.Time   `json:"created_at"`
	}
	path := fmt.Sprintf("%s/issues/%d/comments", repositoryPath(p), number)
	if err := c.ask(ctx, http.MethodGet, path, url.Values{"per_page": {strconv.Itoa(saidMost)}}, nil, &list); err != nil {
		return nil, err
	}
	out := make([]Said, 0, len(list))
	for _, x := range list {
		out = append(out, Said{Author: x.User.Login, Bot: x.User.bot(), Maintainer: maintains(x.AuthorAssociation), Body: x.Body,
			At: x.CreatedAt})
	}
	return out, nil
}

const discussionQuery = `query($owner: String!, $name: String!, $after: String) {
  repository(owner: $owner, name: $name) {
    discussions(first: 25, after: $after, orderBy: {field: UPDATED_AT, direction: DESC}) {
      pageInfo { hasNextPage endCursor }
      nodes {
        number title body url closed isAnswered answerChosenAt closedAt updatedAt
        author { login __typename }
        labels(first: 20) { nodes { name } }
        comments(first: 50) { nodes { body isAnswer authorAssociation createdAt author { login __typename } } }
      }
    }
  }
}`

type wireActor struct {
	Login string `json:"login"`
	Type  string `json:"__typename"`
}

type wireDiscussion struct {
	Number         int        `json:"number"`
	Title          string     `json:"title"`
	Body           string     `json:"body"`
	URL            string     `json:"url"`
	Closed         bool       `json:"closed"`
	IsAnswered     bool       `json:"isAnswered"`
	AnswerChosenAt *time.Time `json:"answerChosenAt"`
	ClosedAt       *time.Time `json:"closedAt"`
	UpdatedAt      time.Time  `json:"updatedAt"`
	Author         *wireActor `json:"author"`
	Labels         struct {
		Nodes []struct {
			Name string `json:"name"`
		} `json:"nodes"`
	} `json:"labels"`
	Comments struct {
		Nodes []struct {
			Body              string     `json:"body"`
			IsAnswer          bool       `json:"isAnswer"`
			AuthorAssociation string     `json:"authorAssociation"`
			CreatedAt         time.Time  `json:"createdAt"`
			Author            *wireActor `json:"author"`
		} `json:"nodes"`
	} `json:"comments"`
}

// Discussions tells every discussion that was changed since a time, with its comments, the newest change first.
func (h *Hosts) Discussions(ctx context.Context, p api.Project, since time.Time, tell func(Thread) error) error {
	base := githubAPI(p.HostURL)
	c, err := h.threadClient(p, strings.TrimSuffix(base, "/v3"))
	if err != nil {
		return err
	}
	owner, name, _ := strings.Cut(p.Repository, "/")
	var after *string
	for range threadsMost / discussions {
		var answer struct {
			Data struct {
				Repository *struct {
					Discussions struct {
						PageInfo struct {
							HasNextPage bool   `json:"hasNextPage"`
							EndCursor   string `json:"endCursor"`
						} `json:"pageInfo"`
						Nodes []wireDiscussion `json:"nodes"`
					} `json:"discussions"`
				} `json:"repository"`
			} `json:"data"`
			Errors []struct {
				Message string `json:"message"`
			} `json:"errors"`
		}
		ask := map[string]any{"query": discussionQuery,
			"variables": map[string]any{"owner": owner, "name": name, "after": after}}
		if err := c.ask(ctx, http.MethodPost, "/graphql", nil, ask, &answer); err != nil {
			return err
		}
		if answer.Data.Repository == nil {
			said := "it has no such repository"
			if len(answer.Errors) > 0 {
				said = failure.Quote(answer.Errors[0].Message, "")
			}
			return failure.Misconfigured("GitHub does not give the discussions of %s: %s.", p.Repository, said)
		}
		list := answer.Data.Repository.Discussions
		for i := range list.Nodes {
			d := &list.Nodes[i]
			if d.UpdatedAt.Before(since) {
				return nil
			}
			if err := tell(d.thread()); err != nil {
				return err
			}
		}
		if !list.PageInfo.HasNextPage {
			return nil
		}
		after = &list.PageInfo.EndCursor
	}
	return tooMany(p)
}

func (a *wireActor) account() wireAccount {
	if a == nil {
		return wireAccount{Login: "ghost"}
	}
	return wireAccount{a.Login, a.Type}
}

func (d *wireDiscussion) thread() Thread {
	who := d.Author.account()
	t := Thread{Number: d.Number, Discussion: true, Title: d.Title, Body: d.Body, Author: who.Login, Bot: who.bot(),
		Closed: d.Closed, Answered: d.IsAnswered, Updated: d.UpdatedAt, Comments: len(d.Comments.Nodes)}
	if webLink(d.URL) {
		t.Link = d.URL
	}
	if d.AnswerChosenAt != nil {
		t.Ended = *d.AnswerChosenAt
	} else if d.ClosedAt != nil {
		t.Ended = *d.ClosedAt
	}
	for _, l := range d.Labels.Nodes {
		t.Labels = append(t.Labels, l.Name)
	}
	for _, x := range d.Comments.Nodes {
		who := x.Author.account()
		t.Said = append(t.Said, Said{Author: who.Login, Bot: who.bot(), Maintainer: maintains(x.AuthorAssociation), Answer: x.IsAnswer,
			Body: x.Body, At: x.CreatedAt})
	}
	slices.SortStableFunc(t.Said, func(a, b Said) int { return a.At.Compare(b.At) })
	return t
}
