package router

import (
	"bufio"
	"bytes"
	"context"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"docent/api"
)

// A door turns questions away before net/http reads them, while the admission is full: past saturation refusing must not be
// what the server does. What it answers is what the router would answer to the same request, byte for byte but for the time
// and the id, and it is counted and logged alike.
//
// It answers a request only where it knows for certain that the bytes it has just read are one whole request, that nothing
// went before and that nothing of an answer is still to be written. net/http shows it: once the answer before is written whole,
// it calls a connection idle, sets the time that it may be so, and waits for the first bytes of the next request if it has none yet,
// before it sets the time for reading that. A read between those two begins a request. So does the first read of a
// connection. In both cases the buffer that is read into is an empty one, which shows in its room. Whatever else comes (a
// request in pieces, one that was sent ahead, one with anything unusual in its head) goes to net/http unchanged.
//
// Connections of a listener that TLS lies upon are never at this boundary: net/http names the state of the TLS connection.
type door struct {
	server  *Server
	idle    time.Duration // that a connection may wait for its next request; 0 is for ever
	heading time.Duration // that a request's head may take; 0 is for ever
	open    atomic.Bool   // it may turn away
	targets []target
	says    refusalText
}

// A target is an operation whose requests the door may turn away.
type target struct {
	pattern string
	parts   []string // of the pattern; empty for a parameter
}

func newDoor(s *Server) *door {
	d := &door{server: s}
	for _, r := range s.routes {
		if r.early() {
			t := target{pattern: r.pattern, parts: strings.Split(r.pattern[1:], "/")}
			for i, part := range t.parts {
				if strings.HasPrefix(part, ":") {
					t.parts[i] = ""
				}
			}
			d.targets = append(d.targets, t)
		}
	}
	d.says = s.refusalText()
	return d
}

// attach tells the door of the states of the server's connections.
func (d *door) attach(server *http.Server) {
	d.idle = or(server.IdleTimeout, server.ReadTimeout)
	d.heading = or(server.ReadHeaderTimeout, server.ReadTimeout)
	// net/http counts the time of a whole request from when it began to wait for the connection's first one.
	d.open.Store(server.ReadTimeout <= 0)
	before := server.ConnState
	server.ConnState = func(c net.Conn, state http.ConnState) {
		if before != nil {
			before(c, state)
		}
		if e, ok := c.(*entry); ok {
			e.enter(state)
		}
	}
}

// entry lets questions that come through c be turned away at the door.
func (d *door) entry(c *conn) net.Conn { return &entry{conn: c, door: d} }

// An entry is a connection as net/http sees it.
type entry struct {
	*conn
	door *door

	// Of the goroutine that serves the connection, which waits for whoever else reads from it.
	stage  stage
	room   int       // of net/http's buffer
	turned bool      // somebody was turned away since net/http set the time to wait
	until  time.Time // that writing may take; zero where nothing bounds it
	input  *input    // once something was to be read
	place  *place    // of the request that was let in last, until the router takes it
	body   []byte    // of the request that was read last, where it is a question and there whole
}

// A stage is where net/http is with a connection.
type stage uint8

const (
	within stage = iota // a request or its answer
	fresh               // nothing was read yet
	idle                // the last answer is written
	begins              // the same, and the next read begins a request
)

// enter is told of the connection's states.
func (e *entry) enter(state http.ConnState) {
	switch state {
	case http.StateNew:
		e.stage = fresh
	case http.StateIdle:
		e.stage, e.body = idle, nil
	}
	if state != http.StateActive && e.place != nil {
		e.place.leave() // net/http has answered the request by itself
		e.place = nil
	}
}

func (e *entry) SetReadDeadline(t time.Time) error {
	switch e.stage {
	case idle:
		e.stage = begins
	case begins:
		e.stage = within // of the next request something is there already
	}
	return e.TCPConn.SetReadDeadline(t)
}

// whole is the body of a request that was read last, where all of it is there; nil otherwise.
func (e *entry) whole(req *http.Request) []byte {
	if e == nil || int64(len(e.body)) != req.ContentLength {
		return nil
	}
	return e.body
}

// taken gives up the place of the request that was let in last.
func (e *entry) taken() *place {
	p := e.place
	e.place = nil
	return p
}

func (e *entry) Read(b []byte) (int, error) {
	if e.stage == within && len(e.read) == 0 {
		return e.receive(b)
	}
	return e.first(b)
}

