package host

import (
	"cmp"
	"context"
	"net/http"
	"regexp"
	"strconv"
	"time"

	gitlab "gitlab.com/gitlab-org/api/client-go/v2"
)

// Comments are the notes of a merge request's discussions, which its conversation consists of, too.
func (g *gitLab) Comments(ctx context.Context, number int, since time.Time) ([]Comment, error) {
	list, err := g.notes(ctx, number)
	if err != nil {
		return nil, err
	}
	return g.c.judged(ctx, list, since, g.mayWrite)
}

func (g *gitLab) notes(ctx context.Context, number int) ([]Comment, error) {
	var out []Comment
	seen := unseen{}
	err := g.c.pages(func(page int) (fresh int, more bool, err error) {
		list, res, err := g.lib.Discussions.ListMergeRequestDiscussions(g.repo, int64(number),
			&gitlab.ListMergeRequestDiscussionsOptions{ListOptions: gitlab.ListOptions{PerPage: perPage, Page: int64(page)}},
			gitlab.WithContext(ctx))
		if err != nil {
			return 0, false, g.c.failure(ctx, err)
		}
		for _, d := range list {
			for _, n := range d.Notes {
				if !seen.first(n.ID) {
					continue
				}
				fresh++
				if !n.System && !gitlabBot.MatchString(n.Author.Username) || g.ownNote(n) {
					out = append(out, g.note(number, d, n))
				}
			}
		}
		return fresh, res.NextPage != 0, nil
	})
	return out, err
}

// gitlabBot are the accounts that GitLab makes for the access tokens of projects and groups, and for its own services.
var gitlabBot = regexp.MustCompile(
	`(?i)^((project|group)_\d+_bot(_?[0-9a-f]+)?|ghost|gitlab-security-bot|(support|alert|visual-review|security)-bot)$`)

// ownNote reports whether a bot's note bears Docent's mark: its credentials may be a project's.
func (g *gitLab) ownNote(n *gitlab.Note) bool {
	_, bears := marked(n.Body)
	return bears && !n.System
}

func (g *gitLab) note(number int, d *gitlab.Discussion, n *gitlab.Note) Comment {
	id := strconv.FormatInt(n.ID, 10)
	c := Comment{
		ID: noteID + id, Author: n.Author.Username, Body: n.Body, Thread: d.ID,
		Link: g.web + "/" + g.repo + "/-/merge_requests/" + strconv.Itoa(number) + "#note_" + id,
	}
	if n.CreatedAt != nil {
		c.At = *n.CreatedAt
	}
	if n.Author.ID > 0 && n.Author.State != "blocked" && n.Author.State != "deactivated" {
		c.account = strconv.FormatInt(n.Author.ID, 10)
	}
	switch p := n.Position; {
	case p == nil:
	case p.NewLine != 0 || p.OldLine == 0: // a line that did not change has both numbers
		c.Path, c.Line = p.NewPath, int(p.NewLine)
		c.Path = cmp.Or(c.Path, p.OldPath)
	default:
		c.Path, c.Line, c.Old = p.OldPath, int(p.OldLine), true
	}
	return c
}

// mayWrite asks whether an account is a member that may push, by its own membership or a group's.
func (g *gitLab) mayWrite(ctx context.Context, account string) (bool, error) {
	id, err := strconv.ParseInt(account, 10, 64)
	if err != nil {
		return false, nil
	}
	m, _, err := g.lib.ProjectMembers.GetInheritedProjectMember(g.repo, id, gitlab.WithContext(ctx))
	if err = g.c.failure(ctx, err); answered(err, http.StatusNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return m.State == "active" && m.AccessLevel >= gitlab.DeveloperPermissions, nil
}

// noteID is what the ids of notes begin with.
const noteID = "note/"

func (g *gitLab) Say(ctx context.Context, number int, key, body string, first bool) error {
	list, err := g.notes(ctx, number)
	if err != nil {
		return err
	}
	return g.c.say(ctx, list, key, body, noteID, first, g.mayWrite, func(body string) error {
		_, _, err := g.lib.Notes.CreateMergeRequestNote(g.repo, int64(number),
			&gitlab.CreateMergeRequestNoteOptions{Body: &body}, gitlab.WithContext(ctx))
		return g.c.failure(ctx, err)
	}, func(id int64, body string) error {
		_, _, err := g.lib.Notes.UpdateMergeRequestNote(g.repo, int64(number), id,
			&gitlab.UpdateMergeRequestNoteOptions{Body: &body}, gitlab.WithContext(ctx))
		return g.c.failure(ctx, err)
	})
}

func (g *gitLab) Diff(ctx context.Context, number int) (string, error) {
	data, _, err := g.lib.MergeRequests.ShowMergeRequestRawDiffs(g.repo, int64(number), nil, gitlab.WithContext(ctx))
	return string(data), g.c.failure(ctx, err)
}

func (g *gitLab) Reply(ctx context.Context, number int, to Comment, key, body string) error {
	list, err := g.notes(ctx, number)
	if err != nil {
		return err
	}
	if done, err := g.c.answeredAlready(ctx, list, key, g.mayWrite); err != nil || done {
		return err
	}
	if to.Thread != "" {
		text := reply(to, key, body, true)
		_, _, err := g.lib.Discussions.AddMergeRequestDiscussionNote(g.repo, int64(number), to.Thread,
			&gitlab.AddMergeRequestDiscussionNoteOptions{Body: &text}, gitlab.WithContext(ctx))
		// It may have been deleted, or may be of a kind that takes no answers.
		if err = g.c.failure(ctx, err); !answered(err, http.StatusNotFound, http.StatusBadRequest) {
			return err
		}
	}
	text := reply(to, key, body, false)
	_, _, err = g.lib.Notes.CreateMergeRequestNote(g.repo, int64(number),
		&gitlab.CreateMergeRequestNoteOptions{Body: &text}, gitlab.WithContext(ctx))
	return g.c.failure(ctx, err)
}
