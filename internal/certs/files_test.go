package certs_test

import (
	"bytes"
	"crypto/tls"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"docent/internal/certs"
	"docent/internal/certs/certstest"
)

// shown is the serial number of the certificate that clients see.
func shown(t *testing.T, k *certs.Keeper) int64 {
	t.Helper()
	cert, err := k.Config().GetCertificate(&tls.ClientHelloInfo{ServerName: "docs.example.com"})
	if err != nil {
		t.Fatal(err)
	}
	return cert.Leaf.SerialNumber.Int64()
}

func put(t *testing.T, path string, text []byte) {
	t.Helper()
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// However a certificate is renewed, the new one is shown from then on, and never half of it.
func TestARenewedPairIsShownHoweverItIsPutThere(t *testing.T) {
	ca := certstest.NewCA(t)
	for name, renew := range map[string]func(t *testing.T, dir string, cert, key []byte, between func()){
		"key behind certificate": func(t *testing.T, dir string, cert, key []byte, between func()) {
			put(t, filepath.Join(dir, "tls.crt"), cert)
			between()
			put(t, filepath.Join(dir, "tls.key"), key)
		},
		"certificate behind key": func(t *testing.T, dir string, cert, key []byte, between func()) {
			put(t, filepath.Join(dir, "tls.key"), key)
			between()
			put(t, filepath.Join(dir, "tls.crt"), cert)
		},
		"in pieces": func(t *testing.T, dir string, cert, key []byte, between func()) {
			put(t, filepath.Join(dir, "tls.key"), key)
			put(t, filepath.Join(dir, "tls.crt"), cert[:len(cert)/2])
			between()
			put(t, filepath.Join(dir, "tls.crt"), cert)
		},
		"removed for a moment": func(t *testing.T, dir string, cert, key []byte, between func()) {
			os.Remove(filepath.Join(dir, "tls.crt"))
			between()
			put(t, filepath.Join(dir, "tls.key"), key)
			put(t, filepath.Join(dir, "tls.crt"), cert)
		},
		"a link to their folder is turned": func(t *testing.T, dir string, cert, key []byte, between func()) { // Kubernetes
			next := filepath.Join(filepath.Dir(dir), "..next")
			if err := os.Mkdir(next, 0o700); err != nil {
				t.Fatal(err)
			}
			put(t, filepath.Join(next, "tls.crt"), cert)
			put(t, filepath.Join(next, "tls.key"), key)
			between()
			temp := dir + ".tmp"
			if err := os.Symlink(next, temp); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(temp, dir); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			base := t.TempDir()
			first, dir := filepath.Join(base, "..first"), filepath.Join(base, "live")
			if err := os.Mkdir(first, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(first, dir); err != nil {
				t.Fatal(err)
			}
			synctest.Test(t, func(t *testing.T) {
				oldCert, oldKey := ca.Issue(t, 1, 90*24*time.Hour, "docs.example.com")
				newCert, newKey := ca.Issue(t, 2, 90*24*time.Hour, "docs.example.com")
				put(t, filepath.Join(dir, "tls.crt"), oldCert)
				put(t, filepath.Join(dir, "tls.key"), oldKey)
				var log bytes.Buffer
				k, err := certs.Files(filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"),
					slog.New(slog.NewTextHandler(&log, nil)), time.Now)
				if err != nil {
					t.Fatal(err)
				}
				go k.Run(t.Context())
				renew(t, dir, newCert, newKey, func() {
					time.Sleep(15 * time.Second) // one look comes in between
					synctest.Wait()
					if got := shown(t, k); got != 1 {
						t.Errorf("between: certificate %d is shown", got)
					}
				})
				time.Sleep(15 * time.Second)
				synctest.Wait()
				if got := shown(t, k); got != 2 {
					t.Errorf("certificate %d is shown, not the new one", got)
				}
				if text := log.String(); strings.Contains(text, "cannot be used") || strings.Count(text, "new certificate in use") != 1 {
					t.Errorf("the log: %s", text)
				}
			})
		})
	}
}

func TestABrokenPairIsToldOfOnceAndTheOneBeforeIsShown(t *testing.T) {
	ca := certstest.NewCA(t)
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		cert, key := ca.Issue(t, 1, 90*24*time.Hour, "docs.example.com")
		certFile, keyFile := filepath.Join(dir, "c.pem"), filepath.Join(dir, "k.pem")
		put(t, certFile, cert)
		put(t, keyFile, key)
		var log bytes.Buffer
		k, err := certs.Files(certFile, keyFile, slog.New(slog.NewTextHandler(&log, nil)), time.Now)
		if err != nil {
			t.Fatal(err)
		}
		go k.Run(t.Context())
		put(t, certFile, []byte("nonsense"))
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		if n := strings.Count(log.String(), "cannot be used"); n != 1 || shown(t, k) != 1 {
			t.Errorf("told of %d times, certificate %d is shown: %s", n, shown(t, k), log.String())
		}
		k.Reload() // somebody waits for it
		synctest.Wait()
		if n := strings.Count(log.String(), "cannot be used"); n != 2 {
			t.Errorf("who asked was answered %d times: %s", n-1, log.String())
		}
		put(t, certFile, cert)
		k.Reload()
		synctest.Wait()
		if !strings.Contains(log.String(), "certificate unchanged") {
			t.Errorf("the log: %s", log.String())
		}
		if strings.Contains(log.String(), "PRIVATE") {
			t.Error("the key is in the log")
		}
	})
}

