package certs

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"docent/internal/certs/certstest"
	"docent/internal/testing/freeport"
	"docent/internal/testing/need"
)

// An acmeServer has a TLS listener whose certificate comes from an authority, and a plain one.
type acmeServer struct {
	t         *testing.T
	tls, http net.Listener
	folder    string
	log       *slog.Logger
}

func newACMEServer(t *testing.T) *acmeServer {
	t.Helper()
	s := &acmeServer{t: t, folder: filepath.Join(t.TempDir(), "certs"), log: slog.New(slog.NewTextHandler(testLog{t}, nil))}
	for _, l := range []*net.Listener{&s.tls, &s.http} {
		var err error
		if *l, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { (*l).Close() })
	}
	return s
}

type testLog struct{ t *testing.T }

func (l testLog) Write(p []byte) (int, error) {
	if l.t.Context().Err() == nil {
		l.t.Logf("%s", p)
	}
	return len(p), nil
}

func port(l net.Listener) int { return l.Addr().(*net.TCPAddr).Port }

// run keeps certificates until stop is called.
func (s *acmeServer) run(p *certstest.Pebble, plain bool, domains ...string) (k *Keeper, stop func()) {
	s.t.Helper()
	a := Authority{Domains: domains, Email: "ops@example.com", Directory: p.Directory, Root: p.RootFile, Folder: s.folder,
		Listener: s.tls.Addr(), checkEvery: time.Second}
	if plain {
		a.Plain = s.http.Addr()
	}
	k, err := ACME(a, s.log, time.Now)
	if err != nil {
		s.t.Fatal(err)
	}
	secure := &http.Server{Handler: http.NotFoundHandler(), ErrorLog: slog.NewLogLogger(slog.DiscardHandler, 0)}
	go secure.Serve(tls.NewListener(keep(s.tls), k.Config()))
	open := &http.Server{Handler: k.Challenges(http.NotFoundHandler())}
	go open.Serve(keep(s.http))
	ctx, cancel := context.WithCancel(s.t.Context())
	ended := make(chan struct{})
	go func() { k.Run(ctx); close(ended) }()
	stop = func() { cancel(); <-ended; secure.Close(); open.Close() }
	s.t.Cleanup(stop)
	return k, stop
}

// kept is a listener that outlives its server: to close it lets Accept fail.
type kept struct{ *net.TCPListener }

func keep(l net.Listener) kept {
	tcp := kept{l.(*net.TCPListener)}
	tcp.SetDeadline(time.Time{})
	return tcp
}

func (k kept) Close() error { return k.SetDeadline(time.Unix(1, 0)) }

// leaf is the certificate that clients of a name accept, by what they trust; nil if there is none.
func (s *acmeServer) leaf(pool *x509.CertPool, name string) *x509.Certificate {
	c, err := tls.DialWithDialer(&net.Dialer{Timeout: 5 * time.Second}, "tcp", s.tls.Addr().String(),
		&tls.Config{RootCAs: pool, ServerName: name})
	if err != nil {
		return nil
	}
	defer c.Close()
	return c.ConnectionState().PeerCertificates[0]
}

// eventually waits until something is so.
func eventually(t *testing.T, within time.Duration, what string, so func() bool) {
	t.Helper()
	for deadline := time.Now().Add(within); !so(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %s: %s", within, what)
		}
	}
}

