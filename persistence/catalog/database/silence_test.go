package database

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// logged takes what is written to a log, from any goroutine.
type logged chan string

func (l logged) Write(p []byte) (int, error) {
	l <- string(p)
	return len(p), nil
}

func TestADatabaseThatSaysNothingIsToldOfAndThenRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := make(logged, 8)
		c := &DB{Log: slog.New(slog.NewTextHandler(log, nil))}
		began := time.Now()
		ended := make(chan error, 1)
		go func() {
			ended <- c.awaitAnswer(t.Context(), "db:5432", func(ctx context.Context) (io.Closer, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			})
		}()
		time.Sleep(silenceTold - time.Nanosecond)
		synctest.Wait()
		if len(log) > 0 {
			t.Errorf("it is told of at once: %s", <-log)
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if line := <-log; !strings.Contains(line, "waiting for the database, which says nothing") || !strings.Contains(line, "db:5432") {
			t.Errorf("after %s the log has %q", time.Since(began), line)
		}
		if told := time.Since(began); told != silenceTold {
			t.Errorf("it is told of after %s", told)
		}
		err := <-ended
		if err == nil || !strings.Contains(err.Error(), "PostgreSQL at db:5432 accepts no connection within 1m0s: look at catalog_dsn") {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
		if took := time.Since(began); took != silenceEnded {
			t.Errorf("it ended after %s", took)
		}
	})
}

func TestADatabaseThatRefusesIsNotWaitedFor(t *testing.T) {
	c := &DB{Log: slog.New(slog.DiscardHandler)}
	err := c.awaitAnswer(t.Context(), "db:5432", func(context.Context) (io.Closer, error) { return nil, errors.New("refused") })
	if err != nil { // what connects next tells
		t.Error(err)
	}
}
