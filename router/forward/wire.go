package forward

import (
	"log"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// newTransport is the way to other nodes.
func newTransport(id *identity) *http.Transport {
	dialer := &net.Dialer{Timeout: 2 * time.Second, KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 5 * time.Second,
		Interval: 2 * time.Second, Count: 3}}
	return &http.Transport{
		DialContext: dialer.DialContext, TLSClientConfig: id.config(protocols...), TLSHandshakeTimeout: 5 * time.Second,
		ForceAttemptHTTP2: true, HTTP2: http2(), DisableCompression: true, IdleConnTimeout: 90 * time.Second,
	}
}

// protocols are what nodes speak with each other. With HTTP/2 a forwarded stream takes less memory and less time of the
// processor than with a connection of its own: decision 0046.
var protocols = []string{"h2"}

// http2 finds ends that are gone, and keeps little of an answer that its client is slow to take in.
func http2() *http.HTTP2Config {
	return &http.HTTP2Config{SendPingTimeout: 5 * time.Second, PingTimeout: 5 * time.Second,
		WriteByteTimeout: 10 * time.Second, MaxConcurrentStreams: 1000, MaxReceiveBufferPerStream: 64 << 10}
}

// bufferSize is enough for nearly all that comes at once of a stream, and is held for as long as that is open.
const bufferSize = 4 << 10

// newServer is the internal listener. Streams are written by their handlers here: package sockets writes to plain
// connections, and these are encrypted.
func newServer(id *identity, h http.Handler, quiet *log.Logger) *http.Server {
	return &http.Server{Handler: h, TLSConfig: id.config(protocols...), HTTP2: http2(), ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 1<<20 + 64<<10, ErrorLog: quiet}
}

// buffers are those that answers are copied through.
var buffers = &pool{sync.Pool{New: func() any { return new([bufferSize]byte) }}}

type pool struct{ sync.Pool }

// Get and Put are what httputil.ReverseProxy wants.
func (p *pool) Get() []byte { return p.Pool.Get().(*[bufferSize]byte)[:] }

// Put takes back what Get gave.
func (p *pool) Put(b []byte) { p.Pool.Put((*[bufferSize]byte)(b)) }

// How the forwarding of a request went.
const (
	outcomeAnswered = "answered"
	outcomeAgain    = "again"   // the node did not answer, or was not the one: another was looked for
	outcomeRefused  = "refused" // nobody could answer
	outcomeBroken   = "broken"  // the client was broken off
)

type metrics struct {
	requests *prometheus.CounterVec
	open     prometheus.GaugeFunc
}

func (m *metrics) init(f *Forwarder) {
	m.requests = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "docent_forwarded_requests_total",
		Help: "Requests sent to the node that runs their job or thread, by outcome: answered; again if another node had to " +
			"be looked for; refused if none could answer; broken if the answer, or whether there is one, was lost with a node."},
		[]string{"outcome"})
	for _, outcome := range []string{outcomeAnswered, outcomeAgain, outcomeRefused, outcomeBroken} {
		m.requests.WithLabelValues(outcome)
	}
	m.open = prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "docent_forwarded_open",
		Help: "Requests that other nodes answer now through this one, streams among them."}, func() float64 {
		f.mu.Lock()
		defer f.mu.Unlock()
		return float64(len(f.open))
	})
}

func (m *metrics) count(outcome string) { m.requests.WithLabelValues(outcome).Inc() }
