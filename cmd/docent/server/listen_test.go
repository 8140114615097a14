package server

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"docent/cmd/docent/config"
)

func TestLinksBeginWithAnAddressThatCanBeOpened(t *testing.T) {
	for _, test := range []struct {
		ip         net.IP
		want       string
		everywhere bool
	}{
		{net.IPv6unspecified, "http://localhost:8080", true},
		{net.IPv4zero, "http://localhost:8080", true},
		{net.IPv4(127, 0, 0, 1), "http://127.0.0.1:8080", false},
		{net.IPv6loopback, "http://[::1]:8080", false},
	} {
		got, everywhere := ownURL("http://", &net.TCPAddr{IP: test.ip, Port: 8080})
		if got != test.want || everywhere != test.everywhere {
			t.Errorf("%v: %q %v", test.ip, got, everywhere)
		}
	}
}

// The watchdog's question is answered by a server that works, with any certificate or before it has one, and by no other.
func TestTheWatchdogAsksWhatARestartCures(t *testing.T) {
	t.Parallel()
	answer := func(status int) *httptest.Server {
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
		s.Config.ErrorLog = log.New(io.Discard, "", 0)
		t.Cleanup(s.Close)
		return s
	}
	plain, secure, without, failing := answer(200), answer(200), answer(200), answer(503)
	for _, s := range []*httptest.Server{plain, failing} {
		s.Start()
	}
	secure.StartTLS()
	without.TLS = &tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		return nil, errors.New("the authority does not answer")
	}}
	without.StartTLS()
	without.TLS.Certificates = nil // those that httptest puts in
	for name, server := range map[string]*httptest.Server{"plain": plain, "with a certificate": secure, "without one yet": without} {
		if err := probe(t.Context(), server.URL, "docs.example.com"); err != nil {
			t.Errorf("a server that works, %s: %v", name, err)
		}
	}
	// At the last address nobody listens; that of a server that was closed somebody else may get.
	for name, address := range map[string]string{"that is not well": failing.URL, "that is gone": "http://127.0.0.1:1"} {
		if probe(t.Context(), address, "docs.example.com") == nil {
			t.Errorf("a server %s counts as one that works", name)
		}
	}
}

func TestATakenPortSaysWhoHasIt(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	_, err = listenOn(taken.Addr().String(), func(string) bool { return false })
	want := fmt.Sprintf("(process %d): use --listen 127.0.0.1:", os.Getpid())
	if runtime.GOOS != "linux" {
		want = "taken by another program"
	}
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v", err)
	}
}

// Behind a proxy the assistant of Docent's own documentation tells readers apart as the server does.
func TestTheManualsAssistantTrustsTheServersProxies(t *testing.T) {
	of := config.Default()
	of.TrustedProxies, of.Unlimited, of.PublicURL, of.Now = []string{"10.0.0.0/8"}, []string{"192.0.2.1"}, "https://docent.example.com", time.Now
	got := manualConfig(of)
	if !slices.Equal(got.TrustedProxies, of.TrustedProxies) || !slices.Equal(got.Unlimited, of.Unlimited) || got.PublicURL != of.PublicURL {
		t.Errorf("%+v", got)
	}
}
