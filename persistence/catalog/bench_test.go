package catalog

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"docent/api"

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
			return listing.write(ctx, tx, rows, nil)
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
