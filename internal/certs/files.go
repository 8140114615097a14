package certs

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"time"
)

// files are a certificate with its chain, and its key. What they hold is compared, not their times: a renewal
// may write over them, rename new ones over them or turn a link, and may do it within one tick of the clock.
type files struct {
	keeper    *Keeper
	cert, key string
	pair      atomic.Pointer[pair]
	refused   *pair // what was there when they were last read, if it could not be used
	said      bool  // that it could not
}

// A pair is what two files hold.
type pair struct {
	cert, key []byte
	tls       tls.Certificate
	err       error
	unread    bool // one of the files could not be read
}

// Files keeps a pair of PEM files: a certificate with its chain, and its key. It fails if they cannot be used now.
// If they change later, the new ones are shown from then on, within ten seconds or on Reload; as long as they do not
// fit together the ones before are.
func Files(cert, key string, log *slog.Logger, now func() time.Time) (*Keeper, error) {
	k := newKeeper(log, now)
	f := &files{keeper: k, cert: cert, key: key}
	k.source = f
	first := f.read()
	if first.err != nil {
		return nil, first.err
	}
	f.pair.Store(first)
	return k, nil
}

// read reads the files. What holds the same as before is before.
func (f *files) read(before ...*pair) *pair {
	p := new(pair)
	if p.cert, p.err = os.ReadFile(f.cert); p.err != nil {
		p.err, p.unread = fmt.Errorf("setting tls_cert: %w", p.err), true
		return p
	}
	if p.key, p.err = os.ReadFile(f.key); p.err != nil {
		p.err, p.unread = fmt.Errorf("setting tls_key: %w", p.err), true
		return p
	}
	for _, q := range before {
		if q != nil && bytes.Equal(p.cert, q.cert) && bytes.Equal(p.key, q.key) {
			return q
		}
	}
	if p.tls, p.err = tls.X509KeyPair(p.cert, p.key); p.err != nil {
		p.err = fmt.Errorf("settings tls_cert and tls_key: %s and %s are no PEM files of a certificate and its key: %w", f.cert, f.key, p.err)
		return p
	}
	if p.tls.Leaf == nil {
		p.tls.Leaf, p.err = x509.ParseCertificate(p.tls.Certificate[0])
	}
	return p
}

func (f *files) get(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &f.pair.Load().tls, nil }

func (f *files) held() map[string]*x509.Certificate {
	leaf := f.pair.Load().tls.Leaf
	return map[string]*x509.Certificate{nameOf(leaf): leaf}
}

// nameOf is what people call a certificate by.
func nameOf(leaf *x509.Certificate) string {
	switch {
	case len(leaf.DNSNames) > 0:
		return leaf.DNSNames[0]
	case len(leaf.IPAddresses) > 0:
		return leaf.IPAddresses[0].String()
	}
	return cmp.Or(leaf.Subject.CommonName, "certificate")
}

func (f *files) protocols() []string   { return nil }
func (f *files) begin(context.Context) {}
func (f *files) end()                  {}

// look reads the files. What does not fit together may be half written: it is reported when it is the same at the next
// look, or at once if somebody waits for it.
func (f *files) look(told bool) {
	now := f.read(f.pair.Load(), f.refused)
	if now == f.pair.Load() {
		f.refused, f.said = nil, false
		if told {
			f.keeper.log.Info("certificate unchanged", "file", f.cert)
		}
		return
	}
	if now.err == nil {
		f.pair.Store(now)
		f.refused, f.said = nil, false
		leaf := now.tls.Leaf
		f.keeper.log.Info("new certificate in use", "name", nameOf(leaf), "expires", leaf.NotAfter, "file", f.cert)
		return
	}
	settled := now == f.refused || f.refused != nil && now.unread && f.refused.unread
	if !settled {
		f.refused, f.said = now, false
	}
	if told || settled && !f.said {
		f.said = true
		f.keeper.failures.Inc()
		f.keeper.log.Error("the changed certificate cannot be used; keeping the previous one", "error", errors.Unwrap(now.err),
			"cert_file", f.cert, "key_file", f.key, "expires", f.pair.Load().tls.Leaf.NotAfter)
	}
}
