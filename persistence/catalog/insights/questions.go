package insights

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"hash/crc32"
	"log/slog"
	"maps"
	"math"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect"

	"docent/api"
	"docent/persistence/catalog/database"
	"docent/persistence/catalog/listing"
)

const (
	threadStreamPrefix = "thread/"

	// questionGap lets a question and its answer, and all that happens in busy threads, be written once.
	questionGap = time.Second
	// questionChunk is how many questions one statement writes: that takes a millisecond of a processor, and a statement
	// by itself as much as some rows.
	questionChunk = 16
)

// A ThreadLoader makes the row of a thread's stream. It returns false if the stream does not exist or is no thread, and
// may leave out questions that have not changed since a position of the journal (ThreadRow.Part).
type ThreadLoader func(ctx context.Context, stream string, since uint64) (api.ThreadRow, bool, error)

// NewThreadProjector makes the projector of the questions that threads have answered, which analytics are made of, and
// lets analytics wait for it. It does nothing before Run.
func (s *Store) NewThreadProjector(source listing.Source, load ThreadLoader, log *slog.Logger) *listing.Projector {
	of := questionListing(load)
	of.Beside = s.keepTexts
	return s.listings.Keep(of, source, log)
}

// Outcomes of a question.
const (
	outcomeAnswered   = "answered"
	outcomeUnanswered = "unanswered" // the documentation had no answer
	outcomeFailed     = "failed"
)

type questionRow struct {
	bun.BaseModel `bun:"table:questions,alias:question"`

	ID       api.TurnID      `bun:"id,pk"`
	Thread   api.ThreadID    `bun:"thread_id"`
	Project  api.ProjectID   `bun:"project_id"`
	Caller   string          `bun:"caller"`
	Channel  api.Channel     `bun:"channel"`
	Outcome  string          `bun:"outcome"`
	Replaced bool            `bun:"replaced"`
	Asked    int64           `bun:"asked_at"`
	Rating   api.Rating      `bun:"rating"`
	Rated    int64           `bun:"rated_at"`
	Version  int64           `bun:"version"`
	Num      int64           `bun:"num"`
	First    int64           `bun:"first_text"`
	InDoubt  int64           `bun:"in_doubt"` // a number, which can be added up
	Body     json.RawMessage `bun:"body"`

	cited []string // pages
}

// numberBits are those of a question's number that its time does not take.
const numberBits = 20

// numberOf is a number that puts questions in the order of their times; of those of the same millisecond, in one order.
func numberOf(asked time.Time, id api.TurnID) int64 {
	at := min(max(asked.UnixMilli(), 0), math.MaxInt64>>numberBits-1)
	return at<<numberBits | int64(crc32.ChecksumIEEE([]byte(id)))&(1<<numberBits-1)
}

type ratedPageRow struct {
	bun.BaseModel `bun:"table:rated_pages,alias:page"`

	Question api.TurnID    `bun:"question_id,pk"`
	Page     string        `bun:"page,pk"`
	Project  api.ProjectID `bun:"project_id"`
	Rating   api.Rating    `bun:"rating"`
	Rated    int64         `bun:"rated_at"`
}

type citedPageRow struct {
	bun.BaseModel `bun:"table:cited_pages,alias:page"`

	Question api.TurnID    `bun:"question_id,pk"`
	Page     string        `bun:"page,pk"`
	Project  api.ProjectID `bun:"project_id"`
	Asked    int64         `bun:"asked_at"`
}

// A textQueueRow says that the words of a question are to be written, or removed.
type textQueueRow struct {
	bun.BaseModel `bun:"table:text_queue"`

	Num int64 `bun:"num,pk"`
}

func newQuestionRow(q api.QuestionRow) (*questionRow, error) {
	q.Caller = database.Column(q.Caller)
	body, err := database.EncodeBody(q)
	r := &questionRow{ID: q.ID, Thread: q.Thread, Project: q.Project, Caller: q.Caller, Channel: q.Channel,
		Outcome: outcomeUnanswered, Replaced: q.Replaced, Asked: q.Asked.UnixMilli(), Rating: q.Rating, Body: body,
		Num: numberOf(q.Asked, q.ID), First: q.FirstText, cited: pages(q.Sources)}
	switch {
	case q.Error != "":
		r.Outcome = outcomeFailed
	case q.Answered:
		r.Outcome = outcomeAnswered
	case q.InDoubt():
		r.InDoubt = 1
	}
	if q.Rating != "" {
		r.Rated = q.Rated.UnixMilli()
	}
	sum := sha256.Sum256(body) // it holds all that the columns hold
	r.Version = int64(binary.BigEndian.Uint64(sum[:8]))
	return r, err
}

