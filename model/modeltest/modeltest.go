// Package modeltest plays the providers of language models: one HTTP server that speaks OpenAI's chat completions and
// Anthropic's messages, streamed, from scripts, with the faults that the real ones have. It is as strict as they are
// about what a conversation may look like, so that a conversation that it takes is one that they take.
//
// It serves tests within their process (as a handler) and as a process of its own (Main), where it outlives the kills
// of what is tested.
package modeltest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A Script is what is said in conversations whose first or last words of the user contain Match; an empty Match is in
// all. Each conversation begins at the first step; it is known by the user's first words, so that two of the same
// beginning share their progress.
type Script struct {
	Match  string `json:"match,omitempty"`
	Shared bool   `json:"shared,omitempty"` // all conversations together go through the steps once
	Steps  []Step `json:"steps"`
}

// A Step is one answer, or one fault in place of one. Each request takes the next; a request that repeats the key of
// one that was answered gets the same answer again, and the last step is taken again and again.
type Step struct {
	Text   string `json:"text,omitempty"`
	Calls  []Call `json:"calls,omitempty"`
	Reason string `json:"reason,omitempty"` // in OpenAI's words: "stop", "tool_calls", "length"; what fits if empty

	Fault      string `json:"fault,omitempty"`
	RetryAfter string `json:"retryAfter,omitempty"` // header of a fault that is a status
	Times      int    `json:"times,omitempty"`      // requests that meet the fault before the next step; default 1

	Delay time.Duration `json:"delay,omitempty"` // before anything is answered
	Pace  time.Duration `json:"pace,omitempty"`  // between two pieces
	Hold  string        `json:"hold,omitempty"`  // answered only when Release was called with this word
}

// A Call is a tool's name and its arguments, which need be neither known nor JSON.
type Call struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// Faults of a step, beside the numbers of HTTP statuses ("429", "500", "502", "503", "529", ...).
const (
	Drop       = "drop"       // the request is read and taken, then the connection ends without an answer
	Stall      = "stall"      // the answer begins, then nothing more comes while the client waits
	Cut        = "cut"        // the connection breaks in the middle of the answer
	Unfinished = "unfinished" // the stream ends properly, but without a reason
	Error      = "error"      // an error within the stream
	Garbage    = "garbage"    // a line of the stream that is no JSON
	Page       = "page"       // a web page with status 200
	Refusal    = "refusal"    // the model declines
	TooLong    = "too_long"   // the conversation does not fit the window
	Empty      = "empty"      // an answer without words and calls
)

// Faults lists those that an HTTP client can meet.
func Faults() []string {
	return []string{
		"429", "500", "502", "503", "529", Drop, Stall, Cut, Unfinished, Error, Garbage, Page, Refusal, TooLong, Empty,
	}
}

// An Asked is a request as it came.
type Asked struct {
	Provider  string          `json:"provider"` // "openai" or "anthropic"
	Key       string          `json:"key,omitempty"`
	Model     string          `json:"model"`
	System    string          `json:"system,omitempty"`
	Messages  []Message       `json:"messages"`
	Tools     []string        `json:"tools,omitempty"`
	MaxTokens int             `json:"maxTokens"`
	Stream    bool            `json:"stream"`
	Tokens    int             `json:"tokens"` // of the prompt, as counted here
	Body      json.RawMessage `json:"body"`
	Outcome   string          `json:"outcome"` // "answer", the fault, or "invalid: ..." with what the provider would say
}

// A Message is one message in the form that both providers' have in common.
type Message struct {
	Role   string `json:"role"` // "user", "assistant" or "tool"
	Text   string `json:"text,omitempty"`
	Calls  []Call `json:"calls,omitempty"`
	CallID string `json:"callId,omitempty"`
	ids    []string
}

// A Server plays the providers.
type Server struct {
	// Window refuses conversations of more tokens, at four bytes each; any length is taken if zero.
	Window int
	// Key refuses requests without it if it is not empty.
	Key string
	// Models are those that it lists.
	Models []string
	// Answer decides in place of the scripts if it is not nil.
	Answer func(Asked) Step

	mu      sync.Mutex
	scripts []Script
	talks   map[string]*talk // by the user's first words
	asked   []Asked
	holds   map[string]*hold
	most    int
	now     int
}

