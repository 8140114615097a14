package insights

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/uptrace/bun"

	"docent/api"
	"docent/persistence/catalog/database"
)

type gapRow struct {
	bun.BaseModel `bun:"table:gaps,alias:gap"`

	ID      api.GapID       `bun:"id,pk"`
	Project api.ProjectID   `bun:"project_id"`
	State   api.GapState    `bun:"state"`
	Anchor  api.TurnID      `bun:"anchor"`
	Body    json.RawMessage `bun:"body"`
	database.Checked
}

func newGapRow(g api.Gap) (*gapRow, error) {
	g.CreatedAt, g.UpdatedAt = database.Stamp(g.CreatedAt), database.Stamp(g.UpdatedAt)
	g.OpenedAt, g.MergedAt, g.DismissedAt = database.StampPtr(g.OpenedAt), database.StampPtr(g.MergedAt), database.StampPtr(g.DismissedAt)
	body, err := database.EncodeBody(g)
	r := &gapRow{ID: g.ID, Project: g.Project, State: g.State, Anchor: g.Anchor, Body: body}
	database.SetChecksum(r)
	return r, err
}

func (r *gapRow) Decode() (api.Gap, error) {
	var g api.Gap
	if err := database.CheckRow(r); err != nil {
		return g, err
	}
	err := database.DecodeBody(r.Body, &g, "gap "+string(r.ID))
	g.ID, g.Project, g.State, g.Anchor = r.ID, r.Project, r.State, r.Anchor
	return g, err
}

// maxGaps is how many topics of a project are kept of those that somebody acted on.
const maxGaps = 2000

// KeepGap stores a topic that somebody acts on for the first time. One that has the same anchor is there already: it is
// given instead.
func (s *Store) KeepGap(ctx context.Context, g api.Gap) (kept api.Gap, err error) {
	g.CreatedAt = s.db.Now()
	g.UpdatedAt = g.CreatedAt
	g.ID = api.GapID(api.NewID(api.GapPrefix, g.CreatedAt))
	row, err := newGapRow(g)
	if err != nil {
		return g, err
	}
	err = s.db.Change(ctx, "keep a gap", func(ctx context.Context, tx bun.Tx) error {
		n, err := tx.NewSelect().Model((*gapRow)(nil)).Where("project_id = ?", g.Project).Count(ctx)
		if err != nil {
			return err
		}
		if n >= maxGaps {
			return database.Conflict("the project keeps %d topics already: restore some that were dismissed", maxGaps)
		}
		if _, err = tx.NewInsert().Model(row).On("CONFLICT (project_id, anchor) DO NOTHING").Exec(ctx); err != nil {
			return database.Refused(err, nil, database.NoProject(g.Project))
		}
		kept, err = database.One[api.Gap, gapRow](ctx, s.db,
			tx.NewSelect().Where("project_id = ?", g.Project).Where("anchor = ?", g.Anchor), "gap")
		return err
	})
	return kept, err
}

// ChangeGap changes what has become of a topic. Two changes at once both take place, one after the other.
func (s *Store) ChangeGap(ctx context.Context, project api.ProjectID, id api.GapID, change func(*api.Gap) error) (
	g api.Gap, err error) {
	if !database.Askable(string(id)) {
		return g, noGap(id)
	}
	err = s.db.Change(ctx, "change a gap", func(ctx context.Context, tx bun.Tx) error {
		sel := tx.NewSelect().Where("id = ?", id).Where("project_id = ?", project)
		if g, err = database.One[api.Gap, gapRow](ctx, s.db, database.ForUpdate(sel), "gap"); err != nil {
			return err
		}
		if err := change(&g); err != nil {
			return err
		}
		g.UpdatedAt = s.db.Now()
		row, err := newGapRow(g)
		if err != nil {
			return err
		}
		_, err = tx.NewUpdate().Model(row).Column("state", "body", "checksum").WherePK().Exec(ctx)
		return err
	})
	return g, err
}

// Gap finds a topic that somebody acted on.
func (s *Store) Gap(ctx context.Context, project api.ProjectID, id api.GapID) (api.Gap, error) {
	if !database.Askable(string(id)) {
		return api.Gap{}, noGap(id)
	}
	return database.One[api.Gap, gapRow](ctx, s.db, s.db.Read.NewSelect().Where("id = ?", id).Where("project_id = ?", project), "gap")
}

// Gaps lists the topics of a project that somebody acted on, oldest first; those of all projects if it is empty.
func (s *Store) Gaps(ctx context.Context, project api.ProjectID, states ...api.GapState) ([]api.Gap, error) {
	q := s.db.Read.NewSelect().Order("id")
	if project != "" {
		q = q.Where("project_id = ?", project)
	}
	if len(states) > 0 {
		q = q.Where("state IN ?", bun.Tuple(states))
	}
	return database.List[api.Gap, gapRow](ctx, s.db, q, "gaps")
}

