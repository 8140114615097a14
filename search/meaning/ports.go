package meaning

import (
	"context"
	"time"
)

// An Embedder turns texts into vectors.
type Embedder interface {
	// Model says what makes the vectors of sections.
	Model() Model
	// Sections gives a vector for each text, in their order. It may take long, and tries again by itself.
	Sections(ctx context.Context, texts []string) ([][]float32, error)
	// Question gives the vector of a question within the time that a reader waits.
	Question(ctx context.Context, text string) ([]float32, error)
	// Like is the same endpoint asked for another model: for questions, while only that model's vectors are there.
	Like(m Model) Embedder
	// Batch is how many texts one request may have.
	Batch() int
}

// A Later is an embedder's error that says when it is worth asking again, and why there is nothing now in a word or two:
// Timeout, Unavailable or OverBudget.
type Later struct {
	After time.Duration // 0 if it is not known
	Why   string
	Err   error
}

// Why an embedder gives no vector.
const (
	Timeout     = "timeout"
	Unavailable = "unavailable"
	OverBudget  = "over budget"
)

func (e *Later) Error() string { return e.Err.Error() }
func (e *Later) Unwrap() error { return e.Err }