type talk struct {
	next  int
	met   int            // requests that have met the fault at next
	given map[string]int // step by key of the request
}

type hold struct {
	came    chan struct{} // closed when a request waits
	release chan struct{}
	here    bool
	open    bool
}

// New makes a server with scripts; the first that matches a conversation is said.
func New(scripts ...Script) *Server {
	return &Server{scripts: scripts, talks: map[string]*talk{}, holds: map[string]*hold{}}
}

// Load replaces the scripts and forgets all conversations and requests.
func (s *Server) Load(scripts ...Script) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.scripts, s.talks, s.asked, s.most = scripts, map[string]*talk{}, nil, s.now
}

// Asked lists the requests so far, oldest first.
func (s *Server) Asked() []Asked {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked)
}

// Most is the largest number of requests that were under way at once.
func (s *Server) Most() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.most
}

func (s *Server) held(word string) *hold {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.holds[word]
	if h == nil {
		h = &hold{came: make(chan struct{}), release: make(chan struct{})}
		s.holds[word] = h
	}
	return h
}

// Held is closed when a request has come to a step with this word in Hold.
func (s *Server) Held(word string) <-chan struct{} { return s.held(word).came }

// Release lets requests that wait for this word go on, now and later.
func (s *Server) Release(word string) {
	h := s.held(word)
	s.mu.Lock()
	defer s.mu.Unlock()
	if !h.open {
		h.open = true
		close(h.release)
	}
}

// ServeHTTP serves both providers, and what a test of another process needs: PUT /scripts, GET /requests, GET
// /held/WORD (answers when a request waits for the word) and POST /release/WORD.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", func(w http.ResponseWriter, r *http.Request) { s.serve(openai{}, w, r) })
	mux.HandleFunc("POST /v1/messages", func(w http.ResponseWriter, r *http.Request) { s.serve(anthropic{}, w, r) })
	mux.HandleFunc("GET /v1/models", s.list)
	mux.HandleFunc("PUT /scripts", func(w http.ResponseWriter, r *http.Request) {
		var scripts []Script
		if err := json.NewDecoder(r.Body).Decode(&scripts); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		s.Load(scripts...)
	})
	mux.HandleFunc("GET /requests", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(s.Asked())
	})
	mux.HandleFunc("GET /held/{word}", func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-s.Held(r.PathValue("word")):
		case <-r.Context().Done():
		}
	})
	mux.HandleFunc("POST /release/{word}", func(w http.ResponseWriter, r *http.Request) { s.Release(r.PathValue("word")) })
	mux.ServeHTTP(w, r)
}

