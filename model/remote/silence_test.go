package remote

import (
	"testing"
	"testing/synctest"
	"time"
)

// A process that was stopped finds the timer due when it wakes, and what came meanwhile still unread: it has to get to read it.
func TestAProcessThatSleptDoesNotTakeItsProviderForSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := time.Time{}
		s := &silence{end: func() { ended = time.Now() }}
		began := time.Now()
		s.start(8 * time.Second)
		time.Sleep(7100 * time.Millisecond)
		s.mu.Lock()
		s.due = s.due.Add(-20 * time.Second) // as one that wakes sees it
		s.mu.Unlock()
		time.Sleep(8500 * time.Millisecond)
		s.stop() // what came meanwhile was read
		time.Sleep(time.Minute)
		if !ended.IsZero() {
			t.Fatalf("the provider was silent after %v, in which something was read", ended.Sub(began))
		}

		began = time.Now()
		s.start(8 * time.Second)
		time.Sleep(time.Minute)
		s.stop()
		if got := ended.Sub(began); got != 8*time.Second {
			t.Fatalf("silence was noticed after %v, want 8s", got)
		}
	})
}
