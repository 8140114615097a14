package work

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/uptrace/bun"

	"docent/api"
	"docent/persistence/catalog/database"
)

const (
	reviewsMigration = "20261124000003"
	// reviewsSetting holds since when comments on pull requests are followed.
	reviewsSetting = "reviews/since"
	// asksKept is how many answered instructions of a pull request are remembered.
	asksKept = 200
)

type reviewRow struct {
	bun.BaseModel `bun:"table:review_pulls,alias:review"`

	ID      string          `bun:"id,pk"`
	Project api.ProjectID   `bun:"project_id"`
	Number  int             `bun:"number"`
	Link    string          `bun:"link"`
	State   api.PullState   `bun:"state"`
	Next    int64           `bun:"next_at"`
	Body    json.RawMessage `bun:"body"`
	database.Checked
}

func (r *reviewRow) Contents() (table, key string, fields []any) {
	return "review_pulls", r.ID, []any{r.ID, string(r.Project), int64(r.Number), r.Link, string(r.State), r.Next,
		[]byte(r.Body)}
}

func reviewID(project api.ProjectID, number int) string {
	return string(project) + "/" + strconv.Itoa(number)
}

func newReviewRow(p api.ReviewPull) (*reviewRow, error) {
	p.Next, p.From, p.Active, p.Newest = database.Stamp(p.Next), database.Stamp(p.From), database.Stamp(p.Active), database.Stamp(p.Newest)
	body, err := database.EncodeBody(p)
	r := &reviewRow{ID: reviewID(p.Project, p.Number), Project: p.Project, Number: p.Number, Link: database.Column(p.Link),
		State: p.State, Body: body}
	switch {
	case p.Hinted:
		r.Next = 1
	case !p.Next.IsZero():
		r.Next = p.Next.UnixMilli()
	}
	database.SetChecksum(r)
	return r, err
}

func (r *reviewRow) Decode() (api.ReviewPull, error) {
	var p api.ReviewPull
	if err := database.CheckRow(r); err != nil {
		return p, err
	}
	err := database.DecodeBody(r.Body, &p, "pull request "+r.ID)
	p.Project, p.Number, p.State = r.Project, r.Number, r.State
	return p, err
}

type askRow struct {
	bun.BaseModel `bun:"table:review_asks,alias:ask"`

	ID      string          `bun:"id,pk"`
	Project api.ProjectID   `bun:"project_id"`
	Number  int             `bun:"number"`
	Key     string          `bun:"ask_key"`
	State   api.ReviewState `bun:"state"`
	Body    json.RawMessage `bun:"body"`
	database.Checked
}

func (r *askRow) Contents() (table, key string, fields []any) {
	return "review_asks", r.ID, []any{r.ID, string(r.Project), int64(r.Number), r.Key, string(r.State), []byte(r.Body)}
}

func newAskRow(a api.ReviewAsk) (*askRow, error) {
	a.At = database.Stamp(a.At)
	body, err := database.EncodeBody(a)
	r := &askRow{ID: a.ID, Project: a.Project, Number: a.Number, Key: a.Key, State: a.State, Body: body}
	database.SetChecksum(r)
	return r, err
}

func (r *askRow) Decode() (api.ReviewAsk, error) {
	var a api.ReviewAsk
	if err := database.CheckRow(r); err != nil {
		return a, err
	}
	err := database.DecodeBody(r.Body, &a, "instruction "+r.ID)
	a.ID, a.Project, a.Number, a.Key, a.State = r.ID, r.Project, r.Number, r.Key, r.State
	return a, err
}

// ReviewsSince is since when comments on pull requests are followed: older ones are no instructions.
func (s *Store) ReviewsSince(ctx context.Context) (since time.Time, err error) {
	err = database.ReadSetting(ctx, s.db.Read, reviewsSetting, &since)
	return since, s.db.Fail("read since when comments are followed", err)
}

// beginReviews remembers since when comments are followed.
func beginReviews(ctx context.Context, db bun.IDB, now time.Time) (func(*database.DB), error) {
	return nil, database.MakeSetting(ctx, db, reviewsSetting, database.Stamp(now))
}

// FollowPull follows a pull request's comments. One that is followed already stays as it is.
func (s *Store) FollowPull(ctx context.Context, p api.ReviewPull) error {
	row, err := newReviewRow(p)
	if err != nil {
		return err
	}
	return s.db.Change(ctx, "follow a pull request", func(ctx context.Context, tx bun.Tx) error {
		_, err := tx.NewInsert().Model(row).On("CONFLICT (id) DO NOTHING").Exec(ctx)
		return database.Refused(err, nil, database.NoProject(p.Project))
	})
}

// NextPull is the pull request of a project that is to be looked at next, hinted ones first; api.ErrNotFound if none is.
func (s *Store) NextPull(ctx context.Context, project api.ProjectID) (api.ReviewPull, error) {
	return database.One[api.ReviewPull, reviewRow](ctx, s.db, s.db.Read.NewSelect().Where("project_id = ?", project).
		Where("next_at > 0").Order("next_at", "id").Limit(1), "pull request")
}

