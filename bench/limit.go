package bench

import (
	"fmt"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"docent/stream"
)

// Limit is the practical limit: a bare net/http handler that writes an answer of the same bytes at the same times as the
// server under measurement, with nothing behind it. What a server needs beyond it is its own doing.
func Limit(form stream.Form, parts int, interval time.Duration) http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	head, texts, tail := limitAnswer(form, parts)
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /readyz", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("POST /", func(w http.ResponseWriter, r *http.Request) {
		for _, h := range stream.Headers(form) {
			w.Header().Set(h.Name, h.Value)
		}
		flush := http.NewResponseController(w).Flush
		begin := time.Now()
		if _, err := w.Write(head); err != nil || flush() != nil {
			return
		}
		for n, text := range texts {
			if interval > 0 {
				time.Sleep(time.Until(begin.Add(time.Duration(n) * interval)))
			}
			if _, err := w.Write(text); err != nil || flush() != nil {
				return
			}
		}
		_, _ = w.Write(tail) // the reader is gone, or the stream ends here
	})
	return mux
}

// limitAnswer encodes an answer like the scripted model's once, for all streams.
func limitAnswer(form stream.Form, parts int) (head []byte, texts [][]byte, tail []byte) {
	encoder := stream.NewEncoder(form)
	const message, thread = "msg_0Vbb0000000000000000000000000000", "thr_0Vbb0000000000000000000000000000"
	head = encoder.Append(nil, stream.Part{Kind: stream.Start, Message: message, Thread: thread, Key: "KKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKK"})
	for n := range parts {
		texts = append(texts, encoder.Append(nil, stream.Part{Kind: stream.Text, Text: fmt.Sprintf("part-%d ", n)}))
	}
	tail = encoder.Append(nil, stream.Part{Kind: stream.Finish, Thread: thread, Reason: "stop"})
	return head, texts, tail
}
