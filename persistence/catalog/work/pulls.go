package work

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/uptrace/bun"

	"docent/api"
	"docent/persistence/catalog/database"
)

func (r *pullRow) Contents() (table, key string, fields []any) {
	return "pulls", r.ID, []any{
		r.ID, string(r.Project), int64(r.Number), r.Head, string(r.State), []byte(r.Body), r.CreatedAt,
	}
}

func (r *counterRow) Contents() (table, key string, fields []any) {
	return "counters", r.Name, []any{r.Name, r.Value}
}

type pullRow struct {
	bun.BaseModel `bun:"table:pulls"`

	ID        string          `bun:"id,pk"`
	Project   api.ProjectID   `bun:"project_id"`
	Number    int             `bun:"number"`
	Head      string          `bun:"head"`
	State     api.PullState   `bun:"state"`
	Body      json.RawMessage `bun:"body"`
	CreatedAt time.Time       `bun:"created_at"`
	Change    string          `bun:"change_digest"` // derived, so not in the checksum
	database.Checked
}

type counterRow struct {
	bun.BaseModel `bun:"table:counters"`

	Name  string `bun:"name,pk"`
	Value int64  `bun:"value"`
	database.Checked
}

func newPullRow(p api.PullRequest) (*pullRow, error) {
	body, err := database.EncodeBody(p)
	r := &pullRow{ID: p.ID, Project: p.Project, Number: p.Number, Head: p.Head, State: p.State, Body: body,
		CreatedAt: p.CreatedAt, Change: p.Change}
	database.SetChecksum(r)
	return r, err
}

func (r *pullRow) Decode() (api.PullRequest, error) {
	var p api.PullRequest
	if err := database.CheckRow(r); err != nil {
		return p, err
	}
	if err := database.DecodeBody(r.Body, &p, "pull request "+r.ID); err != nil {
		return api.PullRequest{}, err
	}
	p.ID, p.Project, p.Number, p.Head, p.State, p.CreatedAt = r.ID, r.Project, r.Number, r.Head, r.State, r.CreatedAt.UTC()
	p.Change = r.Change
	return p, nil
}

// AddPull opens a pull request and gives it the project's next number. If one is open for the same branch, that one
// is answered and nothing is changed: asking again, or twice at once, opens one.
func (s *Store) AddPull(ctx context.Context, p api.PullRequest) (api.PullRequest, error) {
	var missing []api.Problem
	for _, f := range []struct{ name, value string }{{"project", string(p.Project)}, {"head", p.Head}, {"base", p.Base}} {
		if f.value == "" {
			missing = append(missing, api.Problem{Field: f.name, Message: "is required"})
		}
	}
	if missing != nil {
		return api.PullRequest{}, &api.InvalidError{Problems: missing}
	}
	if p.CreatedAt.IsZero() {
		p.CreatedAt = s.db.Now()
	}
	p.CreatedAt = database.Stamp(p.CreatedAt)
	if p.UpdatedAt.IsZero() {
		p.UpdatedAt = p.CreatedAt
	}
	p.UpdatedAt = database.Stamp(p.UpdatedAt)
	if p.ID == "" {
		p.ID = api.NewID(api.PullPrefix, p.CreatedAt)
	}
	p.State, p.MergedAs, p.ClosedAt = api.PullOpen, "", nil

	var open api.PullRequest
	err := s.db.Change(ctx, "open a pull request", func(ctx context.Context, tx bun.Tx) error {
		// The counter's row is the lock: another pull request in this project waits here, and sees this one afterwards.
		var err error
		if p.Number, err = next(ctx, tx, "pulls/"+string(p.Project)); err != nil {
			return err
		}
		open, err = s.onePull(ctx, ofBranch(tx, p.Project, p.Head).Where("state = ?", api.PullOpen))
		if err == nil {
			return errOpenAlready // rolls the number back
		}
		if !errors.Is(err, api.ErrNotFound) {
			return err
		}
		row, err := newPullRow(p)
		if err != nil {
			return err
		}
		return database.Insert(ctx, tx, row, database.Conflict("a pull request with the id %q exists already", p.ID), nil)
	})
	if errors.Is(err, errOpenAlready) {
		return open, nil
	}
	if err != nil {
		return api.PullRequest{}, err
	}
	return p, nil
}

// next takes the next number of a counter, whose row is locked until the transaction ends.
func next(ctx context.Context, tx bun.Tx, name string) (int, error) {
	row := counterRow{Name: name, Value: 1}
	database.SetChecksum(&row)
	err := tx.NewRaw("INSERT INTO counters (name, value, checksum) VALUES (?, ?, ?) "+
		"ON CONFLICT (name) DO UPDATE SET value = counters.value + 1 RETURNING value, checksum",
		row.Name, row.Value, row.Checksum).Scan(ctx, &row.Value, &row.Checksum)
	if err != nil || row.Value == 1 {
		return int(row.Value), err
	}
	row.Value-- // what the checksum is of
	if err := database.CheckRow(&row); err != nil {
		return 0, err
	}
	row.Value++
	database.SetChecksum(&row)
	_, err = tx.NewUpdate().Model(&row).Column("checksum").WherePK().Exec(ctx)
	return int(row.Value), err
}

var errOpenAlready = errors.New("a pull request is open for this branch")

