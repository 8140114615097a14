// Package inprocess carries HTTP requests to a handler of this process, without a socket.
package inprocess

import (
	"context"
	"io"
	"net/http"
	"sync"

	"docent/internal/background"
)

// A Transport is an http.RoundTripper to a handler.
type Transport struct{ Handler http.Handler }

// RoundTrip serves the request and returns as soon as its answer begins. What is written after that comes through the
// body, so that a stream is read as it is written.
func (t Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	out, in := io.Pipe()
	w := &response{header: http.Header{}, body: in, began: make(chan struct{})}
	if req.Body == nil {
		req.Body = http.NoBody
	}
	served := make(chan struct{})
	background.Go("inprocess.RoundTrip", func() {
		defer close(served)
		defer func() {
			if v := recover(); v != nil { // the API ends a connection so when an answer cannot be completed
				w.WriteHeader(http.StatusInternalServerError)
				in.CloseWithError(io.ErrUnexpectedEOF)
				return
			}
			w.WriteHeader(http.StatusOK)
			in.Close()
		}()
		t.Handler.ServeHTTP(w, req)
	})
	select {
	case <-w.began:
	case <-req.Context().Done():
		out.CloseWithError(req.Context().Err())
		<-served
		return nil, req.Context().Err()
	}
	// A client that has canceled reads no more of an answer that has begun.
	stop := context.AfterFunc(req.Context(), func() { in.CloseWithError(req.Context().Err()) })
	return &http.Response{StatusCode: w.status, Status: http.StatusText(w.status), Proto: "HTTP/1.1", ProtoMajor: 1,
		ProtoMinor: 1, Header: w.header, Body: &body{out, stop}, ContentLength: -1, Request: req}, nil
}

// A body is read as it is written.
type body struct {
	*io.PipeReader
	stop func() bool // waits for a cancellation no more
}

func (b *body) Close() error {
	b.stop()
	return b.PipeReader.Close()
}

// A response is written by the API and read by the client.
type response struct {
	header http.Header
	body   *io.PipeWriter
	once   sync.Once
	began  chan struct{}
	status int
}

func (r *response) Header() http.Header { return r.header }

func (r *response) WriteHeader(status int) {
	if status < 200 {
		return
	}
	r.once.Do(func() {
		r.status = status
		r.header = r.header.Clone() // what the handler changes from now on is too late
		close(r.began)
	})
}

func (r *response) Write(b []byte) (int, error) {
	r.WriteHeader(http.StatusOK)
	return r.body.Write(b)
}

// Flush is there for streams: what was written has arrived already.
func (r *response) Flush() { r.WriteHeader(http.StatusOK) }
