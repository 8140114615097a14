package insights

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect"

	"docent/api"
	"docent/persistence/catalog/database"
)

// outcomeInDoubt is that of unanswered questions whose answers show what comes closest.
const outcomeInDoubt = "in_doubt"

// A ConversationQuery asks for a page of a project's conversations: those with a question that all of this is true of,
// by the time of the newest such question, newest first. What is empty is not asked for.
type ConversationQuery struct {
	Project  api.ProjectID
	From, To time.Time  // when it was asked; half-open
	Text     string     // words of question, answer or comment; the last may be unfinished, "phrases" may be quoted
	Page     string     // that the reader was on, or that the answer cites: an address or a path
	Outcome  string     // answered, unanswered, in_doubt (which are unanswered, too) or failed
	Rating   api.Rating // of the answer
	Channel  api.Channel
	Caller   string
	Whole    bool   // also what was listed a moment ago is found, however long that takes: for files
	After    string // the cursor that came with the page before
	Limit    int    // at most so many
}

// A Conversation is a line of their listing.
type Conversation struct {
	Thread     api.ThreadID
	First      api.QuestionRow // its first question
	Match      api.QuestionRow // the newest question that was asked for
	Newest     api.QuestionRow
	Questions  int // that were not replaced
	Unanswered int
	InDoubt    int // of those that are unanswered
	Failed     int
	Up, Down   int // ratings; also of answers that were replaced
}

// filtered reports whether more than a time is asked for.
func (q ConversationQuery) filtered() bool {
	return q.Text != "" || q.Page != "" || q.Outcome != "" || q.Rating != "" || q.Channel != "" || q.Caller != ""
}

// match is the condition on the index of words.
func (q ConversationQuery) match(of dialect.Name) string {
	var marks []string // rare ones first
	for _, f := range []struct {
		kind  byte
		value string
	}{{'r', string(q.Rating)}, {'u', database.Column(q.Caller)}, {'o', q.Outcome}, {'c', string(q.Channel)}} {
		if f.value != "" {
			marks = append(marks, mark(f.kind, f.value))
		}
	}
	if q.Page != "" {
		marks = append(marks, mark('g', pagePath(q.Page)))
	}
	return textMatch(of, append(marks, mark('p', string(q.Project))), phrases(q.Text))
}

// A matched is a question that was asked for.
type matched struct {
	Num    int64        `bun:"num"`
	Thread api.ThreadID `bun:"thread_id"`
}

// matchesAtOnce is how many questions are read at once to find conversations.
const matchesAtOnce = 128

// matchesMost bounds how many questions one page reads: a page may be short of conversations, and go on.
const matchesMost = 64 * matchesAtOnce

// Conversations lists conversations, and says where the next page begins; that is empty on the last one.
func (s *Store) Conversations(ctx context.Context, q ConversationQuery) ([]Conversation, string, error) {
	after, err := parseCursor(q.After)
	if err != nil || !database.Askable(string(q.Project)) {
		return nil, "", err
	}
	if err := s.current(ctx, false); err != nil {
		return nil, "", err
	}
	if q.filtered() {
		write := s.textsNow
		if q.Whole {
			write = s.FinishTexts
		}
		if err := write(ctx); err != nil {
			s.db.Log.Warn("could not write the words of the newest questions yet", "error", err)
		}
	}
	low, high := q.span()
	page, next, err := s.findThreads(ctx, q, after, low, high)
	if err != nil {
		return nil, "", s.db.Fail("list conversations", err)
	}
	list, err := s.conversations(ctx, q.Project, page)
	return list, next, s.db.Fail("list conversations", err)
}

// span is the range of numbers of the times asked for, half-open.
func (q ConversationQuery) span() (low, high int64) {
	high = int64(1)<<62 + (1<<62 - 1)
	if !q.From.IsZero() {
		low = max(0, database.CeilMilli(q.From)) << numberBits
	}
	if !q.To.IsZero() {
		high = max(0, database.CeilMilli(q.To)) << numberBits
	}
	return low, high
}