// UpdatePull stores a pull request's title, text, state, digest and times, and answers with what is stored then; project,
// number, branch and creation stay. What is merged stays merged: who would change that fails with api.ErrConflict, and
// so does who reopens one while another is open for the same branch.
func (s *Store) UpdatePull(ctx context.Context, p api.PullRequest) (api.PullRequest, error) {
	switch p.State {
	case api.PullOpen, api.PullMerged, api.PullClosed:
	default:
		return api.PullRequest{}, &api.InvalidError{Problems: []api.Problem{
			{Field: "state", Message: "must be open, merged or closed"}}}
	}
	if !database.Askable(p.ID) {
		return api.PullRequest{}, fmt.Errorf("pull request %q: %w", p.ID, api.ErrNotFound)
	}
	p.UpdatedAt, p.ClosedAt = database.Stamp(p.UpdatedAt), database.StampPtr(p.ClosedAt)
	err := s.db.Change(ctx, "update a pull request", func(ctx context.Context, tx bun.Tx) error {
		was, err := s.onePull(ctx, database.ForUpdate(tx.NewSelect().Where("id = ?", p.ID)))
		if err != nil {
			return err
		}
		if was.State == api.PullMerged && p.State != api.PullMerged {
			return database.Conflict("pull request #%d is merged already", was.Number)
		}
		p.Project, p.Number, p.Head, p.CreatedAt = was.Project, was.Number, was.Head, was.CreatedAt
		row, err := newPullRow(p)
		if err != nil {
			return err
		}
		_, err = tx.NewUpdate().Model(row).WherePK().Exec(ctx)
		return database.Refused(err, database.Conflict("another pull request is open for the branch %q", p.Head), nil)
	})
	if err != nil {
		return api.PullRequest{}, err
	}
	return p, nil
}

// Pull finds a pull request by its id, or fails with api.ErrNotFound.
func (s *Store) Pull(ctx context.Context, id string) (api.PullRequest, error) {
	if !database.Askable(id) {
		return api.PullRequest{}, fmt.Errorf("pull request %q: %w", id, api.ErrNotFound)
	}
	return s.onePull(ctx, s.db.Read.NewSelect().Where("id = ?", id))
}

// FindPull finds the open pull request of a branch, or fails with api.ErrNotFound.
func (s *Store) FindPull(ctx context.Context, project api.ProjectID, head string) (api.PullRequest, error) {
	return s.onePull(ctx, ofBranch(s.db.Read, project, head).Where("state = ?", api.PullOpen))
}

// LatestPull finds the newest pull request of a branch in whatever state, or fails with api.ErrNotFound.
func (s *Store) LatestPull(ctx context.Context, project api.ProjectID, head string) (api.PullRequest, error) {
	return s.onePull(ctx, ofBranch(s.db.Read, project, head).Order("number DESC").Limit(1))
}

// Pulls lists a project's pull requests, the newest first; in any state if state is empty.
func (s *Store) Pulls(ctx context.Context, project api.ProjectID, state api.PullState) ([]api.PullRequest, error) {
	sel := s.db.Read.NewSelect().Where("project_id = ?", project).Order("number DESC")
	if state != "" {
		sel = sel.Where("state = ?", state)
	}
	return database.List[api.PullRequest, pullRow](ctx, s.db, sel, "pull requests")
}

// EqualPulls lists a project's open pull requests that may change what a digest stands for, the newest first: those with
// the digest, and those without one.
func (s *Store) EqualPulls(
	ctx context.Context, project api.ProjectID, digest string, limit int,
) ([]api.PullRequest, error) {
	sel := s.db.Read.NewSelect().Where("project_id = ?", project).Where("state = ?", api.PullOpen).
		Where("change_digest IN (?, '')", digest).Order("number DESC").Limit(int64(limit))
	return database.List[api.PullRequest, pullRow](ctx, s.db, sel, "pull requests")
}

// A PullQuery asks for a page of a project's pull requests, the newest first.
type PullQuery struct {
	Project api.ProjectID
	State   api.PullState // any if empty
	Before  int           // with lower numbers than this one; a cursor; all if zero
	Limit   int
}

// PullsPage lists a page of pull requests.
func (s *Store) PullsPage(ctx context.Context, q PullQuery) ([]api.PullRequest, error) {
	if !database.Askable(string(q.Project)) || !database.Askable(string(q.State)) {
		return nil, nil
	}
	sel := s.db.Read.NewSelect().Where("project_id = ?", q.Project).Order("number DESC").Limit(int64(q.Limit))
	if q.State != "" {
		sel = sel.Where("state = ?", q.State)
	}
	if q.Before > 0 {
		sel = sel.Where("number < ?", q.Before)
	}
	return database.List[api.PullRequest, pullRow](ctx, s.db, sel, "pull requests")
}

func ofBranch(db bun.IDB, project api.ProjectID, head string) *bun.SelectQuery {
	return db.NewSelect().Where("project_id = ?", project).Where("head = ?", head)
}

func (s *Store) onePull(ctx context.Context, q *bun.SelectQuery) (api.PullRequest, error) {
	return database.One[api.PullRequest, pullRow](ctx, s.db, q, "pull request")
}

// UntoldPulls are pull requests, in the order of their ids and from the one after the id given, whose jobs do not know
// yet where they stand.
func (s *Store) UntoldPulls(ctx context.Context, after string, limit int) ([]api.PullRequest, error) {
	sel := s.db.Read.NewSelect().Where("told <> state").Where("id > ?", after).Order("id").Limit(int64(limit))
	return database.List[api.PullRequest, pullRow](ctx, s.db, sel, "pull requests")
}

// PullTold remembers that a pull request's job knows of a state.
func (s *Store) PullTold(ctx context.Context, id string, state api.PullState) error {
	return s.db.InTx(ctx, "remember what a job knows", func(ctx context.Context, tx bun.Tx) error {
		_, err := tx.NewUpdate().Model((*pullRow)(nil)).Set("told = ?", state).Where("id = ?", id).Exec(ctx)
		return err
	})
}
