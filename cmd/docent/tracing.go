package main

import (
	"context"
	"log/slog"
	"os"
	"time"

	"docent/tracing"
)

// A TracingConfig is the [tracing] table: where traces go, and which. Without an endpoint, here or in the environment
// variables of OpenTelemetry, there are none.
type TracingConfig struct {
	Endpoint   string  `toml:"endpoint" usage:"where a collector takes traces by OTLP over HTTP, such as http://localhost:4318; empty for what the OTEL_ variables say, and without them for no traces"`
	HeadersEnv string  `toml:"headers_env" usage:"environment variable that holds headers for the collector, as name=value,name=value; NAME_FILE names a file that does"`
	Sample     float64 `toml:"sample" usage:"part of traces that is kept, from 0 to 1; -1 for what OTEL_TRACES_SAMPLER says, and without it for all"`
	Parents    string  `toml:"parents" usage:"whose traceparent is followed, so that the caller decides whether there is a trace: admin for callers with an admin key, proxies for those behind trusted_proxies too, none"`
	Tell       bool    `toml:"tell" usage:"language models' endpoints and code hosts learn of the trace by a traceparent header"`

	headers        string // given under HeadersEnv
	headersProblem error
}

func defaultTracing() TracingConfig { return TracingConfig{Sample: -1, Parents: parentsAdmin} }

// Whose traceparent is followed.
const (
	parentsAdmin   = "admin"
	parentsProxies = "proxies"
	parentsNone    = "none"
)

func (c TracingConfig) check(list *problemList) {
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

// tracesEnd is how long the last traces may take to the collector when the server stops.
const tracesEnd = 3 * time.Second

// openTracing sets traces up; without an endpoint there is no tracer.
func (a *app) openTracing() error {
	c := tracing.Config{Endpoint: a.config.Tracing.Endpoint, Headers: a.config.Tracing.headers,
		Tell:    a.config.Tracing.Tell,
		Version: buildVersion().Version, Getenv: os.Getenv, Log: a.log}
	if a.config.Tracing.Sample >= 0 {
		c.Sample = &a.config.Tracing.Sample
	}
	tracer, err := tracing.New(c)
	if err != nil || tracer == nil {
		return err
	}
	a.tracer = tracer
	a.upkeep.metrics.MustRegister(tracer)
	a.closers = append(a.closers, func() error {
		ctx, cancel := context.WithTimeout(context.Background(), tracesEnd)
		defer cancel()
		if err := tracer.Close(ctx); err != nil {
			a.log.Warn("the last traces were not sent", "error", err)
		}
		return nil
	})
	return nil
}

// traced is a log whose lines within a trace name it.
func traced(log *slog.Logger) *slog.Logger { return slog.New(tracing.Handler(log.Handler())) }
