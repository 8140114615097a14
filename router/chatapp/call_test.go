package chatapp

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// What may have been done in spite of a failure is not done a second time, unless that does no harm.
func TestAFailureIsRepeatedOnlyIfThatDoesNoHarm(t *testing.T) {
	for _, c := range []struct {
		status     int
		repeatable bool
		sent       int
	}{{503, false, 1}, {503, true, 2}, {429, false, 2}, {400, true, 1}} {
		sent := 0
		chat := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			sent++
			w.WriteHeader(c.status)
		}))
		err := Call{Method: http.MethodPost, URL: chat.URL, Tries: 2, Repeatable: c.repeatable}.Do(t.Context())
		chat.Close()
		if err == nil || sent != c.sent {
			t.Errorf("%+v: sent %d times, %v", c, sent, err)
		}
	}
}