// Certificates are got from a real authority, which looks whether the names are ours over TLS or over plain HTTP, and
// rejects nonces as it likes. What was got is kept for its owner alone, and a second start asks for nothing.
func TestCertificatesAreGotOverEachChallenge(t *testing.T) {
	for _, challenge := range []string{"tls-alpn-01", "http-01"} {
		t.Run(challenge, func(t *testing.T) {
			t.Parallel()
			s := newACMEServer(t)
			httpPort, tlsPort := port(s.http), port(s.tls)
			if challenge == "http-01" {
				tlsPort = freeport.On(t, "127.0.0.1") // nobody answers there
			}
			p := certstest.NewPebble(t, httpPort, tlsPort, 90*24*time.Hour, 20)
			p.Start()
			k, stop := s.run(p, challenge == "http-01", "docs.example.com", "help.example.com")
			pool := p.Pool()
			eventually(t, 2*time.Minute, "each name has its certificate", func() bool {
				return s.leaf(pool, "docs.example.com") != nil && s.leaf(pool, "help.example.com") != nil
			})
			if !k.Ready() {
				t.Error("it is not ready")
			}
			first := s.leaf(pool, "docs.example.com")
			if other := s.leaf(pool, "help.example.com"); other.Equal(first) {
				t.Error("both names have one certificate")
			}
			ownersOnly(t, s.folder)
			stop()

			p.Stop() // a client that asks now gets nothing
			s.run(p, challenge == "http-01", "docs.example.com", "help.example.com")
			eventually(t, time.Minute, "the certificate is there again", func() bool {
				again := s.leaf(pool, "docs.example.com")
				return again != nil && again.Equal(first)
			})
		})
	}
}

// ownersOnly holds that nobody else can read what lies in a folder.
func ownersOnly(t *testing.T, folder string) {
	t.Helper()
	keys := 0
	err := filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has the mode %s", path, info.Mode())
		}
		if strings.HasSuffix(path, ".key") {
			keys++
		}
		return err
	})
	if err != nil || keys < 2 {
		t.Errorf("%d keys, %v", keys, err)
	}
}

// A certificate is renewed while connections go on, and the new one is shown.
func TestACertificateIsRenewed(t *testing.T) {
	t.Parallel()
	s := newACMEServer(t)
	p := certstest.NewPebble(t, port(s.http), port(s.tls), 24*time.Second, 0)
	p.Start()
	s.run(p, false, "docs.example.com")
	pool := p.Pool()
	var first *x509.Certificate
	eventually(t, time.Minute, "a certificate is shown", func() bool {
		first = s.leaf(pool, "docs.example.com")
		return first != nil
	})
	eventually(t, time.Minute, "another one is shown", func() bool {
		now := s.leaf(pool, "docs.example.com")
		return now != nil && !now.Equal(first)
	})
}

// An authority that is away when the server starts is asked again. Until then browsers get no certificate that they
// could be taught to trust, and probes of health an answer.
func TestAServerStartsWithoutItsAuthority(t *testing.T) {
	need.Everything(t, "the second try comes after a minute")
	t.Parallel()
	s := newACMEServer(t)
	p := certstest.NewPebble(t, port(s.http), port(s.tls), time.Hour, 0)
	k, _ := s.run(p, false, "docs.example.com")
	_, err := tls.Dial("tcp", s.tls.Addr().String(), &tls.Config{InsecureSkipVerify: true, ServerName: "docs.example.com"})
	if err == nil || !strings.Contains(err.Error(), "remote error: tls: internal error") {
		t.Errorf("a browser: %v", err)
	}
	probe, err := tls.Dial("tcp", s.tls.Addr().String(), &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatalf("a probe: %v", err)
	}
	probe.Close()
	if k.Ready() {
		t.Error("it says that it has a certificate")
	}
	failed := func() bool { return strings.Contains(gathered(t, k), "docent_tls_certificate_failures_total 1") }
	eventually(t, time.Minute, "the failure is counted", failed)
	p.Start()
	pool := p.Pool()
	eventually(t, 2*time.Minute, "a certificate is shown", func() bool { return s.leaf(pool, "docs.example.com") != nil })
}

func TestARootThatCannotBeUsedIsNamed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "root.pem")
	if err := os.WriteFile(file, []byte("nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, root := range []string{file, file + ".none"} {
		_, err := ACME(Authority{Domains: []string{"docs.example.com"}, Root: root}, slog.New(slog.DiscardHandler), time.Now)
		if err == nil || !strings.HasPrefix(err.Error(), "setting acme_ca_root: ") {
			t.Errorf("%v", err)
		}
	}
}
