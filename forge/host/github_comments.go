package host

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/google/go-github/v92/github"

	"docent/forge/failure"
)

// Kinds of comments on GitHub, as their ids begin.
const (
	inConversation = "issue/"   // a comment of the conversation
	onLine         = "review/"  // on a line or a file of the changes
	ofReview       = "summary/" // the text of a review
)

func (g *gitHub) Comments(ctx context.Context, number int, since time.Time) ([]Comment, error) {
	list, err := g.conversation(ctx, number, since)
	if err != nil {
		return nil, err
	}
	reviews, err := g.reviews(ctx, number)
	if err != nil {
		return nil, err
	}
	lines, err := g.onLines(ctx, number, reviews)
	if err != nil {
		return nil, err
	}
	for _, r := range reviews {
		if r.Body != "" {
			list = append(list, r)
		}
	}
	return g.c.judged(ctx, append(list, lines...), since, g.mayWrite)
}

// conversation are the comments of the conversation that were written or changed at since or later.
func (g *gitHub) conversation(ctx context.Context, number int, since time.Time) ([]Comment, error) {
	o := &github.IssueListCommentsOptions{ListOptions: github.ListOptions{PerPage: perPage}}
	if !since.IsZero() {
		o.Since = &since
	}
	var out []Comment
	seen := unseen{}
	err := g.c.pages(func(page int) (fresh int, more bool, err error) {
		o.Page = page
		list, res, err := g.lib.Issues.ListComments(ctx, g.owner, g.name, number, o)
		if err != nil {
			return 0, false, g.c.failure(ctx, err)
		}
		for _, x := range list {
			if !seen.first(x.GetID()) {
				continue
			}
			fresh++
			c := Comment{Body: x.GetBody(), Link: x.GetHTMLURL(), At: x.GetCreatedAt().Time}
			c.ID = inConversation + strconv.FormatInt(x.GetID(), 10)
			if heard, err := g.by(ctx, &c, x.GetUser()); err != nil {
				return 0, false, err
			} else if heard {
				out = append(out, c)
			}
		}
		return fresh, res.NextPage != 0, nil
	})
	return out, err
}

// reviews are the reviews that were handed in, by their numbers. One without a text says when its comments appeared.
func (g *gitHub) reviews(ctx context.Context, number int) (map[int64]Comment, error) {
	out := map[int64]Comment{}
	err := g.c.pages(func(page int) (fresh int, more bool, err error) {
		list, res, err := g.lib.PullRequests.ListReviews(ctx, g.owner, g.name, number,
			&github.ListOptions{PerPage: perPage, Page: page})
		if err != nil {
			return 0, false, g.c.failure(ctx, err)
		}
		for _, x := range list {
			if _, ok := out[x.GetID()]; ok {
				continue
			}
			fresh++
			if x.GetState() == "PENDING" { // only its author sees it: the owner of the token
				continue
			}
			c := Comment{Body: x.GetBody(), Link: x.GetHTMLURL(), At: x.GetSubmittedAt().Time}
			c.ID = ofReview + strconv.FormatInt(x.GetID(), 10)
			if heard, err := g.by(ctx, &c, x.GetUser()); err != nil {
				return 0, false, err
			} else if !heard {
				c.Body = ""
			}
			out[x.GetID()] = c
		}
		return fresh, res.NextPage != 0, nil
	})
	return out, err
}

// onLines are the comments on lines and files. They are read whole: one that was drafted long ago may appear now.
func (g *gitHub) onLines(ctx context.Context, number int, reviews map[int64]Comment) ([]Comment, error) {
	var out []Comment
	seen := unseen{}
	err := g.c.pages(func(page int) (fresh int, more bool, err error) {
		list, res, err := g.lib.PullRequests.ListComments(ctx, g.owner, g.name, number,
			&github.PullRequestListCommentsOptions{Sort: "created", Direction: "asc",
				ListOptions: github.ListOptions{PerPage: perPage, Page: page}})
		if err != nil {
			return 0, false, g.c.failure(ctx, err)
		}
		for _, x := range list {
			if !seen.first(x.GetID()) {
				continue
			}
			fresh++
			c := g.onLine(x)
			if r, ok := reviews[x.GetPullRequestReviewID()]; ok && r.At.After(c.At) {
				c.At = r.At
			}
			if heard, err := g.by(ctx, &c, x.GetUser()); err != nil {
				return 0, false, err
			} else if heard {
				out = append(out, c)
			}
		}
		return fresh, res.NextPage != 0, nil
	})
	return out, err
}