// list names the models, in the form that both providers share.
func (s *Server) list(w http.ResponseWriter, r *http.Request) {
	if s.Key != "" && (openai{}).key(r) != s.Key && (anthropic{}).key(r) != s.Key {
		openai{}.fail(w, http.StatusUnauthorized, "authentication_error", "Incorrect API key provided")
		return
	}
	type one struct {
		ID string `json:"id"`
	}
	var all struct {
		Data []one `json:"data"`
	}
	for _, name := range s.Models {
		all.Data = append(all.Data, one{name})
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(all)
}

// A dialect is the form in which a provider speaks.
type dialect interface {
	name() string
	key(r *http.Request) string
	// parse reads a request; the error is what the provider would refuse it with.
	parse(body []byte) (Asked, error)
	fail(w http.ResponseWriter, status int, kind, message string)
	// pieces is the whole stream of an answer, and how many of them have to be sent to have begun it.
	pieces(a Asked, st Step, id int) (list []string, begun int)
	// whole is the answer if no stream was asked for.
	whole(a Asked, st Step, id int) any
	broken() string // an error within the stream
	refused(a Asked) Step
	tooLong(a Asked, window int) (kind, message string)
}

func (s *Server) serve(d dialect, w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.now++
	s.most = max(s.most, s.now)
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.now--
		s.mu.Unlock()
	}()
	body, err := io.ReadAll(io.LimitReader(r.Body, 64<<20))
	if err != nil {
		return
	}
	if s.Key != "" && d.key(r) != s.Key {
		d.fail(w, http.StatusUnauthorized, "authentication_error", "Incorrect API key provided: "+d.key(r))
		return
	}
	a, err := d.parse(body)
	a.Provider, a.Key, a.Body, a.Tokens = d.name(), r.Header.Get("Idempotency-Key"), body, len(body)/4
	if err == nil {
		err = pairs(a.Messages)
	}
	if err != nil {
		a.Outcome = "invalid: " + err.Error()
		s.note(a)
		d.fail(w, http.StatusBadRequest, "invalid_request_error", err.Error())
		return
	}
	if s.Window > 0 && a.Tokens+a.MaxTokens > s.Window {
		a.Outcome = TooLong
		s.note(a)
		kind, message := d.tooLong(a, s.Window)
		d.fail(w, http.StatusBadRequest, kind, message)
		return
	}
	st, ok := s.step(a)
	if !ok {
		a.Outcome = "invalid: no script is for it"
		s.note(a)
		d.fail(w, http.StatusBadRequest, "invalid_request_error", "no script is for this conversation")
		return
	}
	a.Outcome = st.Fault
	if st.Fault == "" {
		a.Outcome = "answer"
	}
	id := s.note(a)
	if !s.delay(r, st) {
		return
	}
	s.play(d, w, r, a, st, id)
}

// delay waits as a step says; it is false if the client did not.
func (s *Server) delay(r *http.Request, st Step) bool {
	if st.Hold != "" {
		h := s.held(st.Hold)
		s.mu.Lock()
		if !h.here {
			h.here = true
			close(h.came)
		}
		s.mu.Unlock()
		select {
		case <-h.release:
		case <-r.Context().Done():
			return false
		}
	}
	return pause(r, st.Delay)
}

func pause(r *http.Request, d time.Duration) bool {
	if d <= 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-r.Context().Done():
		return false
	}
}

func (s *Server) note(a Asked) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, a)
	return len(s.asked)
}

