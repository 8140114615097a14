package insights

import (
	"cmp"
	"context"
	"database/sql"
	"slices"
	"sync"
	"time"

	"docent/api"
	"docent/persistence/catalog/database"
)

// A Day counts what was asked on one day.
type Day struct {
	Start      time.Time // in the zone asked for
	Questions  int
	Answered   int
	Unanswered int // the documentation had no answer
	InDoubt    int // of those, what came closest was shown
	Failed     int
	Up, Down   int
	// Until the first text of the answer was there, in milliseconds; of those questions whose time is known.
	Timed, Median, P95 int64
}

// quarterLength is what is counted and remembered together: the days of every zone begin with one.
const quarterLength = 15 * time.Minute

const (
	// quartersMost is how many quarters of an hour are remembered, of all projects: those of some years.
	quartersMost = 1 << 18
	// quarterShare bounds how much of the time goes into counting a quarter that changes all the while: one part in so
	// many, if that is more than quarterQuick.
	quarterShare = 20
	quarterQuick = 5 * time.Millisecond
)

// A quarter is what was asked in a quarter of an hour.
type quarter struct {
	questions, answered, unanswered, inDoubt, failed, up, down int32

	first []int32 // milliseconds
	pages []pageCount
	stale bool
	read  time.Time
	took  time.Duration
}

type pageCount struct {
	page    uint32 // among quarters.pages
	answers uint32
}

// quarters remembers what was counted, since most of what plots show is long past.
type quarters struct {
	mu      sync.Mutex
	known   map[database.Quarter]*quarter
	reading map[int]map[database.Quarter]bool // what has changed since somebody began to read
	readers int
	pages   []string
	numbers map[string]uint32 // of pages
}

// number is what a page is remembered as.
func (q *quarters) number(page string) uint32 {
	q.mu.Lock()
	defer q.mu.Unlock()
	n, ok := q.numbers[page]
	if !ok {
		if q.numbers == nil {
			q.numbers = make(map[string]uint32)
		}
		n = uint32(len(q.pages))
		q.pages = append(q.pages, page)
		q.numbers[page] = n
	}
	return n
}

func quarterAt(ms int64) int64 {
	n := ms / quarterLength.Milliseconds()
	if ms < 0 {
		n--
	}
	return n
}

// forget discards the counts of quarters, so that they are counted again.
func (q *quarters) forget(changed map[database.Quarter]bool) {
	if len(changed) == 0 {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for of := range changed {
		if k := q.known[of]; k != nil {
			k.stale = true
		}
		for _, since := range q.reading {
			since[of] = true
		}
	}
}

// forgetAll discards every count, so that everything is counted again.
func (q *quarters) forgetAll() {
	q.mu.Lock()
	defer q.mu.Unlock()
	clear(q.known)
	for _, since := range q.reading {
		since[database.Quarter{}] = true
	}
}

// due reports whether a quarter is to be counted.
func (q *quarters) due(of database.Quarter, now time.Time) bool {
	k := q.known[of]
	return k == nil || k.stale && (k.took < quarterQuick || now.Sub(k.read) >= quarterShare*k.took)
}

// begin gives a reader the range of quarters that it has to read; none if end is not beyond begin.
func (q *quarters) begin(project api.ProjectID, from, to int64, now time.Time) (reader int, begin, end int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	begin, end = to, from
	for n := from; n < to; n++ {
		if q.due(database.Quarter{Project: project, N: n}, now) {
			begin, end = min(begin, n), n+1
		}
	}
	q.readers++
	if q.reading == nil {
		q.reading, q.known = make(map[int]map[database.Quarter]bool), make(map[database.Quarter]*quarter)
	}
	q.reading[q.readers] = make(map[database.Quarter]bool)
	return q.readers, begin, end
}

// end stores what a reader has counted, unless it has changed meanwhile; it gives all quarters of the range, those that
// hold something.
func (q *quarters) end(reader int, project api.ProjectID, from, to, begin, end int64,
	counted map[int64]*quarter) map[int64]*quarter {
	q.mu.Lock()
	defer q.mu.Unlock()
	changed := q.reading[reader]
	delete(q.reading, reader)
	out := make(map[int64]*quarter)
	for n := from; n < to; n++ {
		of := database.Quarter{Project: project, N: n}
		k := q.known[of]
		if n >= begin && n < end {
			if k = counted[n]; k == nil {
				k = &quarter{}
			}
			k.stale = changed[of] || changed[database.Quarter{}]
			if len(q.known) >= quartersMost {
				clear(q.known)
			}
			q.known[of] = k
		}
		if k != nil && k.questions > 0 {
			out[n] = k
		}
	}
	return out
}

// abandon ends a reading that has failed.
func (q *quarters) abandon(reader int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.reading, reader)
}

