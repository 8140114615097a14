package tracing

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// A Span is one step of a trace. The zero Span is none: its methods do nothing.
type Span struct{ span trace.Span }

// Kinds of spans, by the side that they are on.
const (
	Internal = trace.SpanKindInternal
	Server   = trace.SpanKindServer
	Client   = trace.SpanKindClient
	Producer = trace.SpanKindProducer
)

// tracerKey leads to the *Tracer of a context that is traced. It is nil if the trace is not sampled.
type tracerKey struct{}

// traced is the tracer of a context; decided is whether a trace has begun, be it sampled or not.
func traced(ctx context.Context) (t *Tracer, decided bool) {
	if on.Load() == 0 {
		return nil, true
	}
	t, decided = ctx.Value(tracerKey{}).(*Tracer)
	return t, decided
}

// Start begins a step of the context's trace. If the context has none, there is no span.
func Start(ctx context.Context, name string) (context.Context, Span) {
	return StartAs(ctx, name, Internal)
}

// StartAs is Start for a span of another kind.
func StartAs(ctx context.Context, name string, kind trace.SpanKind) (context.Context, Span) {
	t, _ := traced(ctx)
	if t == nil {
		return ctx, Span{}
	}
	ctx, span := t.tracer.Start(ctx, name, trace.WithSpanKind(kind))
	return ctx, Span{span}
}

// An Origin is where a request says that its trace began.
type Origin struct {
	Parent  trace.SpanContext // of the caller; invalid for none
	Trusted bool              // the caller may say whether it is sampled, and the trace goes on
}

// Root begins a trace. The span is the zero Span if it is not sampled: then nothing below it is traced either.
func (t *Tracer) Root(ctx context.Context, name string, kind trace.SpanKind, at time.Time, from Origin) (
	context.Context, Span) {
	if t == nil {
		return ctx, Span{}
	}
	options := []trace.SpanStartOption{trace.WithSpanKind(kind), trace.WithTimestamp(at)}
	parent := ctx
	switch {
	case from.Parent.IsValid() && from.Trusted:
		parent = trace.ContextWithRemoteSpanContext(ctx, from.Parent)
	case from.Parent.IsValid():
		options = append(options, trace.WithNewRoot(), trace.WithLinks(trace.Link{SpanContext: from.Parent}))
	default:
		options = append(options, trace.WithNewRoot())
	}
	begun, span := t.tracer.Start(parent, name, options...)
	if !span.IsRecording() {
		return context.WithValue(ctx, tracerKey{}, (*Tracer)(nil)), Span{}
	}
	return context.WithValue(begun, tracerKey{}, t), Span{span}
}

// Begin is Root if the context has no trace yet, for what the server does by itself as well as for others. If
// one has begun, or is not sampled, nothing begins.
func (t *Tracer) Begin(ctx context.Context, name string) (context.Context, Span) {
	if _, decided := traced(ctx); decided || t == nil {
		return ctx, Span{}
	}
	return t.Root(ctx, name, Internal, time.Now(), Origin{})
}

// At is the span that the context is in.
func At(ctx context.Context) Span {
	if t, _ := traced(ctx); t == nil {
		return Span{}
	}
	return Span{trace.SpanFromContext(ctx)}
}

// On reports whether somebody will see what is said of the span.
func (s Span) On() bool { return s.span != nil }

// Str says something of the span. Texts of users and secrets are never said: ids and names of the configuration are.
func (s Span) Str(key, value string) {
	if s.span != nil && value != "" {
		s.span.SetAttributes(attribute.String(key, value))
	}
}

// Int says a number.
func (s Span) Int(key string, value int64) {
	if s.span != nil {
		s.span.SetAttributes(attribute.Int64(key, value))
	}
}

// Seconds says how long a part took.
func (s Span) Seconds(key string, value time.Duration) {
	if s.span != nil {
		s.span.SetAttributes(attribute.Float64(key, value.Seconds()))
	}
}

