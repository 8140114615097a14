package modeltest

import (
	"context"
	"fmt"
	"io"
	"net/http"
)

// A Transport answers within the process, so that time can be virtual.
type Transport func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f Transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// Response is an answer of a Transport: a stream of events, unless the header says otherwise.
func Response(status int, header map[string]string, body io.ReadCloser) *http.Response {
	h := http.Header{"Content-Type": {"text/event-stream"}}
	for k, v := range header {
		h.Set(k, v)
	}
	return &http.Response{
		StatusCode: status, Status: fmt.Sprint(status), Header: h, Body: body, ProtoMajor: 1, ProtoMinor: 1,
	}
}

// A Stalled is a body that says something and then nothing more until the request ends.
type Stalled struct {
	io.Reader
	Ctx context.Context
}

func (s Stalled) Read(p []byte) (int, error) {
	if n, err := s.Reader.Read(p); err == nil {
		return n, nil
	}
	<-s.Ctx.Done()
	return 0, s.Ctx.Err()
}

// Close implements io.Closer.
func (s Stalled) Close() error { return nil }
