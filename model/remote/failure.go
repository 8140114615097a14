package remote

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"docent/internal/brief"
	"docent/internal/outbound"
	"docent/model"
)

// A Failure says why a model gave no answer, or only the beginning of one. Its text holds no secret and nothing that
// the provider wrote beyond its own short message.
type Failure struct {
	Model      string        // as configured
	Host       string        // of its address
	Reason     string        // for a person
	Detail     string        // for the log: what the provider said
	Status     int           // of the provider's answer; 0 if there was none
	RetryAfter time.Duration // when the provider wants to be asked again; 0 if it does not say
	temporary  bool
	silent     bool  // the provider fell silent: the reader has waited long enough
	spent      bool  // no credit is left
	cause      error // ErrTooLong or ErrRefused if it is one of these
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

// Silent reports whether the provider did not answer in time.
func (f *Failure) Silent() bool { return f.silent }

// Spent reports whether somebody has to pay before it answers again.
func (f *Failure) Spent() bool { return f.spent }

// Temporary reports whether the same question may well succeed later.
func (f *Failure) Temporary() bool { return f.temporary || f.silent }

// Replaceable reports whether the built-in model may answer in place of this one after an error: it could not be
// reached, failed, fell silent or refused its key. A model that declined has decided, and the configuration may ask for
// errors instead (NoFallback).
func (r *Model) Replaceable(cause error) bool {
	var f *Failure
	return !r.NoFallback && errors.As(cause, &f) && !errors.Is(cause, model.ErrRefused)
}

// Why a call was ended from this side.
var (
	errIdle   = errors.New("the provider fell silent")
	errTotal  = errors.New("the answer took too long")
	errStream = errors.New("the provider did not send an event stream")
	errSize   = errors.New("the provider sent more than an answer may have")
)

// clean is an error as it may be shown: without the key and the address, in one short line.
func (r *Model) clean(err error) string {
	s := outbound.Cause(err).Error()
	if key := r.key(); key != "" {
		s = strings.ReplaceAll(s, key, "[key]")
	}
	words := strings.Fields(s)
	for i, w := range words {
		if bare := strings.Trim(w, `"'.,:;()`); strings.HasPrefix(bare, "sk-") && len(bare) > 6 {
			words[i] = "[key]" // providers quote a part of the key that they refuse
		}
	}
	const most = 240
	s = strings.ToValidUTF8(strings.Join(words, " "), "")
	s = brief.Bytes(s, most, "…")
	return s
}

// failure says why a try at an exchange failed.
func (r *Model) failure(ctx context.Context, x *exchange, err error) *Failure {
	f := &Failure{Model: r.name, Host: r.host, Status: x.status, RetryAfter: x.retryAfter(time.Now())}
	var report *reported
	if errors.As(err, &report) {
		f.cause = report.means
	}
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errIdle):
		f.Reason, f.Status, f.silent = "stopped answering", 0, true
	case errors.Is(cause, errTotal):
		f.Reason, f.Status = "took too long to answer", 0
	case errors.Is(err, errStream):
		f.Reason = "did not answer with a stream"
	case x.over || errors.Is(err, errSize):
		f.Reason = "sent more than an answer may have"
	case f.cause == model.ErrTooLong:
		f.Reason = "has no room for the conversation"
	case f.cause == model.ErrRefused:
		f.Reason = "declined to answer"
	case report != nil && report.spent:
		f.Reason, f.spent = "has no credit left", true
	case x.status == http.StatusTooManyRequests:
		f.Reason, f.temporary = "is asked too often", true
	case x.status == http.StatusRequestTimeout || x.status >= 500:
		f.Reason, f.temporary = "is not available", true
	case x.status == http.StatusUnauthorized || x.status == http.StatusForbidden:
		f.Reason = "refuses its key"
	case x.status == http.StatusNotFound:
		f.Reason = "is not known at its address"
	case x.status >= 300:
		f.Reason = "refuses the question"
	case report != nil:
		f.Reason, f.temporary = "reported an error", report.temporary
	case x.status == 0:
		f.Reason, f.temporary = "cannot be reached", true
	default:
		f.Reason, f.temporary = "broke off", true
	}
	f.Detail = r.clean(err)
	if noTools(f) {
		f.temporary = false // it was started so
	}
	return f
}
