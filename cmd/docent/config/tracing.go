package config

import (
	"docent/internal/tracing"
)

// Tracing is the [tracing] table: where traces go, and which. Without an endpoint, here or in the environment
// variables of OpenTelemetry, there are none.
type Tracing struct {
	Endpoint   string  `toml:"endpoint" usage:"OTLP over HTTP collector, such as http://localhost:4318; empty: the OTEL_ variables, else no traces"`
	HeadersEnv string  `toml:"headers_env" usage:"variable with headers for the collector: name=value,name=value"`
	Sample     float64 `toml:"sample" usage:"share of traces to keep, 0 to 1; -1: OTEL_TRACES_SAMPLER, else all"`
	Parents    string  `toml:"parents" usage:"whose traceparent decides whether a trace is kept: admin (keys), proxies (also trusted_proxies), or none"`
	Tell       bool    `toml:"tell" usage:"send a traceparent header to language models' endpoints and code hosts"`

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
