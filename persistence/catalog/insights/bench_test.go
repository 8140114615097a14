package insights_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"docent/api"
	"docent/bench/traffic"
	"docent/persistence/catalog"
	"docent/persistence/catalog/catalogtest"
	"docent/persistence/catalog/insights"
	"docent/persistence/catalog/listing"
)

func benchCatalog(b *testing.B, stale time.Duration) *catalog.Catalog {
	c, err := catalog.Open(b.Context(), "sqlite:"+b.TempDir()+"/catalog.db",
		catalog.Options{Log: slog.New(slog.DiscardHandler), Stale: stale})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { c.Close() })
	return c
}

// What every request pays: its key and its project, from memory and, as it would be without, from the database.
func BenchmarkLookup(b *testing.B) {
	for _, how := range []struct {
		name  string
		stale time.Duration
	}{{"remembered", 0}, {"asked", time.Nanosecond}} {
		b.Run(how.name, func(b *testing.B) {
			c := benchCatalog(b, how.stale)
			if _, err := c.AddProject(b.Context(), catalogtest.Project("docs")); err != nil {
				b.Fatal(err)
			}
			hash := [32]byte{1}
			key, err := c.AddKey(b.Context(), api.Key{Kind: api.AssistantKey, Project: "docs"}, hash)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					k, err := c.KeyByHash(b.Context(), hash)
					if err != nil || k.ID != key.ID {
						b.Fatal(err)
					}
					if _, err := c.ProjectByDomain(b.Context(), "docs.example.com"); err != nil {
						b.Fatal(err)
					}
					c.TouchKey(k.ID, c.Now())
				}
			})
		})
	}
}

