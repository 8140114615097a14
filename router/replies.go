package router

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"docent/internal/gzipped"
	"docent/router/reqbody"
)

// body reads a request's body, which is JSON. The caller releases it.
func (s *Server) body(x *exchange, req *http.Request, limit int64) (raw []byte, release func(), err error) {
	raw, release, err = reqbody.JSON(x.ResponseWriter, req, limit, x)
	if err != nil {
		return nil, nil, err
	}
	if err := x.arrived(); err != nil {
		release()
		return nil, nil, err
	}
	return raw, release, nil
}

// decode reads what a request's body says.
func decode[T any](s *Server, x *exchange, req *http.Request, read func(raw []byte) (T, error)) (v T, err error) {
	return decodeUpTo(s, x, req, s.Bounds.BodyBytes, read)
}

// decodePrompt reads what a job is told: as many characters as it may be told, however they are written, unless the
// operator takes smaller bodies.
func decodePrompt(s *Server, x *exchange, req *http.Request, read func([]byte) (reqbody.Prompt, error)) (reqbody.Prompt,
	error) {
	limit := s.Bounds.BodyBytes
	if limit >= DefaultBounds().BodyBytes {
		limit = max(limit, reqbody.MaxPromptBody)
	}
	return decodeUpTo(s, x, req, limit, read)
}

func decodeUpTo[T any](s *Server, x *exchange, req *http.Request, limit int64, read func(raw []byte) (T, error)) (v T,
	err error) {
	raw, release, err := s.body(x, req, limit)
	if err != nil {
		return v, err
	}
	defer release()
	return read(raw)
}

// encode writes a resource.
func encode(x *exchange, status int, v any) error {
	body, err := marshal(v)
	if err != nil {
		return fmt.Errorf("encode the answer: %w", err)
	}
	write(x, status, "application/json", body)
	return nil
}

// marshal is json.Marshal that leaves <, > and & as they are: people read what is answered, and browsers take it for
// JSON alone.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// write sends an answer, compressed if the client takes that and it is worth it.
func write(x *exchange, status int, kind string, body []byte) {
	send(x, status, kind, gzipped.Answer(x.Header(), x.gzip, body))
}

func send(x *exchange, status int, kind string, body []byte) {
	h := x.Header()
	h.Set("Content-Type", kind)
	if h.Get("Cache-Control") == "" {
		h.Set("Cache-Control", "no-store")
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	x.deadline()
	x.WriteHeader(status)
	x.Write(body) // a caller that has gone is no error of ours
}

// timestamp is a time as the API shows it: RFC 3339, UTC, milliseconds.
type timestamp time.Time

func (t timestamp) MarshalJSON() ([]byte, error) {
	return time.Time(t).UTC().AppendFormat(make([]byte, 0, 26), `"2006-01-02T15:04:05.000Z"`), nil
}

func stamp(t *time.Time) *timestamp {
	if t == nil {
		return nil
	}
	s := timestamp(*t)
	return &s
}
