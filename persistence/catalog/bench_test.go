package catalog

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"docent/api"
	"docent/internal/traffic"

	"github.com/uptrace/bun"
)

func benchCatalog(b *testing.B, stale time.Duration) *Catalog {
	c, err := Open(b.Context(), "sqlite:"+b.TempDir()+"/catalog.db",
		Options{Log: slog.New(slog.DiscardHandler), Stale: stale})
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
			if _, err := c.AddProject(b.Context(), testProject("docs")); err != nil {
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
					c.TouchKey(k.ID, c.now())
				}
			})
		})
	}
}

// A page of the listing must not cost more because there are many jobs.
func BenchmarkListing(b *testing.B) {
	for _, jobs := range []int{100, 100_000} {
		c, l := benchCatalog(b, 0), newTestLog()
		for n := range jobs {
			l.change(fmt.Sprintf("job/job_%08d", n), active("docs"))
			if n%2 == 0 {
				l.change(fmt.Sprintf("job/job_%08d", n), completed)
			}
		}
		p := NewProjector(c, l, l.load, slog.New(slog.DiscardHandler))
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
				rows, err := c.Jobs(b.Context(), JobQuery{Project: "docs", Status: api.JobActive, Before: middle, Limit: 20})
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
	c := benchCatalog(b, 0)
	text := strings.Repeat("What the server's answer says. ", 50)
	listing := questionListing(nil)
	n := 0
	b.ReportAllocs()
	for b.Loop() {
		n++
		if n%pacedBatch != 0 {
			continue
		}
		rows := make([]any, pacedBatch)
		for i := range rows {
			id := fmt.Sprintf("%08d", n+i)
			row, err := newQuestionRow(api.QuestionRow{ID: api.TurnID("turn_" + id), Thread: api.ThreadID("thr_" + id),
				Project: "docs", Caller: "reader",
				Question: "What does the server say?", Answer: text, Answered: true, Model: "builtin",
				Asked: time.Now(), Ended: time.Now(),
				Sources: []api.PageRef{{URL: "https://docs.example.com/operate/run#start", Title: "Run a server"},
					{URL: "https://docs.example.com/operate/load", Title: "Load"}}})
			if err != nil {
				b.Fatal(err)
			}
			rows[i] = loadedThread{id: row.Thread, rows: []*questionRow{row}}
		}
		err := c.update(b.Context(), "list questions", func(ctx context.Context, tx bun.Tx) error {
			return listing.write(ctx, tx, rows, nil, new(changes))
		})
		if err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAddProject(b *testing.B) {
	c := benchCatalog(b, 0)
	n := 0
	for b.Loop() {
		if _, err := c.AddProject(b.Context(), testProject(fmt.Sprintf("docs%d", n))); err != nil {
			b.Fatal(err)
		}
		n++
	}
}

// big is a catalogue with half a year of a busy site: 100,000 conversations and 10,000 jobs.
var big = sync.OnceValues(func() (*Catalog, error) {
	const conversations, jobs = 100_000, 10_000
	folder, err := os.MkdirTemp("", "docent-bench")
	if err != nil {
		return nil, err
	}
	ctx := context.Background()
	c, err := Open(ctx, "sqlite:"+folder+"/catalog.db", Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	now := time.Now()
	write := func(of projection, batch []any) error {
		return c.update(ctx, "fill", func(ctx context.Context, tx bun.Tx) error {
			return of.write(ctx, tx, batch, nil, new(changes))
		})
	}
	var batch []any
	var failed error
	flush := func(of projection, least int) {
		if len(batch) >= least && failed == nil {
			failed = write(of, batch)
			batch = batch[:0]
		}
	}
	for t := range traffic.Conversations(1, conversations, "docs", now) {
		l := loadedThread{id: t.ID}
		for _, q := range t.Questions {
			row, err := newQuestionRow(q)
			if err != nil {
				return nil, err
			}
			l.rows = append(l.rows, row)
		}
		batch = append(batch, l)
		flush(questionListing(nil), projectBatch)
	}
	flush(questionListing(nil), 1)
	for j := range traffic.Jobs(1, jobs, "docs", now) {
		row, err := newJobRow(j.Row)
		if err != nil {
			return nil, err
		}
		batch = append(batch, row)
		flush(jobListing(nil), projectBatch)
	}
	flush(jobListing(nil), 1)
	for failed == nil {
		n := 0
		if n, failed = c.writeTexts(ctx, projectBatch); n == 0 {
			break
		}
	}
	return c, failed
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
		q    ConversationQuery
	}{
		{"all", ConversationQuery{}},
		{"a week a month ago", ConversationQuery{From: ago(37), To: ago(30)}},
		{"unanswered", ConversationQuery{Outcome: outcomeUnanswered}},
		{"in doubt", ConversationQuery{Outcome: outcomeInDoubt}},
		{"failed", ConversationQuery{Outcome: outcomeFailed}},
		{"rated down", ConversationQuery{Rating: api.RatedDown}},
		{"page", ConversationQuery{Page: "/guides/webhook"}},
		{"rare page", ConversationQuery{Page: "/troubleshooting/sync"}},
		{"caller", ConversationQuery{Caller: "user-00042"}},
		{"nobody", ConversationQuery{Caller: "nobody"}},
		{"channel", ConversationQuery{Channel: api.ChannelAPI}},
		{"frequent word", ConversationQuery{Text: "page"}},
		{"frequent beginning", ConversationQuery{Text: "con"}},
		{"one letter", ConversationQuery{Text: "a"}},
		{"rare word", ConversationQuery{Text: "firewall"}},
		{"two words", ConversationQuery{Text: "rotate certificate"}},
		{"phrase", ConversationQuery{Text: `"behind a proxy"`}},
		{"no such word", ConversationQuery{Text: "xyzzy"}},
		{"word and failed and down", ConversationQuery{Text: "token", Outcome: outcomeFailed, Rating: api.RatedDown}},
		{"frequent words, rare rating", ConversationQuery{Text: "the is a", Outcome: outcomeFailed, Rating: api.RatedUp}},
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
		q    JobQuery
	}{
		{"all", JobQuery{}}, {"failed", JobQuery{Status: api.JobFailed}},
		{"outcome", JobQuery{Outcome: api.OutcomeNeedsDetail}}, {"text", JobQuery{Text: "firewall"}},
		{"no such text", JobQuery{Text: "xyzzy"}}, {"since", JobQuery{From: ago(7)}}, {"by nobody", JobQuery{By: "nobody"}},
		{"a day long ago", JobQuery{From: ago(170), To: ago(169)}},
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
		q := AnalyticsQuery{Project: "docs", From: ago(days), Limit: 50}
		b.Run(fmt.Sprintf("days/%d/first", days), func(b *testing.B) {
			for b.Loop() {
				c.days.forgetAll()
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
