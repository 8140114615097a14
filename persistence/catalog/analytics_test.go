package catalog

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
)

var midday = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// A threadLog stands for the journal: streams of threads in memory.
type threadLog struct {
	*testLog
	mu      sync.Mutex
	threads map[string]api.ThreadRow
	told    chan struct{} // of its own: a projector of jobs may follow the same log
}

func newThreadLog() *threadLog {
	return &threadLog{testLog: newTestLog(), threads: map[string]api.ThreadRow{}, told: make(chan struct{}, 1)}
}

func (l *threadLog) Changed() <-chan struct{} { return l.told }

func (l *threadLog) change(stream string, to func(*api.JobRow)) {
	l.testLog.change(stream, to)
	select {
	case l.told <- struct{}{}:
	default:
	}
}

func (l *threadLog) loadThread(_ context.Context, stream string, _ uint64) (api.ThreadRow, bool, error) {
	if _, _, err := l.load(context.Background(), stream); err != nil {
		return api.ThreadRow{}, false, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	row, ok := l.threads[stream]
	row.Questions = slices.Clone(row.Questions)
	return row, ok, nil
}

// edit changes a thread, which is made where it is not there.
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

func runThreadProjector(t *testing.T, c *Catalog, l *threadLog) (p *Projector, stop func()) {
	t.Helper()
	p = NewThreadProjector(c, l, l.loadThread, slog.New(slog.NewTextHandler(t.Output(), nil)))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.Run(ctx)
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		<-done
	})
	t.Cleanup(stop)
	return p, stop
}

// all walks a list page by page, as a client does with cursors. A page that came after listingWait may show too little, on
// a machine that stands still: it is asked for again.
func all[R any](t *testing.T, q AnalyticsQuery, list func(context.Context, AnalyticsQuery) ([]R, string, error)) []R {
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
	eachPlace(t, func(t *testing.T, p place) {
		c, l := p.open(Options{}), newThreadLog()
		runThreadProjector(t, c, l)
		l.edit(1, calls("ann", asked("a", 0, fromWeb), asked("b", 2, unanswered, fromWeb,
			rated(api.RatedDown, 50, "/x#1", "/y"))))
		l.edit(2, calls("bob", asked("c", 1, fromAPI, rated(api.RatedUp, 40, "/x#2", "/x#3")), asked("d", 1, failed)))
		l.edit(3, asks(asked("e", 3), asked("f", 4, replaced, rated(api.RatedDown, 60, "/z"))))
		l.edit(4, func(r *api.ThreadRow) { r.Project = "blog"; r.Questions = append(r.Questions, asked("g", 5)) })
		l.edit(5, calls("eve")) // opened, and nothing answered yet

		at := func(minutes int) time.Time { return midday.Add(time.Duration(minutes) * time.Minute) }
		for _, c2 := range []struct {
			query  AnalyticsQuery
			want   string
			totals QuestionTotals
		}{
			{AnalyticsQuery{}, "e b d c a", QuestionTotals{Threads: 3, Callers: 3, Questions: 5, Answered: 3, Unanswered: 1,
				Failed: 1, Web: 2, API: 1, Up: 1, Down: 1}},
			{AnalyticsQuery{From: at(1)}, "e b d c", QuestionTotals{Threads: 3, Callers: 3, Questions: 4, Answered: 2,
				Unanswered: 1, Failed: 1, Web: 1, API: 1, Up: 1, Down: 1}},
			{AnalyticsQuery{To: at(1)}, "a", QuestionTotals{Threads: 1, Callers: 1, Questions: 1, Answered: 1, Web: 1}},
			{AnalyticsQuery{From: at(1).Add(1), To: at(3)}, "b",
				QuestionTotals{Threads: 1, Callers: 1, Questions: 1, Unanswered: 1, Web: 1, Down: 1}},
			{AnalyticsQuery{To: at(3).Add(1)}, "e b d c a",
				QuestionTotals{Threads: 3, Callers: 3, Questions: 5, Answered: 3, Unanswered: 1, Failed: 1, Web: 2, API: 1, Up: 1,
					Down: 1}},
			{AnalyticsQuery{From: at(90)}, "", QuestionTotals{}},
			{AnalyticsQuery{Project: "blog"}, "g", QuestionTotals{Threads: 1, Callers: 1, Questions: 1, Answered: 1}},
			{AnalyticsQuery{Project: "nobody"}, "", QuestionTotals{}},
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
			if got := must(c.Totals(t.Context(), c2.query))(t); got != c2.totals {
				t.Errorf("%+v counts\n%+v, want\n%+v", c2.query, got, c2.totals)
			}
		}
		for _, limit := range []int{1, 2, 50} {
			q := AnalyticsQuery{Project: "docs", Limit: limit}
			if got, want := ids(all(t, q, c.Feedback)), "f b c"; got != want {
				t.Errorf("rated are %q, want %q", got, want)
			}
			want := []PageCount{{"/x", 1, 1}, {"/y", 0, 1}, {"/z", 0, 1}}
			if got := all(t, q, c.PageFeedback); !slices.Equal(got, want) {
				t.Errorf("pages %v, want %v", got, want)
			}
			callers := []CallerCount{{"ann", 1, 2, at(2)}, {"bob", 1, 2, at(1)}, {"anonymous", 1, 1, at(3)}}
			if got := all(t, q, c.Callers); !slices.Equal(got, callers) {
				t.Errorf("callers %v, want %v", got, callers)
			}
		}
		q := AnalyticsQuery{Project: "docs", Limit: 50, From: at(45), To: at(60)}
		if got := ids(all(t, q, c.Feedback)); got != "b" {
			t.Errorf("rated between are %q", got)
		}
		if got := all(t, q, c.PageFeedback); !slices.Equal(got, []PageCount{{"/x", 0, 1}, {"/y", 0, 1}}) {
			t.Errorf("pages of ratings between are %v", got)
		}
	})
}

