package router

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"docent/api"
	"docent/api/client"
	"docent/forge"
	"docent/persistence/cluster"
	"docent/persistence/journal"
	"docent/router/overload"
	"docent/router/reqbody"
	"docent/search"
)

// statusGone stands in the log for a caller that left before there was an answer; nothing is sent with it.
const statusGone = 499

// errPanic answers a request whose handler panicked. What happened stands in the log.
var errPanic = errors.New("panic")

// errHead answers a request with more header fields than are taken.
var errHead = errors.New("too many header fields")

// A methodError says which methods the path does take.
type methodError struct {
	method string
	allow  []string
}

func (e *methodError) Error() string {
	return fmt.Sprintf("this path does not take the method %s; it takes %s", e.method, strings.Join(e.allow, ", "))
}

// A keyError refuses a key or a reader token; challenge is what the WWW-Authenticate header says beyond the scheme, and
// code is that of the answer if it is not the one of its kind.
type keyError struct {
	kind      error // api.ErrUnauthorized or api.ErrForbidden
	reason    string
	challenge string
	code      string
}

func (e *keyError) Error() string { return e.reason }
func (e *keyError) Unwrap() error { return e.kind }

// An answer is an error as the caller reads it.
type answer struct {
	status  int
	code    string
	message string
	details []api.Problem
	limit   string

	challenge string
	retry     string // seconds, if there is no header for it yet
}

func refusal(status int, code, message string) answer {
	return answer{status: status, code: code, message: message}
}

// errorBody is the one form of an error on the wire. Clients read "error" on most operations, "message" on the page
// operation, and chat clients show all of it.
type errorBody struct {
	Error     string        `json:"error"`
	Message   string        `json:"message"`
	Code      string        `json:"code"`
	Limit     string        `json:"limit,omitempty"` // which quota is used up
	Details   []api.Problem `json:"details,omitempty"`
	Challenge string        `json:"challenge,omitempty"` // if there is one to solve, for a proof of work
	RequestID string        `json:"requestId"`
}

// read is the one table from errors to statuses, codes and headers.
func read(err error, h http.Header) answer {
	var (
		invalid *api.InvalidError
		syntax  *reqbody.SyntaxError
		size    *reqbody.SizeError
		media   *reqbody.MediaError
		method  *methodError
		limit   *api.LimitError
		taken   *budgetError
		work    *workError
		failed  *client.AnswerError
	)
	switch {
	case errors.As(err, new(*cluster.ElsewhereError)): // the request is sent there, and nobody reads this
		return refusal(http.StatusMisdirectedRequest, "elsewhere", "another node of this service answers this")
	case errors.Is(err, errHead):
		return unread(http.StatusRequestHeaderFieldsTooLarge, "")
	case errors.As(err, &syntax):
		return answer{status: http.StatusBadRequest, code: "invalid_json", message: syntax.Reason,
			details: []api.Problem{{Field: "body", Message: syntax.Reason}}}
	case errors.As(err, &invalid):
		return answer{status: http.StatusBadRequest, code: "invalid_request", message: summary(invalid),
			details: invalid.Problems}
	case errors.Is(err, api.ErrInvalid):
		return refusal(http.StatusBadRequest, "invalid_request", words(err, api.ErrInvalid))
	case errors.Is(err, api.ErrUnauthorized):
		h.Set("WWW-Authenticate", `Bearer realm="docent"`)
		return refuseKey(err, h, refusal(http.StatusUnauthorized, "unauthorized", words(err, api.ErrUnauthorized)))
	case errors.As(err, &work):
		return answer{status: http.StatusForbidden, code: "proof_of_work", message: work.Error(), challenge: work.challenge}
	case errors.Is(err, api.ErrForbidden):
		return refuseKey(err, h, refusal(http.StatusForbidden, "forbidden", words(err, api.ErrForbidden)))
	case errors.Is(err, api.ErrNotFound):
		return refusal(http.StatusNotFound, "not_found", words(err, api.ErrNotFound))
	case errors.As(err, &method):
		h.Set("Allow", strings.Join(method.allow, ", "))
		return refusal(http.StatusMethodNotAllowed, "method_not_allowed", method.Error())
	case errors.As(err, &media):
		h.Set("Accept-Post", "application/json")
		return refusal(http.StatusUnsupportedMediaType, "unsupported_media_type", media.Reason)
	case errors.As(err, &size):
		return refusal(http.StatusRequestEntityTooLarge, "body_too_large", size.Error())
	case errors.Is(err, forge.ErrMergeConflict):
		return refusal(http.StatusConflict, "conflict", forge.ErrMergeConflict.Error())
	case errors.Is(err, api.ErrConflict):
		return refusal(http.StatusConflict, "conflict", words(err, api.ErrConflict))
	case errors.As(err, &limit):
		h.Set("Retry-After", seconds(limit.RetryAfter))
		return answer{status: http.StatusTooManyRequests, code: "rate_limited", message: usedUp(limit), limit: limit.Name}
	case errors.As(err, &taken):
		return taken.answer(h)
	case errors.Is(err, api.ErrLimited):
		h.Set("Retry-After", "60")
		return refusal(http.StatusTooManyRequests, "rate_limited", "Too many requests came. Please try again in a minute.")
	case errors.Is(err, api.ErrShuttingDown), errors.Is(err, api.ErrOverloaded), errors.Is(err, api.ErrUnavailable):
		h.Set("Retry-After", seconds(retryAfter(err)))
		return busy(err)
	case errors.As(err, &failed):
		return refusal(http.StatusServiceUnavailable, "no_answer", failed.Reason)
	case errors.Is(err, search.ErrNotIndexed):
		h.Set("Retry-After", "2")
		return refusal(http.StatusServiceUnavailable, "overloaded", "the documentation is being indexed, try again shortly")
	case errors.Is(err, context.DeadlineExceeded):
		h.Set("Retry-After", "1")
		return refusal(http.StatusServiceUnavailable, "overloaded",
			"the service did not answer in time; look whether the request took effect before you repeat it")
	default:
		return refusal(http.StatusInternalServerError, "internal",
			"something went wrong here; the log knows it under this request id")
	}
}