// findThreads finds the threads of a page, each by its newest question that was asked for.
func (s *Store) findThreads(ctx context.Context, q ConversationQuery, after *cursor, low, high int64) (
	page []matched, next string, err error) {
	from := high
	if after != nil {
		from = min(high, after.Number)
	}
	seen := make(map[api.ThreadID]bool)
	for read := 0; ; {
		found, err := s.matches(ctx, q, nil, low, from)
		if err != nil {
			return nil, "", err
		}
		fresh := make([]api.ThreadID, 0, len(found))
		for _, m := range found {
			if !seen[m.Thread] && !slices.Contains(fresh, m.Thread) {
				fresh = append(fresh, m.Thread)
			}
		}
		if after != nil && len(fresh) > 0 { // those of the pages before are there by a newer question
			shown, err := s.matches(ctx, q, fresh, after.Number, high)
			if err != nil {
				return nil, "", err
			}
			for _, m := range shown {
				seen[m.Thread] = true
			}
		}
		for i, m := range found {
			if seen[m.Thread] {
				continue
			}
			seen[m.Thread] = true
			page = append(page, m)
			if len(page) == q.Limit {
				if i == len(found)-1 && len(found) < matchesAtOnce {
					return page, "", nil
				}
				return page, cursor{Number: m.Num}.String(), nil
			}
		}
		if len(found) < matchesAtOnce {
			return page, "", nil
		}
		from = found[len(found)-1].Num
		if read += len(found); read >= matchesMost {
			return page, cursor{Number: from}.String(), nil
		}
	}
}

// matches reads questions that are asked for, newest first, within a range of numbers: some of all threads, or, of the
// threads that are named, all.
func (s *Store) matches(ctx context.Context, q ConversationQuery, of []api.ThreadID, low, high int64) (
	found []matched, err error) {
	sel := s.db.Read.NewSelect().ColumnExpr("question.num, question.thread_id").
		Where("question.project_id = ?", q.Project).Where("question.num >= ?", low).Where("question.num < ?", high)
	if of != nil {
		sel = sel.Where("question.thread_id IN ?", bun.Tuple(of))
	} else {
		sel = sel.Limit(matchesAtOnce)
	}
	if !q.filtered() {
		sel = sel.TableExpr("questions AS question").Where("question.replaced = ?", false).OrderExpr("question.num DESC")
		return found, sel.Scan(ctx, &found)
	}
	// The order of the tables is SQLite's order of reading: when threads are named, the words of few questions are looked
	// at, otherwise the index of words yields questions from the newest on.
	name := s.db.Read.Dialect().Name()
	words, questions := "question_texts AS text", "questions AS question"
	if name != dialect.SQLite {
		sel = sel.TableExpr(words+" JOIN "+questions+" ON question.num = text.num").
			Where("text.words @@ CAST(? AS tsquery)", q.match(name)).OrderExpr("text.num DESC")
		return found, sel.Scan(ctx, &found)
	}
	sel = sel.Where("question_texts MATCH ?", q.match(name))
	if of != nil {
		sel = sel.TableExpr(questions + " CROSS JOIN question_texts ON question_texts.rowid = question.num")
	} else {
		sel = sel.TableExpr("question_texts CROSS JOIN "+questions+" ON question.num = question_texts.rowid").
			Where("question_texts.rowid >= ?", low).Where("question_texts.rowid < ?", high).
			OrderExpr("question_texts.rowid DESC")
	}
	return found, sel.Scan(ctx, &found)
}

