package insights_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/uptrace/bun"

	"docent/api"
	"docent/persistence/catalog"
	"docent/persistence/catalog/catalogtest"
	"docent/persistence/catalog/database"
	"docent/persistence/catalog/insights"
	"docent/persistence/catalog/listing"
)

// foundAll pages through conversations and gives their threads.
func foundAll(t *testing.T, c *catalog.Catalog, q insights.ConversationQuery) (threads []string, list []insights.Conversation) {
	t.Helper()
	q.Project = "docs"
	if q.Limit == 0 {
		q.Limit = 7
	}
	for pages := 0; ; pages++ {
		page, next, err := c.Conversations(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range page {
			threads = append(threads, string(l.Thread))
		}
		list = append(list, page...)
		if next == "" {
			return threads, list
		}
		if q.After = next; pages > 200 {
			t.Fatal("the listing does not end")
		}
	}
}

// The listing says the same as going through all questions one by one, whatever is asked for and however it changes.
func TestConversationsAreFoundByWhatIsTrueOfTheirQuestions(t *testing.T) {
	catalogtest.EachPlace(t, func(t *testing.T, p catalogtest.Place) {
		c, l := p.Open(catalog.Options{}), newThreadLog()
		projector, _ := runThreadProjector(t, c, l)
		r := rand.New(rand.NewPCG(4, 2))
		nouns := []string{"token", "webhook", "Größe", "max_turns", "用户", "o'clock", "100%"}
		one := func(list ...string) string { return list[r.IntN(len(list))] }
		now := 0
		random := func(n int) api.QuestionRow {
			now++
			return asked(fmt.Sprintf("%06d", n*1000+now), now, func(q *api.QuestionRow) {
				q.Question = "How do I set the " + one(nouns...) + " of a " + one(nouns...) + "?"
				q.Answer = "Open the page, and look at " + one(nouns...) + "."
				q.Channel = api.Channel(one("web", "api"))
				q.Page = one("", "/guides/start", "/guides/end/")
				for range r.IntN(3) {
					u := "https://docs.example.com" + one("/guides/start", "/api/x.html", "/api/y") + one("", "#a")
					q.Sources = append(q.Sources, api.PageRef{URL: u})
				}
				switch r.IntN(5) {
				case 0:
					failed(q)
				case 1:
					unanswered(q)
				}
				if q.Replaced = r.IntN(8) == 0; q.Replaced || r.IntN(4) == 0 {
					q.Rating, q.Rated, q.Comment = api.Rating(one("up", "down")), q.Ended, one("", "wrong", "merci")
				}
			})
		}
		for n := range 40 {
			for range 1 + r.IntN(4) {
				l.edit(n, func(row *api.ThreadRow) {
					row.Caller = fmt.Sprintf("user %d", n%5)
					row.Questions = append(row.Questions, random(n))
				})
			}
		}
		l.edit(99, func(row *api.ThreadRow) { row.Project = "blog"; row.Questions = append(row.Questions, random(99)) })
		for round := range 4 {
			catalogtest.Reach(t, projector)
			checkConversations(t, c, l)
			for range 10 * round {
				n := r.IntN(40)
				switch r.IntN(3) {
				case 0:
					l.edit(n, func(row *api.ThreadRow) { row.Questions = append(row.Questions, random(n)) })
				case 1:
					l.edit(n, func(row *api.ThreadRow) {
						row.Questions = slices.Clone(row.Questions)
						for i := range row.Questions {
							row.Questions[i].Rating, row.Questions[i].Rated = "down", midday
						}
					})
				case 2:
					l.removeThread(n)
				}
			}
		}
	})
}

func checkConversations(t *testing.T, c *catalog.Catalog, l *threadLog) {
	t.Helper()
	contains := func(q api.QuestionRow, text string) bool {
		all := " " + strings.ToLower(insights.Spaced(q.Question+" "+q.Answer+" "+q.Comment)) + " "
		return strings.Contains(all, " "+text)
	}
	for _, q := range []insights.ConversationQuery{
		{}, {Limit: 1}, {Outcome: "unanswered"}, {Outcome: "in_doubt"}, {Outcome: "failed", Limit: 2}, {Outcome: "answered"},
		{Rating: "down"}, {Rating: "up", Channel: "web"}, {Caller: "user 3"}, {Caller: "nobody"}, {Channel: "api", Limit: 1},
		{Page: "/guides/start"}, {Page: "https://docs.example.com/api/x"}, {Page: "guides/end"}, {Page: "/guides"},
		{Text: "webhook"}, {Text: "WEBHOOK token"}, {Text: "webho"}, {Text: "max_turns"}, {Text: `"a token"`}, {Text: "户"},
		{Text: "o'clock"}, {Text: "100%"}, {Text: "größe"}, {Text: "merci"}, {Text: "xyzzy"}, {Text: `'; DROP "x`},
		{Text: "token", Outcome: "answered", Rating: "down", Limit: 2},
		{From: midday.Add(20 * time.Minute), To: midday.Add(60 * time.Minute)},
		{From: midday.Add(50 * time.Minute), Outcome: "failed"}, {To: midday.Add(50 * time.Minute), Text: "token", Limit: 3},
	} {
		type hit struct {
			thread string
			num    int64
		}
		var hits []hit
		for stream, row := range l.threads {
			newest := int64(-1)
			for _, a := range row.Questions {
				outcome := insights.OutcomeUnanswered
				switch {
				case a.Error != "":
					outcome = insights.OutcomeFailed
				case a.Answered:
					outcome = insights.OutcomeAnswered
				}
				ok := row.Project == "docs" && (q.Filtered() || !a.Replaced) &&
					(q.From.IsZero() || !a.Asked.Before(q.From)) && (q.To.IsZero() || a.Asked.Before(q.To)) &&
					(q.Outcome == "" || q.Outcome == outcome || q.Outcome == insights.OutcomeInDoubt && a.InDoubt()) &&
					(q.Rating == "" || q.Rating == a.Rating) && (q.Channel == "" || q.Channel == a.Channel) &&
					(q.Caller == "" || q.Caller == row.Caller)
				if q.Page != "" {
					on := a.Page != "" && insights.PagePath(a.Page) == insights.PagePath(q.Page)
					for _, s := range a.Sources {
						on = on || insights.PagePath(s.URL) == insights.PagePath(q.Page)
					}
					ok = ok && on
				}
				for _, p := range insights.Phrases(q.Text) {
					text := strings.Join(p.Words(), " ")
					if !p.Begun() {
						text += " "
					}
					ok = ok && contains(a, text)
				}
				if ok {
					newest = max(newest, insights.NumberOf(a.Asked, a.ID))
				}
			}
			if newest >= 0 {
				hits = append(hits, hit{strings.TrimPrefix(stream, "thread/"), newest})
			}
		}
		slices.SortFunc(hits, func(a, b hit) int { return int(b.num>>10 - a.num>>10) })
		want := []string(nil)
		for _, h := range hits {
			want = append(want, h.thread)
		}
		got, list := foundAll(t, c, q)
		if !slices.Equal(got, want) {
			t.Errorf("%+v:\n%v, want\n%v", q, got, want)
			continue
		}
		for _, line := range list {
			row := l.threads["thread/"+string(line.Thread)]
			down, questions := 0, 0
			for _, a := range row.Questions {
				if a.Rating == api.RatedDown {
					down++
				}
				if !a.Replaced {
					questions++
				}
			}
			if line.Questions != questions || line.Down != down || line.Match.ID == "" || line.First.ID == "" {
				t.Errorf("%+v: %s is listed with %d questions, %d rated down, want %d and %d", q, line.Thread, line.Questions,
					line.Down, questions, down)
			}
		}
	}
}

// A listing that is rebuilt from the start says the same as before, and its words are those that are there.
func TestConversationsSurviveTheirListing(t *testing.T) {
	catalogtest.EachPlace(t, func(t *testing.T, p catalogtest.Place) {
		c, l := p.Open(catalog.Options{}), newThreadLog()
		projector, _ := runThreadProjector(t, c, l)
		for n := range 20 {
			l.edit(n, asks(asked(fmt.Sprint(n), n, unanswered)))
		}
		l.removeThread(3)
		catalogtest.Reach(t, projector)
		want, _ := foundAll(t, c, insights.ConversationQuery{Text: "Q"})
		if len(want) != 19 {
			t.Fatalf("%d are found, want 19", len(want))
		}
		if err := projector.Rebuild(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got, _ := foundAll(t, c, insights.ConversationQuery{Text: "Q"}); !slices.Equal(got, want) {
			t.Errorf("after a rebuild %v, want %v", got, want)
		}
		if err := c.EmptyListings(t.Context()); err != nil {
			t.Fatal(err)
		}
		var left int
		if err := c.Read.NewRaw("SELECT COUNT(*) FROM text_queue").Scan(t.Context(), &left); err != nil || left > 0 {
			t.Errorf("%d words wait for a listing that is gone: %v", left, err)
		}
	})
}

// A catalog of the version before is opened with all that its questions say.
func TestAnOlderCatalogGetsItsConversations(t *testing.T) {
	catalogtest.EachPlace(t, func(t *testing.T, p catalogtest.Place) {
		c, l := p.Open(catalog.Options{}), newThreadLog()
		projector, stop := runThreadProjector(t, c, l)
		page := "https://docs.example.com/a"
		l.edit(1, calls("ada", asked("1", 1, rated(api.RatedDown, 2, page)), asked("2", 2, unanswered)))
		l.edit(2, calls("bob", asked("3", 3, failed)))
		jobs, stopJobs := catalogtest.RunProjector(t, c, l.Log)
		l.Log.Change(catalogtest.JobStream(1), catalogtest.Active("docs"))
		catalogtest.Reach(t, projector)
		catalogtest.Reach(t, jobs)
		queries := []insights.ConversationQuery{{}, {Text: "q"}, {Rating: "down"}, {Page: "/a"}, {Caller: "ada"}, {Outcome: "failed"}}
		var want []any
		ask := func(c *catalog.Catalog) (all []any) {
			for _, q := range queries {
				_, list := foundAll(t, c, q)
				all = append(all, list)
			}
			jobs := catalogtest.Must(c.Jobs(t.Context(), listing.JobQuery{Project: "docs", Text: "", By: ""}))(t)
			cited, _, err := c.CitedPages(t.Context(), insights.AnalyticsQuery{Project: "docs", Limit: 5, To: midday.Add(time.Hour)})
			if err != nil {
				t.Fatal(err)
			}
			return append(all, jobs, cited)
		}
		want = ask(c)
		stop()
		stopJobs()
		for _, undo := range []string{"DROP TABLE cited_pages", "DROP TABLE question_texts", "DROP TABLE text_queue",
			"DROP INDEX questions_number", "DROP INDEX questions_num", "DROP INDEX questions_thread", "DROP INDEX questions_asked", "DROP INDEX jobs_listed",
			"ALTER TABLE questions DROP COLUMN num", "ALTER TABLE questions DROP COLUMN first_text",
			"ALTER TABLE questions DROP COLUMN in_doubt", "ALTER TABLE jobs DROP COLUMN outcome",
			"ALTER TABLE jobs DROP COLUMN asked_by", "ALTER TABLE jobs DROP COLUMN title",
			"ALTER TABLE jobs DROP COLUMN created_at", "CREATE INDEX questions_thread ON questions (thread_id)",
			"CREATE INDEX questions_asked ON questions (project_id, replaced, asked_at)",
			"DELETE FROM bun_migrations WHERE name IN ('" + database.ConversationsMigration + "', '20261128000001')"} {
			if _, err := c.Write.ExecContext(t.Context(), undo); err != nil {
				t.Fatal(undo, err)
			}
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		if got := ask(p.Open(catalog.Options{})); !reflect.DeepEqual(got, want) {
			t.Errorf("after the migration\n%+v, want\n%+v", got, want)
		}
	})
}

// Days are those of the zone, each question is counted once, and what changes later is counted again.
func TestDaysCountWhatWasAsked(t *testing.T) {
	catalogtest.EachPlace(t, func(t *testing.T, p catalogtest.Place) {
		began := time.Now()
		c, l := p.Open(catalog.Options{Now: func() time.Time { return midday.Add(72*time.Hour + time.Since(began)) }}), newThreadLog()
		projector, _ := runThreadProjector(t, c, l)
		zone := time.FixedZone("", 5*3600+1800)
		first := func(ms int64) func(*api.QuestionRow) { return func(q *api.QuestionRow) { q.FirstText = ms } }
		page := "https://docs.example.com/a"
		// Midnight of the zone is 390 minutes after midday.
		l.edit(1, asks(asked("1", 0, first(100)), asked("2", 389, first(300), failed), asked("3", 390, first(900), unanswered)))
		l.edit(2, asks(asked("4", 5, first(200), rated(api.RatedUp, 6, page, page+"#x", "https://docs.example.com/b")),
			asked("5", 6, replaced, rated(api.RatedDown, 6, page)), asked("6", 24*60*2, rated(api.RatedDown, 6, page))))
		check := func(what string, want ...insights.Day) {
			t.Helper()
			catalogtest.Reach(t, projector)
			q := insights.AnalyticsQuery{Project: "docs", From: midday, To: midday.Add(48*time.Hour + time.Minute)}
			start := time.Date(2026, 11, 21, 0, 0, 0, 0, zone)
			for i := range want {
				want[i].Start = start.AddDate(0, 0, i)
			}
			var got []insights.Day
			defer func() {
				if t.Failed() {
					t.Logf("%s:\n%+v, want\n%+v", what, got, want)
				}
			}()
			catalogtest.Soon(t, what, func() bool {
				c.Recount()
				got = catalogtest.Must(c.Days(t.Context(), q, zone))(t)
				return reflect.DeepEqual(got, want)
			})
		}
		one := insights.Day{Questions: 3, Answered: 2, Failed: 1, Up: 1, Timed: 3, Median: 200, P95: 300}
		two := insights.Day{Questions: 1, Unanswered: 1, Timed: 1, Median: 900, P95: 900}
		three := insights.Day{Questions: 1, Answered: 1, Down: 1}
		check("as asked", one, two, three)
		l.edit(1, func(r *api.ThreadRow) {
			r.Questions = slices.Clone(r.Questions)
			rated(api.RatedDown, 9, page)(&r.Questions[2])
		})
		two.Down, two.InDoubt = 1, 1
		check("after a rating", one, two, three)
		l.removeThread(2)
		one = insights.Day{Questions: 2, Answered: 1, Failed: 1, Timed: 2, Median: 100, P95: 300}
		check("after a thread is gone", one, two, insights.Day{})

		l.edit(3, asks(asked("9", 20, rated(api.RatedUp, 6, page, "https://docs.example.com/b"))))
		catalogtest.Reach(t, projector)
		q := insights.AnalyticsQuery{Project: "docs", From: midday, To: midday.Add(24 * time.Hour), Limit: 1}
		var cited []insights.CitedPage
		for {
			list, next, err := c.CitedPages(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			if cited = append(cited, list...); next == "" {
				break
			}
			q.After = next
		}
		if want := []insights.CitedPage{{page, 2}, {"https://docs.example.com/b", 1}}; !slices.Equal(cited, want) {
			t.Errorf("cited %v, want %v", cited, want)
		}
	})
}

// Who watches a project hears of each change to its listings, and of no other's.
func TestWatchersHearOfChanges(t *testing.T) {
	catalogtest.EachPlace(t, func(t *testing.T, p catalogtest.Place) {
		c, l := p.Open(catalog.Options{}), newThreadLog()
		projector, _ := runThreadProjector(t, c, l)
		docs, stop := c.Watch("docs")
		blog, stopBlog := c.Watch("blog")
		defer stopBlog()
		heard := func(what string, of <-chan struct{}) {
			t.Helper()
			select {
			case <-of:
			case <-time.After(time.Minute):
				t.Fatalf("%s is not heard of", what)
			}
		}
		for n := range 3 {
			l.edit(n, asks(asked(fmt.Sprint(n), n)))
			catalogtest.Reach(t, projector)
			heard("a question", docs)
		}
		select {
		case <-blog:
			t.Error("another project's watcher hears of a question")
		default:
		}
		l.removeThread(1)
		catalogtest.Reach(t, projector)
		heard("a thread that is gone", docs)
		if _, _, err := c.AddUpdate(t.Context(), "docs"); err != nil {
			t.Fatal(err)
		}
		heard("an update", docs)
		stop()
		stop()
		l.edit(1, asks(asked("9", 9)))
		catalogtest.Reach(t, projector)
		select {
		case <-docs:
			t.Error("who has stopped still hears")
		default:
		}
		stopBlog()
	})
}

func TestJobsAreFoundByTitleOutcomeAskerAndTime(t *testing.T) {
	catalogtest.EachPlace(t, func(t *testing.T, p catalogtest.Place) {
		c, l := p.Open(catalog.Options{}), catalogtest.NewLog()
		projector, _ := catalogtest.RunProjector(t, c, l)
		for n, title := range []string{"Rename 100% of the pages", "Fix a_b", "FIX axb", `back\slash`} {
			l.Change(catalogtest.JobStream(n), catalogtest.Active("docs"))
			l.Change(catalogtest.JobStream(n), func(r *api.JobRow) {
				r.Job.Title, r.User, r.Job.Outcome = title, fmt.Sprintf("key_%d", n), api.OutcomeChanged
				r.Job.CreatedAt = midday.Add(time.Duration(n) * time.Hour)
				if n == 3 {
					r.Job.Outcome = api.OutcomeNothingToDo
				}
			})
		}
		catalogtest.Reach(t, projector)
		for _, test := range []struct {
			q    listing.JobQuery
			want string
		}{
			{listing.JobQuery{}, "3 2 1 0"}, {listing.JobQuery{Text: "fix"}, "2 1"}, {listing.JobQuery{Text: "a_b"}, "1"}, {listing.JobQuery{Text: "100%"}, "0"},
			{listing.JobQuery{Text: `k\s`}, "3"}, {listing.JobQuery{By: "key_2"}, "2"}, {listing.JobQuery{Outcome: api.OutcomeChanged}, "2 1 0"},
			{listing.JobQuery{From: midday.Add(time.Hour), To: midday.Add(3 * time.Hour)}, "2 1"}, {listing.JobQuery{Text: "nothing"}, ""},
		} {
			test.q.Project = "docs"
			var got []string
			for _, row := range catalogtest.Must(c.Jobs(t.Context(), test.q))(t) {
				got = append(got, strings.TrimPrefix(string(row.Job.ID), "job_000"))
			}
			if strings.Join(got, " ") != test.want {
				t.Errorf("%+v: %v, want %s", test.q, got, test.want)
			}
		}
	})
}

// What is written of questions takes a statement for several of them, and their words a transaction for a hundred.
func TestQuestionsAreWrittenInFewStatements(t *testing.T) {
	c := catalogtest.Place{T: t, DSN: "sqlite:" + t.TempDir() + "/c.db"}.Open(catalog.Options{})
	counter := &statements{}
	c.Write = c.Write.WithQueryHook(counter)
	const n = 256
	questions := make([]api.QuestionRow, n)
	for i := range questions {
		id := fmt.Sprintf("%08d", i)
		questions[i] = api.QuestionRow{ID: api.TurnID("turn_" + id), Thread: api.ThreadID("thr_" + id), Project: "docs", Caller: "reader",
			Question: "What does the server say?", Answer: "What it says.", Answered: true, Asked: midday, Ended: midday,
			Sources: []api.PageRef{{URL: "https://docs.example.com/a", Title: "A"}}}
	}
	if err := c.List(t.Context(), questions); err != nil {
		t.Fatal(err)
	}
	if got := counter.n.Swap(0); got > n/16+8 {
		t.Errorf("%d questions took %d statements", n, got)
	}
	if err := c.FinishTexts(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := counter.n.Load(); got > n/16+8 {
		t.Errorf("the words of %d questions took %d statements", n, got)
	}
}

// statements counts them.
type statements struct{ n atomic.Int64 }

func (s *statements) BeforeQuery(ctx context.Context, _ *bun.QueryEvent) context.Context {
	s.n.Add(1)
	return ctx
}

func (s *statements) AfterQuery(context.Context, *bun.QueryEvent) {}
