package router

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"mime"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"docent/api"
)

const (
	maxDepth    = 100 // of nested arrays and objects in a body
	maxProblems = 100 // listed in one answer
)

// A document is a request body that was read and found to be JSON. Its nodes are windows on it: they are not to be used
// once it was released.
type document struct {
	root    node
	raw     []byte
	release func()
}

// body reads the request's body as a JSON object. The caller releases it.
func (s *Server) body(x *exchange, req *http.Request) (document, error) {
	if err := wantJSON(req); err != nil {
		return document{}, err
	}
	raw, release, err := s.readAll(x, req, s.Bounds.BodyBytes)
	if err != nil {
		return document{}, err
	}
	root, err := parse(raw)
	if err != nil {
		release()
		return document{}, err
	}
	return document{root: root, raw: raw, release: release}, nil
}

// wantJSON refuses a body that says it is something else.
func wantJSON(req *http.Request) error {
	if enc := req.Header.Get("Content-Encoding"); enc != "" && !strings.EqualFold(enc, "identity") {
		return &mediaError{"the body must not be compressed: leave Content-Encoding out"}
	}
	header := req.Header.Get("Content-Type")
	if header == "" {
		return &mediaError{"the body must be JSON: send it with Content-Type: application/json"}
	}
	kind, params, err := mime.ParseMediaType(header)
	if err != nil || kind != "application/json" && !(strings.HasPrefix(kind, "application/") && strings.HasSuffix(kind, "+json")) {
		return &mediaError{"the body must be JSON: send it with Content-Type: application/json"}
	}
	if charset := params["charset"]; charset != "" && !strings.EqualFold(charset, "utf-8") && !strings.EqualFold(charset, "us-ascii") {
		return &mediaError{"the body must be UTF-8: leave the charset out of Content-Type"}
	}
	return nil
}

// readAll reads a body of at most limit bytes. What all requests hold in bodies at once is bounded too; room is taken as
// the body comes in, not as its sender announces it.
func (s *Server) readAll(x *exchange, req *http.Request, limit int64) ([]byte, func(), error) {
	if req.ContentLength > limit {
		return nil, nil, &sizeError{limit}
	}
	body := http.MaxBytesReader(x.ResponseWriter, req.Body, limit)
	size := int64(4096)
	if n := req.ContentLength; n >= 0 && n < size {
		size = n + 1 // one more, so that the end is seen without growing
	}
	held := int64(0)
	release := func() { s.bodyMemory.Add(-held) }
	hold := func(n int64) error {
		if s.bodyMemory.Add(n) > s.Bounds.BodyMemory {
			s.bodyMemory.Add(-n)
			s.metrics.refuse("body_memory")
			return &api.BusyError{Kind: api.ErrOverloaded, RetryAfter: time.Second}
		}
		held += n
		return nil
	}
	if err := hold(size); err != nil {
		return nil, nil, err
	}
	buf := make([]byte, 0, size)
	for {
		if len(buf) == cap(buf) {
			grown := min(2*int64(cap(buf)), limit+1)
			if err := hold(grown - int64(cap(buf))); err != nil {
				release()
				return nil, nil, err
			}
			bigger := make([]byte, len(buf), grown)
			copy(bigger, buf)
			buf = bigger
		}
		n, err := body.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		if err == io.EOF {
			// What comes now is the end of the connection, or the next request: that may take its time.
			http.NewResponseController(x.ResponseWriter).SetReadDeadline(time.Time{})
			return buf, release, nil
		}
		if err != nil {
			release()
			var tooLarge *http.MaxBytesError
			switch {
			case errors.As(err, &tooLarge):
				return nil, nil, &sizeError{limit}
			case errors.Is(err, os.ErrDeadlineExceeded):
				x.Header().Set("Connection", "close")
				return nil, nil, &syntaxError{"the body did not arrive in time"}
			case !errors.Is(err, io.ErrUnexpectedEOF) && req.Context().Err() != nil:
				return nil, nil, req.Context().Err()
			}
			return nil, nil, &syntaxError{"the body ends before its announced length"}
		}
	}
}

