package router

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"docent/api"
	"docent/forge"
	"docent/search"
)

// statusGone stands in the log for a caller that left before there was an answer; nothing is sent with it.
const statusGone = 499

// errPanic answers a request whose handler panicked. What happened stands in the log.
var errPanic = errors.New("panic")

// A syntaxError says that the body is no JSON that can be read.
type syntaxError struct{ reason string }

func (e *syntaxError) Error() string { return e.reason }

// A sizeError says that the body is larger than allowed.
type sizeError struct{ limit int64 }

func (e *sizeError) Error() string {
	return fmt.Sprintf("the body is larger than %d bytes, which is the most that is taken", e.limit)
}

// A mediaError says that the body is of another kind than JSON.
type mediaError struct{ reason string }

func (e *mediaError) Error() string { return e.reason }

// A methodError says which methods the path does take.
type methodError struct {
	method string
	allow  []string
}

func (e *methodError) Error() string {
	return fmt.Sprintf("this path does not take the method %s; it takes %s", e.method, strings.Join(e.allow, ", "))
}

// A keyError refuses a key; challenge is what the WWW-Authenticate header says beyond the scheme.
type keyError struct {
	kind      error // api.ErrUnauthorized or api.ErrForbidden
	reason    string
	challenge string
}

func (e *keyError) Error() string { return e.reason }
func (e *keyError) Unwrap() error { return e.kind }

// missing says what was not found. It has the same words for what nobody made and for what belongs to somebody else.
func missing(what string) error {
	return &api.StateError{Kind: api.ErrNotFound, Reason: "there is no such " + what}
}

// named gives api.ErrNotFound the name of what was looked for, and leaves other errors alone.
func named(err error, what string) error {
	var state *api.StateError
	if errors.Is(err, api.ErrNotFound) && !errors.As(err, &state) {
		return missing(what)
	}
	return err
}

// An answer is an error as the caller reads it.
type answer struct {
	status  int
	code    string
	message string
	details []api.Problem
}

// errorBody is the one form of an error on the wire. Clients read "error" on most operations, "message" on the page
// operation, and chat clients show all of it.
type errorBody struct {
	Error     string        `json:"error"`
	Message   string        `json:"message"`
	Code      string        `json:"code"`
	Details   []api.Problem `json:"details,omitempty"`
	RequestID string        `json:"requestId"`
}

// read is the one table from errors to statuses, codes and headers.
func read(err error, h http.Header) answer {
	var (
		invalid *api.InvalidError
		syntax  *syntaxError
		size    *sizeError
		media   *mediaError
		method  *methodError
		key     *keyError
		limit   *api.LimitError
	)
	switch {
	case errors.As(err, &syntax):
		return answer{http.StatusBadRequest, "invalid_json", syntax.reason, []api.Problem{{Field: "body", Message: syntax.reason}}}
	case errors.As(err, &invalid):
		return answer{http.StatusBadRequest, "invalid_request", summary(invalid), invalid.Problems}
	case errors.Is(err, api.ErrInvalid):
		return answer{http.StatusBadRequest, "invalid_request", words(err, api.ErrInvalid), nil}
	case errors.Is(err, api.ErrUnauthorized):
		h.Set("WWW-Authenticate", `Bearer realm="docent"`)
		if errors.As(err, &key) && key.challenge != "" {
			h.Set("WWW-Authenticate", `Bearer realm="docent", `+key.challenge)
		}
		return answer{http.StatusUnauthorized, "unauthorized", words(err, api.ErrUnauthorized), nil}
	case errors.Is(err, api.ErrForbidden):
		if errors.As(err, &key) && key.challenge != "" {
			h.Set("WWW-Authenticate", `Bearer realm="docent", `+key.challenge)
		}
		return answer{http.StatusForbidden, "forbidden", words(err, api.ErrForbidden), nil}
	case errors.Is(err, api.ErrNotFound):
		return answer{http.StatusNotFound, "not_found", words(err, api.ErrNotFound), nil}
	case errors.As(err, &method):
		h.Set("Allow", strings.Join(method.allow, ", "))
		return answer{http.StatusMethodNotAllowed, "method_not_allowed", method.Error(), nil}
	case errors.As(err, &media):
		h.Set("Accept-Post", "application/json")
		return answer{http.StatusUnsupportedMediaType, "unsupported_media_type", media.reason, nil}
	case errors.As(err, &size):
		return answer{http.StatusRequestEntityTooLarge, "body_too_large", size.Error(), nil}
	case errors.Is(err, forge.ErrMergeConflict):
		return answer{http.StatusConflict, "conflict", forge.ErrMergeConflict.Error(), nil}
	case errors.Is(err, api.ErrConflict):
		return answer{http.StatusConflict, "conflict", words(err, api.ErrConflict), nil}
	case errors.As(err, &limit):
		h.Set("Retry-After", seconds(limit.RetryAfter))
		return answer{http.StatusTooManyRequests, "rate_limited", fmt.Sprintf("the %s limit of %d uses is used up, try again in %s seconds",
			limit.Name, limit.Limit, seconds(limit.RetryAfter)), nil}
	case errors.Is(err, api.ErrLimited):
		h.Set("Retry-After", "60")
		return answer{http.StatusTooManyRequests, "rate_limited", api.ErrLimited.Error(), nil}
	case errors.Is(err, api.ErrShuttingDown), errors.Is(err, api.ErrOverloaded), errors.Is(err, api.ErrUnavailable):
		h.Set("Retry-After", seconds(retryAfter(err)))
		switch {
		case errors.Is(err, api.ErrShuttingDown):
			return answer{http.StatusServiceUnavailable, "shutting_down", api.ErrShuttingDown.Error(), nil}
		case errors.Is(err, api.ErrUnavailable):
			return answer{http.StatusServiceUnavailable, "overloaded", api.ErrUnavailable.Error(), nil}
		}
		return answer{http.StatusServiceUnavailable, "overloaded", api.ErrOverloaded.Error(), nil}
	case errors.Is(err, search.ErrNotIndexed):
		h.Set("Retry-After", "2")
		return answer{http.StatusServiceUnavailable, "overloaded", "the documentation is being indexed, try again shortly", nil}
	case errors.Is(err, context.DeadlineExceeded):
		h.Set("Retry-After", "1")
		return answer{http.StatusServiceUnavailable, "overloaded", "the service did not answer in time; look whether the request took effect before you repeat it", nil}
	default:
		return answer{http.StatusInternalServerError, "internal", "something went wrong here; the log knows it under this request id", nil}
	}
}

