package server

import (
	"context"
	"log/slog"
	"os"
	"time"

	"docent/cmd/docent/build"
	"docent/internal/tracing"
)

// tracesEnd is how long the last traces may take to the collector when the server stops.
const tracesEnd = 3 * time.Second

// openTracing sets traces up; without an endpoint there is no tracer.
func (a *Server) openTracing() error {
	c := tracing.Config{Endpoint: a.config.Tracing.Endpoint, Headers: a.config.Tracing.Headers,
		Tell:    a.config.Tracing.Tell,
		Version: build.Get().Version, Getenv: os.Getenv, Log: a.Log}
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
			a.Log.Warn("the last traces could not be sent", "error", err)
		}
		return nil
	})
	return nil
}

// traced is a log whose lines within a trace name it.
func traced(log *slog.Logger) *slog.Logger { return slog.New(tracing.Handler(log.Handler())) }