// first is a read that begins a request.
func (e *entry) first(b []byte) (int, error) {
	if e.room == 0 {
		e.room = len(b)
	}
	if len(e.read) > 0 {
		n := copy(b, e.read)
		e.read = e.read[n:]
		if n = e.skip(b, n); n > 0 {
			e.stage = within
			return n, nil
		}
	}
	for {
		n, err := e.receive(b)
		if n > 0 && err == nil {
			if n = e.skip(b, n); n == 0 {
				continue
			}
		}
		if err == nil && len(b) == e.room && e.stage != idle {
			if q, ok := e.door.plain(b[:n]); ok {
				if e.door.turnsAway(e, b[:n], &q) {
					continue
				}
				e.body = append([]byte(nil), q.body...)
			}
		}
		e.stage = within
		if e.turned {
			e.turned = false
			e.rest(err)
		}
		return n, err
	}
}

// rest lets net/http go on as if nobody had been turned away.
func (e *entry) rest(err error) {
	if !e.until.IsZero() {
		e.until = time.Time{}
		e.SetWriteDeadline(time.Time{})
	}
	if err == nil && e.door.heading > 0 {
		e.TCPConn.SetReadDeadline(time.Now().Add(e.door.heading)) // the rest of a head must not take as long as a client may be idle
	}
}

// turnsAway answers what was read, which is a question, if there is no room.
func (d *door) turnsAway(e *entry, b []byte, q *plain) bool {
	s := d.server
	if !s.admission.shut.Load() || !d.open.Load() || s.isDraining() {
		return false
	}
	began := time.Now()
	p, err := s.admission.wait(context.Background())
	if err == nil {
		e.place = p
		return false
	}
	s.queued(err)
	a := account{began: began, method: http.MethodPost, route: q.target.pattern, status: http.StatusServiceUnavailable, code: d.says.code, err: err}
	if a.id = string(q.id); !sane(a.id) {
		a.id = api.NewID(api.RequestPrefix, began)
	}
	if s.logs(context.Background(), &a) {
		a.client = d.client(e, b)
	}
	space := s.spaces.Get().(*workspace)
	space.bytes = d.says.append(space.bytes[:0], a.id, err, began)
	if spare := s.Bounds.WriteTimeout / 4; e.until.Sub(began) < s.Bounds.WriteTimeout {
		e.until = began.Add(s.Bounds.WriteTimeout + spare)
		e.SetWriteDeadline(e.until)
	}
	a.bytes = int64(d.says.length(a.id))
	s.note(context.Background(), a)
	_, err = e.TCPConn.Write(space.bytes)
	s.spaces.Put(space)
	e.turned = true
	if err != nil {
		e.Close() // the next read says so
		return true
	}
	if d.idle > 0 {
		e.TCPConn.SetReadDeadline(began.Add(d.idle))
	}
	return true
}

// client is who sent the request, for the log.
func (d *door) client(e *entry, b []byte) (addr netip.Addr) {
	req, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(b)))
	if err != nil {
		return addr
	}
	req.RemoteAddr = e.RemoteAddr().String()
	addr, _ = d.server.peer(req)
	return addr
}

// plain is what the door must know of a request of the plain form.
type plain struct {
	target *target
	id     []byte // that the caller gave it
	body   []byte
}

var headEnd = []byte("\r\n\r\n")

// plain reads a request. It is false for whatever is not exactly one request of the plainest form for one of the
// targets.
func (d *door) plain(b []byte) (q plain, ok bool) {
	const method, version = "POST ", " HTTP/1.1"
	end := bytes.Index(b, headEnd)
	if end < 0 || string(b[:min(len(method), len(b))]) != method {
		return q, false
	}
	head := b[:end+2]
	q.body = b[end+len(headEnd):]
	line, head, _ := bytes.Cut(head, headEnd[:2])
	path, ok := bytes.CutSuffix(line[len(method):], []byte(version))
	if !ok {
		return q, false
	}
	if q.target = d.find(path); q.target == nil {
		return q, false
	}
	hosts, length, ids := 0, -1, 0
	for len(head) > 0 {
		line, head, _ = bytes.Cut(head, headEnd[:2])
		at := bytes.IndexByte(line, ':')
		if at <= 0 {
			return q, false
		}
		name, value := line[:at], bytes.Trim(line[at+1:], " \t")
		for _, c := range name {
			if !letters[c] && !digits[c] && c != '-' && c != '_' {
				return q, false
			}
		}
		for _, c := range value {
			if (c < ' ' || c > '~') && c != '\t' {
				return q, false
			}
		}
		switch len(name) {
		case len("Host"):
			if is(name, "Host") {
				hosts++
				for _, c := range value {
					if !letters[c] && !digits[c] && c != '-' && c != '.' && c != ':' && c != '[' && c != ']' {
						return q, false
					}
				}
			}
		case len("Expect"):
			if is(name, "Expect") {
				return q, false
			}
		case len("Upgrade"): // and Trailer
			if is(name, "Upgrade") || is(name, "Trailer") {
				return q, false
			}
		case len("Connection"):
			if is(name, "Connection") && !is(value, "keep-alive") {
				return q, false
			}
		case len("X-Request-Id"):
			if is(name, "X-Request-Id") {
				ids++
				q.id = value
			}
		case len("Content-Length"):
			if is(name, "Content-Length") {
				if length >= 0 || len(value) == 0 || len(value) > 9 {
					return q, false
				}
				length = 0
				for _, c := range value {
					if !digits[c] {
						return q, false
					}
					length = 10*length + int(c-'0')
				}
			}
		case len("Transfer-Encoding"):
			if is(name, "Transfer-Encoding") {
				return q, false
			}
		}
	}
	return q, hosts == 1 && ids <= 1 && len(q.body) == max(length, 0)
}

