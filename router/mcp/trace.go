package mcp

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"docent/internal/tracing"
)

// traceHeader carries a request's trace to the tool that it calls: a session outlives its requests, and has a context
// of its own. What a client sends in it is overwritten.
const traceHeader = "X-Docent-Trace"

// traced makes a span of each call of a tool.
func (s *Servers) traced(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		call, ok := req.(*mcp.CallToolRequest)
		if extra := req.GetExtra(); ok && extra != nil && extra.Header != nil && s.Tracer != nil {
			ctx = s.Tracer.Join(ctx, extra.Header.Get(traceHeader))
		}
		if !ok {
			return next(ctx, method, req)
		}
		ctx, span := tracing.Start(ctx, method)
		span.Str("mcp.method.name", method)
		result, err := next(ctx, method, req)
		if span.On() && err == nil { // there is such a tool: the name is not a client's words
			span.Name(method + " " + call.Params.Name)
			span.Str("gen_ai.tool.name", call.Params.Name)
		}
		if answer, ok := result.(*mcp.CallToolResult); ok && answer != nil && answer.IsError && err == nil {
			span.Failed("failed")
		}
		span.Done(err)
		return result, err
	}
}