func (r *questionRow) question() (api.QuestionRow, error) {
	var q api.QuestionRow
	err := database.DecodeBody(r.Body, &q, "question "+string(r.ID))
	return q, err
}

// pages are the pages that sources lie on, each once, in the order cited.
func pages(sources []api.PageRef) []string {
	var out []string
	seen := make(map[string]bool)
	for _, s := range sources {
		if p := database.Column(s.Page()); p != "" && !seen[p] {
			seen[p] = true
			out = append(out, p)
		}
	}
	return out
}

// questionListing is the copy of all questions that have come to their end.
func questionListing(load ThreadLoader) listing.Projection {
	return listing.Projection{
		Name: listing.QuestionListing, Title: "the listing of questions", Kind: "thread", Prefix: threadStreamPrefix,
		Table: "questions", Column: "thread_id", Gap: questionGap,
		Load: func(ctx context.Context, stream string, since uint64) (any, bool, error) {
			row, ok, err := load(ctx, stream, since)
			if err != nil || !ok {
				return nil, ok, err
			}
			row.ID = api.ThreadID(strings.TrimPrefix(stream, threadStreamPrefix))
			rows := make([]*questionRow, len(row.Questions))
			for i, q := range row.Questions {
				q.Thread, q.Project, q.Caller = row.ID, row.Project, row.Caller
				if rows[i], err = newQuestionRow(q); err != nil {
					return nil, false, err
				}
			}
			return loadedThread{row.ID, row.Part, rows}, true, nil
		},
		Write: writeQuestions, Also: dropQuestions,
	}
}

type loadedThread struct {
	id   api.ThreadID
	part bool // what is stored of other questions stays
	rows []*questionRow
}

// writeQuestions makes the stored questions of threads those that were loaded. What is stored already is left alone: a
// question more in a long thread costs one row, not all of them.
func writeQuestions(ctx context.Context, tx bun.Tx, loaded []any, gone []string, noted *listing.Changes) error {
	if len(loaded)+len(gone) == 0 {
		return nil
	}
	stored, err := storedQuestions(ctx, tx, loaded, gone)
	if err != nil {
		return err
	}
	var fresh []*questionRow
	var stale []api.TurnID // whose pages, if there are any, are no longer true
	for _, l := range loaded {
		for _, r := range l.(loadedThread).rows {
			was, known := stored[r.ID]
			delete(stored, r.ID)
			if known && was.Version == r.Version {
				continue
			}
			fresh = append(fresh, r)
			note(noted, r)
			if known {
				stale = append(stale, r.ID)
			}
		}
	}
	// Those that are left were replaced, or are of threads that are no more. Their pages go with them.
	var removed []textQueueRow
	for _, r := range stored {
		note(noted, &r)
		removed = append(removed, textQueueRow{Num: r.Num})
	}
	for chunk := range slices.Chunk(slices.Collect(maps.Keys(stored)), 512) {
		if _, err := tx.NewDelete().Model((*questionRow)(nil)).Where("id IN ?", bun.Tuple(chunk)).Exec(ctx); err != nil {
			return err
		}
	}
	if err := insertAll(ctx, tx, removed); err != nil {
		return err
	}
	for chunk := range slices.Chunk(stale, 512) {
		for _, table := range []any{(*ratedPageRow)(nil), (*citedPageRow)(nil)} {
			_, err := tx.NewDelete().Model(table).Where("question_id IN ?", bun.Tuple(chunk)).Exec(ctx)
			if err != nil {
				return err
			}
		}
	}
	return insertQuestions(ctx, tx, fresh)
}

// note notes that a question has changed.
func note(noted *listing.Changes, r *questionRow) {
	noted.Of(r.Project)
	noted.Quarter(database.Quarter{Project: r.Project, N: quarterAt(r.Num >> numberBits)})
	noted.Texts = true
}

