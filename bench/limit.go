package bench

import (
	"fmt"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"docent/api/stream"
)

// A Script is what a scripted model writes and when.
type Script struct {
	Delay    time.Duration // before the first piece
	Interval time.Duration // between two
	Parts    int
	Pace     time.Duration // least time between two flushes of one stream, where the server under measurement has one
}

// Limit is the practical limit: a bare net/http handler that writes an answer of the same bytes at the same times as
// the server under measurement, with nothing behind it.
func Limit(script Script) http.Handler {
	registry := prometheus.NewRegistry()
	flushes := prometheus.NewCounter(prometheus.CounterOpts{Name: "docent_stream_flushes_total",
		Help: "Flushes of streams to their readers."})
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		AnonymousMemory(), flushes)
	head, texts, tail := limitAnswer(script.Parts)
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /readyz", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("POST /", func(w http.ResponseWriter, r *http.Request) {
		for _, h := range stream.Headers(stream.UIMessages) {
			w.Header().Set(h.Name, h.Value)
		}
		controller := http.NewResponseController(w)
		flush := func() error {
			flushes.Inc()
			return controller.Flush()
		}
		begin := time.Now()
		if _, err := w.Write(head); err != nil || flush() != nil {
			return
		}
		var flushed time.Time
		for n, text := range texts {
			due := begin.Add(script.Delay + time.Duration(n)*script.Interval)
			if wait := time.Until(due); wait > 0 {
				time.Sleep(wait)
			}
			if _, err := w.Write(text); err != nil {
				return
			}
			if n < len(texts)-1 && script.Pace > 0 && due.Sub(flushed) < script.Pace {
				continue
			}
			flushed = due
			if flush() != nil {
				return
			}
		}
		flushes.Inc()
		_, _ = w.Write(tail) // the reader is gone, or the stream ends here
	})
	return mux
}

// limitAnswer encodes an answer like the scripted model's once, for all streams.
func limitAnswer(parts int) (head []byte, texts [][]byte, tail []byte) {
	encoder := stream.NewEncoder(stream.UIMessages)
	const message, thread = "msg_0Vbb0000000000000000000000000000", "thr_0Vbb0000000000000000000000000000"
	head = encoder.Append(nil,
		stream.Part{Kind: stream.Start, Message: message, Thread: thread,
			Key: "KKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKK"})
	head = encoder.Append(head,
		stream.Part{Kind: stream.Source, URL: "https://docs.example.com/operate/run", Title: "Run a server"})
	for n := range parts {
		texts = append(texts, encoder.Append(nil, stream.Part{Kind: stream.Text, Text: fmt.Sprintf("part-%d ", n)}))
	}
	tail = encoder.Append(nil, stream.Part{Kind: stream.Finish, Thread: thread, Reason: "stop"})
	return head, texts, tail
}
