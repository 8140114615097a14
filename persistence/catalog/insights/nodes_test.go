package insights_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"docent/api"
	"docent/persistence/catalog/catalogtest"
	"docent/persistence/catalog/insights"
)

func TestFiguresOfADayFollowWhatAnotherNodeHasListed(t *testing.T) {
	t.Parallel()
	a, b := catalogtest.TwoNodes(t)
	if _, err := a.AddProject(t.Context(), api.Project{ID: "docs", Domain: "docs.example.com", Source: "/srv/docs"}); err != nil {
		t.Fatal(err)
	}
	threads := catalogtest.NewThreads()
	p := a.NewThreadProjector(threads, threads.Load, nil)
	b.NewThreadProjector(threads, threads.Load, nil)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); p.Run(ctx) }()
	defer func() { cancel(); <-ended }()
	at := time.Now().Add(-time.Hour)
	for n := range 10 {
		threads.Put(api.ThreadRow{ID: api.ThreadID(fmt.Sprintf("thread_%02d", n)), Project: "docs", Caller: "anonymous",
			Questions: []api.QuestionRow{{ID: api.TurnID(fmt.Sprintf("turn_%02d", n)), Thread: api.ThreadID(fmt.Sprintf("thread_%02d", n)),
				Project: "docs", Caller: "anonymous", Question: "Why?", Asked: at, Ended: at}}})
		catalogtest.Soon(t, fmt.Sprintf("the other node counts %d questions", n+1), func() bool {
			b.Recount()
			days := catalogtest.Must(b.Days(t.Context(), insights.AnalyticsQuery{Project: "docs", From: at.Add(-time.Hour)}, time.UTC))(t)
			sum := 0
			for _, d := range days {
				sum += d.Questions
			}
			return sum == n+1
		})
	}
	if _, err := a.Totals(t.Context(), insights.AnalyticsQuery{Project: "docs", AsIs: true}); errors.Is(err, api.ErrUnavailable) {
		t.Error("the listing is not whole")
	}
}
