package server

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"
)

// What runs in the background, as the retention of threads, has ended before the journal that it reads is closed.
func TestWhatRunsInTheBackgroundEndsBeforeTheStoresClose(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := &Server{Log: slog.New(slog.NewTextHandler(io.Discard, nil))}
		closed, reading := false, false
		a.closers = append(a.closers, func() error {
			closed = true
			if reading {
				return errors.New("the journal is closed while it is read")
			}
			return nil
		})
		reading = true
		a.background(func(ctx context.Context) {
			<-ctx.Done()
			time.Sleep(time.Second) // in the middle of the journal
			reading = false
		})
		if err := a.Close(); err != nil || !closed {
			t.Error(err, closed)
		}
	})
}