// storedQuestions reads which questions are stored of threads, in which version: of those that are gone or loaded in
// full all, of the others those that were loaded.
func storedQuestions(ctx context.Context, tx bun.Tx, loaded []any, gone []string) (map[api.TurnID]questionRow, error) {
	threads := slices.Clone(gone)
	var parts []api.TurnID
	for _, l := range loaded {
		l := l.(loadedThread)
		if !l.part {
			threads = append(threads, string(l.id))
			continue
		}
		for _, r := range l.rows {
			parts = append(parts, r.ID)
		}
	}
	stored := make(map[api.TurnID]questionRow)
	read := func(where string, among any) error {
		var have []questionRow
		if err := tx.NewSelect().Model(&have).Column("id", "version", "num", "project_id").
			Where(where, among).Scan(ctx); err != nil {
			return err
		}
		for _, h := range have {
			stored[h.ID] = h
		}
		return nil
	}
	if len(threads) > 0 {
		if err := read("thread_id IN ?", bun.Tuple(threads)); err != nil {
			return nil, err
		}
	}
	for chunk := range slices.Chunk(parts, 512) {
		if err := read("id IN ?", bun.Tuple(chunk)); err != nil {
			return nil, err
		}
	}
	return stored, nil
}

func insertQuestions(ctx context.Context, tx bun.Tx, fresh []*questionRow) error {
	for chunk := range slices.Chunk(fresh, questionChunk) {
		insert := database.Upsert(tx.NewInsert().Model(&chunk), "thread_id", "project_id", "caller", "channel", "outcome", "replaced",
			"asked_at", "rating", "rated_at", "version", "num", "first_text", "in_doubt", "body")
		if _, err := insert.Exec(ctx); err != nil {
			return err
		}
		runtime.Gosched()
	}
	var rated []ratedPageRow
	for _, r := range fresh {
		for _, p := range r.cited {
			if r.Rating != "" {
				rated = append(rated, ratedPageRow{Question: r.ID, Page: p, Project: r.Project, Rating: r.Rating, Rated: r.Rated})
			}
		}
	}
	if err := insertAll(ctx, tx, rated); err != nil {
		return err
	}
	return insertDerived(ctx, tx, fresh)
}

// insertDerived stores the pages that answers cite, and has the words of questions and answers written.
func insertDerived(ctx context.Context, tx bun.IDB, fresh []*questionRow) error {
	var cited []citedPageRow
	queued := make([]textQueueRow, len(fresh))
	for i, r := range fresh {
		queued[i].Num = r.Num
		if r.Replaced {
			continue
		}
		for _, p := range r.cited {
			cited = append(cited, citedPageRow{Question: r.ID, Page: p, Project: r.Project, Asked: r.Asked})
		}
	}
	if err := insertAll(ctx, tx, cited); err != nil {
		return err
	}
	return insertAll(ctx, tx, queued)
}

// insertAll inserts rows if they are not there already.
func insertAll[R any](ctx context.Context, tx bun.IDB, rows []R) error {
	for chunk := range slices.Chunk(rows, 512) {
		if _, err := tx.NewInsert().Model(&chunk).On("CONFLICT DO NOTHING").Exec(ctx); err != nil {
			return err
		}
	}
	return nil
}

// dropQuestions removes all that is made of questions beside their own table and what refers to it.
func dropQuestions(ctx context.Context, tx bun.Tx) error {
	clear := "TRUNCATE question_texts"
	if tx.Dialect().Name() == dialect.SQLite {
		clear = "INSERT INTO question_texts (question_texts) VALUES ('delete-all')"
	}
	for _, statement := range []string{"DELETE FROM text_queue", clear} {
		if _, err := tx.NewRaw(statement).Exec(ctx); err != nil {
			return err
		}
	}
	return nil
}

// placeQuestions gives the questions and jobs that are stored what the migration of conversations brings. Who cannot be
// read stays as it is.
func placeQuestions(ctx context.Context, db bun.IDB, _ time.Time) (func(*database.DB), error) {
	for after, more := "", true; more; {
		var rows []questionRow
		err := db.NewSelect().Model(&rows).Where("id > ?", after).OrderBy("id", bun.OrderAsc).
			Limit(listing.Batch).Scan(ctx)
		if err != nil {
			return nil, err
		}
		var fresh []*questionRow
		for i := range rows {
			after = string(rows[i].ID)
			q, err := rows[i].question()
			if err != nil {
				continue
			}
			r, err := newQuestionRow(q)
			if err != nil {
				return nil, err
			}
			fresh = append(fresh, r)
			_, err = db.NewUpdate().Model(r).Column("num", "in_doubt").WherePK().Exec(ctx)
			if err != nil {
				return nil, err
			}
		}
		if err := insertDerived(ctx, db, fresh); err != nil {
			return nil, err
		}
		more = len(rows) == listing.Batch
	}
	return nil, nil
}