// Days counts what was asked on each day of a range, by the days of a zone; From and To are taken to the quarter of an
// hour. Days without a question are there too. If From is zero, the first day is that of the first question; if To
// is, the last one is today. After and Limit are not looked at.
func (s *Store) Days(ctx context.Context, q AnalyticsQuery, zone *time.Location) ([]Day, error) {
	quarters, from, to, err := s.quarters(ctx, &s.days, q, s.countQuarters)
	return daysOf(quarters, from, to, zone), s.db.Fail("count questions", err)
}

// quarters are those of a range that hold something.
func (s *Store) quarters(ctx context.Context, known *quarters, q AnalyticsQuery,
	count func(ctx context.Context, project api.ProjectID, begin, end int64) (map[int64]*quarter, error)) (
	_ map[int64]*quarter, from, to int64, err error) {
	if !database.Askable(string(q.Project)) {
		return nil, 0, 0, nil
	}
	if err := s.current(ctx, q.AsIs); err != nil {
		return nil, 0, 0, err
	}
	now := s.db.Now()
	if q.To.IsZero() {
		q.To = now.Add(quarterLength)
	}
	if q.From.IsZero() {
		var first sql.NullInt64
		err := s.db.Read.NewSelect().Model((*questionRow)(nil)).ColumnExpr("MIN(asked_at)").
			Where("project_id = ?", q.Project).Where("replaced = ?", false).Scan(ctx, &first)
		if err != nil || !first.Valid {
			return nil, 0, 0, err
		}
		q.From = time.UnixMilli(first.Int64)
	}
	from, to = quarterAt(q.From.UnixMilli()), quarterAt(q.To.Add(quarterLength-1).UnixMilli())
	if to <= from || to-from > quartersMost {
		return nil, 0, 0, nil
	}
	began := time.Now()
	reader, begin, end := known.begin(q.Project, from, to, began)
	var counted map[int64]*quarter
	if end > begin {
		if counted, err = count(ctx, q.Project, begin, end); err != nil {
			known.abandon(reader)
			return nil, 0, 0, err
		}
	}
	took := time.Since(began) / time.Duration(max(1, len(counted)))
	for _, k := range counted {
		k.read, k.took = began, took
	}
	return known.end(reader, q.Project, from, to, begin, end, counted), from, to, nil
}

// countQuarters counts the questions of a range of quarters.
func (s *Store) countQuarters(ctx context.Context, project api.ProjectID, begin, end int64) (
	map[int64]*quarter, error) {
	rows, err := s.db.Read.NewSelect().Model((*questionRow)(nil)).
		Column("asked_at", "outcome", "rating", "in_doubt", "first_text").
		Where("project_id = ?", project).Where("replaced = ?", false).
		Where("asked_at >= ?", begin*quarterLength.Milliseconds()).
		Where("asked_at < ?", end*quarterLength.Milliseconds()).Rows(ctx)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	counted := make(map[int64]*quarter)
	var at, doubt, first int64
	var outcome, rating sql.RawBytes
	for rows.Next() {
		if err := rows.Scan(&at, &outcome, &rating, &doubt, &first); err != nil {
			return nil, err
		}
		n := quarterAt(at)
		k := counted[n]
		if k == nil {
			k = &quarter{}
			counted[n] = k
		}
		k.questions++
		k.inDoubt += int32(doubt)
		switch string(outcome) {
		case outcomeAnswered:
			k.answered++
		case outcomeUnanswered:
			k.unanswered++
		default:
			k.failed++
		}
		switch api.Rating(rating) {
		case api.RatedUp:
			k.up++
		case api.RatedDown:
			k.down++
		}
		if first > 0 {
			k.first = append(k.first, int32(min(first, 1<<31-1)))
		}
	}
	return counted, rows.Err()
}