// What ends soon is told of once a day, from two weeks before, and shown in the metrics.
func TestACertificateThatExpiresSoonIsToldOfDaily(t *testing.T) {
	ca := certstest.NewCA(t)
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		cert, key := ca.Issue(t, 1, 90*24*time.Hour, "docs.example.com")
		certFile, keyFile := filepath.Join(dir, "c.pem"), filepath.Join(dir, "k.pem")
		put(t, certFile, cert)
		put(t, keyFile, key)
		var log bytes.Buffer
		var ahead atomic.Int64 // of the clock that certificates are judged by
		on := func(d time.Duration) {
			ahead.Add(int64(d))
			time.Sleep(time.Minute)
			synctest.Wait()
		}
		k, err := certs.Files(certFile, keyFile, slog.New(slog.NewTextHandler(&log, nil)),
			func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) })
		if err != nil {
			t.Fatal(err)
		}
		reg := prometheus.NewPedanticRegistry()
		reg.MustRegister(k)
		leaf, err := k.Config().GetCertificate(nil)
		if err != nil {
			t.Fatal(err)
		}
		families, err := reg.Gather()
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, f := range families {
			if f.GetName() == "docent_tls_certificate_expires_timestamp_seconds" {
				found = true
				m := f.GetMetric()[0]
				if m.GetGauge().GetValue() != float64(leaf.Leaf.NotAfter.Unix()) || m.GetLabel()[0].GetValue() != "docs.example.com" {
					t.Errorf("%v", m)
				}
			}
		}
		if !found {
			t.Errorf("the figures: %v", families)
		}
		go k.Run(t.Context())
		on(75 * 24 * time.Hour)
		if log.Len() > 0 {
			t.Errorf("15 days before: %s", log.String())
		}
		for range 4 {
			on(12 * time.Hour)
		}
		on(0)
		if n := strings.Count(log.String(), "expires soon"); n != 2 || !strings.Contains(log.String(), "days=13") {
			t.Errorf("%d times in the first day and a bit: %s", n, log.String())
		}
		on(13 * 24 * time.Hour)
		if !strings.Contains(log.String(), "has expired") {
			t.Errorf("the log: %s", log.String())
		}
	})
}

func TestFilesThatCannotBeUsedAreNamed(t *testing.T) {
	ca := certstest.NewCA(t)
	cert, _ := ca.Issue(t, 1, time.Hour, "docs.example.com")
	_, other := ca.Issue(t, 2, time.Hour, "docs.example.com")
	dir := t.TempDir()
	put(t, filepath.Join(dir, "cert"), cert)
	put(t, filepath.Join(dir, "key"), other)
	for _, c := range []struct{ cert, key, says string }{
		{"none", "key", "setting tls_cert: "},
		{"cert", "none", "setting tls_key: "},
		{"cert", "key", "private key does not match"},
		{"key", "key", "tls_cert and tls_key"},
	} {
		_, err := certs.Files(filepath.Join(dir, c.cert), filepath.Join(dir, c.key), slog.New(slog.DiscardHandler), time.Now)
		if err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "PRIVATE") {
			t.Errorf("%s, %s: %v", c.cert, c.key, err)
		}
	}
}

// A suite whose blocks are chained is authenticated after it is decrypted, which has been attacked again and again.
func TestTLS12TakesOnlyCiphersThatAuthenticate(t *testing.T) {
	ca := certstest.NewCA(t)
	dir := t.TempDir()
	cert, key := ca.Issue(t, 1, 90*24*time.Hour, "docs.example.com")
	put(t, filepath.Join(dir, "tls.crt"), cert)
	put(t, filepath.Join(dir, "tls.key"), key)
	k, err := certs.Files(filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"), slog.New(slog.DiscardHandler), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	agree := func(suites ...uint16) error {
		ours, theirs := net.Pipe()
		defer ours.Close()
		defer theirs.Close()
		go func() { _ = tls.Server(ours, k.Config()).HandshakeContext(t.Context()) }()
		return tls.Client(theirs, &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12, CipherSuites: suites,
			ServerName: "docs.example.com"}).HandshakeContext(t.Context())
	}
	if err := agree(tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA, tls.TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA); err == nil {
		t.Error("a cipher with chained blocks is taken")
	}
	if err := agree(tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256); err != nil {
		t.Error(err)
	}
}