func (g *gitHub) onLine(x *github.PullRequestComment) Comment {
	root := x.GetID()
	if x.GetInReplyTo() != 0 {
		root = x.GetInReplyTo()
	}
	c := Comment{
		ID: onLine + strconv.FormatInt(x.GetID(), 10), Thread: onLine + strconv.FormatInt(root, 10),
		Body: x.GetBody(), Link: x.GetHTMLURL(), At: x.GetCreatedAt().Time,
		Path: x.GetPath(), Old: x.GetSide() == "LEFT",
	}
	if x.GetSubjectType() == "file" {
		return c
	}
	line, start := x.GetLine(), x.GetStartLine()
	if line == 0 { // later commits have changed it
		line, start = x.GetOriginalLine(), x.GetOriginalStartLine()
	}
	lines := 1
	if start > 0 && start < line {
		lines = line - start + 1
	}
	c.Line, c.Quote = line, quoteOf(x.GetDiffHunk(), c.Old, lines)
	return c
}

// by sets a comment's author. It is not heard if it is a bot's, which nobody answers to; what Docent wrote as an app
// is.
func (g *gitHub) by(ctx context.Context, c *Comment, u *github.User) (heard bool, err error) {
	c.Author, c.account = u.GetLogin(), u.GetLogin()
	if u.GetType() != "Bot" {
		return true, nil
	}
	if _, bears := marked(c.Body); !bears || g.self == nil {
		return false, nil
	}
	self, err := g.self(ctx)
	c.ours = strings.EqualFold(self, c.Author)
	return c.ours, err
}

// mayWrite asks whether an account may push. Who is unknown to the host may not.
func (g *gitHub) mayWrite(ctx context.Context, account string) (bool, error) {
	level, _, err := g.lib.Repositories.GetPermissionLevel(ctx, g.owner, g.name, account)
	switch err = g.c.failure(ctx, err); {
	case answered(err, http.StatusNotFound):
		return false, nil
	case answered(err, http.StatusForbidden):
		return false, failure.Misconfigured(
			"GitHub does not say to %s who may write to %s: without that, no comment is taken for an instruction. The token needs the right to read metadata, and to be of somebody who may write.",
			g.c.what, g.c.repo)
	case err != nil:
		return false, err
	}
	return level.GetPermission() == "admin" || level.GetPermission() == "write", nil
}

func (g *gitHub) Reply(ctx context.Context, number int, to Comment, key, body string) error {
	thread, inThread := numberOf(to.Thread, onLine)
	var list []Comment
	var err error
	if inThread {
		if list, err = g.onLines(ctx, number, nil); err != nil {
			return err
		}
	}
	// It may stand in the conversation in any case: the thread may have gone.
	talk, err := g.conversation(ctx, number, to.At)
	if err != nil {
		return err
	}
	if done, err := g.c.answeredAlready(ctx, append(list, talk...), key, g.mayWrite); err != nil || done {
		return err
	}
	if inThread {
		// The library's call for it writes "in_reply_to" to the address for new comments, which GitHub keeps for old
		// clients.
		req, err := g.lib.NewRequest(ctx, http.MethodPost,
			fmt.Sprintf("repos/%s/%s/pulls/%d/comments/%d/replies", g.owner, g.name, number, thread),
			map[string]string{"body": reply(to, key, body, true)})
		if err == nil {
			_, err = g.lib.Do(req, nil)
		}
		if err = g.c.failure(ctx, err); !answered(err, http.StatusNotFound, http.StatusUnprocessableEntity) {
			return err
		}
	}
	_, _, err = g.lib.Issues.CreateComment(ctx, g.owner, g.name, number,
		github.IssueCommentRequest{Body: reply(to, key, body, false)})
	return g.c.failure(ctx, err)
}

func (g *gitHub) Say(ctx context.Context, number int, key, body string, first bool) error {
	list, err := g.conversation(ctx, number, time.Time{})
	if err != nil {
		return err
	}
	return g.c.say(ctx, list, key, body, inConversation, first, g.mayWrite, func(body string) error {
		_, _, err := g.lib.Issues.CreateComment(ctx, g.owner, g.name, number, github.IssueCommentRequest{Body: body})
		return g.c.failure(ctx, err)
	}, func(id int64, body string) error {
		_, _, err := g.lib.Issues.UpdateComment(ctx, g.owner, g.name, id, github.IssueCommentRequest{Body: body})
		return g.c.failure(ctx, err)
	})
}

func (g *gitHub) Diff(ctx context.Context, number int) (string, error) {
	text, _, err := g.lib.PullRequests.GetRaw(ctx, g.owner, g.name, number, github.RawOptions{Type: github.Diff})
	if err = g.c.failure(ctx, err); answered(err, http.StatusNotAcceptable) {
		return "", failure.Misconfigured("The change of pull request #%d of %s is larger than GitHub shows.", number, g.c.repo)
	}
	return text, err
}

// numberOf is the number in an id of a kind.
func numberOf(id, kind string) (int64, bool) {
	text, ok := strings.CutPrefix(id, kind)
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil && n > 0
}
