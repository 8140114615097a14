package reports

import (
	"context"
	"log/slog"
	"time"

	"docent/actors/gaps"
	"docent/api"
	"docent/internal/task"
	"docent/persistence/catalog/insights"
	"docent/persistence/journal"
)

// A Catalog has the figures, and knows who wants reports.
type Catalog interface {
	Project(ctx context.Context, id api.ProjectID) (api.Project, error)
	Totals(ctx context.Context, q insights.AnalyticsQuery) (insights.QuestionTotals, error)
	SearchesWithoutResult(ctx context.Context, q insights.AnalyticsQuery) ([]insights.SearchCount, string, error)
	CitedPages(ctx context.Context, q insights.AnalyticsQuery) ([]insights.CitedPage, string, error)
	Gaps(ctx context.Context, project api.ProjectID, states ...api.GapState) ([]api.Gap, error)

	Webhooks(ctx context.Context, project api.ProjectID) ([]api.WebhookStatus, error)
	Event(ctx context.Context, project api.ProjectID, id string) (api.WebhookEvent, error)
}

// A Journal keeps the reports that were made.
type Journal interface {
	Load(stream string) (journal.Recovered, error)
	Append(ctx context.Context, a journal.Append) (last uint64, err error)
	Snapshot(stream string, seq uint64, state []byte)
}

// Topics are what the documentation lacks.
type Topics interface {
	Topics(ctx context.Context, project api.ProjectID, from, to time.Time) (gaps.Listing, error)
	SinceMerge(ctx context.Context, gap api.Gap) (gaps.Since, error)
	Follow(ctx context.Context) error
}

// Deps is what reports need of the outside. All of it is required but PublicURL.
type Deps struct {
	Catalog   Catalog
	Topics    Topics
	Journal   Journal
	Now       func() time.Time
	Log       *slog.Logger
	PublicURL string // where people reach the pages; reports have no links where it is empty
	Tasks     task.Starter
}
