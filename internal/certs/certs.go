// Package certs keeps the certificates that the server shows: a pair of files, which is read again when it changes, or
// certificates that it gets from a certificate authority by itself (ACME) and renews.
package certs

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// A Keeper keeps certificates. It is a Prometheus collector of when they expire.
type Keeper struct {
	source
	log   *slog.Logger
	now   func() time.Time
	again chan struct{} // somebody wants the files read now

	failures prometheus.Counter

	mu     sync.Mutex
	warned map[string]time.Time // when it was last said that a certificate ends soon, by its name
}

// A source provides certificates.
type source interface {
	get(*tls.ClientHelloInfo) (*tls.Certificate, error)
	// held are the certificates by their names; nil if there is none yet.
	held() map[string]*x509.Certificate
	// protocols are those that clients may agree on besides HTTP.
	protocols() []string
	// begin begins to get certificates, until ctx ends.
	begin(context.Context)
	// look looks for newer certificates. Told is whether somebody waits for what it finds.
	look(told bool)
	end()
}

func newKeeper(log *slog.Logger, now func() time.Time) *Keeper {
	return &Keeper{log: log, now: now, again: make(chan struct{}, 1), warned: map[string]time.Time{},
		failures: prometheus.NewCounter(prometheus.CounterOpts{Name: "docent_tls_certificate_failures_total",
			Help: "Times that a certificate could not be had: a certificate authority refused or was away, or changed files do not fit."})}
}

// ciphers are those of TLS 1.2 that encrypt and authenticate at once. Those of 1.3 all do.
var ciphers = []uint16{
	tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
	tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
	tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256, tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
}

// Config is what connections are made with: TLS 1.2 or later, HTTP/2 or HTTP/1.1.
func (k *Keeper) Config() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, CipherSuites: ciphers, GetCertificate: k.get,
		NextProtos: append([]string{"h2", "http/1.1"}, k.protocols()...)}
}

// Ready reports whether there is a certificate to show.
func (k *Keeper) Ready() bool {
	for _, leaf := range k.held() {
		if leaf != nil {
			return true
		}
	}
	return false
}

// lookEvery is how often certificates are looked at: whether the files have changed, and what ends soon.
const lookEvery = 10 * time.Second

// Run keeps the certificates fresh until ctx ends.
func (k *Keeper) Run(ctx context.Context) {
	k.begin(ctx)
	defer k.end()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		k.warn()
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			k.look(false)
		case <-k.again:
			k.look(true)
		}
	}
}

// Reload reads the files now, and logs the result.
func (k *Keeper) Reload() {
	select {
	case k.again <- struct{}{}:
	default:
	}
}

// warnedFor is how long before its end a certificate is warned of, unless it is a short-lived one: of those it is the
// last quarter of their time. What renews a certificate does so at a third.
const warnedFor = 14 * 24 * time.Hour

// warn says once a day which certificates end soon.
func (k *Keeper) warn() {
	now := k.now()
	for name, leaf := range k.held() {
		if leaf == nil {
			continue
		}
		left := leaf.NotAfter.Sub(now)
		if left > min(warnedFor, leaf.NotAfter.Sub(leaf.NotBefore)/4) {
			continue
		}
		k.mu.Lock()
		last, said := k.warned[name]
		due := !said || now.Sub(last) >= 24*time.Hour
		if due {
			k.warned[name] = now
		}
		k.mu.Unlock()
		switch {
		case !due:
		case left <= 0:
			k.log.Error("certificate has expired; clients refuse it", "name", name, "expired", leaf.NotAfter)
		default:
			k.log.Warn("certificate expires soon", "name", name, "expires", leaf.NotAfter, "days", int(left/(24*time.Hour)))
		}
	}
}

var expires = prometheus.NewDesc("docent_tls_certificate_expires_timestamp_seconds",
	"When the certificate that is shown for a name expires, in seconds since 1970; 0 if there is none yet.",
	[]string{"name"}, nil)

// Describe is a prometheus.Collector's.
func (k *Keeper) Describe(ch chan<- *prometheus.Desc) {
	ch <- expires
	k.failures.Describe(ch)
}

// Collect is a prometheus.Collector's.
func (k *Keeper) Collect(ch chan<- prometheus.Metric) {
	for name, leaf := range k.held() {
		at := 0.0
		if leaf != nil {
			at = float64(leaf.NotAfter.Unix())
		}
		ch <- prometheus.MustNewConstMetric(expires, prometheus.GaugeValue, at, name)
	}
	k.failures.Collect(ch)
}
