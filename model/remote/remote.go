// Package remote asks language models over HTTP: answers from passages, with citations, and conversations with tools.
package remote

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"docent/backoff"
	"docent/model"
)

// Defaults of a model that is reached over HTTP, and what bounds it whatever its configuration says.
const (
	defaultMaxTokens = 1024
	defaultWindow    = 16_000
	defaultIdle      = time.Minute
	defaultTotal     = 5 * time.Minute
	defaultAttempts  = 3
	defaultBackoff   = 500 * time.Millisecond
	longestWait      = 30 * time.Second // between two tries; a provider that asks for more is given up at once
	longestLine      = 1 << 20
	longestStream    = 64 << 20
	longestError     = 64 << 10

	// Where the built-in model can answer instead, a reader is not kept waiting for one that fails.
	defaultFallbackAfter = 30 * time.Second // of silence before the answer begins
	soonEnough           = 5 * time.Second  // a try that failed is repeated so long after the question was put, and not later
	connectLimit         = 5 * time.Second  // an address that nothing answers at
)

// A Failure says why a model gave no answer, or only the beginning of one. Its text holds no secret and nothing that
// the provider wrote beyond its own short message.
type Failure struct {
	Model      string        // as configured
	Host       string        // of its address
	Reason     string        // for a person
	Detail     string        // for the log: what the provider said
	Status     int           // of the provider's answer; 0 where there was none
	RetryAfter time.Duration // when the provider wants to be asked again; 0 where it does not say
	temporary  bool
	silent     bool  // the provider fell silent: the reader has waited long enough
	cause      error // ErrTooLong or ErrRefused where it is one of these
}

func (f *Failure) Unwrap() error { return f.cause }

func (f *Failure) Error() string {
	s := "model " + f.Model
	if f.Host != "" {
		s += " at " + f.Host
	}
	s += " " + f.Reason
	if f.Status != 0 {
		s += fmt.Sprintf(" (status %d)", f.Status)
	}
	if f.Detail != "" {
		s += ": " + f.Detail
	}
	return s
}

// Temporary reports whether the same question may well succeed later.
func (f *Failure) Temporary() bool { return f.temporary || f.silent }

// Causes of a call that was ended from this side, and of a stream that is none.
var (
	errIdle   = errors.New("the provider fell silent")
	errTotal  = errors.New("the answer took too long")
	errStream = errors.New("the provider did not send an event stream")
	errSize   = errors.New("the provider sent more than an answer may have")
)

// shared is how providers are reached where the configuration does not say: with connections kept for many answers at
// once.
var shared = func() http.RoundTripper {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxIdleConns, t.MaxIdleConnsPerHost = 256, 64
	t.DialContext = (&net.Dialer{Timeout: connectLimit, KeepAlive: 30 * time.Second}).DialContext
	return t
}()

// A Config says how a model is reached, and what bounds it.
type Config struct {
	BaseURL string // the provider's public address where empty
	Model   string // the provider's name of it
	Key     string // the secret itself; never shown

	MaxTokens int           // of an answer; 1024 where zero
	Window    int           // tokens of prompt and answer together; 16000 where zero
	Price     Price         // nothing is reckoned where zero
	Whole     bool          // ask for answers in one piece: for servers that do not stream calls of tools (openai only)
	Searches  int           // of the model's own for one answer; 3 where zero, none where negative
	Idle      time.Duration // longest silence of the provider; a minute where zero
	Total     time.Duration // longest answer; five minutes where zero
	Attempts  int           // tries until the first piece of an answer came; 3 where zero
	Backoff   time.Duration // first wait between two tries, where the provider names none; half a second where zero

	NoFallback    bool          // the built-in model does not answer in its place
	FallbackAfter time.Duration // of silence before an answer begins, the built-in model does; 30 seconds where zero, Idle at most

	Transport http.RoundTripper // a shared one with sound limits where nil
}

// A Model is one that is reached over HTTP.
type Model struct {
	Config
	name    string
	host    string
	client  *http.Client
	call    func(ctx context.Context, line *line, c model.Chat, text func(string) error) (ending, error)
	breaker *breaker
	used    counter

	toolless atomic.Bool // the endpoint has refused tools
}

// An ending is how a provider's stream ended.
type ending struct {
	reason  string // "stop", "tools", "length", or the provider's own word
	calls   []model.Call
	usage   model.Usage
	written int // of the prompt's tokens: those that the provider put into its cache, at a price
}