// retryAfter is when somebody who was refused may come back.
func retryAfter(err error) time.Duration {
	var busy *api.BusyError
	if errors.As(err, &busy) && busy.RetryAfter > 0 {
		return busy.RetryAfter
	}
	return time.Second
}

// words are what a person may read of an error: the reason that was given for it, or the sentinel's own sentence. What it
// was wrapped with is for the log.
func words(err, sentinel error) string {
	var (
		state *api.StateError
		key   *keyError
	)
	switch {
	case errors.As(err, &key):
		return key.reason
	case errors.As(err, &state):
		return state.Reason
	}
	return sentinel.Error()
}

// summary is an invalid request in one sentence, which names the first few problems.
func summary(e *api.InvalidError) string {
	const shown = 3
	var b strings.Builder
	b.WriteString(api.ErrInvalid.Error())
	for i, p := range e.Problems {
		if i == shown {
			fmt.Fprintf(&b, "; and %d more", len(e.Problems)-shown)
			break
		}
		b.WriteString([]string{": ", "; "}[min(i, 1)])
		b.WriteString(p.Field)
		b.WriteString(" ")
		b.WriteString(p.Message)
	}
	return b.String()
}

// seconds rounds up, so that who waits as long is not refused again for a fraction.
func seconds(d time.Duration) string {
	return strconv.Itoa(max(1, int(math.Ceil(d.Seconds()))))
}

// fail writes the error, unless the response has begun.
func (s *Server) fail(x *exchange, req *http.Request, err error) {
	if err != errPanic {
		x.err = err
	}
	if x.status != 0 {
		return
	}
	if errors.Is(err, context.Canceled) && req.Context().Err() != nil {
		x.code = "client_gone"
		return // nobody reads it
	}
	h := x.Header()
	for _, name := range []string{"Content-Length", "ETag", "Cache-Control"} {
		h.Del(name)
	}
	a := read(err, h)
	x.code = a.code
	if a.status < 500 {
		x.err = nil // the code says it
	}
	if x.page && wantsPage(req) {
		s.failPage(x, req, a)
		return
	}
	body, err := json.Marshal(errorBody{Error: a.message, Message: a.message, Code: a.code, Details: a.details, RequestID: x.id})
	if err != nil {
		body = []byte(`{}`) // strings only: cannot happen
	}
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	x.deadline()
	x.WriteHeader(a.status)
	x.Write(body) // a caller that has gone is no error of ours
}
