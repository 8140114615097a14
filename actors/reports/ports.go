package reports

import (
	"context"
	"log/slog"
	"time"

	"docent/actors/gaps"
	"docent/api"
	"docent/internal/outbound"
	"docent/internal/task"
	"docent/persistence/catalog/insights"
)

// A Catalog has the figures, and keeps what is to be delivered.
type Catalog interface {
	Project(ctx context.Context, id api.ProjectID) (api.Project, error)
	Totals(ctx context.Context, q insights.AnalyticsQuery) (insights.QuestionTotals, error)
	SearchesWithoutResult(ctx context.Context, q insights.AnalyticsQuery) ([]insights.SearchCount, string, error)
	CitedPages(ctx context.Context, q insights.AnalyticsQuery) ([]insights.CitedPage, string, error)
	Gaps(ctx context.Context, project api.ProjectID, states ...api.GapState) ([]api.Gap, error)

	ReportHook(ctx context.Context, project api.ProjectID) (api.ReportHook, error)
	ReportHooks(ctx context.Context) ([]api.ReportHook, error)
	SetReportHook(ctx context.Context, h api.ReportHook) error
	Report(ctx context.Context, id string) (api.ReportDelivery, error)
	AddReport(ctx context.Context, d api.ReportDelivery) (added bool, err error)
	SaveReport(ctx context.Context, d api.ReportDelivery) error
	DueReports(ctx context.Context, now time.Time) (due []api.ReportDelivery, next time.Time, err error)
}

// Topics are what the documentation lacks.
type Topics interface {
	Topics(ctx context.Context, project api.ProjectID, from, to time.Time) (gaps.Listing, error)
	SinceMerge(ctx context.Context, gap api.Gap) (gaps.Since, error)
	Follow(ctx context.Context) error
}

// Secrets are the stored ones, by their names.
type Secrets interface {
	Read(name string) (string, error)
}

// Deps is what reports need of the outside. All of it is required but PublicURL.
type Deps struct {
	Catalog   Catalog
	Topics    Topics
	Secrets   Secrets
	Now       func() time.Time
	Log       *slog.Logger
	PublicURL string          // where people reach the pages; reports have no links where it is empty
	Targets   outbound.Policy // where reports may go: the rule of the other webhooks
	Tasks     task.Starter
}
