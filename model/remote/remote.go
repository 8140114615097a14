// Package remote asks language models over HTTP: answers from passages, with citations, and conversations with tools.
package remote

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"docent/internal/backoff"
	"docent/internal/tracing"
	"docent/model"
)

// Defaults of a model that is reached over HTTP, and what bounds it whatever its configuration says.
const (
	defaultMaxTokens = 1024 // of an answer
	defaultTurn      = 8000 // of a turn of a conversation with tools
	leastReasoning   = 4096 // of a model that thinks first
	defaultWindow    = 16_000
	defaultIdle      = time.Minute
	defaultTotal     = 5 * time.Minute
	defaultAttempts  = 3
	defaultBackoff   = 500 * time.Millisecond
	longestWait      = 30 * time.Second // between two tries; a provider that asks for more is given up at once
	longestLine      = 4 << 20          // Responses end with all that was said in one
	longestStream    = 64 << 20
	longestError     = 64 << 10

	// If the built-in model can answer instead, a reader is not kept waiting for one that fails.
	defaultFallbackAfter = 30 * time.Second // of silence before the answer begins
	soonEnough           = 5 * time.Second  // a failed try is not repeated later after the question
	connectLimit         = 5 * time.Second  // an address that nothing answers at
)

// A Config says how a model is reached, and what bounds it.
type Config struct {
	BaseURL string // the provider's public address if empty
	Model   string // the provider's name of it
	// Key is the secret itself, never shown, asked for with each request: it may change while the server runs. Nil for
	// none.
	Key func() string

	// API is the form of OpenAI's that is spoken: ChatCompletions or Responses. If it is empty, it is what the model is
	// known for at its own provider, and chat completions anywhere else.
	API string
	// What is sent beside what Docent sends: the effort of reasoning, and fields and headers of the endpoint's own.
	Effort       string
	ExtraBody    map[string]any
	ExtraHeaders map[string]string

	MaxTokens int           // of a reply; by default 1024 for an answer, and 8000 for a turn of a conversation
	Window    int           // tokens of prompt and reply together; what the model is known for, else 16000
	Price     Price         // what the model is known for if zero
	Whole     bool          // ask for answers in one piece: for servers that do not stream calls of tools (openai only)
	Searches  int           // of the model's own for one answer; default 3, none if negative
	Idle      time.Duration // longest silence of the provider; a minute if zero
	Total     time.Duration // longest answer; five minutes if zero
	Attempts  int           // tries until the first piece of an answer came; default 3
	Backoff   time.Duration // first wait between two tries, if the provider names none; default half a second

	// Claims says what becomes of a sentence that no passage supports: ClaimsRemove, ClaimsMark, or ClaimsOff, which is
	// meant if it is empty.
	Claims string
	Judge  Judge // says what words leave in doubt; nil for nobody

	NoFallback    bool          // the built-in model does not answer in its place
	FallbackAfter time.Duration // of silence, the built-in model answers; default 30 seconds, Idle at most

	Transport http.RoundTripper // a shared one with sound limits if nil

	circuit string // what it is asked for, if that has a breaker of its own
}

func (c Config) key() string {
	if c.Key == nil {
		return ""
	}
	return c.Key()
}

// A Model is one that is reached over HTTP.
type Model struct {
	Config
	name     string
	provider string
	host     string
	client   *http.Client
	known    known
	turn     int // tokens of a turn of a conversation
	manners  *learned
	breaker  *breaker
	used     counter
	took     timed

	toolless atomic.Bool // the endpoint has refused tools
}

// An ending is how a provider's stream ended.
type ending struct {
	reason  string // "stop", "tools", "length", or the provider's own word
	calls   []model.Call
	kept    json.RawMessage // what has to go back with the turn, unread
	usage   model.Usage
	written int // of the prompt's tokens: those that the provider put into its cache, at a price
}

var publicURL = map[string]string{model.OpenAI: "https://api.openai.com/v1",
	model.Anthropic: "https://api.anthropic.com"}

