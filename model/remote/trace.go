package remote

import (
	"context"

	"docent/internal/tracing"
)

// trace begins the span of a call, with all its tries, by OpenTelemetry's conventions for generative AI. What is put to
// the model and what it writes are not said.
//
//go:noinline
func (r *Model) trace(ctx context.Context, operation string) (context.Context, tracing.Span) {
	ctx, span := tracing.StartAs(ctx, operation, tracing.Client)
	if span.On() {
		span.Name(operation + " " + r.Model)
		span.Str("gen_ai.operation.name", operation)
		span.Str("gen_ai.provider.name", r.provider)
		span.Str("gen_ai.request.model", r.Model)
		span.Str("server.address", r.host)
		span.Str("docent.model", r.name)
	}
	return ctx, span
}

// traced ends the span of a call.
//
//go:noinline
func traced(span tracing.Span, end *ending, err error) {
	if !span.On() {
		return
	}
	if end.reason != "" {
		span.Strs("gen_ai.response.finish_reasons", end.reason)
	}
	span.Int("gen_ai.usage.input_tokens", int64(end.usage.PromptTokens))
	span.Int("gen_ai.usage.output_tokens", int64(end.usage.CompletionTokens))
	span.Int("gen_ai.usage.cache_read.input_tokens", int64(end.usage.CachedTokens))
	span.Int("docent.tool_calls", int64(len(end.calls)))
	span.Done(err)
}
