// Package failure sorts what goes wrong between Docent and a repository by what can be done about it, and gives it
// words that can be shown to people.
package failure

import (
	"errors"
	"fmt"
	"io/fs"
	"time"
)

// What can be done about an error.
var (
	// ErrMoved says that the branch has commits that the edits do not build on: read it again and repeat the edit.
	ErrMoved = errors.New("the branch has moved on")
	// ErrMisconfigured says that the code host refuses the project's address or credentials.
	ErrMisconfigured = errors.New("the project's source or code host is not set up correctly")
	// ErrTemporary says that trying again later may help.
	ErrTemporary = errors.New("the code host does not answer now")
	// ErrLost says that a branch does not hold what was published to it, and that nothing here does.
	ErrLost = errors.New("a published commit is lost")
	// ErrRefused says that an edit reaches for something that no edit may touch.
	ErrRefused = errors.New("the edit is refused")
	// ErrMergeConflict says that a pull request's files changed on the base branch too.
	ErrMergeConflict = errors.New("the pull request conflicts with its base branch")
)

// An Error is what a code host or a repository has against a request, as a sentence for the user. It wraps
// ErrMisconfigured if somebody has to change something first, ErrTemporary if trying again helps, and ErrLost
// if neither does.
type Error struct {
	Kind  error // ErrMisconfigured, ErrTemporary or ErrLost
	Say   string
	After time.Duration // for how long the host wants to be left alone; zero if it does not say

	Status   int    // of the host's answer; zero if there was none
	Words    string // the host's own, cleaned
	Declined bool   // a push that came through was not let onto its branch: it is protected
}

func (e *Error) Error() string { return e.Kind.Error() + ": " + e.Say }
func (e *Error) Unwrap() error { return e.Kind }

// Misconfigured is an Error of the kind ErrMisconfigured.
func Misconfigured(format string, args ...any) *Error {
	return &Error{Kind: ErrMisconfigured, Say: fmt.Sprintf(format, args...)}
}

// Declined reports whether a push was not let onto its branch.
func Declined(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Declined
}

// A ConflictError names the files for which a merge is refused. It wraps ErrMergeConflict.
type ConflictError struct{ Files []string }

func (e *ConflictError) Error() string { return ErrMergeConflict.Error() + ": " + Names(e.Files) }
func (e *ConflictError) Unwrap() error { return ErrMergeConflict }

// Reason is what went wrong with a file, without its name.
func Reason(err error) error {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe.Err
	}
	return err
}
