package modeltest

import (
	"context"
	"fmt"
	"io"
	"net/http"

	"docent/internal/background"
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

// InProcess is a transport to a server within the process, with its faults: what it panics with breaks the connection.
func InProcess(server http.Handler) Transport {
	return func(r *http.Request) (*http.Response, error) {
		from, to := io.Pipe()
		w := &pipeWriter{header: http.Header{}, body: to, begun: make(chan struct{})}
		ended := make(chan struct{})
		background.Go("model/modeltest.InProcess", func() {
			defer close(ended)
			defer func() {
				broken := recover()
				if broken != nil && broken != http.ErrAbortHandler {
					panic(broken)
				}
				if broken != nil {
					_ = to.CloseWithError(io.ErrUnexpectedEOF)
					return
				}
				w.WriteHeader(http.StatusOK)
				_ = to.Close()
			}()
			server.ServeHTTP(w, r)
		})
		stop := context.AfterFunc(r.Context(), func() { _ = to.CloseWithError(r.Context().Err()) })
		select {
		case <-w.begun:
		case <-ended:
			select {
			case <-w.begun:
			default:
				stop()
				return nil, io.ErrUnexpectedEOF
			}
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
		return &http.Response{StatusCode: w.status, Status: fmt.Sprint(w.status), Header: w.header, ProtoMajor: 1,
			ProtoMinor: 1, Request: r, Body: &pipeBody{from, stop}}, nil
	}
}

// A pipeWriter is the server's side of an answer within the process.
type pipeWriter struct {
	header http.Header
	body   *io.PipeWriter
	status int
	begun  chan struct{} // closed with the head
}

// Header implements http.ResponseWriter.
func (w *pipeWriter) Header() http.Header { return w.header }

// WriteHeader implements http.ResponseWriter.
func (w *pipeWriter) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
		w.header = w.header.Clone()
		close(w.begun)
	}
}

// Write implements http.ResponseWriter.
func (w *pipeWriter) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.body.Write(p)
}

// Flush implements http.Flusher.
func (w *pipeWriter) Flush() { w.WriteHeader(http.StatusOK) }

type pipeBody struct {
	*io.PipeReader
	stop func() bool
}

// Close implements io.Closer.
func (b *pipeBody) Close() error {
	b.stop()
	return b.PipeReader.Close()
}

// Key is a key that does not change, as configurations of models ask for theirs.
func Key(secret string) func() string { return func() string { return secret } }
