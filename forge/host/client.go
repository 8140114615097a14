package host

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"docent/api"
	"docent/forge/failure"
	"docent/internal/backoff"
	"docent/internal/tracing"
)

// A limiter keeps all requests under one credential to one code host within the host's limits: they go one at a time,
// writes have a gap between them, and none goes while the host wants to be left alone.
type limiter struct {
	turn  chan struct{} // holds one token
	wrote time.Time     // when the last write ended; only for the holder of the token

	mu    sync.Mutex
	until time.Time // when requests are welcome again
}

func newLimiter() *limiter {
	l := &limiter{turn: make(chan struct{}, 1)}
	l.turn <- struct{}{}
	return l
}

func (l *limiter) paused(now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.until.Sub(now)
}

func (l *limiter) pause(until time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if until.After(l.until) {
		l.until = until
	}
}

// A client carries requests to a code host's API. The libraries for the hosts talk through it, so that for all of them
// the same holds: credentials go to the host alone and into a header alone, the host's limits are kept, answers are
// bounded, and whatever is no success is a *failure.Error with clean words.
type client struct {
	hosts   *Hosts
	name    string // of the host, for people
	what    string // the credential, for people
	repo    string // OWNER/NAME, for people
	base    *url.URL
	limiter *limiter
	gap     time.Duration // between writes
	timeout time.Duration // of one request
	now     func() time.Time

	moved atomic.Bool // an answer came from another address

	secret    func(ctx context.Context) (string, error)
	authorize func(h http.Header, secret string)
	renew     func(secret string) bool // drops a secret that the host refused; nil if there is no other to be had
}

const maxAnswer = 8 << 20

// hostTransport is what all code hosts are reached through. Nothing is kept of it: each answer is read whole.
var hostTransport = sync.OnceValue(func() http.RoundTripper {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxIdleConnsPerHost = 2
	return tracing.Transport(t)
})

// httpClient is for the libraries.
func (c *client) httpClient() *http.Client {
	return &http.Client{Transport: c, CheckRedirect: func(req *http.Request, via []*http.Request) error {
		first := via[0]
		switch {
		case len(via) > 5, req.Method != first.Method:
			return http.ErrUseLastResponse
		case !strings.EqualFold(req.URL.Host, first.URL.Host) || req.URL.Scheme != first.URL.Scheme:
			return failure.Misconfigured("%s redirects to another host, where the credentials do not belong.", c.name)
		}
		return nil
	}}
}

// pause is the time before a request that only reads is sent once more.
var pause = backoff.Exponential(400*time.Millisecond, time.Second)

// RoundTrip sends a request, and repeats one that only reads if the host has trouble for a moment.
func (c *client) RoundTrip(req *http.Request) (*http.Response, error) {
	var body []byte
	if req.Body != nil {
		var err error
		body, err = io.ReadAll(req.Body)
		req.Body.Close()
		if err != nil {
			return nil, err
		}
	}
	readOnly := req.Method == http.MethodGet || req.Method == http.MethodHead
	renewed := false
	for try := 1; ; try++ {
		res, err := c.once(req, body, !readOnly)
		if err == nil {
			return res, nil
		}
		if answered(err, http.StatusUnauthorized) && c.renew != nil && !renewed {
			renewed = true
			continue // with the next secret
		}
		var e *failure.Error
		again := readOnly && try < 3 && errors.Is(err, failure.ErrTemporary) && !(errors.As(err, &e) && e.After > 0)
		if !again {
			return nil, err
		}
		if err := backoff.Sleep(req.Context(), pause(try)); err != nil {
			return nil, err
		}
	}
}

// once sends a request when it is its turn.
func (c *client) once(req *http.Request, body []byte, write bool) (*http.Response, error) {
	if !strings.EqualFold(req.URL.Host, c.base.Host) || req.URL.Scheme != c.base.Scheme {
		return nil, failure.Misconfigured("%s points to another host, where the credentials do not belong.", c.name)
	}
	secret, err := c.secret(req.Context()) // before the turn: getting one may need requests of its own
	if err != nil {
		return nil, err
	}
	done, err := c.turn(req.Context(), write)
	if err != nil {
		return nil, err
	}
	defer done()
	res, data, err := c.send(req, body, secret)
	if err == nil {
		err = c.refused(res, data, secret, write)
	}
	if err != nil {
		return nil, err
	}
	res.Body = io.NopCloser(bytes.NewReader(data))
	return res, nil
}