func is(b []byte, s string) bool { return strings.EqualFold(string(b), s) }

// letters and digits of ASCII.
var letters, digits = func() (letters, digits [256]bool) {
	for c := range 26 {
		letters['a'+c], letters['A'+c] = true, true
	}
	for c := range 10 {
		digits['0'+c] = true
	}
	return
}()

// find is the operation that a path names; nil where there is none that the door turns away, and where the path
// has anything in it that can be written in more than one way.
func (d *door) find(path []byte) *target {
	for _, c := range path {
		if !letters[c] && !digits[c] && c != '/' && c != '-' && c != '_' && c != '.' {
			return nil
		}
	}
	if len(path) == 0 || path[0] != '/' {
		return nil
	}
	for i := range d.targets {
		if d.targets[i].has(path[1:]) {
			return &d.targets[i]
		}
	}
	return nil
}

func (t *target) has(path []byte) bool {
	for i, want := range t.parts {
		part, rest, more := bytes.Cut(path, []byte("/"))
		if more != (i < len(t.parts)-1) || len(part) == 0 || want != "" && string(part) != want {
			return false
		}
		if want == "" && (string(part) == "." || string(part) == "..") {
			return false
		}
		path = rest
	}
	return true
}

// A refusalText is the answer to a request that is turned away, as far as it is always the same.
type refusalText struct {
	code          string
	fields        []field // of the head, in the order of their names
	before, after string  // the request's id in the body
}

type field struct{ name, value string }

// refusalText has the router refuse a request, and keeps what it said.
func (s *Server) refusalText() refusalText {
	const id = "the-id-of-the-request"
	said := &said{header: http.Header{}}
	x := &exchange{ResponseWriter: said, id: id}
	x.begin()
	allowOrigin(said.header)
	s.fail(x, new(http.Request), &api.BusyError{Kind: api.ErrOverloaded})
	t := refusalText{code: x.code}
	for name := range said.header {
		t.fields = append(t.fields, field{name, said.header.Get(name)})
	}
	slices.SortFunc(t.fields, func(a, b field) int { return strings.Compare(a.name, b.name) })
	t.before, t.after, _ = strings.Cut(said.body.String(), id)
	return t
}

// length is that of the body.
func (t *refusalText) length(id string) int { return len(t.before) + len(id) + len(t.after) }

// append writes the answer.
func (t *refusalText) append(b []byte, id string, err error, now time.Time) []byte {
	b = append(b, "HTTP/1.1 503 Service Unavailable\r\n"...)
	for i := range t.fields {
		f := &t.fields[i]
		b = append(append(b, f.name...), ": "...)
		switch f.name {
		case "Content-Length":
			b = strconv.AppendInt(b, int64(t.length(id)), 10)
		case "Retry-After":
			b = append(b, seconds(retryAfter(err))...)
		case "X-Request-Id":
			b = append(b, id...)
		default:
			b = append(b, f.value...)
		}
		b = append(b, "\r\n"...)
	}
	b = append(b, "Date: "...)
	b = now.UTC().AppendFormat(b, http.TimeFormat)
	b = append(b, "\r\n\r\n"...)
	return append(append(append(b, t.before...), id...), t.after...)
}

// said is a response that goes nowhere.
type said struct {
	header http.Header
	body   bytes.Buffer
}

func (s *said) Header() http.Header         { return s.header }
func (s *said) WriteHeader(int)             {}
func (s *said) Write(b []byte) (int, error) { return s.body.Write(b) }
