package harness

import (
	"context"
	"testing"
	"time"

	"docent/bench/lab"
	"docent/internal/backoff"
)

// Until waits for something that the server does in its own time.
func Until(t testing.TB, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Minute); !done(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within five minutes: %s", what)
		}
	}
}

// untilReady waits until a server answers that it is ready.
func untilReady(url string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	for {
		_, err := lab.Get(ctx, url+"/readyz")
		if err == nil || backoff.Sleep(ctx, 10*time.Millisecond) != nil {
			return err
		}
	}
}
