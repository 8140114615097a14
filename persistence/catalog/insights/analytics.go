package insights

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"time"

	"github.com/uptrace/bun"

	"docent/api"
	"docent/persistence/catalog/database"
	"docent/persistence/catalog/listing"
)

// An AnalyticsQuery asks for a page of what happened in a project. Lists are some seconds old at most; questions and
// ratings, which the journal holds, are waited for.
type AnalyticsQuery struct {
	Project  api.ProjectID
	From, To time.Time // half-open; no bound if zero
	After    string    // the cursor that came with the page before
	Limit    int       // at most so many
	// AsIs takes what is listed now: what the journal holds beyond it, of some seconds at most, is not waited for. It is
	// for what is looked at again and again, and hears of changes by Watch.
	AsIs bool
}

// QuestionTotals count what was asked in a project.
type QuestionTotals struct {
	Threads    int `bun:"threads"`
	Callers    int `bun:"callers"` // anonymous ones count as one
	Questions  int `bun:"questions"`
	Answered   int `bun:"answered"`
	Unanswered int `bun:"unanswered"` // the documentation had no answer
	Failed     int `bun:"failed"`
	Web        int `bun:"web"`
	API        int `bun:"api"`
	Up         int `bun:"up"`
	Down       int `bun:"down"`
}

// CallerCount says how much one caller has asked.
type CallerCount struct {
	Caller    string
	Threads   int
	Questions int
	Last      time.Time
}

// SearchCount says how often one text was searched for.
type SearchCount struct {
	Query   string
	Count   int
	Results int // of the newest such search
	Last    time.Time
}

// PageCount says how the answers that cite one page were rated.
type PageCount struct {
	Page     string
	Up, Down int
}

// A cursor is where a page of a list ends: a number that the list is sorted by, and a text that tells equals apart.
type cursor struct {
	Number int64  `json:"n"`
	Text   string `json:"t"`
}

func (c cursor) String() string {
	b, _ := json.Marshal(c) // a number and a string: cannot fail
	return base64.RawURLEncoding.EncodeToString(b)
}

// parseCursor returns nil for the start of the list.
func parseCursor(s string) (*cursor, error) {
	if s == "" {
		return nil, nil
	}
	var c cursor
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err == nil {
		err = json.Unmarshal(b, &c)
	}
	if err != nil || len(s) > 2048 || !database.Askable(c.Text) {
		return nil, &api.InvalidError{Problems: []api.Problem{
			{Field: "cursor", Message: "must be the nextCursor of an earlier answer, as it was"}}}
	}
	return &c, nil
}

// between bounds a column of times.
func (q AnalyticsQuery) between(sel *bun.SelectQuery, column string) *bun.SelectQuery {
	sel = sel.Where("project_id = ?", q.Project)
	if !q.From.IsZero() {
		sel = sel.Where("? >= ?", bun.Ident(column), database.CeilMilli(q.From))
	}
	if !q.To.IsZero() {
		sel = sel.Where("? < ?", bun.Ident(column), database.CeilMilli(q.To))
	}
	return sel
}

// current waits, for a short time, until the copy of the threads reflects all that the journal holds.
func (s *Store) current(ctx context.Context, asIs bool) error {
	return s.listings.Await(ctx, listing.QuestionListing, listing.Newest, asIs)
}

// begin reads the position at which a list of what the journal holds goes on, and waits for its copy.
func (s *Store) begin(ctx context.Context, q AnalyticsQuery) (after *cursor, err error) {
	if after, err = parseCursor(q.After); err == nil {
		err = s.current(ctx, q.AsIs)
	}
	return after, err
}

// page cuts what was read at the limit and says where the next page begins; it is empty on the last one.
func page[R any](q AnalyticsQuery, rows []R, at func(R) cursor) ([]R, string) {
	if len(rows) <= q.Limit {
		return rows, ""
	}
	rows = rows[:q.Limit]
	return rows, at(rows[q.Limit-1]).String()
}

// counted lists how often each value of a column is there, most first.
func counted[R, T any](ctx context.Context, s *Store, q AnalyticsQuery, sel *bun.SelectQuery, column string,
	after *cursor, doing string, count func(R) T, at func(T) cursor) ([]T, string, error) {
	sel = sel.GroupExpr(column).OrderExpr("COUNT(*) DESC, " + column).Limit(int64(q.Limit) + 1)
	if after != nil {
		sel = sel.Having("COUNT(*) < ? OR (COUNT(*) = ? AND "+column+" > ?)", after.Number, after.Number, after.Text)
	}
	var rows []R
	if err := sel.Scan(ctx, &rows); err != nil {
		return nil, "", s.db.Fail(doing, err)
	}
	out := make([]T, len(rows))
	for i, r := range rows {
		out[i] = count(r)
	}
	out, next := page(q, out, at)
	return out, next, nil
}

// Questions lists a project's questions that have come to their end, by the time they were asked, newest first.
func (s *Store) Questions(ctx context.Context, q AnalyticsQuery) ([]api.QuestionRow, string, error) {
	sel := s.db.Read.NewSelect().Where("replaced = ?", false)
	return s.questions(ctx, q, sel, "asked_at", func(r questionRow) cursor { return cursor{r.Asked, string(r.ID)} })
}

