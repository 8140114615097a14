// Command docent serves an agent that edits documentation and an assistant that answers from it, and is the client
// and the operator's tool for both.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// Exit statuses that scripts rely on.
const (
	exitFailed = 1 // it failed and said why
	exitUsage  = 2 // the command line cannot be understood
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	command := newRootCommand()
	err := command.ExecuteContext(ctx)
	if err == nil {
		return
	}
	fmt.Fprintln(os.Stderr, "docent:", err)
	var usage *usageError
	if errors.As(err, &usage) {
		os.Exit(exitUsage)
	}
	os.Exit(exitFailed)
}