// parse checks that raw is one JSON value in UTF-8 that is not nested too deep.
func parse(raw []byte) (node, error) {
	trimmed := bytes.TrimLeft(raw, " \t\r\n")
	if len(trimmed) == 0 {
		return nil, &syntaxError{"the body is empty: send a JSON object"}
	}
	if !utf8.Valid(raw) {
		return nil, &syntaxError{"the body is not valid UTF-8"}
	}
	if bytes.HasPrefix(raw, []byte("\ufeff")) {
		return nil, &syntaxError{"the body begins with a byte order mark: leave it out"}
	}
	if depth(raw) > maxDepth {
		return nil, &syntaxError{fmt.Sprintf("the body is nested deeper than %d arrays and objects", maxDepth)}
	}
	if !json.Valid(raw) {
		var discard json.RawMessage
		var syntax *json.SyntaxError
		if err := json.Unmarshal(raw, &discard); errors.As(err, &syntax) {
			return nil, &syntaxError{fmt.Sprintf("the body is not valid JSON: %s at byte %d", syntax.Error(), syntax.Offset)}
		}
		return nil, &syntaxError{"the body is not valid JSON"}
	}
	return node(bytes.Trim(raw, " \t\r\n")), nil
}

// depth is how deep arrays and objects are nested. It holds for JSON; for anything else it is some number.
func depth(raw []byte) int {
	deepest, now, inString := 0, 0, false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			now++
			deepest = max(deepest, now)
		case c == '}' || c == ']':
			now--
		}
	}
	return deepest
}

// A node is one JSON value as it stands in a document that was found valid. Reading it makes no tree: what a request
// costs in memory does not grow with what it holds beside the fields that are read.
type node []byte

// is reports what the value is: '{' object, '[' array, '"' string, '0' number, 't' boolean, 'n' null; 0 where there is none.
func (n node) is() byte {
	if len(n) == 0 {
		return 0
	}
	switch c := n[0]; c {
	case '{', '[', '"', 'n':
		return c
	case 't', 'f':
		return 't'
	default:
		return '0'
	}
}

// kind is the value's type in words, for people.
func (n node) kind() string {
	switch n.is() {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "a string"
	case 't':
		return "a boolean"
	case 'n':
		return "null"
	case '0':
		return "a number"
	}
	return "nothing"
}

// members yields the members of an object in their order; none for another value.
func (n node) members(yield func(name string, value node) bool) {
	if n.is() != '{' {
		return
	}
	for i := space(n, 1); i < len(n) && n[i] == '"'; {
		end := skip(n, i)
		name := node(n[i:end]).text()
		i = space(n, space(n, end)+1) // the colon
		end = skip(n, i)
		if !yield(name, n[i:end]) {
			return
		}
		i = space(n, space(n, end)+1) // the comma
	}
}

// elements yields the elements of an array; none for another value.
func (n node) elements(yield func(i int, value node) bool) {
	if n.is() != '[' {
		return
	}
	for i, k := space(n, 1), 0; i < len(n) && n[i] != ']'; k++ {
		end := skip(n, i)
		if !yield(k, n[i:end]) {
			return
		}
		i = space(n, space(n, end)+1)
	}
}

// text is the string that the value stands for.
func (n node) text() string {
	inner := n[1 : len(n)-1]
	if bytes.IndexByte(inner, '\\') < 0 {
		return string(inner)
	}
	var s string
	if json.Unmarshal(n, &s) != nil {
		return "" // the document was found valid: cannot happen
	}
	return s
}

func space(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\t' || b[i] == '\r') {
		i++
	}
	return i
}

// skip is where the value that begins at i ends.
func skip(b []byte, i int) int {
	nested, start := 0, i
	for i < len(b) {
		switch b[i] {
		case '"':
			for i++; i < len(b) && b[i] != '"'; i++ {
				if b[i] == '\\' {
					i++
				}
			}
			i++
		case '{', '[':
			nested++
			i++
			continue
		case '}', ']':
			if nested == 0 {
				return i // the end of a number or word, just before its container's
			}
			nested--
			i++
		case ',', ':', ' ', '\n', '\t', '\r':
			if nested == 0 && i > start {
				return i
			}
			i++
			continue
		default:
			for i < len(b) && strings.IndexByte(",:]} \n\t\r", b[i]) < 0 {
				i++
			}
		}
		if nested == 0 {
			return i
		}
	}
	return min(i, len(b))
}

// problems collects what is wrong with a request, all of it.
type problems struct{ list []api.Problem }

