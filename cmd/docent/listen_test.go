package main

import (
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"testing"
)

// The watchdog's question is answered by a server that works, with any certificate or before it has one, and by no other.
func TestTheWatchdogAsksWhatARestartCures(t *testing.T) {
	t.Parallel()
	answer := func(status int) *httptest.Server {
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
		s.Config.ErrorLog = log.New(io.Discard, "", 0)
		t.Cleanup(s.Close)
		return s
	}
	plain, secure, without, failing, gone := answer(200), answer(200), answer(200), answer(503), answer(200)
	for _, s := range []*httptest.Server{plain, failing, gone} {
		s.Start()
	}
	secure.StartTLS()
	without.TLS = &tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		return nil, errors.New("the authority does not answer")
	}}
	without.StartTLS()
	without.TLS.Certificates = nil // those that httptest puts in
	gone.Close()
	for name, server := range map[string]*httptest.Server{"plain": plain, "with a certificate": secure, "without one yet": without} {
		if err := probe(t.Context(), server.URL, "docs.example.com"); err != nil {
			t.Errorf("a server that works, %s: %v", name, err)
		}
	}
	for name, server := range map[string]*httptest.Server{"that is not well": failing, "that is gone": gone} {
		if probe(t.Context(), server.URL, "docs.example.com") == nil {
			t.Errorf("a server %s counts as one that works", name)
		}
	}
}