// Add checks the configuration of a model, and makes it. Nothing is reached over the network yet.
func (s *Set) Add(name, provider string, n Config) (*Model, error) {
	standard := map[string]string{model.OpenAI: "https://api.openai.com/v1", model.Anthropic: "https://api.anthropic.com"}[provider]
	public := n.BaseURL == ""
	if public {
		n.BaseURL = standard
	}
	u, err := url.Parse(n.BaseURL)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("the base URL has to be an http or https address with a host")
	case u.User != nil || u.RawQuery != "":
		return nil, errors.New("the base URL must not hold a user or a query: the key has a setting of its own")
	case n.Model == "":
		return nil, errors.New("the provider's name of the model is missing")
	case n.Key == "" && public:
		return nil, errors.New("the public endpoint needs a key")
	case n.Whole && provider != model.OpenAI:
		return nil, errors.New("answers in one piece are for endpoints that speak OpenAI's form")
	case n.MaxTokens < 0 || n.Window < 0 || n.Idle < 0 || n.Total < 0 || n.Attempts < 0 || n.Backoff < 0 || n.FallbackAfter < 0:
		return nil, errors.New("limits are not negative")
	}
	n.BaseURL = strings.TrimRight(n.BaseURL, "/")
	n.MaxTokens = cmp.Or(n.MaxTokens, defaultMaxTokens)
	n.Window = cmp.Or(n.Window, defaultWindow)
	n.Idle = cmp.Or(n.Idle, defaultIdle)
	n.Total = cmp.Or(n.Total, defaultTotal)
	n.Attempts = cmp.Or(n.Attempts, defaultAttempts)
	n.Backoff = cmp.Or(n.Backoff, defaultBackoff)
	n.FallbackAfter = cmp.Or(n.FallbackAfter, defaultFallbackAfter)
	if n.Window-n.MaxTokens < 1024 {
		return nil, fmt.Errorf("a window of %d tokens leaves less than 1024 for the question beside an answer of %d", n.Window, n.MaxTokens)
	}
	if n.Transport == nil {
		n.Transport = shared
	}
	r := &Model{Config: n, name: name, host: u.Host, breaker: s.breaker(n.BaseURL, n.Key), client: &http.Client{
		Transport: n.Transport,
		// A redirect would carry the question, and on the same host the key, to where nobody configured.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	r.call = r.callOpenAI
	if provider == model.Anthropic {
		r.call = r.callAnthropic
	}
	s.models = append(s.models, r)
	return r, nil
}

// Answer writes one answer. Emit is called from the caller's goroutine; an error of it ends the answer.
func (r *Model) Answer(ctx context.Context, req model.Request, emit func(model.Delta) error) (model.Result, error) {
	result := model.Result{Model: r.name}
	var spoken strings.Builder
	put := func(d model.Delta) error {
		if req.Deflection != "" {
			spoken.WriteString(d.Text)
		}
		return emit(d)
	}
	a := r.prepare(req, put)
	if err := a.run(ctx, &result); err != nil {
		return result, err
	}
	if err := a.c.flush(); err != nil {
		return result, err
	}
	result.Answered = len(a.c.cited) > 0
	if !result.Answered && req.Deflection != "" && !strings.Contains(spoken.String(), oneLine(req.Deflection)) {
		return result, put(model.Delta{Text: "\n\n" + req.AskHere()})
	}
	return result, nil
}

// Chat holds a conversation with tools. Nothing of a try that failed is used, so one that broke off half-way is made
// again too.
func (r *Model) Chat(ctx context.Context, c model.Chat) (model.Reply, error) {
	var said strings.Builder
	end, err := r.ask(ctx, c, func(s string) error {
		said.WriteString(s)
		return nil
	}, func(f *Failure) bool {
		said.Reset()
		return f.Temporary()
	}, false)
	if err != nil {
		return model.Reply{Model: r.name}, err
	}
	for i := range end.calls {
		if end.calls[i].ID == "" {
			end.calls[i].ID = c.CallID(i)
		}
	}
	return model.Reply{Model: r.name, Text: said.String(), Calls: end.calls, Reason: end.reason, Usage: end.usage}, nil
}

// ask puts a conversation to the provider and gives the text of its answer as it comes. It is put again after a
// failure where again allows it: it forgets what the try gave, or says that this has been used. Hurry says that another
// model can answer, and a reader waits.
func (r *Model) ask(ctx context.Context, c model.Chat, text func(string) error, again func(*Failure) bool, hurry bool) (ending, error) {
	began := time.Now()
	inner, stop := context.WithTimeoutCause(ctx, r.Total, errTotal)
	defer stop()
	var refused error // by text: the caller ended the answer
	put := func(s string) error {
		if s == "" {
			return nil
		}
		if err := text(s); err != nil {
			refused = err
			return err
		}
		return nil
	}
	var spent model.Usage // by all tries, as far as the provider told
	r.used.calls.Add(1)
	fail := func(err error) (ending, error) {
		r.used.failures.Add(1)
		return ending{usage: spent}, err
	}
	var last *Failure
	for try := 1; ; try++ {
		permit, wait, ok := r.breaker.admit()
		if !ok {
			if last == nil {
				last = r.breaker.why(r.name)
			}
			return fail(&model.Unavailable{Model: r.name, After: wait, Err: last})
		}
		r.used.tries.Add(1)
		end, err := r.once(inner, c, put, hurry)
		end.usage.Cost = r.Price.of(end.usage, end.written)
		r.used.add(end.usage)
		spent.Add(end.usage)
		var f *Failure
		switch failed := errors.As(err, &f); {
		case refused != nil:
			permit.void()
			return ending{usage: spent}, refused
		case err == nil:
			permit.good()
			end.usage = spent
			return end, nil
		case ctx.Err() != nil:
			permit.void()
			return ending{usage: spent}, ctx.Err() // ended by the caller, which is no failure of the model
		case failed && f.Temporary():
			permit.bad(f)
		case inner.Err() != nil:
			permit.void()
		default:
			permit.good()
		}
		if f == nil || !again(f) {
			return fail(err)
		}
		last = f
		wait, ok = r.wait(f, try)
		if !ok || try >= r.Attempts || hurry && time.Since(began)+wait > soonEnough {
			return fail(&model.Unavailable{Model: r.name, After: max(wait, f.RetryAfter), Err: f})
		}
		if backoff.Sleep(inner, wait) != nil {
			if ctx.Err() != nil {
				return ending{usage: spent}, ctx.Err()
			}
			return fail(&model.Unavailable{Model: r.name, After: wait, Err: f})
		}
	}
}

// wait is how long to wait after a failed try: as long as the provider says, else longer each time and never all
// callers at once. It is not ok to wait very long: the reader does.
func (r *Model) wait(f *Failure, try int) (time.Duration, bool) {
	if f.RetryAfter > 0 {
		return f.RetryAfter, f.RetryAfter <= longestWait
	}
	return backoff.Exponential(r.Backoff, longestWait)(try), true
}

// once makes one try and turns whatever goes wrong into a Failure.
func (r *Model) once(ctx context.Context, c model.Chat, text func(string) error, hurry bool) (ending, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	l := &line{client: r.client, key: c.Key, idle: r.Idle, first: r.Idle, cancel: cancel, whole: r.Whole}
	if hurry {
		l.first = min(r.Idle, r.FallbackAfter)
	}
	if r.Whole {
		l.idle, l.first = r.Total, r.Total // nothing comes until all is written
	}
	defer l.close()
	if c.MaxTokens <= 0 {
		c.MaxTokens = r.MaxTokens
	}
	c.MaxTokens = min(c.MaxTokens, r.Config.Window/2)
	end, err := r.call(ctx, l, c, text)
	if err == nil {
		return end, nil
	}
	f := &Failure{Model: r.name, Host: r.host, Status: l.status, RetryAfter: l.retryAfter(time.Now())}
	var said *said
	if errors.As(err, &said) {
		f.cause = said.means
	}
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errIdle):
		f.Reason, f.Status, f.silent = "stopped answering", 0, true
	case errors.Is(cause, errTotal):
		f.Reason, f.Status = "took too long to answer", 0
	case errors.Is(err, errStream):
		f.Reason = "did not answer with a stream"
	case l.over:
		f.Reason = "sent more than an answer may have"
	case f.cause == model.ErrTooLong:
		f.Reason = "has no room for the conversation"
	case f.cause == model.ErrRefused:
		f.Reason = "declined to answer"
	case said != nil && said.spent:
		f.Reason = "has no credit left"
	case l.status == http.StatusTooManyRequests:
		f.Reason, f.temporary = "is asked too often", true
	case l.status == http.StatusRequestTimeout || l.status >= 500:
		f.Reason, f.temporary = "is not available", true
	case l.status == http.StatusUnauthorized || l.status == http.StatusForbidden:
		f.Reason = "refuses its key"
	case l.status == http.StatusNotFound:
		f.Reason = "is not known at its address"
	case l.status >= 300:
		f.Reason = "refuses the question"
	case said != nil:
		f.Reason, f.temporary = "reported an error", said.temporary
	case l.status == 0:
		f.Reason, f.temporary = "cannot be reached", true
	default:
		f.Reason, f.temporary = "broke off", true
	}
	f.Detail = r.clean(err)
	if noTools(f) {
		f.temporary = false // it was started so
	}
	return end, f
}