// GapOf finds the topic of a project that a job was begun for and that is not open again. There are at most maxGaps, which
// the index of their project leads to, so the job needs no column.
func (s *Store) GapOf(ctx context.Context, project api.ProjectID, job api.JobID) (api.Gap, error) {
	if job == "" || !database.Askable(string(job)) {
		return api.Gap{}, fmt.Errorf("gap of job %q: %w", job, api.ErrNotFound)
	}
	q := s.db.Read.NewSelect().Where("project_id = ?", project).Where("body ->> 'job' = ?", job).
		Where("state IN ?", bun.Tuple([]api.GapState{api.GapOpening, api.GapJob, api.GapMerged})).Order("id").Limit(1)
	return database.One[api.Gap, gapRow](ctx, s.db, q, "gap")
}

func noGap(id api.GapID) error { return fmt.Errorf("gap %q: %w", id, api.ErrNotFound) }

// A QuestionMark stands for a question that is stored: the same mark, the same question.
type QuestionMark struct {
	ID      api.TurnID `bun:"id"`
	Asked   int64      `bun:"asked_at"`
	Version int64      `bun:"version"`
}

// open is what makes a question one that the documentation has not answered well; the index is made for these words.
const open = "NOT replaced AND (outcome = 'unanswered' OR rating = 'down')"

// OpenQuestions marks the newest questions of a project that were not answered, or whose answer was rated down, newest
// first, and says whether there are older ones. They are as many as the query's limit at most.
func (s *Store) OpenQuestions(ctx context.Context, q AnalyticsQuery) (marks []QuestionMark, more bool, err error) {
	if err := s.current(ctx, q.AsIs); err != nil {
		return nil, false, err
	}
	sel := s.db.Read.NewSelect().Model((*questionRow)(nil)).Column("id", "asked_at", "version").Where(open)
	return s.marks(ctx, q, sel)
}

// QuestionMarks marks the newest questions of a project, newest first. Their versions tell how they were answered and
// rated, and are not those of OpenQuestions.
func (s *Store) QuestionMarks(ctx context.Context, q AnalyticsQuery) (marks []QuestionMark, more bool, err error) {
	if err := s.current(ctx, q.AsIs); err != nil {
		return nil, false, err
	}
	// All of it stands in the index that totals are counted from.
	sel := s.db.Read.NewSelect().Model((*questionRow)(nil)).Column("id", "asked_at").Where("replaced = ?", false).
		ColumnExpr("CASE outcome WHEN ? THEN 1 WHEN ? THEN 2 ELSE 0 END + CASE rating WHEN ? THEN 4 WHEN '' THEN 0 ELSE 8 END"+
			" AS version", outcomeAnswered, outcomeUnanswered, api.RatedDown)
	return s.marks(ctx, q, sel)
}

func (s *Store) marks(ctx context.Context, q AnalyticsQuery, sel *bun.SelectQuery) ([]QuestionMark, bool, error) {
	var marks []QuestionMark
	err := q.between(sel, "asked_at").OrderExpr("asked_at DESC, id DESC").Limit(int64(q.Limit)+1).Scan(ctx, &marks)
	if err != nil {
		return nil, false, s.db.Fail("list questions", err)
	}
	more := len(marks) > q.Limit
	return marks[:min(len(marks), q.Limit)], more, nil
}

// QuestionsOf reads questions of a project by their ids, in no order. One that is no more is left out.
func (s *Store) QuestionsOf(ctx context.Context, project api.ProjectID, ids []api.TurnID) ([]api.QuestionRow, error) {
	out := make([]api.QuestionRow, 0, len(ids))
	for chunk := range slices.Chunk(ids, 512) {
		chunk = slices.DeleteFunc(slices.Clone(chunk), func(id api.TurnID) bool { return !database.Askable(string(id)) })
		if len(chunk) == 0 {
			continue
		}
		var rows []questionRow
		err := s.db.Read.NewSelect().Model(&rows).Column("id", "body").Where("id IN ?", bun.Tuple(chunk)).
			Where("project_id = ?", project).Scan(ctx)
		if err != nil {
			return nil, s.db.Fail("read questions", err)
		}
		for i := range rows {
			q, err := rows[i].question()
			if err != nil {
				return nil, s.db.Fail("read questions", err)
			}
			out = append(out, q)
		}
	}
	return out, nil
}

func (r *gapRow) Contents() (table, key string, fields []any) {
	return "gaps", string(r.ID), []any{string(r.ID), string(r.Project), string(r.State), string(r.Anchor),
		[]byte(r.Body)}
}