// Feedback lists a project's questions whose answers were rated, by the time of the rating, newest first; also those
// that were replaced by another answer since.
func (s *Store) Feedback(ctx context.Context, q AnalyticsQuery) ([]api.QuestionRow, string, error) {
	sel := s.db.Read.NewSelect().Where("rating <> ''")
	return s.questions(ctx, q, sel, "rated_at", func(r questionRow) cursor { return cursor{r.Rated, string(r.ID)} })
}

func (s *Store) questions(ctx context.Context, q AnalyticsQuery, sel *bun.SelectQuery, by string,
	at func(questionRow) cursor) ([]api.QuestionRow, string, error) {
	after, err := s.begin(ctx, q)
	if err != nil {
		return nil, "", err
	}
	var rows []questionRow
	sel = q.between(sel.Model(&rows).Column("id", "asked_at", "rated_at", "body"), by).
		OrderExpr("? DESC, id DESC", bun.Ident(by)).Limit(int64(q.Limit) + 1)
	if after != nil {
		sel = sel.Where("(?, id) < (?, ?)", bun.Ident(by), after.Number, after.Text)
	}
	if err := sel.Scan(ctx); err != nil {
		return nil, "", s.db.Fail("list questions", err)
	}
	rows, next := page(q, rows, at)
	out := make([]api.QuestionRow, len(rows))
	for i := range rows {
		if out[i], err = rows[i].question(); err != nil {
			return nil, "", s.db.Fail("list questions", err)
		}
	}
	return out, next, nil
}

// Totals counts a project's questions.
func (s *Store) Totals(ctx context.Context, q AnalyticsQuery) (QuestionTotals, error) {
	var t QuestionTotals
	if err := s.current(ctx, q.AsIs); err != nil {
		return t, err
	}
	count := "COALESCE(SUM(CASE WHEN ? = ? THEN 1 ELSE 0 END), 0) AS ?"
	sel := q.between(s.db.Read.NewSelect().Model((*questionRow)(nil)), "asked_at").Where("replaced = ?", false).
		ColumnExpr("COUNT(DISTINCT thread_id) AS threads").ColumnExpr("COUNT(DISTINCT caller) AS callers").
		ColumnExpr("COUNT(*) AS questions")
	for _, of := range []struct{ column, value, name string }{
		{"outcome", outcomeAnswered, "answered"}, {"outcome", outcomeUnanswered, "unanswered"},
		{"outcome", outcomeFailed, "failed"},
		{"channel", string(api.ChannelWeb), "web"}, {"channel", string(api.ChannelAPI), "api"},
		{"rating", string(api.RatedUp), "up"}, {"rating", string(api.RatedDown), "down"},
	} {
		sel = sel.ColumnExpr(count, bun.Ident(of.column), of.value, bun.Ident(of.name))
	}
	err := sel.Scan(ctx, &t)
	return t, s.db.Fail("count questions", err)
}

// Callers lists the callers that have asked in a project, those with most questions first.
func (s *Store) Callers(ctx context.Context, q AnalyticsQuery) ([]CallerCount, string, error) {
	after, err := s.begin(ctx, q)
	if err != nil {
		return nil, "", err
	}
	type row struct {
		Caller    string `bun:"caller"`
		Threads   int    `bun:"threads"`
		Questions int    `bun:"questions"`
		Last      int64  `bun:"last"`
	}
	sel := q.between(s.db.Read.NewSelect().Model((*questionRow)(nil)), "asked_at").Where("replaced = ?", false).
		Column("caller").ColumnExpr("COUNT(DISTINCT thread_id) AS threads").ColumnExpr("COUNT(*) AS questions").
		ColumnExpr("MAX(asked_at) AS last")
	return counted(ctx, s, q, sel, "caller", after, "count callers",
		func(r row) CallerCount {
			return CallerCount{r.Caller, r.Threads, r.Questions, time.UnixMilli(r.Last).UTC()}
		},
		func(n CallerCount) cursor { return cursor{int64(n.Questions), n.Caller} })
}

// PageFeedback lists the pages that rated answers cite, those with most ratings first.
func (s *Store) PageFeedback(ctx context.Context, q AnalyticsQuery) ([]PageCount, string, error) {
	after, err := s.begin(ctx, q)
	if err != nil {
		return nil, "", err
	}
	type row struct {
		Page string `bun:"page"`
		All  int    `bun:"ratings"`
		Up   int    `bun:"up"`
	}
	sel := q.between(s.db.Read.NewSelect().Model((*ratedPageRow)(nil)), "rated_at").ColumnExpr("page.page AS page").
		ColumnExpr("COUNT(*) AS ratings").ColumnExpr("SUM(CASE WHEN rating = ? THEN 1 ELSE 0 END) AS up", api.RatedUp)
	return counted(ctx, s, q, sel, "page.page", after, "count feedback",
		func(r row) PageCount { return PageCount{r.Page, r.Up, r.All - r.Up} },
		func(n PageCount) cursor { return cursor{int64(n.Up + n.Down), n.Page} })
}
