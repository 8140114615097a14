package tracing

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// A sender is the way of spans to the collector: what has ended waits in a bounded queue and goes in batches. If
// the collector is slow or away the queue fills, and what comes then is dropped and counted.
//
// A span that ends is held while the one above it is open in this process, so that a crash leaves no span whose parent
// was never sent. Durable spans are not open in a process: what is below them goes at once.
type sender struct {
	batch sdk.SpanProcessor
	most  int64 // spans in the queue, and again of those that are held
	log   *slog.Logger

	waiting               atomic.Int64
	sent, failed, dropped atomic.Uint64

	mu   sync.Mutex
	open map[trace.SpanID]*[]sdk.ReadOnlySpan // what is held for each open span
	held int64
}

func newSender(exporter sdk.SpanExporter, o *options, log *slog.Logger) *sender {
	s := &sender{most: int64(o.queue), log: log, open: map[trace.SpanID]*[]sdk.ReadOnlySpan{}}
	s.batch = sdk.NewBatchSpanProcessor(&counting{SpanExporter: exporter, sender: s},
		// One batch is on its way while the queue fills again: the bound is ours, so that what is dropped is counted.
		sdk.WithMaxQueueSize(2*o.queue))
	return s
}

// OnStart notes that a span is open.
func (s *sender) OnStart(_ context.Context, span sdk.ReadWriteSpan) {
	s.mu.Lock()
	s.open[span.SpanContext().SpanID()] = nil
	s.mu.Unlock()
}

// OnEnd takes a span that has ended.
func (s *sender) OnEnd(span sdk.ReadOnlySpan) {
	id, parent := span.SpanContext().SpanID(), span.Parent().SpanID()
	s.mu.Lock()
	below := s.open[id]
	delete(s.open, id)
	above, isOpen := s.open[parent]
	if isOpen && s.held < s.most {
		if above == nil {
			above = new([]sdk.ReadOnlySpan)
			s.open[parent] = above
		}
		*above = append(*above, span)
		s.held++
		if below != nil {
			*above = append(*above, *below...)
		}
		s.mu.Unlock()
		return
	}
	if below != nil {
		s.held -= int64(len(*below))
	}
	s.mu.Unlock()
	s.queue(span)
	if below != nil {
		for _, one := range *below {
			s.queue(one)
		}
	}
}

func (s *sender) queue(span sdk.ReadOnlySpan) {
	if s.waiting.Add(1) > s.most {
		s.waiting.Add(-1)
		s.dropped.Add(1)
		return
	}
	s.batch.OnEnd(span)
}

// ForceFlush is a part of sdk.SpanProcessor.
func (s *sender) ForceFlush(ctx context.Context) error { return s.batch.ForceFlush(ctx) }

// Shutdown sends what waits. What is held for spans that are still open is not sent: its parents never will be.
func (s *sender) Shutdown(ctx context.Context) error { return s.batch.Shutdown(ctx) }

// quietFor is for how long a collector that takes nothing is not spoken of again.
const quietFor = 10 * time.Minute

// counting counts what the collector took, and says in the log that it takes nothing: once, and then once in a while.
type counting struct {
	sdk.SpanExporter
	sender *sender
	said   time.Time // zero while it takes everything
	lost   uint64    // since it does not
}

// ExportSpans is called by one goroutine at a time.
func (c *counting) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	err := c.SpanExporter.ExportSpans(ctx, spans)
	n := int64(len(spans))
	c.sender.waiting.Add(-n)
	if err == nil {
		c.sender.sent.Add(uint64(n))
		if !c.said.IsZero() {
			c.sender.log.Info("traces are taken again", "lost", c.lost)
			c.said, c.lost = time.Time{}, 0
		}
		return nil
	}
	c.sender.failed.Add(uint64(n))
	c.lost += uint64(n)
	if time.Since(c.said) > quietFor {
		c.said = time.Now()
		c.sender.log.Warn("the collector does not accept traces", "spans", c.lost, "error", err)
	}
	return nil // it is said already
}