// ReviewPull finds a pull request that is followed, or fails with api.ErrNotFound.
func (s *Store) ReviewPull(ctx context.Context, project api.ProjectID, number int) (api.ReviewPull, error) {
	id := reviewID(project, number)
	if !database.Askable(id) {
		return api.ReviewPull{}, fmt.Errorf("pull request: %w", api.ErrNotFound)
	}
	return database.One[api.ReviewPull, reviewRow](ctx, s.db, s.db.Read.NewSelect().Where("id = ?", id), "pull request")
}

// HintPull schedules an early look at a pull request that is followed. It returns false if it is not followed.
func (s *Store) HintPull(ctx context.Context, project api.ProjectID, number int) (bool, error) {
	err := s.changePull(ctx, project, number, func(p *api.ReviewPull) { p.Hinted = true })
	if errors.Is(err, api.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// changePull changes when a pull request is looked at, which is nothing that pages show.
func (s *Store) changePull(ctx context.Context, project api.ProjectID, number int,
	change func(*api.ReviewPull)) error {
	id := reviewID(project, number)
	if !database.Askable(id) {
		return fmt.Errorf("pull request: %w", api.ErrNotFound)
	}
	return s.db.InTx(ctx, "change a pull request that is followed", func(ctx context.Context, tx bun.Tx) error {
		if err := s.changePullIn(ctx, tx, id, change); err != nil {
			return err
		}
		return s.db.Say(ctx, tx, database.Message{Change: true})
	})
}

func (s *Store) changePullIn(ctx context.Context, tx bun.Tx, id string, change func(*api.ReviewPull)) error {
	p, err := database.One[api.ReviewPull, reviewRow](ctx, s.db, database.ForUpdate(tx.NewSelect().Where("id = ?", id)), "pull request")
	if err != nil {
		return err
	}
	change(&p)
	row, err := newReviewRow(p)
	if err != nil {
		return err
	}
	_, err = tx.NewUpdate().Model(row).Column("state", "next_at", "body", "checksum").WherePK().Exec(ctx)
	return err
}

// BeginLook takes the hint off a pull request that is looked at now: one that comes meanwhile has it looked at again.
func (s *Store) BeginLook(ctx context.Context, project api.ProjectID, number int, again time.Time) error {
	return s.changePull(ctx, project, number, func(p *api.ReviewPull) { p.Hinted, p.Next = false, again })
}

// EndLook stores what a look at a pull request has found: what has become of it, and with it the instructions that its
// comments are, each once for its key. A hint that came meanwhile stays.
func (s *Store) EndLook(ctx context.Context, p api.ReviewPull, asks []api.ReviewAsk) error {
	rows := make([]*askRow, len(asks))
	for i, a := range asks {
		row, err := newAskRow(a)
		if err != nil {
			return err
		}
		rows[i] = row
	}
	store := s.db.InTx
	if len(asks) > 0 {
		store = s.db.Change
	}
	return store(ctx, "store what was said on a pull request", func(ctx context.Context, tx bun.Tx) error {
		for _, row := range rows {
			if _, err := tx.NewInsert().Model(row).On("CONFLICT (ask_key) DO NOTHING").Exec(ctx); err != nil {
				return database.Refused(err, nil, database.NoProject(p.Project))
			}
		}
		return s.changePullIn(ctx, tx, reviewID(p.Project, p.Number), func(now *api.ReviewPull) {
			p.Hinted = p.Hinted || now.Hinted
			*now = p
		})
	})
}

// OpenAsks are the instructions from comments that are not answered, oldest first.
func (s *Store) OpenAsks(ctx context.Context, limit int) ([]api.ReviewAsk, error) {
	return database.List[api.ReviewAsk, askRow](ctx, s.db,
		s.db.Read.NewSelect().Where("state <> 'answered'").Order("id").Limit(int64(limit)), "instructions from comments")
}

// OpenAsk is an instruction from comments that is not answered.
func (s *Store) OpenAsk(ctx context.Context, id string) (api.ReviewAsk, error) {
	return database.One[api.ReviewAsk, askRow](ctx, s.db, s.db.Read.NewSelect().Where("id = ?", id).Where("state <> 'answered'"),
		"instruction from a comment")
}

// SaveAsk stores how far an instruction from comments has come.
func (s *Store) SaveAsk(ctx context.Context, a api.ReviewAsk) error {
	row, err := newAskRow(a)
	if err != nil {
		return err
	}
	return s.db.Change(ctx, "store how far a comment's instruction has come", func(ctx context.Context, tx bun.Tx) error {
		res, err := tx.NewUpdate().Model(row).Column("state", "body", "checksum").WherePK().Exec(ctx)
		if err := database.Changed(res, err, fmt.Errorf("instruction %q: %w", a.ID, api.ErrNotFound)); err != nil {
			return err
		}
		if a.State != api.ReviewAnswered {
			return nil
		}
		var old string
		err = tx.NewSelect().Model((*askRow)(nil)).Column("id").Where("project_id = ?", a.Project).
			Where("number = ?", a.Number).Order("id DESC").Limit(1).Offset(asksKept).Scan(ctx, &old)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		_, err = tx.NewDelete().Model((*askRow)(nil)).Where("project_id = ?", a.Project).Where("number = ?", a.Number).
			Where("id <= ?", old).Where("state = 'answered'").Exec(ctx)
		return err
	})
}
