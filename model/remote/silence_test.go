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
		time.Sleep(7500 * time.Millisecond) // the timer has fired once
		s.stop()                            // something was read
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
