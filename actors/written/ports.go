package written

import (
	"context"
	"log/slog"
	"time"

	"docent/api"
	"docent/internal/task"
	"docent/model/questions"
	"docent/search"
)

// Deps is what a Writer needs of the outside. All of it is required but the bounds.
type Deps struct {
	Catalog Catalog
	Library Library
	Models  questions.Models
	Model   string // that writes, by its name in the configuration
	// What all indexes together may use in a day (UTC): tokens, and millionths of a US dollar by the configured prices.
	// What is 0 bounds nothing.
	DayTokens, DayCost int64
	Tasks              task.Starter
	Now                func() time.Time
	Log                *slog.Logger
}

// A Catalog keeps the questions, and what they cost.
type Catalog interface {
	Projects(ctx context.Context) ([]api.Project, error)
	WrittenQuestions(ctx context.Context, keys []string) ([]api.WrittenSection, error)
	UseWritten(ctx context.Context, keys []string) error
	SweepWritten(ctx context.Context) error
	KeepWritten(ctx context.Context, index api.ProjectID, w api.WrittenSection, tokens, cost int64) error
	WrittenState(ctx context.Context, index api.ProjectID) (api.WrittenState, error)
	ChangeWrittenState(ctx context.Context, index api.ProjectID, change func(*api.WrittenState)) error
}

// A Library has the sections of the indexes.
type Library interface {
	Generation(index api.ProjectID) string
	Sections(ctx context.Context, index api.ProjectID, longest, some int,
		lacking func(all []search.SectionKey) ([]search.SectionKey, error), do func([]search.SectionText) error) (string, error)
	Reopen(index api.ProjectID) error
}