func (p *problems) add(field, format string, args ...any) {
	if len(p.list) < maxProblems {
		p.list = append(p.list, api.Problem{Field: field, Message: fmt.Sprintf(format, args...)})
	}
}

func (p *problems) err() error {
	if len(p.list) == 0 {
		return nil
	}
	return &api.InvalidError{Problems: p.list}
}

// object refuses a body that is no object.
func (p *problems) object(n node) bool {
	if n.is() == '{' {
		return true
	}
	p.add("body", "must be a JSON object, not %s", n.kind())
	return false
}

// A length is how many characters a string may have.
type length struct {
	min, max int
	trim     bool // space around it does not count, and is taken off
	lines    bool // it is text of several lines, not a name
}

// required reads a string that must be there.
func (p *problems) required(field string, n node, l length) string {
	if n.is() == 0 {
		p.add(field, "is required: send a string of %d to %d characters", max(l.min, 1), l.max)
		return ""
	}
	return p.optional(field, n, l)
}

// optional reads a string that may be left out.
func (p *problems) optional(field string, n node, l length) string {
	switch n.is() {
	case 0:
		return ""
	case '"':
	default:
		p.add(field, "must be a string, not %s", n.kind())
		return ""
	}
	s := n.text()
	if l.trim {
		s = strings.TrimSpace(s)
	}
	switch count := utf8.RuneCountInString(s); {
	case count < l.min && count == 0:
		p.add(field, "must not be empty: send %d to %d characters", l.min, l.max)
	case count < l.min:
		p.add(field, "must have at least %d characters, and has %d", l.min, count)
	case count > l.max:
		p.add(field, "must have at most %d characters, and has %d: shorten it", l.max, count)
	case control(s, l.lines):
		p.add(field, "must not hold control characters: take them out")
	default:
		return s
	}
	return ""
}

// control reports whether a string holds characters that no text has. Text of several lines may hold all but NUL, since
// people paste what their terminals show; a name may hold none.
func control(s string, lines bool) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return r == 0 || !lines && (r < ' ' || r == 0x7f) })
}

// nullable reads a string that may be left out or null.
func (p *problems) nullable(field string, n node, l length) string {
	if n.is() == 'n' {
		return ""
	}
	return p.optional(field, n, l)
}

// whole reads a whole number that may be left out.
func (p *problems) whole(field string, n node, least, most, otherwise int) int {
	switch n.is() {
	case 0:
		return otherwise
	case '0':
	default:
		p.add(field, "must be a whole number from %d to %d, not %s", least, most, n.kind())
		return otherwise
	}
	v, err := strconv.ParseFloat(string(n), 64)
	if err != nil || v != math.Trunc(v) || v < float64(least) || v > float64(most) {
		p.add(field, "must be a whole number from %d to %d", least, most)
		return otherwise
	}
	return int(v)
}

// fraction reads a number that may be left out.
func (p *problems) fraction(field string, n node, least, most float64) float64 {
	switch n.is() {
	case 0:
		return 0
	case '0':
	default:
		p.add(field, "must be a number from %v to %v, not %s", least, most, n.kind())
		return 0
	}
	v, err := strconv.ParseFloat(string(n), 64)
	if err != nil || v < least || v > most {
		p.add(field, "must be a number from %v to %v", least, most)
		return 0
	}
	return v
}

// boolean reads a boolean that may be left out.
func (p *problems) boolean(field string, n node) bool {
	switch n.is() {
	case 0:
		return false
	case 't':
		return n[0] == 't'
	}
	p.add(field, "must be true or false, not %s", n.kind())
	return false
}

// strings reads an array of strings that may be left out or null.
func (p *problems) strings(field string, n node, most int, l length) []string {
	switch n.is() {
	case 0, 'n':
		return nil
	case '[':
	default:
		p.add(field, "must be an array of strings, not %s", n.kind())
		return nil
	}
	var list []string
	for i, e := range n.elements {
		if i == most {
			p.add(field, "must have at most %d entries", most)
			break
		}
		if v := p.required(field+"["+strconv.Itoa(i)+"]", e, l); v != "" {
			list = append(list, v)
		}
	}
	return list
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

// marshal is json.Marshal that leaves <, > and & as they are: people read what is answered, and browsers take it for JSON alone.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

func write(x *exchange, status int, kind string, body []byte) {
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