// A page of the listing must not cost more because there are many jobs.
func BenchmarkListing(b *testing.B) {
	for _, jobs := range []int{100, 100_000} {
		c, l := benchCatalog(b, 0), catalogtest.NewLog()
		for n := range jobs {
			l.Change(fmt.Sprintf("job/job_%08d", n), catalogtest.Active("docs"))
			if n%2 == 0 {
				l.Change(fmt.Sprintf("job/job_%08d", n), catalogtest.Completed)
			}
		}
		p := c.NewProjector(l, l.Load, slog.New(slog.DiscardHandler))
		b.Run(fmt.Sprintf("rebuild/jobs=%d", jobs), func(b *testing.B) {
			for b.Loop() {
				if err := p.Rebuild(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(jobs*b.N)/b.Elapsed().Seconds(), "jobs/s")
		})
		b.Run(fmt.Sprintf("page/jobs=%d", jobs), func(b *testing.B) {
			middle := api.JobID(fmt.Sprintf("job_%08d", jobs/2))
			for b.Loop() {
				rows, err := c.Jobs(b.Context(), listing.JobQuery{Project: "docs", Status: api.JobActive, Before: middle, Limit: 20})
				if err != nil || len(rows) != 20 {
					b.Fatal(len(rows), err)
				}
			}
		})
	}
}

// What each answer costs once more to be listed for analytics, from its row to the database; ns/op is that of one
// question.
func BenchmarkListQuestions(b *testing.B) {
	const batch = 64 // as many as are listed at once when nobody waits
	c := benchCatalog(b, 0)
	text := strings.Repeat("What the server's answer says. ", 50)
	n := 0
	b.ReportAllocs()
	for b.Loop() {
		n++
		if n%batch != 0 {
			continue
		}
		questions := make([]api.QuestionRow, batch)
		for i := range questions {
			id := fmt.Sprintf("%08d", n+i)
			questions[i] = api.QuestionRow{ID: api.TurnID("turn_" + id), Thread: api.ThreadID("thr_" + id),
				Project: "docs", Caller: "reader",
				Question: "What does the server say?", Answer: text, Answered: true, Model: "builtin",
				Asked: time.Now(), Ended: time.Now(),
				Sources: []api.PageRef{{URL: "https://docs.example.com/operate/run#start", Title: "Run a server"},
					{URL: "https://docs.example.com/operate/load", Title: "Load"}}}
		}
		if err := c.List(b.Context(), questions); err != nil {
			b.Fatal(err)
		}
	}
}

// What it costs to write the words of a question; ns/op is that of one question.
func BenchmarkWriteTexts(b *testing.B) {
	c := benchCatalog(b, 0)
	threads := catalogtest.NewThreads()
	n := 0
	for t := range traffic.Conversations(1, b.N, "docs", time.Now()) {
		if n += len(t.Questions); n >= b.N {
			t.Questions = t.Questions[:len(t.Questions)-(n-b.N)]
		}
		threads.Put(t)
		if n >= b.N {
			break
		}
	}
	if err := c.NewThreadProjector(threads, threads.Load, nil).Rebuild(b.Context()); err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	if err := c.FinishTexts(b.Context()); err != nil {
		b.Fatal(err)
	}
}

func BenchmarkAddProject(b *testing.B) {
	c := benchCatalog(b, 0)
	n := 0
	for b.Loop() {
		if _, err := c.AddProject(b.Context(), catalogtest.Project(fmt.Sprintf("docs%d", n))); err != nil {
			b.Fatal(err)
		}
		n++
	}
}

// big is a catalog with half a year of a busy site: 100,000 conversations and 10,000 jobs.
var big = sync.OnceValues(func() (*catalog.Catalog, error) {
	const conversations, jobs = 100_000, 10_000
	folder, err := os.MkdirTemp("", "docent-bench")
	if err != nil {
		return nil, err
	}
	ctx := context.Background()
	c, err := catalog.Open(ctx, "sqlite:"+folder+"/catalog.db", catalog.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	now := time.Now()
	threads := catalogtest.NewThreads()
	for t := range traffic.Conversations(1, conversations, "docs", now) {
		threads.Put(t)
	}
	asked, rows := catalogtest.NewFeed(), map[string]api.JobRow{}
	for j := range traffic.Jobs(1, jobs, "docs", now) {
		stream := "job/" + string(j.Row.Job.ID)
		rows[stream] = j.Row
		asked.Tell(stream)
	}
	load := func(_ context.Context, stream string) (api.JobRow, bool, error) {
		row, ok := rows[stream]
		return row, ok, nil
	}
	err = errors.Join(c.NewThreadProjector(threads, threads.Load, nil).Rebuild(ctx), c.NewProjector(asked, load, nil).Rebuild(ctx))
	return c, errors.Join(err, c.FinishTexts(ctx))
})

// What the console's lists cost on a large site. Each has to stay below 50 ms.
func BenchmarkConsole(b *testing.B) {
	c, err := big()
	if err != nil {
		b.Fatal(err)
	}
	ctx, now := b.Context(), time.Now()
	ago := func(days int) time.Time { return now.Add(-time.Duration(days) * 24 * time.Hour) }
	for _, of := range []struct {
		name string
		q    insights.ConversationQuery
	}{
		{"all", insights.ConversationQuery{}},
		{"a week a month ago", insights.ConversationQuery{From: ago(37), To: ago(30)}},
		{"unanswered", insights.ConversationQuery{Outcome: insights.OutcomeUnanswered}},
		{"in doubt", insights.ConversationQuery{Outcome: insights.OutcomeInDoubt}},
		{"failed", insights.ConversationQuery{Outcome: insights.OutcomeFailed}},
		{"rated down", insights.ConversationQuery{Rating: api.RatedDown}},
		{"page", insights.ConversationQuery{Page: "/guides/webhook"}},
		{"rare page", insights.ConversationQuery{Page: "/troubleshooting/sync"}},
		{"caller", insights.ConversationQuery{Caller: "user-00042"}},
		{"nobody", insights.ConversationQuery{Caller: "nobody"}},
		{"channel", insights.ConversationQuery{Channel: api.ChannelAPI}},
		{"frequent word", insights.ConversationQuery{Text: "page"}},
		{"frequent beginning", insights.ConversationQuery{Text: "con"}},
		{"one letter", insights.ConversationQuery{Text: "a"}},
		{"rare word", insights.ConversationQuery{Text: "firewall"}},
		{"two words", insights.ConversationQuery{Text: "rotate certificate"}},
		{"phrase", insights.ConversationQuery{Text: `"behind a proxy"`}},
		{"no such word", insights.ConversationQuery{Text: "xyzzy"}},
		{"word and failed and down", insights.ConversationQuery{Text: "token", Outcome: insights.OutcomeFailed, Rating: api.RatedDown}},
		{"frequent words, rare rating", insights.ConversationQuery{Text: "the is a", Outcome: insights.OutcomeFailed, Rating: api.RatedUp}},
	} {
		of.q.Project, of.q.Limit = "docs", 50
		b.Run("conversations/"+of.name, func(b *testing.B) {
			n := 0
			for b.Loop() {
				list, _, err := c.Conversations(ctx, of.q)
				if n = len(list); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(n), "rows")
		})
		b.Run("conversations/"+of.name+"/tenth page", func(b *testing.B) {
			q := of.q
			for range 9 {
				_, next, err := c.Conversations(ctx, q)
				if err != nil {
					b.Fatal(err)
				}
				if next == "" {
					b.Skip("there are fewer")
				}
				q.After = next
			}
			for b.Loop() {
				if _, _, err := c.Conversations(ctx, q); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	for _, of := range []struct {
		name string
		q    listing.JobQuery
	}{
		{"all", listing.JobQuery{}}, {"failed", listing.JobQuery{Status: api.JobFailed}},
		{"outcome", listing.JobQuery{Outcome: api.OutcomeNeedsDetail}}, {"text", listing.JobQuery{Text: "firewall"}},
		{"no such text", listing.JobQuery{Text: "xyzzy"}}, {"since", listing.JobQuery{From: ago(7)}}, {"by nobody", listing.JobQuery{By: "nobody"}},
		{"a day long ago", listing.JobQuery{From: ago(170), To: ago(169)}},
	} {
		of.q.Project, of.q.Limit = "docs", 50
		b.Run("jobs/"+of.name, func(b *testing.B) {
			for b.Loop() {
				if _, err := c.Jobs(ctx, of.q); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	for _, days := range []int{7, 30, 90, 180} {
		q := insights.AnalyticsQuery{Project: "docs", From: ago(days), Limit: 50}
		b.Run(fmt.Sprintf("days/%d/first", days), func(b *testing.B) {
			for b.Loop() {
				c.ForgetCounts()
				if _, err := c.Days(ctx, q, time.UTC); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("days/%d", days), func(b *testing.B) {
			for b.Loop() {
				if _, err := c.Days(ctx, q, time.UTC); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("totals/%d", days), func(b *testing.B) {
			for b.Loop() {
				if _, err := c.Totals(ctx, q); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("cited pages/%d", days), func(b *testing.B) {
			for b.Loop() {
				if _, _, err := c.CitedPages(ctx, q); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