// clean is what an error may show: without the key, without the address, in one short line.
func (r *Model) clean(err error) string {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	s := err.Error()
	if r.Key != "" {
		s = strings.ReplaceAll(s, r.Key, "[key]")
	}
	words := strings.Fields(s)
	for i, w := range words {
		if bare := strings.Trim(w, `"'.,:;()`); strings.HasPrefix(bare, "sk-") && len(bare) > 6 {
			words[i] = "[key]" // providers quote a part of the key that they refuse
		}
	}
	const most = 240
	s = strings.ToValidUTF8(strings.Join(words, " "), "")
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}

// said is an error that the provider reported within its stream.
type said struct {
	text      string
	temporary bool
	spent     bool  // no waiting helps: somebody has to pay
	means     error // ErrTooLong or ErrRefused where it is one of these
}

func (e *said) Error() string { return e.text }

// A line is one HTTP exchange under guard: silence ends it, its size is bounded, and a good answer is an event stream.
type line struct {
	client *http.Client
	key    string
	idle   time.Duration
	first  time.Duration // of silence before the answer's first byte
	cancel context.CancelCauseFunc
	timer  *time.Timer
	status int
	after  string // the Retry-After header
	body   io.ReadCloser
	over   bool // more came than an answer may have
	whole  bool // the answer comes in one piece
}

