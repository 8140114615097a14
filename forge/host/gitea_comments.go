package host

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"docent/forge/failure"
)

// giteaComment is what is read of a comment of the conversation, or on a line.
type giteaComment struct {
	ID      int64     `json:"id"`
	User    giteaUser `json:"user"`
	Body    string    `json:"body"`
	HTMLURL string    `json:"html_url"`
	Created time.Time `json:"created_at"`

	// on a line
	Path    string `json:"path"`
	Line    int    `json:"position"`
	OldLine int    `json:"original_position"`
	Hunk    string `json:"diff_hunk"`
}

type giteaReview struct {
	ID       int64     `json:"id"`
	User     giteaUser `json:"user"`
	State    string    `json:"state"`
	Body     string    `json:"body"`
	HTMLURL  string    `json:"html_url"`
	Comments int       `json:"comments_count"`
	Drafted  time.Time `json:"submitted_at"` // so it is called; it is when the review was begun
	Updated  time.Time `json:"updated_at"`
}

type giteaUser struct {
	ID    int64  `json:"id"`
	Login string `json:"login"`
}

// by sets a comment's author. Numbers below one are the host's own accounts.
func (u giteaUser) by(c *Comment) (heard bool) {
	c.Author = u.Login
	if u.ID > 0 {
		c.account = u.Login
	}
	return u.ID > 0 || u.ID == -1 // the account of those who were removed
}

func (g *gitea) Comments(ctx context.Context, number int, since time.Time) ([]Comment, error) {
	list, err := g.conversation(ctx, number, since)
	if err != nil {
		return nil, err
	}
	reviews, err := g.reviews(ctx, number)
	if err != nil {
		return nil, err
	}
	return g.c.judged(ctx, append(list, reviews...), since, g.mayWrite)
}

// conversation are the comments of the conversation that were written or changed at since or later. The host gives them
// all at once.
func (g *gitea) conversation(ctx context.Context, number int, since time.Time) ([]Comment, error) {
	query := url.Values{}
	if !since.IsZero() {
		query.Set("since", since.UTC().Truncate(time.Second).Format(time.RFC3339))
	}
	var list []giteaComment
	err := g.c.ask(ctx, http.MethodGet, g.path("/issues/"+strconv.Itoa(number)+"/comments"), query, nil, &list)
	if answered(err, http.StatusInternalServerError) {
		// It answers the same if there is no such pull request: that will not pass.
		if _, gone := g.Get(ctx, number); errors.Is(gone, failure.ErrMisconfigured) {
			return nil, gone
		}
	}
	var out []Comment
	seen := unseen{}
	for _, x := range list {
		c := Comment{ID: inConversation + strconv.FormatInt(x.ID, 10), Body: x.Body, Link: x.HTMLURL, At: x.Created}
		if seen.first(x.ID) && x.User.by(&c) {
			out = append(out, c)
		}
	}
	return out, err
}

// reviews are the texts of the reviews that were handed in, and their comments. They are read whole: an answer in an
// old review shows nowhere else, and one that was drafted long ago may appear now.
func (g *gitea) reviews(ctx context.Context, number int) ([]Comment, error) {
	var out []Comment
	at := "/pulls/" + strconv.Itoa(number) + "/reviews"
	seen := unseen{}
	err := g.c.pages(func(page int) (fresh int, more bool, err error) {
		var list []giteaReview
		query := url.Values{"page": {strconv.Itoa(page)}, "limit": {strconv.Itoa(perPage)}}
		if err := g.c.ask(ctx, http.MethodGet, g.path(at), query, nil, &list); err != nil {
			return 0, false, err
		}
		for _, r := range list {
			if !seen.first(r.ID) {
				continue
			}
			fresh++
			if r.State == "PENDING" || r.State == "REQUEST_REVIEW" {
				continue
			}
			appeared := r.Drafted
			if r.Updated.After(appeared) {
				appeared = r.Updated
			}
			c := Comment{ID: ofReview + strconv.FormatInt(r.ID, 10), Body: r.Body, Link: r.HTMLURL, At: appeared}
			if r.User.by(&c) && r.Body != "" {
				out = append(out, c)
			}
			if r.Comments == 0 {
				continue
			}
			lines, err := g.onLines(ctx, at+"/"+strconv.FormatInt(r.ID, 10), appeared)
			if err != nil {
				return 0, false, err
			}
			out = append(out, lines...)
		}
		return fresh, len(list) > 0, nil // a server may give shorter pages than were asked for
	})
	return out, err
}

