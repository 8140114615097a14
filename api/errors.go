package api

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// A sentinel for each thing that a caller can do about an error. The edge maps each to one status and one code.
var (
	ErrInvalid      = errors.New("the request is not valid")
	ErrUnauthorized = errors.New("a valid API key is required")
	ErrForbidden    = errors.New("this key may not do that")
	ErrNotFound     = errors.New("not found")
	ErrConflict     = errors.New("the request conflicts with the current state")
	ErrLimited      = errors.New("a quota is used up")
	ErrOverloaded   = errors.New("the service is overloaded, try again shortly")
	ErrShuttingDown = errors.New("the service is shutting down, try again shortly")
	ErrUnavailable  = errors.New("the service cannot store this now, try again shortly")
)

// A Problem is one thing that is wrong with one field of a request.
type Problem struct {
	Field   string `json:"field"`
	Message string `json:"message"`
}

// An InvalidError lists everything that is wrong with a request, not just the first thing.
type InvalidError struct{ Problems []Problem }

func (e *InvalidError) Error() string {
	parts := make([]string, 0, len(e.Problems))
	for _, p := range e.Problems {
		parts = append(parts, p.Field+": "+p.Message)
	}
	return fmt.Sprintf("%v: %s", ErrInvalid, strings.Join(parts, "; "))
}

func (e *InvalidError) Unwrap() error { return ErrInvalid }

// A StateError refuses a command for a reason that a person can read. It wraps ErrConflict, ErrForbidden or
// ErrNotFound.
type StateError struct {
	Kind   error
	Reason string
}

func (e *StateError) Error() string { return e.Reason }
func (e *StateError) Unwrap() error { return e.Kind }

// A LimitError says which quota is used up and when the caller may try again.
type LimitError struct {
	// which of the limits, as in the RateLimit-Policy header: "project-hour", "key-month", "org-hour", "ip-day"
	Name       string
	Limit      int           // uses in a window
	Window     time.Duration // length of the window
	RetryAfter time.Duration // until at least one use is free again
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("the %s limit of %d uses is used up, retry in %v", e.Name, e.Limit, e.RetryAfter.Round(time.Second))
}

func (e *LimitError) Unwrap() error { return ErrLimited }

// A BusyError refuses work that was not accepted, with a hint when to come back. It wraps ErrOverloaded,
// ErrShuttingDown or ErrUnavailable.
type BusyError struct {
	Kind       error
	RetryAfter time.Duration
}

func (e *BusyError) Error() string { return e.Kind.Error() }
func (e *BusyError) Unwrap() error { return e.Kind }

// Missing says what was not found. It has the same words for what nobody made and for what belongs to somebody else.
func Missing(what string) error {
	return &StateError{Kind: ErrNotFound, Reason: "there is no such " + what}
}

// Named gives ErrNotFound the name of what was looked for, and leaves other errors alone.
func Named(err error, what string) error {
	var state *StateError
	if errors.Is(err, ErrNotFound) && !errors.As(err, &state) {
		return Missing(what)
	}
	return err
}