// conversations reads what the listing shows of threads.
func (s *Store) conversations(ctx context.Context, project api.ProjectID, page []matched) ([]Conversation, error) {
	if len(page) == 0 {
		return nil, nil
	}
	threads := make([]api.ThreadID, len(page))
	for i, m := range page {
		threads[i] = m.Thread
	}
	type counts struct {
		Thread     api.ThreadID `bun:"thread_id"`
		First      int64        `bun:"first"`
		Newest     int64        `bun:"newest"`
		Questions  int          `bun:"questions"`
		Unanswered int          `bun:"unanswered"`
		InDoubt    int          `bun:"in_doubt"`
		Failed     int          `bun:"failed"`
		Up         int          `bun:"up"`
		Down       int          `bun:"down"`
	}
	var rows []counts
	count := "SUM(CASE WHEN replaced = ? AND outcome = ? THEN 1 ELSE 0 END) AS ?"
	rated := "SUM(CASE WHEN rating = ? THEN 1 ELSE 0 END) AS ?"
	err := s.db.Read.NewSelect().Table("questions").Column("thread_id").
		ColumnExpr("COALESCE(MIN(CASE WHEN replaced = ? THEN num END), MIN(num)) AS first", false).
		ColumnExpr("COALESCE(MAX(CASE WHEN replaced = ? THEN num END), MAX(num)) AS newest", false).
		ColumnExpr("SUM(CASE WHEN replaced = ? THEN 1 ELSE 0 END) AS questions", false).
		ColumnExpr("SUM(CASE WHEN replaced = ? THEN in_doubt ELSE 0 END) AS in_doubt", false).
		ColumnExpr(count, false, outcomeUnanswered, bun.Ident("unanswered")).
		ColumnExpr(count, false, outcomeFailed, bun.Ident("failed")).
		ColumnExpr(rated, api.RatedUp, bun.Ident("up")).ColumnExpr(rated, api.RatedDown, bun.Ident("down")).
		Where("thread_id IN ?", bun.Tuple(threads)).Group("thread_id").Scan(ctx, &rows)
	if err != nil {
		return nil, err
	}
	of := make(map[api.ThreadID]counts, len(rows))
	var nums []int64
	for _, r := range rows {
		of[r.Thread] = r
		nums = append(nums, r.First, r.Newest)
	}
	for _, m := range page {
		nums = append(nums, m.Num)
	}
	slices.Sort(nums)
	var bodies []questionRow
	err = s.db.Read.NewSelect().Model(&bodies).Column("id", "thread_id", "num", "body").Where("project_id = ?", project).
		Where("num IN ?", bun.Tuple(slices.Compact(nums))).Scan(ctx)
	if err != nil {
		return nil, err
	}
	type of2 struct {
		thread api.ThreadID
		num    int64
	}
	questions := make(map[of2]api.QuestionRow, len(bodies))
	for i := range bodies {
		if questions[of2{bodies[i].Thread, bodies[i].Num}], err = bodies[i].question(); err != nil {
			return nil, err
		}
	}
	list := make([]Conversation, 0, len(page))
	for _, m := range page {
		n, ok := of[m.Thread]
		if !ok {
			continue // removed meanwhile
		}
		list = append(list, Conversation{Thread: m.Thread, First: questions[of2{m.Thread, n.First}],
			Match: questions[of2{m.Thread, m.Num}], Newest: questions[of2{m.Thread, n.Newest}], Questions: n.Questions,
			Unanswered: n.Unanswered, InDoubt: n.InDoubt, Failed: n.Failed, Up: n.Up, Down: n.Down})
	}
	return list, nil
}

// ThreadQuestions reads the questions of threads, also those that were replaced, in the order of the threads and of time.
func (s *Store) ThreadQuestions(ctx context.Context, project api.ProjectID, threads []api.ThreadID) (
	[]api.QuestionRow, error) {
	order := make(map[api.ThreadID]int, len(threads))
	for i, id := range threads {
		if !database.Askable(string(id)) {
			return nil, nil
		}
		order[id] = i
	}
	if len(threads) == 0 || !database.Askable(string(project)) {
		return nil, nil
	}
	var rows []questionRow
	err := s.db.Read.NewSelect().Model(&rows).Column("id", "thread_id", "num", "body").
		Where("project_id = ?", project).Where("thread_id IN ?", bun.Tuple(threads)).Scan(ctx)
	if err != nil {
		return nil, s.db.Fail("read questions", err)
	}
	slices.SortFunc(rows, func(a, b questionRow) int {
		return cmp.Or(cmp.Compare(order[a.Thread], order[b.Thread]), cmp.Compare(a.Num, b.Num))
	})
	list := make([]api.QuestionRow, len(rows))
	for i := range rows {
		if list[i], err = rows[i].question(); err != nil {
			return nil, s.db.Fail("read questions", err)
		}
	}
	return list, nil
}

// CallerTotals counts what is listed of one caller.
func (s *Store) CallerTotals(ctx context.Context, project api.ProjectID, caller string) (
	threads, questions int, err error) {
	if !database.Askable(string(project)) {
		return 0, 0, nil
	}
	if err := s.current(ctx, false); err != nil {
		return 0, 0, err
	}
	err = s.db.Read.NewSelect().Model((*questionRow)(nil)).ColumnExpr("COUNT(DISTINCT thread_id), COUNT(*)").
		Where("project_id = ?", project).Where("caller = ?", database.Column(caller)).Scan(ctx, &threads, &questions)
	return threads, questions, s.db.Fail("count what a caller has asked", err)
}
