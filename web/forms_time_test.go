package web_test

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
)

// A slow is a body that comes too slowly, as a connection's reader says it.
type slow struct{}

func (slow) Read([]byte) (int, error) {
	inner := &net.TCPAddr{IP: net.IPv4(10, 1, 2, 3), Port: 33525}
	return 0, &net.OpError{Op: "read", Net: "tcp", Source: inner, Addr: inner, Err: os.ErrDeadlineExceeded}
}

func TestAFormThatDoesNotArriveTellsNoAddressOfTheServers(t *testing.T) {
	t.Parallel()
	h := build(t)
	for name, body := range map[string]io.Reader{"slow": slow{}, "broken off": io.MultiReader(strings.NewReader("key=x"), slow{}),
		"ended": &failing{io.ErrUnexpectedEOF}} {
		req := httptest.NewRequest(http.MethodPost, "/login", body)
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		w := httptest.NewRecorder()
		h.serve(w, req)
		if text := w.Body.String(); w.Code != 400 || strings.Contains(text, "10.1.2.3") ||
			!strings.Contains(text, "did not arrive whole") {
			t.Errorf("%s: %d %s", name, w.Code, text)
		}
	}
}

type failing struct{ err error }

func (f *failing) Read([]byte) (int, error) { return 0, f.err }
