package work

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/uptrace/bun"

	"docent/api"
	"docent/persistence/catalog/database"
)

func (r *commentRow) Contents() (table, key string, fields []any) {
	return "comments", r.ID, []any{r.ID, r.Pull, r.Author, string(r.State), r.Message, []byte(r.Body), r.CreatedAt}
}

// maxComments are how many comments of one pull request are shown.
const maxComments = 1000

type commentRow struct {
	bun.BaseModel `bun:"table:comments,alias:cmt"`

	ID        string           `bun:"id,pk"`
	Pull      string           `bun:"pull_id"`
	Author    string           `bun:"author_id"`
	State     api.CommentState `bun:"state"`
	Message   string           `bun:"message"`
	Body      json.RawMessage  `bun:"body"`
	CreatedAt int64            `bun:"created_at"`
	database.Checked
}

func newCommentRow(c api.Comment) (*commentRow, error) {
	c.CreatedAt, c.SentAt = database.Stamp(c.CreatedAt), database.StampPtr(c.SentAt)
	body, err := database.EncodeBody(c)
	r := &commentRow{ID: c.ID, Pull: c.Pull, Author: c.Author, State: c.State, Message: c.Message, Body: body,
		CreatedAt: c.CreatedAt.UnixMilli()}
	database.SetChecksum(r)
	return r, err
}

func (r *commentRow) Decode() (api.Comment, error) {
	var c api.Comment
	if err := database.CheckRow(r); err != nil {
		return c, err
	}
	err := database.DecodeBody(r.Body, &c, "comment "+r.ID)
	c.ID, c.Pull, c.Author, c.State, c.Message = r.ID, r.Pull, r.Author, r.State, r.Message
	return c, err
}

// AddComment stores a draft. An author who has as many drafts on the pull request as there may be is refused.
func (s *Store) AddComment(ctx context.Context, n api.Comment) (api.Comment, error) {
	if err := n.Validate(); err != nil {
		return n, err
	}
	if n.CreatedAt.IsZero() {
		n.CreatedAt = s.db.Now()
	}
	n.CreatedAt = database.Stamp(n.CreatedAt)
	n.ID, n.State, n.Message, n.SentAt = api.NewID(api.CommentPrefix, n.CreatedAt), api.CommentDraft, "", nil
	row, err := newCommentRow(n)
	if err != nil {
		return n, err
	}
	return n, s.db.Change(ctx, "add a comment", func(ctx context.Context, tx bun.Tx) error {
		drafts, err := ofAuthor(tx, n.Pull, n.Author).Model((*commentRow)(nil)).Where("state = ?", api.CommentDraft).Count(ctx)
		if err != nil {
			return err
		}
		if drafts >= api.MaxDrafts {
			return database.Conflict("you have %d comments here that are not sent yet: send them first", drafts)
		}
		_, err = tx.NewInsert().Model(row).Exec(ctx)
		return err
	})
}

// RemoveComment takes back a draft of an author's.
func (s *Store) RemoveComment(ctx context.Context, pull, author, id string) error {
	return s.db.Change(ctx, "remove a comment", func(ctx context.Context, tx bun.Tx) error {
		res, err := tx.NewDelete().Model((*commentRow)(nil)).Where("id = ?", id).Where("pull_id = ?", pull).
			Where("author_id = ?", author).Where("state = ?", api.CommentDraft).Exec(ctx)
		return database.Changed(res, err, fmt.Errorf("comment: %w", api.ErrNotFound))
	})
}

// Comments lists a pull request's comments, oldest first. Drafts are there too: they are for their authors alone.
func (s *Store) Comments(ctx context.Context, pull string) ([]api.Comment, error) {
	if !database.Askable(pull) {
		return nil, nil
	}
	sel := s.db.Read.NewSelect().Where("pull_id = ?", pull).Order("id").Limit(maxComments)
	return database.List[api.Comment, commentRow](ctx, s.db, sel, "comments")
}

// TakeComments puts an author's drafts on their way to the job under a message's id, and gives them. If some are on
// their way already, without it being known whether they came there, these are given, with the message's id that they
// had then.
func (s *Store) TakeComments(ctx context.Context, pull, author, message string) (taken []api.Comment, err error) {
	err = s.db.Change(ctx, "send comments", func(ctx context.Context, tx bun.Tx) error {
		taken = nil
		all, err := database.List[api.Comment, commentRow](ctx, s.db, database.ForUpdate(ofAuthor(tx, pull, author).
			Where("state IN ?", bun.Tuple([]api.CommentState{api.CommentDraft, api.CommentSending})).Order("id")), "comments")
		if err != nil {
			return err
		}
		for _, n := range all {
			if n.State == api.CommentSending && (len(taken) == 0 || n.Message == taken[0].Message) {
				taken = append(taken, n)
			}
		}
		if len(taken) > 0 {
			return nil
		}
		for _, n := range all {
			n.State, n.Message = api.CommentSending, message
			if err := updateComment(ctx, tx, n); err != nil {
				return err
			}
			taken = append(taken, n)
		}
		return nil
	})
	return taken, err
}

// SettleComments says what became of a message: the job has it, or has refused it; then its comments are drafts again.
func (s *Store) SettleComments(ctx context.Context, pull, message string, sent bool) error {
	return s.db.Change(ctx, "store that comments are sent", func(ctx context.Context, tx bun.Tx) error {
		all, err := database.List[api.Comment, commentRow](ctx, s.db, database.ForUpdate(tx.NewSelect().Where("pull_id = ?", pull).
			Where("message = ?", message).Where("state = ?", api.CommentSending)), "comments")
		if err != nil {
			return err
		}
		now := database.Stamp(s.db.Now())
		for _, n := range all {
			if n.State, n.Message = api.CommentDraft, ""; sent {
				n.State, n.Message, n.SentAt = api.CommentSent, message, &now
			}
			if err := updateComment(ctx, tx, n); err != nil {
				return err
			}
		}
		return nil
	})
}

// SentComments are comments that jobs have, and of which it is not stored what became of them, oldest first.
func (s *Store) SentComments(ctx context.Context, limit int) ([]api.Comment, error) {
	return database.List[api.Comment, commentRow](ctx, s.db, s.db.Read.NewSelect().Where("state = 'sent'").Order("id").
		Limit(int64(limit)), "comments")
}

// AnswerComments stores what became of the comments of a message.
func (s *Store) AnswerComments(ctx context.Context, pull, message string, answer func(*api.Comment)) error {
	return s.db.Change(ctx, "store what became of comments", func(ctx context.Context, tx bun.Tx) error {
		all, err := database.List[api.Comment, commentRow](ctx, s.db, database.ForUpdate(tx.NewSelect().Where("pull_id = ?", pull).
			Where("message = ?", message).Where("state = ?", api.CommentSent)), "comments")
		if err != nil {
			return err
		}
		for _, n := range all {
			answer(&n)
			n.State = api.CommentAnswered
			if err := updateComment(ctx, tx, n); err != nil {
				return err
			}
		}
		return nil
	})
}

func updateComment(ctx context.Context, tx bun.Tx, n api.Comment) error {
	row, err := newCommentRow(n)
	if err != nil {
		return err
	}
	_, err = tx.NewUpdate().Model(row).Column("state", "message", "body", "checksum").WherePK().Exec(ctx)
	return err
}

func ofAuthor(db bun.IDB, pull, author string) *bun.SelectQuery {
	return db.NewSelect().Where("pull_id = ?", pull).Where("author_id = ?", author)
}