// Bool reports whether.
func (s Span) Bool(key string, value bool) {
	if s.span != nil {
		s.span.SetAttributes(attribute.Bool(key, value))
	}
}

// Strs says several names.
func (s Span) Strs(key string, values ...string) {
	if s.span != nil {
		s.span.SetAttributes(attribute.StringSlice(key, values))
	}
}

// Event says that something happened within the span, now.
func (s Span) Event(name string) {
	if s.span != nil {
		s.span.AddEvent(name)
	}
}

// Name gives the span another name, once it is known.
func (s Span) Name(name string) {
	if s.span != nil {
		s.span.SetName(name)
	}
}

// Failed marks the span as one that went wrong. What the error says in words is not for traces: it is in the log, with
// the trace's id.
func (s Span) Failed(kind string) {
	if s.span != nil {
		s.span.SetAttributes(attribute.String("error.type", kind))
		s.span.SetStatus(codes.Error, "")
	}
}

// End ends the span.
func (s Span) End() {
	if s.span != nil {
		s.span.End()
	}
}

// Done ends the span of something that returned err.
func (s Span) Done(err error) {
	if s.span == nil {
		return
	}
	if err != nil {
		s.Failed(Kind(err))
	}
	s.span.End()
}

// Kind is a short name of what went wrong, without the words of the error: those may be a user's.
func Kind(err error) string {
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		return "timeout"
	case errors.Is(err, context.Canceled):
		return "cancelled"
	}
	if net := (net.Error)(nil); errors.As(err, &net) && net.Timeout() {
		return "timeout"
	}
	return named(err)
}

// named is the type of the first error in the chain that has a type of its own.
func named(err error) string {
	for err != nil {
		name := strings.TrimPrefix(fmt.Sprintf("%T", err), "*")
		switch name {
		case "errors.errorString", "fmt.wrapError", "fmt.wrapErrors", "errors.joinError":
		default:
			return name
		}
		switch wrapped := err.(type) {
		case interface{ Unwrap() []error }:
			for _, one := range wrapped.Unwrap() {
				if name := named(one); name != other {
					return name
				}
			}
			return other
		default:
			err = errors.Unwrap(err)
		}
	}
	return other
}

// other is what OpenTelemetry calls an error that has no name.
const other = "_OTHER"

// Carried is the context's trace in a form that can be stored, so that later work joins it. It is empty if the trace
// is not sampled.
func Carried(ctx context.Context) string {
	if t, _ := traced(ctx); t == nil {
		return ""
	}
	at := trace.SpanContextFromContext(ctx)
	return at.TraceID().String() + "-" + at.SpanID().String()
}

// parse reads what Carried has written.
func parse(carried string) (trace.SpanContext, bool) {
	one, two, _ := strings.Cut(carried, "-")
	c := trace.SpanContextConfig{TraceFlags: trace.FlagsSampled, Remote: true}
	var err error
	if c.TraceID, err = trace.TraceIDFromHex(one); err != nil {
		return trace.SpanContext{}, false
	}
	if c.SpanID, err = trace.SpanIDFromHex(two); err != nil {
		return trace.SpanContext{}, false
	}
	return trace.NewSpanContext(c), true
}

// Join is ctx within a trace that was carried, as Durable.Context is within a durable span.
func (t *Tracer) Join(ctx context.Context, carried string) context.Context {
	at, ok := parse(carried)
	if t == nil || !ok {
		return ctx
	}
	return context.WithValue(trace.ContextWithRemoteSpanContext(ctx, at), tracerKey{}, t)
}

// A Durable is a span that may go on for longer than the process. The zero Durable is none.
type Durable struct {
	tracer *Tracer
	at     trace.SpanContext
	parent trace.SpanContext
}

// Durable is the span of what the key names, below what was carried. It is the same in every process.
func (t *Tracer) Durable(carried, key string) Durable {
	if t == nil || carried == "" {
		return Durable{}
	}
	parent, ok := parse(carried)
	if !ok {
		return Durable{}
	}
	return Durable{tracer: t, parent: parent, at: derived(parent, key)}
}

