package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"docent/api/client"
)

// Exit statuses that scripts rely on.
const (
	ExitFailed = 1 // it failed and said why
	ExitUsage  = 2 // the command line cannot be understood

	// Of commands that wait for a job which has ended well, by its outcome; 0 where pages were changed.
	ExitNothingToDo   = 3
	ExitNotUnderstood = 4
	ExitNeedsDetail   = 5

	ExitDocsConcerned = 6 // pages are concerned by a change of code
)

// A statusError ends the command with an exit status of its own.
type statusError struct {
	status int
	err    error
}

// WithStatus ends the command with an exit status of its own.
func WithStatus(status int, err error) error { return &statusError{status, err} }

func (e *statusError) Error() string { return e.err.Error() }

func (e *statusError) Unwrap() error { return e.err }

// ExitStatus is what the command's error means for scripts.
func ExitStatus(err error) int {
	var usage *usageError
	var address *client.AddressError
	var status *statusError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &usage), errors.As(err, &address):
		return ExitUsage
	case errors.As(err, &status):
		return status.status
	}
	return ExitFailed
}

// A usageError says that the command line cannot be understood.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }

func (e *usageError) Unwrap() error { return e.err }

// Usagef says what cannot be understood of the command line.
func Usagef(format string, args ...any) error { return &usageError{fmt.Errorf(format, args...)} }

// Required says which of the named flags are missing.
func Required(cmd *cobra.Command, flags ...string) error {
	var missing []string
	for _, name := range flags {
		if f := cmd.Flags().Lookup(name); f != nil && f.Value.String() == "" {
			missing = append(missing, "--"+name)
		}
	}
	if len(missing) > 0 {
		return Usagef("%s needs %s; see '%s --help'", CommandName(cmd), strings.Join(missing, ", "), cmd.CommandPath())
	}
	return nil
}

// PrintJSON writes v as one line.
func PrintJSON(w io.Writer, v any) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(v)
}