// turn waits until a request may be sent. Done gives the turn to the next one.
func (c *client) turn(ctx context.Context, write bool) (done func(), err error) {
	l := c.limiter
	select {
	case <-l.turn:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	free := func() { l.turn <- struct{}{} }
	if left := l.paused(c.now()); left > 0 {
		free()
		return nil, &failure.Error{Kind: failure.ErrTemporary, After: left,
			Say: fmt.Sprintf("%s asked for fewer requests, for another %v.", c.name, left.Round(time.Second))}
	}
	if !write {
		return free, nil
	}
	if gap := c.gap - time.Since(l.wrote); gap > 0 {
		if err := backoff.Sleep(ctx, gap); err != nil {
			free()
			return nil, err
		}
	}
	return func() {
		l.wrote = time.Now()
		free()
	}, nil
}

// send sends a request and reads the answer, whatever it says.
func (c *client) send(req *http.Request, body []byte, secret string) (*http.Response, []byte, error) {
	ctx, cancel := context.WithTimeout(req.Context(), c.timeout)
	defer cancel()
	out := req.Clone(ctx)
	out.Body, out.GetBody, out.ContentLength = nil, nil, 0
	if body != nil {
		out.Body, out.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	}
	c.authorize(out.Header, secret)
	res, err := hostTransport().RoundTrip(out)
	var data []byte
	if err == nil {
		data, err = io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
		res.Body.Close()
	}
	switch {
	case err == nil:
		return res, data, nil
	case req.Context().Err() != nil:
		return nil, nil, context.Cause(req.Context())
	}
	return nil, nil, &failure.Error{
		Kind: failure.ErrTemporary, Say: fmt.Sprintf("%s does not answer: %s.", c.name, failure.Quote(err.Error(), secret)),
	}
}

// refused is what an answer has against the request; nil if it has nothing.
func (c *client) refused(res *http.Response, data []byte, secret string, write bool) error {
	switch {
	case len(data) > maxAnswer:
		return failure.Misconfigured("%s answers with more than %d bytes.", c.name, maxAnswer)
	case res.StatusCode >= 300 && res.StatusCode < 400 && res.Header.Get("Location") != "":
		c.moved.Store(true)
		return nil // the client follows it, or asks no further
	case res.StatusCode >= 300:
		refusal := c.refusalOf(res.StatusCode, res.Header, failure.Quote(errorText(data), secret))
		if refusal.After > 0 {
			c.limiter.pause(c.now().Add(refusal.After))
		}
		if res.StatusCode == http.StatusUnauthorized && c.renew != nil {
			c.renew(secret)
		}
		return refusal
	case wantsDiff(res.Request) && (len(data) == 0 || bytes.HasPrefix(data, []byte("diff --git "))):
	case !json.Valid(data) && (len(data) > 0 || !write):
		return failure.Misconfigured("What answers at %s is not %s: the answer is no JSON. Check the host's address.",
			c.base.Host, c.name)
	}
	return nil
}

// errorText is what an answer says in words: the message and its details, in the forms that the hosts have.
func errorText(data []byte) string {
	var said struct {
		Message json.RawMessage `json:"message"`
		Error   json.RawMessage `json:"error"`
		Errors  json.RawMessage `json:"errors"`
	}
	if json.Unmarshal(data, &said) != nil {
		return ""
	}
	var words []string
	for _, raw := range []json.RawMessage{said.Message, said.Error, said.Errors} {
		words = append(words, textsIn(raw, 0)...)
	}
	return strings.Join(words, "; ")
}

// textsIn collects the texts of a value that may be a text, a list, or an object of fields with lists.
func textsIn(raw json.RawMessage, depth int) []string {
	var text string
	var list []json.RawMessage
	var object map[string]json.RawMessage
	switch {
	case len(raw) == 0 || depth > 3:
		return nil
	case json.Unmarshal(raw, &text) == nil:
		if text == "" {
			return nil
		}
		return []string{text}
	case json.Unmarshal(raw, &list) == nil:
		var out []string
		for _, x := range list {
			out = append(out, textsIn(x, depth+1)...)
		}
		return out
	case json.Unmarshal(raw, &object) == nil:
		if m, ok := object["message"]; ok {
			return textsIn(m, depth+1)
		}
		var out []string
		for field, x := range object {
			switch field {
			case "resource", "field", "code", "documentation_url", "url":
				continue
			}
			for _, t := range textsIn(x, depth+1) {
				out = append(out, field+" "+t)
			}
		}
		return out
	}
	return nil
}

// limit reports whether an answer asks for fewer requests, and for how long none is welcome.
func (c *client) limit(status int, h http.Header, text string) (time.Duration, bool) {
	const atLeast, atMost = time.Second, 2 * time.Hour
	words := strings.ToLower(text)
	spent := h.Get("X-RateLimit-Remaining") == "0" || h.Get("RateLimit-Remaining") == "0"
	switch {
	case status == http.StatusTooManyRequests:
	case status == http.StatusForbidden &&
		(spent || h.Get("Retry-After") != "" || strings.Contains(words, "rate limit") ||
			strings.Contains(words, "abuse detection")):
	case status == http.StatusServiceUnavailable && h.Get("Retry-After") != "":
	default:
		return 0, false
	}
	now := c.now()
	if t, err := http.ParseTime(h.Get("Date")); err == nil {
		now = t // times that the host names are of its own clock
	}
	wait := time.Minute // what GitHub asks for if it says nothing
	if after := h.Get("Retry-After"); after != "" {
		if n, err := strconv.Atoi(after); err == nil && n >= 0 {
			wait = time.Duration(min(n, 1<<20)) * time.Second
		} else if t, err := http.ParseTime(after); err == nil {
			wait = t.Sub(now)
		}
	} else if spent || status == http.StatusTooManyRequests {
		for _, key := range []string{"X-RateLimit-Reset", "RateLimit-Reset"} {
			if n, err := strconv.ParseInt(h.Get(key), 10, 64); err == nil {
				wait = time.Unix(n, 0).Sub(now) + time.Second
				break
			}
		}
	}
	return min(max(wait, atLeast), atMost), true
}

// wantsDiff reports whether a request is for a change as git writes it, which is no JSON.
func wantsDiff(req *http.Request) bool {
	return req != nil && (strings.HasSuffix(req.URL.Path, ".diff") || strings.HasSuffix(req.URL.Path, "/raw_diffs") ||
		strings.HasSuffix(req.Header.Get("Accept"), ".diff"))
}

// ask sends one request of an API that no library is used for. What is nil is not sent, or not read.
func (c *client) ask(ctx context.Context, method, path string, query url.Values, send, receive any) error {
	var body io.Reader
	if send != nil {
		data, err := json.Marshal(send)
		if err != nil {
			return err
		}
		body = bytes.NewReader(data)
	}
	target := *c.base
	target.Path, target.RawPath = "", ""
	u := target.String() + c.base.EscapedPath() + path
	if len(query) > 0 {
		u += "?" + query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, method, u, body)
	if err != nil {
		return fmt.Errorf("ask %s: %w", c.name, err)
	}
	req.Header.Set("Accept", "application/json")
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := c.httpClient().Do(req)
	if err != nil {
		return c.failure(ctx, err)
	}
	defer res.Body.Close()
	if res.StatusCode >= 300 {
		return c.refusalOf(res.StatusCode, res.Header, "")
	}
	if receive == nil {
		return nil
	}
	if text, ok := receive.(*string); ok { // what is no JSON
		data, err := io.ReadAll(res.Body)
		*text = string(data)
		return c.failure(ctx, err)
	}
	if err := json.NewDecoder(res.Body).Decode(receive); err != nil {
		return c.unexpected(err)
	}
	return nil
}

func (c *client) unexpected(err error) error {
	return failure.Misconfigured("What answers at %s is not %s as it is known: %s. Check the host's address.", c.base.Host,
		c.name, failure.Quote(err.Error(), ""))
}

// failure is an error that a library hands back: what went wrong in the client stands in its chain.
func (c *client) failure(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	var e *failure.Error
	switch {
	case errors.As(err, &e):
		return e
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, failure.ErrMisconfigured), errors.Is(err, failure.ErrTemporary):
		return err
	}
	return c.unexpected(err)
}

// client is the way to the host's API with the project's credentials.
func (h *Hosts) client(
	p api.Project, name, base string, authorize func(h http.Header, secret string),
) (*client, error) {
	u, err := url.Parse(base)
	if err != nil || u.Host == "" {
		return nil, failure.Misconfigured("The host's address is not understood.")
	}
	what := "the token in " + p.TokenEnv
	if p.TokenFile != "" {
		what = p.Credentials()
	}
	if p.AppID != 0 {
		what = "the app's token"
	}
	key := base + " " + p.TokenEnv + p.TokenFile
	h.mu.Lock()
	if h.limiters[key] == nil {
		h.limiters[key] = newLimiter()
	}
	l := h.limiters[key]
	h.mu.Unlock()
	gap := time.Duration(0)
	if p.Host == api.HostGitHub {
		gap = h.o.WriteGap // no other host asks for one
	}
	return &client{
		hosts: h, name: name, what: what, repo: p.Repository, base: u, limiter: l, gap: gap, timeout: min(h.o.Timeout, time.Minute),
		now:       h.o.Now,
		secret:    func(ctx context.Context) (string, error) { return h.Secret(ctx, p) },
		authorize: authorize,
	}, nil
}