// Add checks the configuration of a model, and makes it. Nothing is reached over the network yet.
func (s *Set) Add(name, provider string, n Config) (*Model, error) {
	public := n.BaseURL == ""
	if public {
		n.BaseURL = publicURL[provider]
	}
	u, err := url.Parse(n.BaseURL)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("the base URL has to be an http or https address with a host")
	case u.User != nil || u.RawQuery != "":
		return nil, errors.New("the base URL must not hold a user or a query: the key has a setting of its own")
	case n.Model == "":
		return nil, errors.New("the provider's name of the model is missing")
	case n.key() == "" && public:
		return nil, errors.New("the public endpoint needs a key")
	case n.Whole && provider != model.OpenAI:
		return nil, errors.New("answers in one piece are for endpoints that speak OpenAI's form")
	case n.API != "" && (provider != model.OpenAI || n.API != ChatCompletions && n.API != Responses):
		return nil, fmt.Errorf("the api of an endpoint that speaks OpenAI's form is %q or %q", ChatCompletions, Responses)
	case min(n.MaxTokens, n.Window, n.Attempts) < 0 || min(n.Idle, n.Total, n.Backoff, n.FallbackAfter) < 0:
		return nil, errors.New("limits are not negative")
	}
	n.BaseURL = strings.TrimRight(n.BaseURL, "/")
	known := lookUp(n.Model)
	turn := known.fill(&n, provider, u)
	n.Idle = cmp.Or(n.Idle, defaultIdle)
	n.Total = cmp.Or(n.Total, defaultTotal)
	n.Attempts = cmp.Or(n.Attempts, defaultAttempts)
	n.Backoff = cmp.Or(n.Backoff, defaultBackoff)
	n.FallbackAfter = cmp.Or(n.FallbackAfter, defaultFallbackAfter)
	if n.Window-n.MaxTokens < 1024 {
		return nil, fmt.Errorf("a window of %d tokens leaves less than 1024 for the question beside an answer of %d",
			n.Window, n.MaxTokens)
	}
	if n.Transport == nil {
		n.Transport = shared
	}
	r := &Model{Config: n, name: name, provider: provider, host: u.Host, known: known, turn: turn,
		manners: s.manners(n.BaseURL, n.Model), breaker: s.breaker(n.BaseURL, n.circuit, n.key()), client: &http.Client{
			Transport: tracing.Transport(n.Transport),
			// A redirect would carry the question, and on the same host the key, to where nobody configured.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}}
	r.took = s.metrics().timed(name)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.models = append(s.models, r)
	return r, nil
}

// Answer writes one answer. Emit is called from the caller's goroutine; an error of it ends the answer.
func (r *Model) Answer(ctx context.Context, req model.Request, emit func(model.Delta) error) (model.Result, error) {
	result := model.Result{Model: r.name}
	k := r.checker(&req, emit)
	a := r.prepare(req, k.take)
	k.secret = withhold(a.chat.System)
	if err := a.run(ctx, &result); err != nil {
		return result, errors.Join(err, k.broken())
	}
	if err := a.c.flush(); err != nil {
		return result, err
	}
	return result, k.end(ctx, &result)
}

// Chat holds a conversation with tools. Nothing of a failed try is used, so a try that broke off halfway is repeated
// too.
func (r *Model) Chat(ctx context.Context, c model.Chat) (model.Reply, error) {
	var text strings.Builder
	if c.MaxTokens <= 0 {
		c.MaxTokens = r.turn
	} else if r.reasons() {
		c.MaxTokens = max(c.MaxTokens, leastReasoning)
	}
	end, err := r.ask(ctx, c, func(s string) error {
		text.WriteString(s)
		return nil
	}, func(f *Failure) bool {
		text.Reset()
		return f.Temporary() && !c.Once
	}, false)
	if err != nil {
		return model.Reply{Model: r.name}, err
	}
	for i := range end.calls {
		if end.calls[i].ID == "" {
			end.calls[i].ID = c.CallID(i)
		}
	}
	return model.Reply{Model: r.name, Text: text.String(), Calls: end.calls, Kept: end.kept, Reason: end.reason, Usage: end.usage}, nil
}

// ask sends a conversation to the provider and passes on the text of the answer as it comes. After a failure it tries
// again if again allows it; again forgets what the failed try gave, or refuses because that has been used. Hurry
// means that a reader waits and that another model can answer.
func (r *Model) ask(
	ctx context.Context, c model.Chat, text func(string) error, again func(*Failure) bool, hurry bool,
) (ending, error) {
	var refused error // by text: the caller ended the answer
	ctx, span := r.trace(ctx, "chat")
	begun := false
	put := func(s string) error {
		if s == "" {
			return nil
		}
		if !begun {
			begun = true
			span.Event("first text")
		}
		if err := text(s); err != nil {
			refused = err
			return err
		}
		return nil
	}
	end, err := r.tries(ctx, callerOf(c.Key), again, hurry, func(ctx context.Context) (ending, error) {
		first, over := r.took.request(ctx)
		defer over()
		end, err := r.seen(ctx, c, func(s string) error {
			if s != "" {
				first()
			}
			return put(s)
		}, hurry)
		return end, cmp.Or(refused, err)
	})
	traced(span, &end, err)
	return end, err
}

// tries makes tries within the limits of the model, the endpoint's circuit and the caller's patience. An error of once
// that is no Failure is the caller's own, and ends them.
func (r *Model) tries(
	ctx context.Context, caller string, again func(*Failure) bool, hurry bool, once func(context.Context) (ending, error),
) (ending, error) {
	began := time.Now()
	inner, stop := context.WithTimeoutCause(ctx, r.Total, errTotal)
	defer stop()
	var spent model.Usage // by all tries, as far as the provider told
	r.used.calls.Add(1)
	fail := func(err error) (ending, error) {
		r.used.failures.Add(1)
		return ending{usage: spent}, err
	}
	var last *Failure
	for try := 1; ; try++ {
		permit, wait, ok := r.breaker.admit(caller)
		if !ok {
			if last == nil {
				last = r.breaker.why(r.name)
			}
			return fail(&model.Unavailable{Model: r.name, After: wait, Err: last})
		}
		r.used.tries.Add(1)
		end, err := once(inner)
		end.usage.Cost = r.Price.of(end.usage, end.written)
		r.used.add(end.usage)
		spent.Add(end.usage)
		var f *Failure
		switch failed := errors.As(err, &f); {
		case err != nil && !failed:
			permit.abandoned()
			return ending{usage: spent}, err
		case err == nil:
			permit.succeeded()
			end.usage = spent
			return end, nil
		case ctx.Err() != nil:
			permit.abandoned()
			return ending{usage: spent}, ctx.Err() // ended by the caller, which is no failure of the model
		case f.Temporary():
			permit.failed(f)
		case inner.Err() != nil:
			permit.abandoned()
		default:
			permit.succeeded()
		}
		if !again(f) {
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

// wait is how long to wait after a failed try: as long as the provider says, else longer each time, with a jitter. It
// is not ok if that is too long for a reader.
func (r *Model) wait(f *Failure, try int) (time.Duration, bool) {
	if f.RetryAfter > 0 {
		return f.RetryAfter, f.RetryAfter <= longestWait
	}
	return backoff.Exponential(r.Backoff, longestWait)(try), true
}

// doublings is how often the bound on a reply is doubled if all of it was used and nothing of it is seen.
const doublings = 2

// seen makes one try. A reply that was cut off at its length before anything of it was seen, as when a model thinks
// longer than it may speak, is asked for again with twice the room, and the endpoint is remembered for it.
func (r *Model) seen(ctx context.Context, c model.Chat, text func(string) error, hurry bool) (ending, error) {
	r.bound(&c)
	key, some := c.Key, false
	var spent model.Usage
	written := 0
	for n := 0; ; n++ {
		end, err := r.once(ctx, c, func(s string) error {
			some = some || s != ""
			return text(s)
		}, hurry)
		spent.Add(end.usage)
		written += end.written
		end.usage, end.written = spent, written
		wider := min(2*c.MaxTokens, r.longest())
		if err != nil || end.reason != "length" || some || len(end.calls) > 0 || c.Exact || n == doublings || wider <= c.MaxTokens {
			return end, err
		}
		c.MaxTokens = wider
		r.manners.needs(wider)
		if key != "" {
			c.Key = fmt.Sprintf("%s+%d", key, n+1) // it is another request
		}
	}
}

// once makes one try and turns whatever goes wrong into a Failure.
func (r *Model) once(ctx context.Context, c model.Chat, text func(string) error, hurry bool) (ending, error) {
	return r.exchanged(ctx, hurry, r.Whole, func(ctx context.Context, x *exchange) (ending, error) {
		x.key = c.Key
		return r.converse(ctx, x, c, text)
	})
}

// exchanged makes one exchange with the endpoint and turns whatever goes wrong into a Failure.
func (r *Model) exchanged(
	ctx context.Context, hurry, whole bool, call func(context.Context, *exchange) (ending, error),
) (ending, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	x := &exchange{client: r.client, idle: r.Idle, first: r.Idle, cancel: cancel, whole: whole}
	if hurry {
		x.first = min(r.Idle, r.FallbackAfter)
	}
	defer x.close()
	end, err := call(ctx, x)
	if err == nil {
		return end, nil
	}
	return end, r.failure(ctx, x, err)
}

// bound says how long the reply to a conversation may be.
func (r *Model) bound(c *model.Chat) {
	if c.MaxTokens <= 0 {
		c.MaxTokens = r.MaxTokens
	}
	m, window := r.manners.now(), r.Config.Window
	if !c.Exact {
		c.MaxTokens = max(c.MaxTokens, m.least)
		if m.context > 0 { // less than the configuration says
			window = min(window, m.context)
		}
	}
	c.MaxTokens = min(c.MaxTokens, r.longest(), max(window-chatTokens(c), window/4))
}

// longest is how many tokens a reply may have at the most.
func (r *Model) longest() int {
	most := r.Config.Window / 2
	if r.known.output > 0 {
		most = min(most, r.known.output)
	}
	return most
}

// Priced reports whether it is known what its tokens cost: by the configuration, or by the table of known models.
func (r *Model) Priced() bool { return r.Price != (Price{}) }

// reasons reports whether the model thinks before it answers, with tokens of the same bound.
func (r *Model) reasons() bool { return r.known.reasons || r.Effort != "" }

// Window is how many tokens a conversation and its reply may have together.
func (r *Model) Window() int { return r.Config.Window }
