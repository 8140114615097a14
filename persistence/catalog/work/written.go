package work

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/uptrace/bun"

	"docent/api"
	"docent/persistence/catalog/database"
)

type writtenRow struct {
	bun.BaseModel `bun:"table:written_questions,alias:written"`

	ID     string          `bun:"id,pk"`
	UsedOn int64           `bun:"used_on"`
	Body   json.RawMessage `bun:"body"`
	database.Checked
}

// Contents leave out the day, which changes with every look.
func (r *writtenRow) Contents() (table, key string, fields []any) {
	return "written_questions", r.ID, []any{r.ID, []byte(r.Body)}
}

func (r *writtenRow) Decode() (w api.WrittenSection, err error) {
	if err := database.CheckRow(r); err != nil {
		return w, err
	}
	err = database.DecodeBody(r.Body, &w, "written questions "+r.ID)
	w.Key = r.ID
	return w, err
}

type writtenStateRow struct {
	bun.BaseModel `bun:"table:written_states,alias:state"`

	ID   string          `bun:"id,pk"`
	Body json.RawMessage `bun:"body"`
	database.Checked
}

func (r *writtenStateRow) Contents() (table, key string, fields []any) {
	return "written_states", r.ID, []any{r.ID, []byte(r.Body)}
}

func (r *writtenStateRow) Decode() (s api.WrittenState, err error) {
	if err := database.CheckRow(r); err != nil {
		return s, err
	}
	err = database.DecodeBody(r.Body, &s, "state of written questions "+r.ID)
	s.Index = api.ProjectID(r.ID)
	return s, err
}

const (
	writtenChunk = 512
	// writtenKept is for how many days questions stay of sections that no index has: they may come back, with a revert.
	writtenKept = 90
)

func dayOf(at time.Time) int64 {
	n, _ := strconv.ParseInt(at.UTC().Format("20060102"), 10, 64)
	return n
}

// WrittenQuestions are the questions written for the sections with these keys, in no order. A section whose row is
// damaged has none: they are written again.
func (s *Store) WrittenQuestions(ctx context.Context, keys []string) ([]api.WrittenSection, error) {
	var out []api.WrittenSection
	for chunk := range slices.Chunk(keys, writtenChunk) {
		list, err := database.List[api.WrittenSection, writtenRow](ctx, s.db,
			s.db.Read.NewSelect().Where("id IN ?", bun.Tuple(chunk)), "written questions")
		if err != nil {
			return nil, err
		}
		out = append(out, list...)
	}
	return out, nil
}

// UseWritten notes that sections with these keys are there, so that their questions are kept.
func (s *Store) UseWritten(ctx context.Context, keys []string) error {
	today := dayOf(s.db.Now())
	for chunk := range slices.Chunk(keys, writtenChunk) {
		err := s.db.Change(ctx, "use written questions", func(ctx context.Context, tx bun.Tx) error {
			_, err := tx.NewUpdate().Model((*writtenRow)(nil)).Set("used_on = ?", today).Where("id IN ?", bun.Tuple(chunk)).
				Where("used_on < ?", today).Exec(ctx)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// SweepWritten removes the questions of sections that have been gone for long.
func (s *Store) SweepWritten(ctx context.Context) error {
	return s.db.Change(ctx, "remove written questions", func(ctx context.Context, tx bun.Tx) error {
		_, err := tx.NewDelete().Model((*writtenRow)(nil)).
			Where("used_on < ?", dayOf(s.db.Now().AddDate(0, 0, -writtenKept))).Exec(ctx)
		return err
	})
}

// KeepWritten stores a section's questions, and counts what they took for an index and for the day. Questions that are
// there stay, and what was used is counted all the same: it was paid for.
func (s *Store) KeepWritten(ctx context.Context, index api.ProjectID, w api.WrittenSection, tokens, cost int64) error {
	body, err := database.EncodeBody(w)
	if err != nil {
		return err
	}
	now := database.Stamp(s.db.Now())
	row := &writtenRow{ID: w.Key, UsedOn: dayOf(now), Body: body}
	database.SetChecksum(row)
	return s.db.Change(ctx, "keep written questions", func(ctx context.Context, tx bun.Tx) error {
		if _, err := tx.NewInsert().Model(row).On("CONFLICT (id) DO NOTHING").Exec(ctx); err != nil {
			return err
		}
		for _, id := range []api.ProjectID{index, api.EveryIndex} { // in one order everywhere
			err := s.changeState(ctx, tx, id, func(state *api.WrittenState) {
				state.UpdatedAt = now
				if id != api.EveryIndex {
					state.Asked, state.Tokens, state.Cost = state.Asked+1, state.Tokens+tokens, state.Cost+cost
					state.Written = min(state.Written+1, state.Sections)
					return
				}
				if day := now.UTC().Format(time.DateOnly); state.Day != day {
					state.Day, state.DayTokens, state.DayCost = day, 0, 0
				}
				state.DayTokens, state.DayCost = state.DayTokens+tokens, state.DayCost+cost
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// ChangeWrittenState changes how the questions of an index stand.
func (s *Store) ChangeWrittenState(ctx context.Context, index api.ProjectID, change func(*api.WrittenState)) error {
	return s.db.Change(ctx, "change the state of written questions", func(ctx context.Context, tx bun.Tx) error {
		return s.changeState(ctx, tx, index, change)
	})
}

func (s *Store) changeState(ctx context.Context, tx bun.Tx, index api.ProjectID, change func(*api.WrittenState)) error {
	state, err := database.One[api.WrittenState, writtenStateRow](ctx, s.db,
		database.ForUpdate(tx.NewSelect().Where("id = ?", string(index))), "state of written questions")
	if err != nil && !errors.Is(err, api.ErrNotFound) {
		return err
	}
	change(&state)
	body, err := database.EncodeBody(state)
	if err != nil {
		return err
	}
	row := &writtenStateRow{ID: string(index), Body: body}
	database.SetChecksum(row)
	_, err = database.Upsert(tx.NewInsert().Model(row), "body", "checksum").Exec(ctx)
	return err
}

// WrittenState is how the questions of an index stand; zero if nothing is known.
func (s *Store) WrittenState(ctx context.Context, index api.ProjectID) (api.WrittenState, error) {
	state, err := database.One[api.WrittenState, writtenStateRow](ctx, s.db,
		s.db.Read.NewSelect().Where("id = ?", string(index)), "state of written questions")
	if errors.Is(err, api.ErrNotFound) {
		return api.WrittenState{Index: index}, nil
	}
	return state, err
}
