// Command docent serves an agent that edits documentation and an assistant that answers from it, and is the client and
// the operator's tool for both.
//
// Each command has a file of its own, named as the command: what it takes, what it has done, and what it prints. That
// is why there are more than twenty. Where a command's work is done by the process that serves the data directory, the
// file has the operation as well, and operations.go lists it by its name. Beside them stand the settings (config.go,
// validate.go), the wiring of all rooms (serve.go, stores.go), and what several commands share (operator.go,
// arguments.go). What a command does belongs into a room: automation, backup, ingest, retention and the others.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"docent/api"
	"docent/client"
)

// Exit statuses that scripts rely on.
const (
	exitFailed = 1 // it failed and said why
	exitUsage  = 2 // the command line cannot be understood

	// Of commands that wait for a job which has ended well, by its outcome; 0 where pages were changed.
	exitNothingToDo   = 3
	exitNotUnderstood = 4
	exitNeedsDetail   = 5
)

// A statusError ends the command with an exit status of its own.
type statusError struct {
	status int
	err    error
}

func (e *statusError) Error() string { return e.err.Error() }
func (e *statusError) Unwrap() error { return e.err }

// exitStatus is what the command's error means for scripts.
func exitStatus(err error) int {
	var usage *usageError
	var address *client.AddressError
	var status *statusError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &usage), errors.As(err, &address):
		return exitUsage
	case errors.As(err, &status):
		return status.status
	}
	return exitFailed
}

// A program is docent with what is no setting of it: a test of the whole program puts in its own.
type program struct {
	now            func() time.Time  // time.Now where nil
	beforeIndexing func(api.Project) // see ingest.Deps
}

// configured puts what is no setting beside the settings.
func (p program) configured(c Config) Config {
	if p.now != nil {
		c.now = p.now
	}
	c.beforeIndexing = p.beforeIndexing
	return c
}

func main() { run(program{}) }

func run(prog program) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	command := newRootCommand(prog)
	err := command.ExecuteContext(ctx)
	if err == nil {
		return
	}
	fmt.Fprintln(os.Stderr, "docent:", err)
	os.Exit(exitStatus(err))
}