// step takes the next step of a conversation.
func (s *Server) step(a Asked) (Step, bool) {
	if s.Answer != nil {
		return s.Answer(a), true
	}
	first, last := "", ""
	for _, m := range a.Messages {
		if m.Role == "user" {
			if first == "" {
				first = m.Text
			}
			last = m.Text
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	at := slices.IndexFunc(s.scripts, func(sc Script) bool {
		return strings.Contains(first, sc.Match) || strings.Contains(last, sc.Match)
	})
	if at < 0 || len(s.scripts[at].Steps) == 0 {
		return Step{}, false
	}
	steps := s.scripts[at].Steps
	name := fmt.Sprintf("%d %s", at, first)
	if s.scripts[at].Shared {
		name = fmt.Sprint(at)
	}
	t := s.talks[name]
	if t == nil {
		t = &talk{given: map[string]int{}}
		s.talks[name] = t
	}
	key := a.Key
	if key == "" {
		key = string(a.Body)
	}
	if n, again := t.given[key]; again {
		return steps[n], true
	}
	n := min(t.next, len(steps)-1)
	if st := steps[n]; st.Fault != "" {
		if t.met++; t.met >= st.Times {
			t.next, t.met = n+1, 0
		}
		return st, true
	}
	t.next = n + 1
	t.given[key] = n
	return steps[n], true
}

// play answers a step.
func (s *Server) play(d dialect, w http.ResponseWriter, r *http.Request, a Asked, st Step, id int) {
	if status, err := strconv.Atoi(st.Fault); err == nil {
		failWith(d, w, status, st.RetryAfter)
		return
	}
	switch st.Fault {
	case Drop:
		panic(http.ErrAbortHandler)
	case Page:
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = io.WriteString(w, "<!doctype html><title>Sign in</title>")
		return
	case TooLong:
		kind, message := d.tooLong(a, a.Tokens/2)
		d.fail(w, http.StatusBadRequest, kind, message)
		return
	case Refusal:
		st = d.refused(a)
	case Empty:
		st.Text, st.Calls = "", nil
	}
	if !a.Stream {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(d.whole(a, st, id))
		return
	}
	if st.Text == "" && len(st.Calls) == 0 && st.Fault != "" && st.Fault != Empty && st.Fault != Refusal {
		st.Text = "This answer does not come to its end." // a fault in the middle needs one
	}
	pieces, begun := d.pieces(a, st, id)
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	out := http.NewResponseController(w)
	_ = out.Flush()
	for n, piece := range pieces {
		if n == begun && breakOff(d, w, r, st.Fault) {
			return
		}
		if n > 0 && !pause(r, st.Pace) {
			return
		}
		if _, err := io.WriteString(w, piece); err != nil {
			return
		}
		if out.Flush() != nil {
			return
		}
	}
}

// failWith answers with a status in place of an answer.
func failWith(d dialect, w http.ResponseWriter, status int, retryAfter string) {
	if retryAfter != "" {
		w.Header().Set("Retry-After", retryAfter)
	}
	kind, message := "api_error", "The server had an error while processing your request."
	switch status {
	case http.StatusTooManyRequests:
		kind, message = "rate_limit_error", "Rate limit reached."
	case 529:
		kind, message = "overloaded_error", "Overloaded"
	}
	d.fail(w, status, kind, message)
}

// breakOff carries out a fault in the middle of an answer, if it is one of those.
func breakOff(d dialect, w http.ResponseWriter, r *http.Request, fault string) bool {
	switch fault {
	case Stall:
		<-r.Context().Done()
	case Cut:
		panic(http.ErrAbortHandler)
	case Unfinished:
	case Error:
		_, _ = io.WriteString(w, d.broken())
	case Garbage:
		_, _ = io.WriteString(w, "data: {\"choices\": [{{\n\n")
	default:
		return false
	}
	return true
}

// pairs checks what both providers demand: each call is answered right after the message that made it, and nothing
// else is.
func pairs(messages []Message) error {
	if len(messages) == 0 {
		return fmt.Errorf("messages: at least one message is required")
	}
	var open []string
	for n, m := range messages {
		if m.Role == "tool" {
			at := slices.Index(open, m.CallID)
			if at < 0 {
				return fmt.Errorf("messages.%d: a result for %q does not follow a call of this id", n, m.CallID)
			}
			open = slices.Delete(open, at, at+1)
			continue
		}
		if len(open) > 0 {
			return fmt.Errorf("messages.%d: the calls %q of the message before have no results", n, open)
		}
		open = slices.Clone(m.ids)
		for i, id := range open {
			if id == "" || slices.Contains(open[:i], id) {
				return fmt.Errorf("messages.%d: the calls' ids are not unique: %q", n, open)
			}
		}
		if m.Text == "" && len(m.Calls) == 0 {
			return fmt.Errorf("messages.%d: the message is empty", n)
		}
	}
	if len(open) > 0 {
		return fmt.Errorf("messages: the calls %q have no results", open)
	}
	return nil
}

// words cuts a text into its pieces.
func words(text string) []string {
	var list []string
	for part := range strings.SplitAfterSeq(text, " ") {
		if part != "" {
			list = append(list, part)
		}
	}
	return list
}

// chops cuts arguments into pieces of a few bytes, as they come from the providers: in the middle of words and signs.
func chops(arguments string) []string {
	var list []string
	for chunk := range slices.Chunk([]rune(arguments), 11) {
		list = append(list, string(chunk))
	}
	return list
}

func toolName(name string) bool {
	return name != "" && len(name) <= 64 &&
		strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") == ""
}

func object(data json.RawMessage) bool {
	var fields map[string]json.RawMessage
	return json.Unmarshal(data, &fields) == nil && fields != nil
}

func compact(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err) // all that is encoded here is made here
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// count is how many tokens an answer has.
func count(st Step) int {
	n := len(st.Text)
	for _, c := range st.Calls {
		n += len(c.Name) + len(c.Arguments)
	}
	return max(n/4, 1)
}