// On reports whether there is a span.
func (d Durable) On() bool { return d.tracer != nil }

// Below is a durable span under this one.
func (d Durable) Below(key string) Durable {
	if d.tracer == nil {
		return d
	}
	return Durable{tracer: d.tracer, parent: d.at, at: derived(d.at, key)}
}

// derived is a place in the parent's trace, made from the key.
func derived(parent trace.SpanContext, key string) trace.SpanContext {
	trial, span := parent.TraceID(), parent.SpanID()
	sum := sha256.Sum256([]byte(hex.EncodeToString(trial[:]) + hex.EncodeToString(span[:]) + key))
	return parent.WithSpanID(trace.SpanID(sum[:8]))
}

// Context is ctx within the span: what starts in it is a step of the span.
func (d Durable) Context(ctx context.Context) context.Context {
	if d.tracer == nil {
		return ctx
	}
	return context.WithValue(trace.ContextWithRemoteSpanContext(ctx, d.at), tracerKey{}, d.tracer)
}

// Lost reports whether a span that was open at that time ended with another process: then nobody was sent it.
func (d Durable) Lost(at time.Time) bool { return d.tracer != nil && at.Before(d.tracer.began) }

// Send sends the span, now that it has ended. Say says what it was; rooted makes it the first of its trace, with a link
// to what it was begun from, which was lost.
func (d Durable) Send(name string, began, ended time.Time, rooted bool, say func(Span)) {
	if d.tracer == nil {
		return
	}
	ctx := context.WithValue(context.Background(), wantedKey{}, d.at)
	options := []trace.SpanStartOption{trace.WithTimestamp(began)}
	if rooted {
		options = append(options, trace.WithNewRoot(), trace.WithLinks(trace.Link{SpanContext: d.parent}))
	} else {
		ctx = trace.ContextWithRemoteSpanContext(ctx, d.parent)
	}
	_, span := d.tracer.tracer.Start(ctx, name, options...)
	say(Span{span})
	if ended.Before(began) {
		ended = began
	}
	span.End(trace.WithTimestamp(ended))
}

// wantedKey leads to the trace.SpanContext that the next span is to have.
type wantedKey struct{}

// ids makes the ids of spans: random ones, but for durable spans.
type ids struct{}

func (ids) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	if want, ok := ctx.Value(wantedKey{}).(trace.SpanContext); ok {
		return want.TraceID(), want.SpanID()
	}
	var id trace.TraceID
	binary.BigEndian.PutUint64(id[:8], rand.Uint64())
	binary.BigEndian.PutUint64(id[8:], rand.Uint64()|1) // never 0, which is no id
	return id, newSpanID()
}

func (ids) NewSpanID(ctx context.Context, _ trace.TraceID) trace.SpanID {
	if want, ok := ctx.Value(wantedKey{}).(trace.SpanContext); ok {
		return want.SpanID()
	}
	return newSpanID()
}

func newSpanID() (id trace.SpanID) {
	binary.BigEndian.PutUint64(id[:], rand.Uint64()|1)
	return id
}

// A sampler keeps what was decided already for a durable span, and leaves the rest to another.
type sampler struct{ sdk.Sampler }

func (s sampler) ShouldSample(p sdk.SamplingParameters) sdk.SamplingResult {
	if _, ok := p.ParentContext.Value(wantedKey{}).(trace.SpanContext); ok {
		return sdk.SamplingResult{Decision: sdk.RecordAndSample}
	}
	if at := trace.SpanContextFromContext(p.ParentContext); at.IsSampled() {
		if t, _ := traced(p.ParentContext); t != nil { // a step of a trace that is sampled
			return sdk.SamplingResult{Decision: sdk.RecordAndSample, Tracestate: at.TraceState()}
		}
	}
	return s.Sampler.ShouldSample(p)
}
