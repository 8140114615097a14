package insights_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"docent/api"
	"docent/persistence/catalog"
	"docent/persistence/catalog/catalogtest"
	"docent/persistence/catalog/database"
	"docent/persistence/catalog/insights"
	"docent/persistence/catalog/listing"
)

var midday = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// listingWait is how long what reads a listing waits for it.
const listingWait = 2 * time.Second

// A threadLog stands for the journal: streams of threads in memory.
type threadLog struct {
	*catalogtest.Log
	mu      sync.Mutex
	threads map[string]api.ThreadRow
	told    chan struct{} // of its own: a projector of jobs may follow the same log
}

func newThreadLog() *threadLog {
	return &threadLog{Log: catalogtest.NewLog(), threads: map[string]api.ThreadRow{}, told: make(chan struct{}, 1)}
}

func (l *threadLog) Changed() <-chan struct{} { return l.told }

func (l *threadLog) change(stream string, to func(*api.JobRow)) {
	l.Log.Change(stream, to)
	select {
	case l.told <- struct{}{}:
	default:
	}
}

func (l *threadLog) loadThread(_ context.Context, stream string, _ uint64) (api.ThreadRow, bool, error) {
	if _, _, err := l.Load(context.Background(), stream); err != nil {
		return api.ThreadRow{}, false, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	row, ok := l.threads[stream]
	row.Questions = slices.Clone(row.Questions)
	return row, ok, nil
}

// edit changes a thread, and creates it if it does not exist.
func (l *threadLog) edit(n int, to func(*api.ThreadRow)) {
	stream := fmt.Sprintf("thread/thr_%04d", n)
	l.mu.Lock()
	row, ok := l.threads[stream]
	if !ok {
		row = api.ThreadRow{Project: "docs", Caller: "anonymous"}
	}
	to(&row)
	l.threads[stream] = row
	l.mu.Unlock()
	l.change(stream, nil)
}

func (l *threadLog) removeThread(n int) {
	stream := fmt.Sprintf("thread/thr_%04d", n)
	l.mu.Lock()
	delete(l.threads, stream)
	l.mu.Unlock()
	l.change(stream, nil)
}

// asked is a question that was answered, some minutes after midday.
func asked(id string, minutes int, change ...func(*api.QuestionRow)) api.QuestionRow {
	at := midday.Add(time.Duration(minutes) * time.Minute)
	q := api.QuestionRow{ID: api.TurnID("msg_" + id), Question: "Q " + id, Answer: "A " + id, Answered: true, Model: "m",
		Asked: at, Ended: at.Add(time.Second)}
	for _, c := range change {
		c(&q)
	}
	return q
}

func rated(r api.Rating, minutes int, urls ...string) func(*api.QuestionRow) {
	return func(q *api.QuestionRow) {
		q.Rating, q.Rated, q.Comment = r, midday.Add(time.Duration(minutes)*time.Minute), "because"
		q.Sources = nil
		for _, u := range urls {
			q.Sources = append(q.Sources, api.PageRef{URL: u, Title: "T " + u})
		}
	}
}

func unanswered(q *api.QuestionRow) { q.Answered = false }
func failed(q *api.QuestionRow)     { q.Answered, q.Answer, q.Error = false, "", "down" }
func replaced(q *api.QuestionRow)   { q.Replaced = true }
func fromWeb(q *api.QuestionRow)    { q.Channel = api.ChannelWeb }
func fromAPI(q *api.QuestionRow)    { q.Channel = api.ChannelAPI }

func asks(questions ...api.QuestionRow) func(*api.ThreadRow) {
	return func(r *api.ThreadRow) { r.Questions = append(r.Questions, questions...) }
}

func calls(caller string, questions ...api.QuestionRow) func(*api.ThreadRow) {
	return func(r *api.ThreadRow) { r.Caller = caller; r.Questions = append(r.Questions, questions...) }
}

func runThreadProjector(t *testing.T, c *catalog.Catalog, l *threadLog) (p *listing.Projector, stop func()) {
	t.Helper()
	p = c.NewThreadProjector(l, l.loadThread, slog.New(slog.NewTextHandler(t.Output(), nil)))
	return p, catalogtest.Run(t, p)
}

// all walks a list page by page, as a client does with cursors. A page that came after listingWait may show too little,
// on a machine that stands still: it is asked for again.
func all[R any](t *testing.T, q insights.AnalyticsQuery, list func(context.Context, insights.AnalyticsQuery) ([]R, string, error)) []R {
	t.Helper()
	out := []R{}
	for range 1000 {
		began := time.Now()
		rows, next, err := list(t.Context(), q)
		for end := began.Add(time.Minute); time.Since(began) >= listingWait && time.Now().Before(end); {
			began = time.Now()
			rows, next, err = list(t.Context(), q)
		}
		if err != nil {
			t.Fatal(err)
		}
		if len(rows) > q.Limit {
			t.Fatalf("a page of %d holds %d", q.Limit, len(rows))
		}
		out = append(out, rows...)
		if next == "" {
			return out
		}
		q.After = next
	}
	t.Fatal("the list has no end")
	return nil
}

func ids(rows []api.QuestionRow) string {
	var out []string
	for _, r := range rows {
		out = append(out, strings.TrimPrefix(string(r.ID), "msg_"))
	}
	return strings.Join(out, " ")
}

func TestQuestionsAreListedAndCounted(t *testing.T) {
	catalogtest.EachPlace(t, func(t *testing.T, p catalogtest.Place) {
		c, l := p.Open(catalog.Options{}), newThreadLog()
		runThreadProjector(t, c, l)
		l.edit(1, calls("ann", asked("a", 0, fromWeb), asked("b", 2, unanswered, fromWeb,
			rated(api.RatedDown, 50, "/x#1", "/y"))))
		l.edit(2, calls("bob", asked("c", 1, fromAPI, rated(api.RatedUp, 40, "/x#2", "/x#3")), asked("d", 1, failed)))
		l.edit(3, asks(asked("e", 3), asked("f", 4, replaced, rated(api.RatedDown, 60, "/z"))))
		l.edit(4, func(r *api.ThreadRow) { r.Project = "blog"; r.Questions = append(r.Questions, asked("g", 5)) })
		l.edit(5, calls("eve")) // opened, and nothing answered yet

		at := func(minutes int) time.Time { return midday.Add(time.Duration(minutes) * time.Minute) }
		for _, c2 := range []struct {
			query  insights.AnalyticsQuery
			want   string
			totals insights.QuestionTotals
		}{
			{insights.AnalyticsQuery{}, "e b d c a", insights.QuestionTotals{Threads: 3, Callers: 3, Questions: 5, Answered: 3, Unanswered: 1,
				Failed: 1, Web: 2, API: 1, Up: 1, Down: 1}},
			{insights.AnalyticsQuery{From: at(1)}, "e b d c", insights.QuestionTotals{Threads: 3, Callers: 3, Questions: 4, Answered: 2,
				Unanswered: 1, Failed: 1, Web: 1, API: 1, Up: 1, Down: 1}},
			{insights.AnalyticsQuery{To: at(1)}, "a", insights.QuestionTotals{Threads: 1, Callers: 1, Questions: 1, Answered: 1, Web: 1}},
			{insights.AnalyticsQuery{From: at(1).Add(1), To: at(3)}, "b",
				insights.QuestionTotals{Threads: 1, Callers: 1, Questions: 1, Unanswered: 1, Web: 1, Down: 1}},
			{insights.AnalyticsQuery{To: at(3).Add(1)}, "e b d c a",
				insights.QuestionTotals{Threads: 3, Callers: 3, Questions: 5, Answered: 3, Unanswered: 1, Failed: 1, Web: 2, API: 1, Up: 1,
					Down: 1}},
			{insights.AnalyticsQuery{From: at(90)}, "", insights.QuestionTotals{}},
			{insights.AnalyticsQuery{Project: "blog"}, "g", insights.QuestionTotals{Threads: 1, Callers: 1, Questions: 1, Answered: 1}},
			{insights.AnalyticsQuery{Project: "nobody"}, "", insights.QuestionTotals{}},
		} {
			if c2.query.Project == "" {
				c2.query.Project = "docs"
			}
			for _, limit := range []int{1, 2, 3, 50} {
				c2.query.Limit = limit
				if got := ids(all(t, c2.query, c.Questions)); got != c2.want {
					t.Errorf("%+v lists %q, want %q", c2.query, got, c2.want)
				}
			}
			if got := catalogtest.Must(c.Totals(t.Context(), c2.query))(t); got != c2.totals {
				t.Errorf("%+v counts\n%+v, want\n%+v", c2.query, got, c2.totals)
			}
		}
		for _, limit := range []int{1, 2, 50} {
			q := insights.AnalyticsQuery{Project: "docs", Limit: limit}
			if got, want := ids(all(t, q, c.Feedback)), "f b c"; got != want {
				t.Errorf("rated are %q, want %q", got, want)
			}
			want := []insights.PageCount{{"/x", 1, 1}, {"/y", 0, 1}, {"/z", 0, 1}}
			if got := all(t, q, c.PageFeedback); !slices.Equal(got, want) {
				t.Errorf("pages %v, want %v", got, want)
			}
			callers := []insights.CallerCount{{"ann", 1, 2, at(2)}, {"bob", 1, 2, at(1)}, {"anonymous", 1, 1, at(3)}}
			if got := all(t, q, c.Callers); !slices.Equal(got, callers) {
				t.Errorf("callers %v, want %v", got, callers)
			}
		}
		q := insights.AnalyticsQuery{Project: "docs", Limit: 50, From: at(45), To: at(60)}
		if got := ids(all(t, q, c.Feedback)); got != "b" {
			t.Errorf("rated between are %q", got)
		}
		if got := all(t, q, c.PageFeedback); !slices.Equal(got, []insights.PageCount{{"/x", 0, 1}, {"/y", 0, 1}}) {
			t.Errorf("pages of ratings between are %v", got)
		}
	})
}

func TestQuestionIsStoredInFull(t *testing.T) {
	catalogtest.EachPlace(t, func(t *testing.T, p catalogtest.Place) {
		c, l := p.Open(catalog.Options{}), newThreadLog()
		runThreadProjector(t, c, l)
		var want api.QuestionRow
		n := 0
		catalogtest.Fill(reflect.ValueOf(&want).Elem(), &n)
		want.ID, want.Thread, want.Project, want.Caller, want.Replaced = "msg_1", "thr_0001", "docs", "ann", false
		want.Channel, want.Rating = api.ChannelWeb, api.RatedDown
		l.edit(1, calls("ann", want))
		got := all(t, insights.AnalyticsQuery{Project: "docs", Limit: 5}, c.Questions)
		if len(got) != 1 || !reflect.DeepEqual(got[0], want) {
			t.Errorf("listed\n%+v, want\n%+v", got, want)
		}
	})
}

func TestChangedThreadIsListedAsItIsNow(t *testing.T) {
	catalogtest.EachPlace(t, func(t *testing.T, p catalogtest.Place) {
		c, l := p.Open(catalog.Options{}), newThreadLog()
		runThreadProjector(t, c, l)
		q := insights.AnalyticsQuery{Project: "docs", Limit: 50}
		l.edit(1, asks(asked("a", 0), asked("b", 1)))
		l.edit(2, asks(asked("c", 2)))
		if got := ids(all(t, q, c.Questions)); got != "c b a" {
			t.Fatalf("listed %q", got)
		}
		l.edit(1, func(r *api.ThreadRow) { rated(api.RatedDown, 9, "/x", "/y")(&r.Questions[0]) })
		if got := all(t, q, c.PageFeedback); !slices.Equal(got, []insights.PageCount{{"/x", 0, 1}, {"/y", 0, 1}}) {
			t.Errorf("once rated, the pages are %v", got)
		}
		l.edit(1, func(r *api.ThreadRow) { rated(api.RatedUp, 10, "/x")(&r.Questions[0]) })
		if got := all(t, q, c.PageFeedback); !slices.Equal(got, []insights.PageCount{{"/x", 1, 0}}) {
			t.Errorf("after another rating, the pages are %v", got)
		}
		l.edit(1, func(r *api.ThreadRow) { r.Questions = append(r.Questions[:1:1], asked("d", 3)) }) // b was replaced by d
		if got := ids(all(t, q, c.Questions)); got != "d c a" {
			t.Errorf("after a replacement, listed are %q", got)
		}
		l.removeThread(1)
		if got := ids(all(t, q, c.Questions)); got != "c" {
			t.Errorf("after a removal, listed are %q", got)
		}
		if got := all(t, q, c.PageFeedback); len(got) != 0 {
			t.Errorf("a removed thread leaves %v", got)
		}
	})
}

// What a database cannot hold in a column must not stop the others.
func TestOddTextsAreListed(t *testing.T) {
	catalogtest.EachPlace(t, func(t *testing.T, p catalogtest.Place) {
		c, l := p.Open(catalog.Options{}), newThreadLog()
		runThreadProjector(t, c, l)
		long := "/" + strings.Repeat("ä", 5000)
		l.edit(1, calls("a\x00b\xff", asked("a", 0, rated(api.RatedUp, 1, "/x\x00y", "\xff", long+"#1", long+"#2", "#top",
			""))))
		l.edit(2, calls(strings.Repeat("ü", 9000), asked("b", 1,
			func(q *api.QuestionRow) { q.Question, q.Answer = "\x00", "\xff\x00" })))
		l.edit(3, asks(asked("c", 2)))
		if got := ids(all(t, insights.AnalyticsQuery{Project: "docs", Limit: 1}, c.Questions)); got != "c b a" {
			t.Errorf("listed %q", got)
		}
		if got := all(t, insights.AnalyticsQuery{Project: "docs", Limit: 1}, c.PageFeedback); len(got) != 3 {
			t.Errorf("%d pages: %.200v", len(got), got)
		}
		if got := all(t, insights.AnalyticsQuery{Project: "docs", Limit: 1}, c.Callers); len(got) != 3 {
			t.Errorf("%d callers", len(got))
		}
	})
}

func TestWrongCursorIsRefused(t *testing.T) {
	c := catalogtest.Place{T: t, DSN: "sqlite:" + filepath.Join(t.TempDir(), "catalog.db")}.Open(catalog.Options{})
	for _, after := range []string{"x", "!", "e30x", strings.Repeat("A", 4000), insights.Cursor{1, "a\x00"}.String()} {
		for name, err := range map[string]error{
			"questions": third(c.Questions(t.Context(), insights.AnalyticsQuery{After: after, Limit: 1})),
			"feedback":  third(c.Feedback(t.Context(), insights.AnalyticsQuery{After: after, Limit: 1})),
			"callers":   third(c.Callers(t.Context(), insights.AnalyticsQuery{After: after, Limit: 1})),
			"pages":     third(c.PageFeedback(t.Context(), insights.AnalyticsQuery{After: after, Limit: 1})),
			"searches": func() error {
				_, _, _, err := c.Searches(t.Context(), insights.AnalyticsQuery{After: after, Limit: 1})
				return err
			}(),
		} {
			if !errors.Is(err, api.ErrInvalid) {
				t.Errorf("%s after %.20q: error %v", name, after, err)
			}
		}
	}
}

func third[A, B any](_ A, _ B, err error) error { return err }

func TestLongThreadWritesOnlyWhatIsNew(t *testing.T) {
	catalogtest.EachPlace(t, func(t *testing.T, p catalogtest.Place) {
		c, l := p.Open(catalog.Options{}), newThreadLog()
		projector, stop := runThreadProjector(t, c, l)
		for n := range 200 {
			l.edit(1, asks(asked(fmt.Sprintf("%04d", n), n)))
		}
		catalogtest.Reach(t, projector)
		// Rewriting a stored row would put this right.
		if _, err := c.Write.Exec("UPDATE questions SET caller = 'untouched'"); err != nil {
			t.Fatal(err)
		}
		l.edit(1, asks(asked("new", 900)))
		catalogtest.Reach(t, projector)
		stop()
		want := []insights.CallerCount{{"untouched", 1, 200, midday.Add(199 * time.Minute)},
			{"anonymous", 1, 1, midday.Add(900 * time.Minute)}}
		if got := all(t, insights.AnalyticsQuery{Project: "docs", Limit: 5}, c.Callers); !slices.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
	})
}

// A load that brings what has changed since what is stored leaves the other questions of the thread alone.
func TestPartOfAThreadLeavesTheOthersAlone(t *testing.T) {
	catalogtest.EachPlace(t, func(t *testing.T, p catalogtest.Place) {
		c, l := p.Open(catalog.Options{}), newThreadLog()
		var since []uint64
		load := func(ctx context.Context, stream string, pos uint64) (api.ThreadRow, bool, error) {
			row, ok, err := l.loadThread(ctx, stream, pos)
			if since = append(since, pos); len(since) > 1 && len(row.Questions) > 1 {
				row.Part, row.Questions = true, row.Questions[len(row.Questions)-1:]
			}
			return row, ok, err
		}
		projector := c.NewThreadProjector(l, load, slog.New(slog.NewTextHandler(t.Output(), nil)))
		catalogtest.Run(t, projector)
		step := func() {
			t.Helper()
			catalogtest.Reach(t, projector)
		}
		l.edit(1, asks(asked("a", 1), asked("b", 2)))
		step()
		l.edit(1, asks(asked("c", 3)))
		step()
		l.edit(1, func(r *api.ThreadRow) { rated(api.RatedUp, 9, "/x")(&r.Questions[2]) })
		step()
		var listed []string
		for _, q := range all(t, insights.AnalyticsQuery{Project: "docs", Limit: 5}, c.Questions) {
			listed = append(listed, string(q.ID)+string(q.Rating))
		}
		slices.Sort(listed)
		if len(listed) != 3 || !strings.HasSuffix(listed[2], "up") {
			t.Errorf("listed are %v", listed)
		}
		if len(since) != 3 || since[0] != 0 || since[1] == 0 || since[2] <= since[1] {
			t.Errorf("loaded since %v", since)
		}
		l.removeThread(1)
		step()
		if left := all(t, insights.AnalyticsQuery{Project: "docs", Limit: 5}, c.Questions); len(left) > 0 {
			t.Errorf("left are %v", left)
		}
	})
}

func TestRebuiltQuestionsAreTheSame(t *testing.T) {
	catalogtest.EachPlace(t, func(t *testing.T, p catalogtest.Place) {
		c, l := p.Open(catalog.Options{}), newThreadLog()
		projector, _ := runThreadProjector(t, c, l)
		jobs, _ := catalogtest.RunProjector(t, c, l.Log) // both follow one journal, and neither disturbs the other
		for n := range listing.Batch + 50 {
			l.edit(n, asks(asked(fmt.Sprintf("%04d-a", n), n),
				asked(fmt.Sprintf("%04d-b", n), n, rated(api.RatedUp, n, "/x", fmt.Sprint("/", n%7)))))
			if n%40 == 0 {
				l.removeThread(n)
			}
			if n%9 == 0 {
				l.change(catalogtest.JobStream(n), catalogtest.Active("docs"))
			}
		}
		q := insights.AnalyticsQuery{Project: "docs", Limit: 400}
		view := func() []any {
			return []any{all(t, q, c.Questions), all(t, q, c.Feedback), all(t, q, c.PageFeedback),
				catalogtest.Must(c.Totals(t.Context(), q))(t), catalogtest.Listed(t, c, listing.JobQuery{Project: "docs"})}
		}
		catalogtest.Reach(t, projector)
		catalogtest.Reach(t, jobs)
		want := view()
		for _, damage := range []string{
			"UPDATE questions SET rating = 'down', outcome = 'failed' WHERE id < 'msg_0100'",
			"UPDATE questions SET project_id = 'blog' WHERE id > 'msg_0300'",
			"DELETE FROM rated_pages WHERE page = '/x'",
		} {
			if _, err := c.Write.Exec(damage); err != nil {
				t.Fatal(err)
			}
		}
		if err := projector.Rebuild(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := view(); !reflect.DeepEqual(got, want) {
			t.Error("what was rebuilt differs from what was there")
		}
	})
}

func TestDamagedThreadHoldsUpNoOther(t *testing.T) {
	catalogtest.EachPlace(t, func(t *testing.T, p catalogtest.Place) {
		c, l := p.Open(catalog.Options{}), newThreadLog()
		runThreadProjector(t, c, l)
		q := insights.AnalyticsQuery{Project: "docs", Limit: 5}
		l.edit(1, asks(asked("a", 0)))
		if got := ids(all(t, q, c.Questions)); got != "a" {
			t.Fatalf("listed %q", got)
		}
		l.SetFault("thread/thr_0001", catalog.ErrCorrupt)
		l.edit(1, asks(asked("b", 1)))
		l.edit(2, asks(asked("c", 2)))
		if got := ids(all(t, q, c.Questions)); got != "c a" {
			t.Errorf("listed %q, want the damaged thread as it was and the other one", got)
		}
	})
}

func TestWhatAgentsReadIsCounted(t *testing.T) {
	catalogtest.EachPlace(t, func(t *testing.T, p catalogtest.Place) {
		clock := catalogtest.NewClock()
		began := clock.Now()
		c := p.Open(catalog.Options{Now: clock.Now})
		q := insights.AnalyticsQuery{Project: "docs", Limit: 10}
		reads := func() string { return fmt.Sprint(catalogtest.Must(c.AgentReads(t.Context(), q))(t)) }
		c.RecordRead("docs", insights.ByTools, "a.md")
		c.RecordRead("docs", insights.ByMarkdown, "b.md")
		c.RecordRead("blog", insights.ByMarkdown, "b.md")
		if got, want := reads(), "[{a.md 1 0} {b.md 0 1}]"; got != want {
			t.Errorf("read %s, want %s", got, want)
		}
		c.RecordRead("docs", insights.ByTools, "b.md")
		c.RecordRead("docs", insights.ByMarkdown, "b.md")
		if got, want := reads(), "[{b.md 1 2} {a.md 1 0}]"; got != want {
			t.Errorf("on the same day read %s, want %s", got, want)
		}
		clock.Add(24 * time.Hour)
		c.RecordRead("docs", insights.ByMarkdown, "llms.txt")
		q.From = began.Add(24 * time.Hour).Truncate(24 * time.Hour)
		if got, want := reads(), "[{llms.txt 0 1}]"; got != want {
			t.Errorf("the next day read %s, want %s", got, want)
		}
		clock.Add(400 * 24 * time.Hour) // what is as old is forgotten
		c.RecordRead("docs", insights.ByTools, "a.md")
		q.From = time.Time{}
		if got, want := reads(), "[{a.md 1 0}]"; got != want {
			t.Errorf("after a year read %s, want %s", got, want)
		}
	})
}

func TestSearchesAreCounted(t *testing.T) {
	catalogtest.EachPlace(t, func(t *testing.T, p catalogtest.Place) {
		clock := catalogtest.NewClock()
		c := p.Open(catalog.Options{Now: clock.Now})
		began := clock.Now()
		search := func(client, query string, results int) {
			c.RecordSearch("docs", client, query, results)
			clock.Add(time.Second)
		}
		for _, typed := range []string{"a", "ap", "api", "api k", "api", "api keys"} { // one search, typed
			search("ann", typed, 9)
		}
		search("ann", "limits", 2) // another one at once
		search("bob", "  API\n Keys ", 4)
		clock.Add(time.Minute)
		search("bob", "api keys", 3) // and again, later
		search("bob", "nothing", 0)
		search("bob", "\x00 ", 0)
		c.RecordSearch("blog", "bob", "api keys", 1)
		clock.Add(time.Minute)

		for _, limit := range []int{1, 2, 50} {
			q := insights.AnalyticsQuery{Project: "docs", Limit: limit}
			total := 0
			got := all(t, q, func(ctx context.Context, q insights.AnalyticsQuery) ([]insights.SearchCount, string, error) {
				list, next, n, err := c.Searches(ctx, q)
				total = n
				return list, next, err
			})
			var lines []string
			for _, s := range got {
				lines = append(lines, fmt.Sprintf("%s x%d =%d", s.Query, s.Count, s.Results))
			}
			if got, want := strings.Join(lines, ", "), "api keys x3 =3, limits x1 =2, nothing x1 =0"; got != want || total != 5 {
				t.Errorf("%d searches: %s, want 5: %s", total, got, want)
			}
			if want := database.Stamp(began.Add(68 * time.Second)); !got[0].Last.Equal(want) {
				t.Errorf("last searched for at %v, want %v", got[0].Last, want)
			}
		}
		list, _, total, err := c.Searches(t.Context(), insights.AnalyticsQuery{Project: "docs", Limit: 5,
			From: began.Add(time.Minute)})
		if err != nil || total != 2 || len(list) != 2 {
			t.Errorf("a minute later: %v, %d, %v", list, total, err)
		}

		missed, _, err := c.SearchesWithoutResult(t.Context(), insights.AnalyticsQuery{Project: "docs", Limit: 5})
		if err != nil || len(missed) != 1 || missed[0].Query != "nothing" || missed[0].Count != 1 {
			t.Errorf("without result: %v, %v", missed, err)
		}

		// What is old goes; what waits when the catalog is closed is written.
		clock.Add(insights.SearchKeep)
		search("ann", "webhooks", 1)
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		c = p.Open(catalog.Options{Now: clock.Now})
		list, _, total, err = c.Searches(t.Context(), insights.AnalyticsQuery{Project: "docs", Limit: 5})
		if err != nil || total != 1 || len(list) != 1 || list[0].Query != "webhooks" {
			t.Errorf("after a year: %v, %d, %v", list, total, err)
		}
	})
}

func TestSearchesWaitInBoundedMemory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "catalog.db")
	synctest.Test(t, func(t *testing.T) {
		c := catalogtest.Place{T: t, DSN: "sqlite:" + path}.Open(catalog.Options{})
		for n := range 3 * insights.SearchesHeld {
			c.RecordSearch("docs", fmt.Sprint("client ", n), fmt.Sprint("query ", n), 1)
		}
		if n := c.Held(); n != insights.SearchesHeld {
			t.Errorf("%d searches are held, want %d", n, insights.SearchesHeld)
		}
		if _, err := c.Write.Exec("ALTER TABLE searches RENAME TO away"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute) // they cannot be written
		if _, err := c.Write.Exec("ALTER TABLE away RENAME TO searches"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		_, _, total, err := c.Searches(t.Context(), insights.AnalyticsQuery{Project: "docs", Limit: 1})
		if err != nil || total != insights.SearchesHeld {
			t.Errorf("%d searches were counted once they could be, %v", total, err)
		}
		if c.Held() != 0 {
			t.Error("what is written is still held")
		}
	})
}

// Who searches without end fills neither the disk nor the place of others.
func TestAFloodOfSearchesKeepsABoundedNumberOfRows(t *testing.T) {
	path := filepath.Join(t.TempDir(), "catalog.db")
	clock := catalogtest.NewClock()
	c := catalogtest.Place{T: t, DSN: "sqlite:" + path}.Open(catalog.Options{Now: clock.Now})
	count := func(project string) int {
		t.Helper()
		if err := c.WriteSearches(t.Context()); err != nil {
			t.Fatal(err)
		}
		_, _, total, err := c.Searches(t.Context(), insights.AnalyticsQuery{Project: api.ProjectID(project), Limit: 1})
		if err != nil {
			t.Fatal(err)
		}
		return total
	}
	for n := range 3000 {
		c.RecordSearch("docs", "flooder", fmt.Sprint("query ", n), 1)
	}
	c.RecordSearch("docs", "reader", "install", 1)
	c.RecordSearch("other", "flooder", "install", 1)
	if n := count("docs"); n < 450 || n > 501 || count("other") != 1 {
		t.Errorf("%d rows of one client's hour", n)
	}
	for client := range 300 {
		for n := range 600 {
			c.RecordSearch("docs", fmt.Sprint("client ", client), fmt.Sprint("query ", client, " ", n), 1)
		}
		if err := c.WriteSearches(t.Context()); err != nil { // before more wait than may
			t.Fatal(err)
		}
	}
	if n := count("docs"); n != insights.MaxSearchesDay {
		t.Errorf("%d rows of one day, want %d", n, insights.MaxSearchesDay)
	}
	clock.Add(24 * time.Hour)
	c.RecordSearch("docs", "reader", "upgrade", 1)
	if n := count("docs"); n != insights.MaxSearchesDay+1 {
		t.Errorf("%d rows on the next day", n)
	}
}

// A part of a page that is looked at again and again waits for nothing, and sees what is listed.
func TestWhatIsListedIsTakenAsItIs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "catalog.db")
	synctest.Test(t, func(t *testing.T) {
		c, l := catalogtest.Place{T: t, DSN: "sqlite:" + path}.Open(catalog.Options{}), newThreadLog()
		p, _ := runThreadProjector(t, c, l)
		l.edit(1, asks(asked("a", 0)))
		catalogtest.Reach(t, p)
		l.SetFault("thread/thr_0002", api.ErrUnavailable)
		l.edit(2, asks(asked("b", 1)))
		for asIs, wait := range map[bool]time.Duration{true: 0, false: listingWait} {
			q := insights.AnalyticsQuery{Project: "docs", Limit: 5, AsIs: asIs, From: midday.Add(-time.Hour), To: midday.Add(time.Hour)}
			began := time.Now()
			rows, _, err := c.Questions(t.Context(), q)
			if took := time.Since(began); err != nil || ids(rows) != "a" || took != wait {
				t.Errorf("as it is %v: %q after %v, %v", asIs, ids(rows), took, err)
			}
			began = time.Now()
			days, err := c.Days(t.Context(), q, time.UTC)
			if took := time.Since(began); err != nil || len(days) != 1 || days[0].Questions != 1 || took != wait {
				t.Errorf("as they are %v: %+v after %v, %v", asIs, days, took, err)
			}
		}
	})
}