// Do sends a request; it has the form that the client library asks for.
func (l *line) Do(req *http.Request) (*http.Response, error) {
	if l.key != "" {
		req.Header.Set("Idempotency-Key", l.key)
	}
	l.timer = time.AfterFunc(l.first, func() { l.cancel(errIdle) })
	resp, err := l.client.Do(req)
	l.timer.Stop()
	if err != nil {
		return nil, err
	}
	l.status, l.after, l.body = resp.StatusCode, resp.Header.Get("Retry-After"), resp.Body
	if resp.StatusCode/100 != 2 {
		resp.Body = &guarded{line: l, left: longestError, lenient: true}
		return resp, nil
	}
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if l.whole && kind == "application/json" {
		resp.Body = &guarded{line: l, left: longestStream, whole: true}
		return resp, nil
	}
	if kind != "text/event-stream" {
		return nil, errStream
	}
	resp.Body = &guarded{line: l, left: longestStream}
	return resp, nil
}

func (l *line) close() {
	if l.timer != nil {
		l.timer.Stop()
	}
	if l.body != nil {
		_ = l.body.Close()
	}
}

// retryAfter reads the header's two forms: seconds, or a date.
func (l *line) retryAfter(now time.Time) time.Duration {
	if s, err := strconv.ParseFloat(strings.TrimSpace(l.after), 64); err == nil && s >= 0 {
		return time.Duration(min(s, 86_400) * float64(time.Second))
	}
	if at, err := http.ParseTime(l.after); err == nil && at.After(now) {
		return at.Sub(now)
	}
	return 0
}

// guarded is a body that is read under guard. The clock of silence runs only while somebody reads.
type guarded struct {
	line    *line
	left    int // bytes that may still come
	inLine  int // bytes since the last end of a line
	lenient bool
	whole   bool // one long line
	begun   bool // something was read
}

func (g *guarded) Read(p []byte) (int, error) {
	if g.left <= 0 {
		if g.lenient {
			return 0, io.EOF // an error's page need not be read to its end
		}
		g.line.over = true
		return 0, errSize
	}
	if len(p) > g.left {
		p = p[:g.left]
	}
	silence := g.line.idle
	if !g.begun {
		silence = g.line.first
	}
	g.line.timer.Reset(silence)
	n, err := g.line.body.Read(p)
	g.line.timer.Stop()
	g.begun = g.begun || n > 0
	g.left -= n
	if at := bytes.LastIndexByte(p[:n], '\n'); at >= 0 {
		g.inLine = n - at - 1
	} else {
		g.inLine += n
	}
	if g.inLine > longestLine && !g.whole {
		g.line.over = true
		return n, errSize
	}
	return n, err
}

func (g *guarded) Close() error { return g.line.body.Close() }

// Window is how many tokens a conversation and its reply may have together.
func (r *Model) Window() int { return r.Config.Window }

// Replaceable reports whether the built-in model may answer where this one gave an error: it could not be reached, failed,
// fell silent or refused its key. One that declined has decided; and who configured it may want its errors instead.
func (r *Model) Replaceable(cause error) bool {
	var f *Failure
	return !r.NoFallback && errors.As(cause, &f) && !errors.Is(cause, model.ErrRefused)
}
