package config

import (
	"docent/internal/tracing"
)

// Tracing is the [tracing] table: where traces go, and which. Without an endpoint, here or in the environment
// variables of OpenTelemetry, there are none.
type Tracing struct {
	Endpoint   string  `toml:"endpoint" usage:"where a collector takes traces by OTLP over HTTP, such as http://localhost:4318; empty for what the OTEL_ variables say, and without them for no traces"`
	HeadersEnv string  `toml:"headers_env" usage:"environment variable that holds headers for the collector, as name=value,name=value; NAME_FILE names a file that does"`
	Sample     float64 `toml:"sample" usage:"part of traces that is kept, from 0 to 1; -1 for what OTEL_TRACES_SAMPLER says, and without it for all"`
	Parents    string  `toml:"parents" usage:"whose traceparent is followed, so that the caller decides whether there is a trace: admin for callers with an admin key, proxies for those behind trusted_proxies too, none"`
	Tell       bool    `toml:"tell" usage:"language models' endpoints and code hosts learn of the trace by a traceparent header"`

	Headers        string `toml:"-"` // given under HeadersEnv
	headersProblem error
}

func defaultTracing() Tracing { return Tracing{Sample: -1, Parents: parentsAdmin} }

// Whose traceparent is followed.
const (
	parentsAdmin   = "admin"
	parentsProxies = "proxies"
	parentsNone    = "none"
)

func (c Tracing) check(list *Problems) {
	if c.Endpoint != "" {
		if _, err := tracing.Endpoint(c.Endpoint); err != nil {
			list.add("tracing.endpoint", "%s", err)
		}
	}
	if c.headersProblem != nil {
		list.add("tracing.headers_env", "%w", c.headersProblem)
	}
	if c.Sample != -1 && !(c.Sample >= 0 && c.Sample <= 1) {
		list.add("tracing.sample", "must be a number from 0 to 1, such as 0.01 for one trace in a hundred")
	}
	switch c.Parents {
	case parentsAdmin, parentsProxies, parentsNone:
	default:
		list.add("tracing.parents", "%q is none of admin, proxies and none", c.Parents)
	}
}
