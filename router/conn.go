package router

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"docent/api"
	"docent/router/peer"
)

// Listener makes what comes through l be answered as the API answers, even when net/http answers by itself. It is for a
// plain listener of the http.Server that was attached.
func (s *Server) Listener(l net.Listener) net.Listener {
	return s.listener(&countedListener{Listener: l, server: s, plain: true})
}

// listener is Listener for connections that are counted already.
func (s *Server) listener(l net.Listener) net.Listener { return &listener{l, s} }

type listener struct {
	net.Listener
	server *Server
}

func (l *listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &conn{Conn: c, server: l.server}, nil
}

// A conn is a connection as net/http has it. It puts net/http's own answers, to what that does not take for a
// request, into the API's form: net/http offers no other place for that.
type conn struct {
	net.Conn
	server *Server
	handed bool // a request is with the handler or being answered; of the goroutine that serves the connection
}

// NetConn is the connection below, for package sockets.
func (c *conn) NetConn() net.Conn { return c.Conn }

// CloseWrite lets net/http end a connection so that the client can read what it was answered.
func (c *conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

// Write puts what net/http says outside of any request, such as that it cannot read one, into the API's form.
func (c *conn) Write(b []byte) (int, error) {
	if !c.handed {
		if own := c.server.ownAnswer(b, c.RemoteAddr()); own != nil {
			if _, err := c.Conn.Write(own); err != nil {
				return 0, err
			}
			return len(b), nil
		}
	}
	return c.Conn.Write(b)
}

// connKey is the key of a request's conn.
type connKey struct{}

// handle notes that a request has come to the handler.
func handle(req *http.Request) {
	if c, ok := req.Context().Value(connKey{}).(*conn); ok {
		c.handed = true
	}
}

// attachConns makes the http.Server tell its conns what goes on.
func attachConns(server *http.Server) {
	server.DisableGeneralOptionsHandler = true // "OPTIONS *" is the API's to answer
	known := server.ConnContext
	server.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		if known != nil {
			ctx = known(ctx, c)
		}
		if own := connOf(c); own != nil {
			ctx = context.WithValue(ctx, connKey{}, own)
		}
		return ctx
	}
	state := server.ConnState
	server.ConnState = func(c net.Conn, now http.ConnState) {
		if state != nil {
			state(c, now)
		}
		if own := connOf(c); own != nil && now == http.StateIdle { // the answer is written
			own.handed = false
		}
	}
}

// connOf is the conn that net/http has, over TLS or not; nil if it speaks HTTP/2.
func connOf(c net.Conn) *conn {
	switch have := c.(type) {
	case *conn:
		return have
	case *secureConn:
		return &have.conn
	}
	return nil
}

// ownAnswer is the API's form of an answer that net/http gives by itself, nil if b is none. Of the request nothing
// is known, also not the id that the caller gave it.
func (s *Server) ownAnswer(b []byte, from net.Addr) []byte {
	line, text, ok := bytes.Cut(b, []byte("\r\n"))
	if !ok || !bytes.HasPrefix(line, []byte("HTTP/1.1 ")) || len(line) < len("HTTP/1.1 400") {
		return nil
	}
	status, err := strconv.Atoi(string(line[9:12]))
	if err != nil || status < 400 {
		return nil
	}
	_, text, _ = bytes.Cut(text, []byte("\r\n\r\n"))
	_, reason, _ := strings.Cut(string(text), ": ")
	return s.outsideAnswer(unread(status, reason), from)
}

// outsideAnswer is an answer to what is no request, as it goes over the connection.
func (s *Server) outsideAnswer(a answer, from net.Addr) []byte {
	now := time.Now()
	id := api.NewID(api.RequestPrefix, now)
	body, err := marshal(errorBody{Error: a.message, Message: a.message, Code: a.code, Limit: a.limit, Details: a.details, RequestID: id})
	if err != nil {
		return nil // strings only: cannot happen
	}
	h := http.Header{}
	h.Set("X-Request-Id", id)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	if a.retry != "" {
		h.Set("Retry-After", a.retry)
	}
	h.Set("Date", now.UTC().Format(http.TimeFormat))
	allowOrigin(h) // a page that sends too many cookies, say
	res := http.Response{StatusCode: a.status, ProtoMajor: 1, ProtoMinor: 1, Header: h, Close: true,
		ContentLength: int64(len(body)), Body: io.NopCloser(bytes.NewReader(body))}
	var out bytes.Buffer
	if err := res.Write(&out); err != nil {
		return nil // into memory: cannot happen
	}
	s.note(context.Background(), account{id: id, client: peer.Address(from.String()), began: now, route: "unknown",
		status: a.status, bytes: int64(len(body)), code: a.code})
	return out.Bytes()
}

// unread says why net/http did not take something for a request.
func unread(status int, reason string) answer {
	switch status {
	case http.StatusExpectationFailed:
		return refusal(status, "expectation_failed", "the header Expect can only be 100-continue: leave it out")
	case http.StatusRequestHeaderFieldsTooLarge:
		return refusal(status, "headers_too_large",
			"the headers of the request are larger than what is taken: send fewer or shorter ones, such as cookies")
	case http.StatusNotImplemented:
		return refusal(status, "not_implemented", "the header Transfer-Encoding can only be chunked")
	case http.StatusHTTPVersionNotSupported:
		return refusal(status, "version_not_supported", "the version of HTTP must be 1.0 or 1.1")
	}
	message := "the request is not HTTP that can be read"
	if reason != "" {
		message += ": " + reason
	}
	return answer{status: status, code: "invalid_request", message: message,
		details: []api.Problem{{Field: "request", Message: cmp.Or(reason, "is not HTTP that can be read")}}}
}