// daysOf adds quarters up to days.
func daysOf(quarters map[int64]*quarter, from, to int64, zone *time.Location) []Day {
	var days []Day
	var first []int32
	finish := func() {
		if len(days) == 0 || len(first) == 0 {
			return
		}
		slices.Sort(first)
		d := &days[len(days)-1]
		d.Timed = int64(len(first))
		d.Median, d.P95 = int64(first[(len(first)-1)/2]), int64(first[(len(first)*95+99)/100-1])
		first = first[:0]
	}
	for n := from; n < to; {
		at := time.UnixMilli(n * quarterLength.Milliseconds()).In(zone)
		start := time.Date(at.Year(), at.Month(), at.Day(), 0, 0, 0, 0, zone)
		after := quarterAt(start.AddDate(0, 0, 1).UnixMilli())
		finish()
		days = append(days, Day{Start: start})
		d := &days[len(days)-1]
		for after = max(after, n+1); n < min(after, to); n++ {
			k := quarters[n]
			if k == nil {
				continue
			}
			d.Questions += int(k.questions)
			d.Answered += int(k.answered)
			d.Unanswered += int(k.unanswered)
			d.InDoubt += int(k.inDoubt)
			d.Failed += int(k.failed)
			d.Up += int(k.up)
			d.Down += int(k.down)
			first = append(first, k.first...)
		}
	}
	finish()
	return days
}

// A CitedPage says how many answers cite a page.
type CitedPage struct {
	Page    string
	Answers int
}

// CitedPages lists the pages that answers of a range cite, those that most answers cite first; From and To are taken as
// by Days.
func (s *Store) CitedPages(ctx context.Context, q AnalyticsQuery) ([]CitedPage, string, error) {
	after, err := parseCursor(q.After)
	if err != nil {
		return nil, "", err
	}
	quarters, _, _, err := s.quarters(ctx, &s.cited, q, s.countCited)
	if err != nil {
		return nil, "", s.db.Fail("count cited pages", err)
	}
	sums := make(map[uint32]int)
	for _, k := range quarters {
		for _, p := range k.pages {
			sums[p.page] += int(p.answers)
		}
	}
	list := make([]CitedPage, 0, len(sums))
	s.cited.mu.Lock()
	for n, answers := range sums {
		list = append(list, CitedPage{s.cited.pages[n], answers})
	}
	s.cited.mu.Unlock()
	less := func(a, b CitedPage) int {
		return cmp.Or(cmp.Compare(b.Answers, a.Answers), cmp.Compare(a.Page, b.Page))
	}
	slices.SortFunc(list, less)
	if after != nil {
		last := CitedPage{after.Text, int(after.Number)}
		list = slices.DeleteFunc(list, func(p CitedPage) bool { return less(p, last) <= 0 })
	}
	list, next := page(q, list, func(p CitedPage) cursor { return cursor{int64(p.Answers), p.Page} })
	return list, next, nil
}

// countCited counts how often pages are cited in a range of quarters.
func (s *Store) countCited(ctx context.Context, project api.ProjectID, begin, end int64) (
	map[int64]*quarter, error) {
	rows, err := s.db.Read.NewSelect().Model((*citedPageRow)(nil)).Column("asked_at", "page").
		Where("project_id = ?", project).
		Where("asked_at >= ?", begin*quarterLength.Milliseconds()).
		Where("asked_at < ?", end*quarterLength.Milliseconds()).Rows(ctx)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	counted := make(map[int64]*quarter)
	var at int64
	var name string
	for rows.Next() {
		if err := rows.Scan(&at, &name); err != nil {
			return nil, err
		}
		n := quarterAt(at)
		k := counted[n]
		if k == nil {
			k = &quarter{questions: 1}
			counted[n] = k
		}
		number := s.cited.number(name)
		i := slices.IndexFunc(k.pages, func(p pageCount) bool { return p.page == number })
		if i < 0 {
			k.pages = append(k.pages, pageCount{number, 1})
		} else {
			k.pages[i].answers++
		}
	}
	return counted, rows.Err()
}