// onLines are the comments of a review. Those on the same line are one thread.
func (g *gitea) onLines(ctx context.Context, review string, appeared time.Time) ([]Comment, error) {
	var list []giteaComment
	if err := g.c.ask(ctx, http.MethodGet, g.path(review+"/comments"), nil, nil, &list); err != nil {
		if answered(err, http.StatusNotFound) {
			return nil, nil // deleted meanwhile
		}
		return nil, err
	}
	type place struct {
		path      string
		line, old int
	}
	first := map[place]int64{}
	for _, x := range list {
		p := place{x.Path, x.Line, x.OldLine}
		if id, ok := first[p]; !ok || x.ID < id {
			first[p] = x.ID
		}
	}
	var out []Comment
	for _, x := range list {
		c := Comment{
			ID: onLine + strconv.FormatInt(x.ID, 10), Body: x.Body, Link: x.HTMLURL, At: x.Created, Path: x.Path, Line: x.Line,
			Thread: onLine + strconv.FormatInt(first[place{x.Path, x.Line, x.OldLine}], 10),
		}
		if x.Line == 0 && x.OldLine != 0 {
			c.Line, c.Old = x.OldLine, true
		}
		c.Quote = quoteOf(x.Hunk, c.Old, 1)
		if appeared.After(c.At) {
			c.At = appeared
		}
		if x.User.by(&c) {
			out = append(out, c)
		}
	}
	return out, nil
}

// mayWrite asks whether an account may push. The host tells it of others to those alone who administer the repository.
func (g *gitea) mayWrite(ctx context.Context, account string) (bool, error) {
	var is struct {
		Permission string `json:"permission"`
	}
	err := g.c.ask(ctx, http.MethodGet, g.path("/collaborators/"+url.PathEscape(account)+"/permission"), nil, nil, &is)
	switch {
	case answered(err, http.StatusNotFound):
		return false, nil
	case answered(err, http.StatusForbidden):
		return false, failure.Misconfigured(
			"Gitea tells only administrators of %s who may write to it: without that, no comment is taken for an instruction. Give the user of %s the permission Administrator in the repository's settings, under Collaborators.",
			g.c.repo, g.c.what)
	case err != nil:
		return false, err
	}
	switch is.Permission {
	case "owner": // of the repository, its organization, or the whole server
		return true, nil
	case "write", "admin":
		return g.active(ctx, account)
	}
	return false, nil
}

// active reports whether an account that may write is in use: one that an administrator has closed keeps its permissions,
// and is left out of those whom issues may be assigned to.
func (g *gitea) active(ctx context.Context, account string) (bool, error) {
	var list []giteaUser
	if err := g.c.ask(ctx, http.MethodGet, g.path("/assignees"), nil, nil, &list); err != nil {
		return false, err
	}
	return slices.ContainsFunc(list, func(u giteaUser) bool { return strings.EqualFold(u.Login, account) }), nil
}

func (g *gitea) Say(ctx context.Context, number int, key, body string, first bool) error {
	list, err := g.conversation(ctx, number, time.Time{})
	if err != nil {
		return err
	}
	return g.c.say(ctx, list, key, body, inConversation, first, g.mayWrite, func(body string) error {
		return g.c.ask(ctx, http.MethodPost, g.path("/issues/"+strconv.Itoa(number)+"/comments"), nil, map[string]string{"body": body}, nil)
	}, func(id int64, body string) error {
		return g.c.ask(ctx, http.MethodPatch, g.path("/issues/comments/"+strconv.FormatInt(id, 10)), nil, map[string]string{"body": body}, nil)
	})
}

func (g *gitea) Diff(ctx context.Context, number int) (string, error) {
	var text string
	err := g.c.ask(ctx, http.MethodGet, g.path("/pulls/"+strconv.Itoa(number)+".diff"), nil, nil, &text)
	return text, err
}

func (g *gitea) Reply(ctx context.Context, number int, to Comment, key, body string) error {
	list, err := g.conversation(ctx, number, to.At)
	if err != nil {
		return err
	}
	thread, inThread := numberOf(to.Thread, onLine)
	if inThread {
		lines, err := g.reviews(ctx, number)
		if err != nil {
			return err
		}
		list = append(list, lines...)
	}
	if done, err := g.c.answeredAlready(ctx, list, key, g.mayWrite); err != nil || done {
		return err
	}
	if inThread {
		// From Gitea 1.27 on; what is older says that there is no such address.
		err := g.c.ask(ctx, http.MethodPost,
			g.path("/pulls/"+strconv.Itoa(number)+"/comments/"+strconv.FormatInt(thread, 10)+"/replies"), nil,
			map[string]string{"body": reply(to, key, body, true)}, nil)
		if !answered(err, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusUnprocessableEntity) {
			return err
		}
	}
	return g.c.ask(ctx, http.MethodPost, g.path("/issues/"+strconv.Itoa(number)+"/comments"), nil,
		map[string]string{"body": reply(to, key, body, false)}, nil)
}