// refuseKey adds to a refusal what its error knows of the key or the reader token.
func refuseKey(err error, h http.Header, a answer) answer {
	if key, ok := errors.AsType[*keyError](err); ok {
		if key.challenge != "" {
			h.Set("WWW-Authenticate", `Bearer realm="docent", `+key.challenge)
		}
		a.code = cmp.Or(key.code, a.code)
	}
	return a
}

// busy says why a request was not accepted.
func busy(err error) answer {
	switch {
	case errors.Is(err, api.ErrShuttingDown):
		return refusal(http.StatusServiceUnavailable, "shutting_down", api.ErrShuttingDown.Error())
	case errors.Is(err, api.ErrUnavailable):
		return refusal(http.StatusServiceUnavailable, "overloaded", api.ErrUnavailable.Error())
	}
	return refusal(http.StatusServiceUnavailable, "overloaded", api.ErrOverloaded.Error())
}

// retryAfter is when somebody who was refused may come back.
func retryAfter(err error) time.Duration {
	if busy, ok := errors.AsType[*api.BusyError](err); ok && busy.RetryAfter > 0 {
		return busy.RetryAfter
	}
	return time.Second
}

// words are what a person may read of an error: the reason that was given for it, or the sentinel's own sentence.
// What it was wrapped with is for the log.
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

// usedUp says that a quota is used up, in words for a reader of the site: chat clients show what they are answered. The
// numbers, about which only the site's operators can do something, stand in the log and in the headers.
func usedUp(e *api.LimitError) string {
	what := "Too many requests came."
	switch e.Name {
	case projectHour:
		what = fmt.Sprintf("This project has used up its %d jobs and follow-ups of an hour.", e.Limit)
	case keyMonth:
		what = "The assistant has answered as many questions as it may this month."
	case orgHour:
		what = "The assistant is asked more than it may answer at the moment."
	case ipDay, ipShare:
		what = "Too many questions came from your network today."
	}
	return what + " Please try again in " + overload.InWords(e.RetryAfter) + "."
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
	if elsewhere := (*cluster.ElsewhereError)(nil); errors.As(err, &elsewhere) {
		cluster.Note(req.Context(), elsewhere) // of one that was met outside of the request's own context, too
	}
	if x.status != 0 {
		return
	}
	if errors.Is(err, cluster.ErrLeft) || errors.Is(err, context.Canceled) && req.Context().Err() != nil {
		x.code, x.aborted = "client_gone", true
		return // nobody reads it, or one who has half closed the connection: that must not look like an answer
	}
	if errors.Is(err, journal.ErrUnknown) {
		x.code, x.aborted = "unknown", true
		return // 503 says that nothing happened; a connection that breaks says that nobody knows
	}
	h := x.Header()
	for _, name := range []string{"Content-Length", "Content-Encoding", "ETag", "Cache-Control"} {
		h.Del(name)
	}
	a := read(err, h)
	s.OAuth.Challenge(h, a.status, req.URL.EscapedPath())
	x.code = a.code
	if taken := (*budgetError)(nil); errors.As(err, &taken) || err == errHead {
		x.cutBody(req)
	}
	if a.status < 500 && a.limit == "" {
		x.err = nil // the code says it
	}
	if x.page && wantsPage(req) {
		s.failPage(x, req, a)
		return
	}
	var form any = errorBody{Error: a.message, Message: a.message, Code: a.code, Limit: a.limit, Details: a.details,
		Challenge: a.challenge, RequestID: x.id}
	if x.openai {
		form = client.OpenAIErrorOf(a.status, a.code, a.message, a.details)
	}
	body, err := marshal(form)
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
