// Package client speaks Docent's public API: it asks the assistant and searches, gives the agent jobs and follows them,
// and reads analytics.
//
// There is a method for each operation of the API, named after its operationId. On top of them stand [Client.Ask] and
// [Client.AskStream], which take up an answer whose connection broke; [Client.JobEvents] and [Client.WaitForJob], which
// follow a job; and iterators over whole lists, such as [Client.Jobs].
//
// Errors of the API are [*Error]; errors.Is tells them apart by [ErrNotFound], [ErrLimited] and the like. Every call
// ends with its context.
package client

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"docent/api"
	"docent/internal/backoff"
)

// A Client speaks the public API, as any other client does. It may be used by many goroutines at once.
type Client struct {
	Base string // address of the server
	Key  string // API key; none if empty
	// AssistantKey goes in place of Key with what readers do: questions, search, pages, and ratings. Key does if it is empty.
	AssistantKey string
	HTTP         *http.Client // http.DefaultClient if nil; without a timeout of its own, as answers stream
	// Retries is how often in a row a request is tried again after a lost connection, 502, 503 or 504, if it can be
	// repeated without doing anything twice: reading, and what has an idempotency key. Not at all if 0. Streams that
	// break are taken up in any case.
	Retries int
	// ReaderToken gives the token by which your server says who the reader is, for documentation that is private; none if
	// nil or if it gives none. It is called for each request. Fresh is whether the server has refused the one before.
	ReaderToken func(ctx context.Context, fresh bool) (string, error)
	// NoProof makes a question fail if the project asks for a proof of work: AskStream does it otherwise.
	NoProof bool
	// Reconnecting is called each time a stream that broke is about to be taken up. May be nil.
	Reconnecting func(error)
}

// New returns a client that tries again what it may repeat.
func New(base, key string) *Client { return &Client{Base: base, Key: key, Retries: 4} }

// An Option changes one call.
type Option func(*http.Request)

// IdempotencyKey names a request: if it comes again with the same body, it is not carried out again for 24 hours.
func IdempotencyKey(key string) Option { return Header("Idempotency-Key", key) }

// Header sets a header of the request.
func Header(name, value string) Option {
	return func(req *http.Request) { req.Header.Set(name, value) }
}

// Query adds a parameter to the request's address, unless its value is empty.
func Query(name, value string) Option {
	return func(req *http.Request) {
		if value == "" {
			return
		}
		q := req.URL.Query()
		q.Set(name, value)
		req.URL.RawQuery = q.Encode()
	}
}