func TestQuestionIsStoredInFull(t *testing.T) {
	eachPlace(t, func(t *testing.T, p place) {
		c, l := p.open(Options{}), newThreadLog()
		runThreadProjector(t, c, l)
		var want api.QuestionRow
		n := 0
		fill(reflect.ValueOf(&want).Elem(), &n)
		want.ID, want.Thread, want.Project, want.Caller, want.Replaced = "msg_1", "thr_0001", "docs", "ann", false
		want.Channel, want.Rating = api.ChannelWeb, api.RatedDown
		l.edit(1, calls("ann", want))
		got := all(t, AnalyticsQuery{Project: "docs", Limit: 5}, c.Questions)
		if len(got) != 1 || !reflect.DeepEqual(got[0], want) {
			t.Errorf("listed\n%+v, want\n%+v", got, want)
		}
	})
}

func TestChangedThreadIsListedAsItIsNow(t *testing.T) {
	eachPlace(t, func(t *testing.T, p place) {
		c, l := p.open(Options{}), newThreadLog()
		runThreadProjector(t, c, l)
		q := AnalyticsQuery{Project: "docs", Limit: 50}
		l.edit(1, asks(asked("a", 0), asked("b", 1)))
		l.edit(2, asks(asked("c", 2)))
		if got := ids(all(t, q, c.Questions)); got != "c b a" {
			t.Fatalf("listed %q", got)
		}
		l.edit(1, func(r *api.ThreadRow) { rated(api.RatedDown, 9, "/x", "/y")(&r.Questions[0]) })
		if got := all(t, q, c.PageFeedback); !slices.Equal(got, []PageCount{{"/x", 0, 1}, {"/y", 0, 1}}) {
			t.Errorf("once rated, the pages are %v", got)
		}
		l.edit(1, func(r *api.ThreadRow) { rated(api.RatedUp, 10, "/x")(&r.Questions[0]) })
		if got := all(t, q, c.PageFeedback); !slices.Equal(got, []PageCount{{"/x", 1, 0}}) {
			t.Errorf("rated anew, the pages are %v", got)
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
	eachPlace(t, func(t *testing.T, p place) {
		c, l := p.open(Options{}), newThreadLog()
		runThreadProjector(t, c, l)
		long := "/" + strings.Repeat("ä", 5000)
		l.edit(1, calls("a\x00b\xff", asked("a", 0, rated(api.RatedUp, 1, "/x\x00y", "\xff", long+"#1", long+"#2", "#top",
			""))))
		l.edit(2, calls(strings.Repeat("ü", 9000), asked("b", 1,
			func(q *api.QuestionRow) { q.Question, q.Answer = "\x00", "\xff\x00" })))
		l.edit(3, asks(asked("c", 2)))
		if got := ids(all(t, AnalyticsQuery{Project: "docs", Limit: 1}, c.Questions)); got != "c b a" {
			t.Errorf("listed %q", got)
		}
		if got := all(t, AnalyticsQuery{Project: "docs", Limit: 1}, c.PageFeedback); len(got) != 3 {
			t.Errorf("%d pages: %.200v", len(got), got)
		}
		if got := all(t, AnalyticsQuery{Project: "docs", Limit: 1}, c.Callers); len(got) != 3 {
			t.Errorf("%d callers", len(got))
		}
	})
}

func TestWrongCursorIsRefused(t *testing.T) {
	c := place{t, "sqlite:" + filepath.Join(t.TempDir(), "catalog.db")}.open(Options{})
	for _, after := range []string{"x", "!", "e30x", strings.Repeat("A", 4000), cursor{1, "a\x00"}.String()} {
		for name, err := range map[string]error{
			"questions": third(c.Questions(t.Context(), AnalyticsQuery{After: after, Limit: 1})),
			"feedback":  third(c.Feedback(t.Context(), AnalyticsQuery{After: after, Limit: 1})),
			"callers":   third(c.Callers(t.Context(), AnalyticsQuery{After: after, Limit: 1})),
			"pages":     third(c.PageFeedback(t.Context(), AnalyticsQuery{After: after, Limit: 1})),
			"searches": func() error {
				_, _, _, err := c.Searches(t.Context(), AnalyticsQuery{After: after, Limit: 1})
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
	eachPlace(t, func(t *testing.T, p place) {
		c, l := p.open(Options{}), newThreadLog()
		projector, stop := runThreadProjector(t, c, l)
		for n := range 200 {
			l.edit(1, asks(asked(fmt.Sprintf("%04d", n), n)))
		}
		reach(t, projector)
		// Who writes a stored row anew would put this right.
		if _, err := c.write.Exec("UPDATE questions SET caller = 'untouched'"); err != nil {
			t.Fatal(err)
		}
		l.edit(1, asks(asked("new", 900)))
		reach(t, projector)
		stop()
		want := []CallerCount{{"untouched", 1, 200, midday.Add(199 * time.Minute)},
			{"anonymous", 1, 1, midday.Add(900 * time.Minute)}}
		if got := all(t, AnalyticsQuery{Project: "docs", Limit: 5}, c.Callers); !slices.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
	})
}

// A load that brings what has changed since what is stored leaves the other questions of the thread alone.
func TestPartOfAThreadLeavesTheOthersAlone(t *testing.T) {
	eachPlace(t, func(t *testing.T, p place) {
		c, l := p.open(Options{}), newThreadLog()
		var since []uint64
		load := func(ctx context.Context, stream string, pos uint64) (api.ThreadRow, bool, error) {
			row, ok, err := l.loadThread(ctx, stream, pos)
			if since = append(since, pos); len(since) > 1 && len(row.Questions) > 1 {
				row.Part, row.Questions = true, row.Questions[len(row.Questions)-1:]
			}
			return row, ok, err
		}
		projector := NewThreadProjector(c, l, load, slog.New(slog.NewTextHandler(t.Output(), nil)))
		step := func() {
			t.Helper()
			if err := projector.step(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		l.edit(1, asks(asked("a", 1), asked("b", 2)))
		step()
		l.edit(1, asks(asked("c", 3)))
		step()
		l.edit(1, func(r *api.ThreadRow) { rated(api.RatedUp, 9, "/x")(&r.Questions[2]) })
		step()
		var listed []string
		for _, q := range all(t, AnalyticsQuery{Project: "docs", Limit: 5}, c.Questions) {
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
		if left := all(t, AnalyticsQuery{Project: "docs", Limit: 5}, c.Questions); len(left) > 0 {
			t.Errorf("left are %v", left)
		}
	})
}

func TestRebuiltQuestionsAreTheSame(t *testing.T) {
	eachPlace(t, func(t *testing.T, p place) {
		c, l := p.open(Options{}), newThreadLog()
		projector, _ := runThreadProjector(t, c, l)
		jobs, _ := runProjector(t, c, l.testLog) // both follow one journal, and neither disturbs the other
		for n := range projectBatch + 50 {
			l.edit(n, asks(asked(fmt.Sprintf("%04d-a", n), n),
				asked(fmt.Sprintf("%04d-b", n), n, rated(api.RatedUp, n, "/x", fmt.Sprint("/", n%7)))))
			if n%40 == 0 {
				l.removeThread(n)
			}
			if n%9 == 0 {
				l.change(jobStream(n), active("docs"))
			}
		}
		q := AnalyticsQuery{Project: "docs", Limit: 400}
		view := func() []any {
			return []any{all(t, q, c.Questions), all(t, q, c.Feedback), all(t, q, c.PageFeedback),
				must(c.Totals(t.Context(), q))(t), listed(t, c, JobQuery{Project: "docs"})}
		}
		reach(t, projector)
		reach(t, jobs)
		want := view()
		for _, damage := range []string{
			"UPDATE questions SET rating = 'down', outcome = 'failed' WHERE id < 'msg_0100'",
			"UPDATE questions SET project_id = 'blog' WHERE id > 'msg_0300'",
			"DELETE FROM rated_pages WHERE page = '/x'",
		} {
			if _, err := c.write.Exec(damage); err != nil {
				t.Fatal(err)
			}
		}
		if err := projector.Rebuild(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := view(); !reflect.DeepEqual(got, want) {
			t.Error("what was made anew differs from what was there")
		}
	})
}

func TestDamagedThreadHoldsUpNoOther(t *testing.T) {
	eachPlace(t, func(t *testing.T, p place) {
		c, l := p.open(Options{}), newThreadLog()
		runThreadProjector(t, c, l)
		q := AnalyticsQuery{Project: "docs", Limit: 5}
		l.edit(1, asks(asked("a", 0)))
		if got := ids(all(t, q, c.Questions)); got != "a" {
			t.Fatalf("listed %q", got)
		}
		l.setFault("thread/thr_0001", ErrCorrupt)
		l.edit(1, asks(asked("b", 1)))
		l.edit(2, asks(asked("c", 2)))
		if got := ids(all(t, q, c.Questions)); got != "c a" {
			t.Errorf("listed %q, want the damaged thread as it was and the other one", got)
		}
	})
}

func TestSearchesAreCounted(t *testing.T) {
	eachPlace(t, func(t *testing.T, p place) {
		clock := newTestClock()
		c := p.open(Options{Now: clock.now})
		began := clock.now()
		search := func(client, query string, results int) {
			c.RecordSearch("docs", client, query, results)
			clock.add(time.Second)
		}
		for _, typed := range []string{"a", "ap", "api", "api k", "api", "api keys"} { // one search, typed
			search("ann", typed, 9)
		}
		search("ann", "limits", 2) // another one at once
		search("bob", "  API\n Keys ", 4)
		clock.add(time.Minute)
		search("bob", "api keys", 3) // and again, later
		search("bob", "nothing", 0)
		search("bob", "\x00 ", 0)
		c.RecordSearch("blog", "bob", "api keys", 1)
		clock.add(time.Minute)

		for _, limit := range []int{1, 2, 50} {
			q := AnalyticsQuery{Project: "docs", Limit: limit}
			total := 0
			got := all(t, q, func(ctx context.Context, q AnalyticsQuery) ([]SearchCount, string, error) {
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
			if want := stamp(began.Add(68 * time.Second)); !got[0].Last.Equal(want) {
				t.Errorf("last searched for at %v, want %v", got[0].Last, want)
			}
		}
		list, _, total, err := c.Searches(t.Context(), AnalyticsQuery{Project: "docs", Limit: 5,
			From: began.Add(time.Minute)})
		if err != nil || total != 2 || len(list) != 2 {
			t.Errorf("a minute later: %v, %d, %v", list, total, err)
		}

		missed, _, err := c.SearchesWithoutResult(t.Context(), AnalyticsQuery{Project: "docs", Limit: 5})
		if err != nil || len(missed) != 1 || missed[0].Query != "nothing" || missed[0].Count != 1 {
			t.Errorf("without result: %v, %v", missed, err)
		}

		// What is old goes; what waits when the catalogue is closed is written.
		clock.add(searchKeep)
		search("ann", "webhooks", 1)
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		c = p.open(Options{Now: clock.now})
		list, _, total, err = c.Searches(t.Context(), AnalyticsQuery{Project: "docs", Limit: 5})
		if err != nil || total != 1 || len(list) != 1 || list[0].Query != "webhooks" {
			t.Errorf("after a year: %v, %d, %v", list, total, err)
		}
	})
}

func TestSearchesWaitInBoundedMemory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "catalog.db")
	synctest.Test(t, func(t *testing.T) {
		c := place{t, "sqlite:" + path}.open(Options{})
		for n := range 3 * searchesHeld {
			c.RecordSearch("docs", fmt.Sprint("client ", n), fmt.Sprint("query ", n), 1)
		}
		held := func() int {
			c.searched.mu.Lock()
			defer c.searched.mu.Unlock()
			return len(c.searched.typing) + len(c.searched.ended)
		}
		if n := held(); n != searchesHeld {
			t.Errorf("%d searches are held, want %d", n, searchesHeld)
		}
		if _, err := c.write.Exec("ALTER TABLE searches RENAME TO away"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute) // they cannot be written
		if _, err := c.write.Exec("ALTER TABLE away RENAME TO searches"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		_, _, total, err := c.Searches(t.Context(), AnalyticsQuery{Project: "docs", Limit: 1})
		if err != nil || total != searchesHeld {
			t.Errorf("%d searches were counted once they could be, %v", total, err)
		}
		if held() != 0 {
			t.Error("what is written is still held")
		}
	})
}

func TestUpdatesAreKeptUntilTheyEnd(t *testing.T) {
	eachPlace(t, func(t *testing.T, p place) {
		clock := newTestClock()
		c := p.open(Options{Now: clock.now})
		add := func(project string) (api.Update, bool) {
			t.Helper()
			clock.add(time.Second)
			u, added, err := c.AddUpdate(t.Context(), api.ProjectID(project))
			if err != nil {
				t.Fatal(err)
			}
			return u, added
		}
		first, added := add("docs")
		if !added || first.Status != api.UpdateQueued || !api.ValidID(api.UpdatePrefix, string(first.ID)) {
			t.Fatalf("%+v, %v", first, added)
		}
		if again, added := add("docs"); added || !reflect.DeepEqual(again, first) {
			t.Errorf("a second one joins: %+v, %v", again, added)
		}
		other, added := add("blog")
		if !added {
			t.Error("another project's joins")
		}
		now := clock.now()
		first.Status, first.StartedAt = api.UpdateInProgress, stampPtr(&now)
		if err := c.SaveUpdate(t.Context(), first); err != nil {
			t.Fatal(err)
		}
		second, added := add("docs")
		if !added || second.ID == first.ID {
			t.Error("what has begun is joined: it may have read what there was before")
		}
		c.Close()
		c = p.open(Options{Now: clock.now})
		open := must(c.OpenUpdates(t.Context()))(t)
		if len(open) != 3 || !reflect.DeepEqual(open[0], first) || open[1].ID != other.ID || open[2].ID != second.ID {
			t.Errorf("open are %+v", open)
		}
		first.Status, first.EndedAt, first.Logs, first.Summary = api.UpdateSuccess, stampPtr(&now), []string{"a", "b"}, "fine"
		first.Commit = api.UpdateCommit{SHA: "c0", Ref: "main", Message: "m", Added: []string{"a"}, Modified: []string{"b"},
			Removed: []string{"c"}}
		if err := c.SaveUpdate(t.Context(), first); err != nil {
			t.Fatal(err)
		}
		if got := must(c.Update(t.Context(), first.ID))(t); !reflect.DeepEqual(got, first) {
			t.Errorf("stored\n%+v, want\n%+v", got, first)
		}
		if got := must(c.LastUpdate(t.Context(), "docs"))(t); got.ID != first.ID {
			t.Errorf("the last success is %+v", got)
		}
		if _, err := c.LastUpdate(t.Context(), "blog"); !errors.Is(err, api.ErrNotFound) {
			t.Errorf("the last success of a project without one: %v", err)
		}
		first.Status = api.UpdateInProgress
		if err := c.SaveUpdate(t.Context(), first); !errors.Is(err, api.ErrConflict) {
			t.Errorf("what has ended begins anew: %v", err)
		}
		for _, id := range []api.UpdateID{"upd_none", "", "a\x00"} {
			if _, err := c.Update(t.Context(), id); !errors.Is(err, api.ErrNotFound) {
				t.Errorf("update %q: %v", id, err)
			}
		}
		// Old ones go, open ones stay.
		for range updatesKept + 10 {
			u, _ := add("wiki")
			u.Status = api.UpdateFailure
			if err := c.SaveUpdate(t.Context(), u); err != nil {
				t.Fatal(err)
			}
		}
		var kept int
		if err := c.read.NewRaw("SELECT COUNT(*) FROM updates WHERE project_id = 'wiki'").Scan(t.Context(),
			&kept); err != nil || kept != updatesKept {
			t.Errorf("%d are kept, want %d (%v)", kept, updatesKept, err)
		}
		if got := must(c.OpenUpdates(t.Context()))(t); len(got) != 2 {
			t.Errorf("%d are open", len(got))
		}
	})
}

func TestUpdatesAskedForAtOnceAreOne(t *testing.T) {
	eachPlace(t, func(t *testing.T, p place) {
		c := p.open(Options{})
		var wg sync.WaitGroup
		var mu sync.Mutex
		seen, fresh := map[api.UpdateID]bool{}, 0
		for range 16 {
			wg.Go(func() {
				u, added, err := c.AddUpdate(t.Context(), "docs")
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					t.Error(err)
				}
				seen[u.ID] = true
				if added {
					fresh++
				}
			})
		}
		wg.Wait()
		if len(seen) != 1 || fresh != 1 {
			t.Errorf("%d updates, %d of them new", len(seen), fresh)
		}
	})
}

// A part of a page that is looked at again and again waits for nothing, and sees what is listed.
func TestWhatIsListedIsTakenAsItIs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "catalog.db")
	synctest.Test(t, func(t *testing.T) {
		c, l := place{t, "sqlite:" + path}.open(Options{}), newThreadLog()
		p, _ := runThreadProjector(t, c, l)
		l.edit(1, asks(asked("a", 0)))
		reach(t, p)
		l.setFault("thread/thr_0002", api.ErrUnavailable)
		l.edit(2, asks(asked("b", 1)))
		for asIs, wait := range map[bool]time.Duration{true: 0, false: listingWait} {
			q := AnalyticsQuery{Project: "docs", Limit: 5, AsIs: asIs, From: midday.Add(-time.Hour), To: midday.Add(time.Hour)}
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