// Do sends a request with a JSON body (none if body is nil). The caller closes the response's body. An answer that
// is no success becomes an error with the server's own sentence.
func (c *Client) Do(ctx context.Context, method, path string, body any, options ...Option) (*http.Response, error) {
	if u, err := url.Parse(c.Base); err != nil || u.Host == "" {
		return nil, &AddressError{c.Base}
	}
	text, raw := body.(json.RawMessage) // whose bytes may be signed
	if body != nil && !raw {
		var err error
		if text, err = json.Marshal(body); err != nil {
			return nil, fmt.Errorf("encode the request: %w", err)
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(c.Base, "/")+path, bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	key := c.Key
	if c.AssistantKey != "" && strings.HasPrefix(path, "/discovery/") {
		key = c.AssistantKey
	}
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	for _, o := range options {
		o(req)
	}
	repeatable := method == http.MethodGet || method == http.MethodHead || req.Header.Get("Idempotency-Key") != ""
	for tries := 1; ; tries++ {
		resp, err := c.identified(req)
		if err == nil || !repeatable || tries > c.Retries || final(err) || ctx.Err() != nil {
			return resp, err
		}
		if err := pause(ctx, tries, err); err != nil {
			return nil, err
		}
		if req.GetBody != nil {
			if req.Body, err = req.GetBody(); err != nil {
				return nil, err
			}
		}
	}
}

// identified sends a request with the reader's token. One that is refused is fetched again, once.
func (c *Client) identified(req *http.Request) (*http.Response, error) {
	if c.ReaderToken == nil {
		return c.once(req)
	}
	for fresh := false; ; fresh = true {
		token, err := c.ReaderToken(req.Context(), fresh)
		if err != nil {
			return nil, fmt.Errorf("get the reader token: %w", err)
		}
		req.Header.Del(readerHeader)
		if token != "" {
			req.Header.Set(readerHeader, token)
		}
		resp, err := c.once(req)
		var refused *Error
		if fresh || !errors.As(err, &refused) || refused.Code != "reader_token" {
			return resp, err
		}
		if req.GetBody != nil {
			if req.Body, err = req.GetBody(); err != nil {
				return nil, err
			}
		}
	}
}

const readerHeader = "X-Docent-Reader"

func (c *Client) once(req *http.Request) (*http.Response, error) {
	resp, err := cmp.Or(c.HTTP, http.DefaultClient).Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode >= 300 {
		defer resp.Body.Close()
		return nil, responseError(resp)
	}
	return resp, nil
}

// longestPause bounds how long a server can have a client wait before its next try.
const longestPause = 30 * time.Second

var growing = backoff.Exponential(500*time.Millisecond, 10*time.Second)

// pause waits before another try: at least as long as the server asked for.
func pause(ctx context.Context, tries int, err error) error {
	d := growing(tries)
	if refused, ok := errors.AsType[*Error](err); ok {
		d = max(d, min(refused.RetryAfter, longestPause))
	}
	return backoff.Sleep(ctx, d)
}

// final reports whether the same request would be refused again.
func final(err error) bool {
	var address *AddressError
	var answer *Error
	if !errors.As(err, &answer) {
		return errors.As(err, &address)
	}
	switch answer.Status {
	case http.StatusServiceUnavailable, http.StatusBadGateway, http.StatusGatewayTimeout:
		return false
	}
	return true
}

// An AddressError says that a server's address cannot be one.
type AddressError struct{ Address string }

func (e *AddressError) Error() string {
	return fmt.Sprintf("the server's address %q is not one such as http://127.0.0.1:8080", e.Address)
}

// What errors.Is tells errors of the API apart by.
var (
	ErrInvalid      = api.ErrInvalid      // 400, 413, 415: Details says what is wrong
	ErrUnauthorized = api.ErrUnauthorized // 401
	ErrForbidden    = api.ErrForbidden    // 403
	ErrNotFound     = api.ErrNotFound     // 404
	ErrConflict     = api.ErrConflict     // 409
	ErrLimited      = api.ErrLimited      // 429: RetryAfter says when to come back
	ErrOverloaded   = api.ErrOverloaded   // 503, and what proxies answer: not now
)

// An Error is an error answer of the API.
type Error struct {
	Status     int
	Code       string // stable; empty if something other than Docent answered
	Message    string
	Details    []api.Problem // each field that is wrong
	Limit      string        // the quota that is used up
	Challenge  string        // if a proof of work can be had that the project asks for; AskStream does it by itself
	RequestID  string        // in the server's log
	RetryAfter time.Duration // 0 if the server does not say
}

func (e *Error) Error() string {
	text := fmt.Sprintf("%s (%d %s)", e.Message, e.Status, e.Code)
	for _, d := range e.Details {
		if e.Message == d.Message || strings.Contains(e.Message, d.Field+" "+d.Message) { // it says so of the first fields
			continue
		}
		text += fmt.Sprintf("\n  %s: %s", d.Field, d.Message)
	}
	return text
}

// Unwrap is the sentinel of the status; nil for one that has none.
func (e *Error) Unwrap() error {
	switch e.Status {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType:
		return ErrInvalid
	case http.StatusUnauthorized:
		return ErrUnauthorized
	case http.StatusForbidden:
		return ErrForbidden
	case http.StatusNotFound:
		return ErrNotFound
	case http.StatusConflict:
		return ErrConflict
	case http.StatusTooManyRequests:
		return ErrLimited
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return ErrOverloaded
	}
	return nil
}

// responseError is what an answer says that is no success.
func responseError(resp *http.Response) error {
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	var body struct {
		Message   string        `json:"message"`
		Code      string        `json:"code"`
		Details   []api.Problem `json:"details"`
		Limit     string        `json:"limit"`
		Challenge string        `json:"challenge"`
		RequestID string        `json:"requestId"`
	}
	if json.Unmarshal(text, &body) != nil || body.Message == "" {
		body.Message = "the server answered " + resp.Status
	}
	seconds, _ := strconv.Atoi(resp.Header.Get("Retry-After"))
	return &Error{
		Status:     resp.StatusCode,
		Code:       body.Code,
		Message:    body.Message,
		Details:    body.Details,
		Limit:      body.Limit,
		Challenge:  body.Challenge,
		RequestID:  cmp.Or(body.RequestID, resp.Header.Get("X-Request-Id")),
		RetryAfter: time.Duration(seconds) * time.Second,
	}
}

// Get reads one resource into out.
func (c *Client) Get(ctx context.Context, path string, out any, options ...Option) error {
	resp, err := c.Do(ctx, http.MethodGet, path, nil, options...)
	if err != nil {
		return err
	}
	return decodeBody(resp, out)
}

// Post sends a body and reads the answer into out.
func (c *Client) Post(ctx context.Context, path string, body, out any, options ...Option) error {
	resp, err := c.Do(ctx, http.MethodPost, path, body, options...)
	if err != nil {
		return err
	}
	return decodeBody(resp, out)
}

func decodeBody(resp *http.Response, out any) error {
	defer resp.Body.Close()
	if out == nil {
		return nil
	}
	if err := json.NewDecoder(resp.Body).Decode(out); err != nil {
		return fmt.Errorf("read the server's answer: %w", err)
	}
	return nil
}

// get reads a resource of type T.
func get[T any](ctx context.Context, c *Client, path string, options ...Option) (out T, err error) {
	return out, c.Get(ctx, path, &out, options...)
}

// post sends a body and reads an answer of type T.
func post[T any](ctx context.Context, c *Client, path string, body any, options ...Option) (out T, err error) {
	return out, c.Post(ctx, path, body, &out, options...)
}

// path puts an address together; what may hold any character is escaped.
func path(parts ...string) string {
	var b strings.Builder
	for i, p := range parts {
		if i%2 == 1 {
			p = url.PathEscape(p)
		}
		b.WriteString(p)
	}
	return b.String()
}

// named names a request that would otherwise have no idempotency key, if requests are repeated.
func (c *Client) named(options []Option) []Option {
	if c.Retries == 0 {
		return options
	}
	return append([]Option{IdempotencyKey(rand.Text())}, options...)
}
