package certstest

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"docent/internal/testing/freeport"
	"docent/internal/testing/need"
)

// scripts/install-pebble reads it, too.
//
//go:embed version.txt
var version string

// folder is where scripts/install-pebble puts the authority.
func folder() string {
	cache, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(cache, "docent-tests", "pebble-"+strings.TrimSpace(version))
}

// A Pebble is a certificate authority that speaks ACME, in processes of its own. All names are this machine to it. It
// forgets everything when it is stopped.
type Pebble struct {
	Directory string // URL
	RootFile  string // of the certificate that the authority's own address has

	// Where it looks whether a name is ours.
	HTTPPort, TLSPort int

	t       testing.TB
	life    time.Duration
	rejects int // nonces, in a hundred
	config  string
	manage  string
	dns     string
	ca      *CA
	log     lockedBuffer
	process *exec.Cmd
}

// NewPebble prepares an authority, which is not started yet. What it issues lives for so long, and so many nonces in a
// hundred it rejects without reason, as authorities are free to.
func NewPebble(t testing.TB, httpPort, tlsPort int, life time.Duration, rejects int) *Pebble {
	t.Helper()
	need.Peer(t, "a real certificate authority", "scripts/install-pebble", filepath.Join(folder(), "pebble"))
	p := &Pebble{t: t, HTTPPort: httpPort, TLSPort: tlsPort, life: life, rejects: rejects, ca: NewCA(t)}
	dir := t.TempDir()
	own, manage := freeport.On(t, "127.0.0.1"), freeport.On(t, "127.0.0.1")
	p.Directory = fmt.Sprintf("https://localhost:%d/dir", own)
	p.manage = fmt.Sprintf("https://localhost:%d", manage)
	cert, key := p.ca.Issue(t, 1, 24*time.Hour, "localhost", "127.0.0.1")
	p.RootFile = filepath.Join(dir, "root.pem")
	settings, err := json.Marshal(map[string]any{"pebble": map[string]any{
		"listenAddress":           "127.0.0.1:" + strconv.Itoa(own),
		"managementListenAddress": "127.0.0.1:" + strconv.Itoa(manage),
		"certificate":             filepath.Join(dir, "cert.pem"), "privateKey": filepath.Join(dir, "key.pem"),
		"httpPort": httpPort, "tlsPort": tlsPort, "keyAlgorithm": "ecdsa",
		"retryAfter": map[string]int{"authz": 1, "order": 1},
		"profiles":   map[string]any{"default": map[string]any{"description": "a test's", "validityPeriod": int(life.Seconds())}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	p.config = filepath.Join(dir, "pebble.json")
	for name, text := range map[string][]byte{"cert.pem": cert, "key.pem": key, "root.pem": p.ca.PEM, "pebble.json": settings} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p.dns = "127.0.0.1:" + strconv.Itoa(freeport.On(t, "127.0.0.1"))
	names := exec.Command(filepath.Join(folder(), "pebble-challtestsrv"), "-dnsserver", p.dns, "-defaultIPv6", "",
		"-http01", "", "-https01", "", "-tlsalpn01", "", "-doh", "", "-management", "")
	names.Stdout, names.Stderr = &p.log, &p.log
	if err := names.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Stop()
		names.Process.Kill()
		_ = names.Wait() // it was killed
		if t.Failed() {
			t.Logf("the authority's log:\n%s", p.log.String())
		}
	})
	return p
}

// Start starts the authority and returns when it answers.
func (p *Pebble) Start() {
	p.t.Helper()
	p.process = exec.Command(filepath.Join(folder(), "pebble"), "-config", p.config, "-dnsserver", p.dns)
	p.process.Env = append(os.Environ(), "PEBBLE_VA_NOSLEEP=1", "PEBBLE_WFE_NONCEREJECT="+strconv.Itoa(p.rejects))
	p.process.Stdout, p.process.Stderr = &p.log, &p.log
	if err := p.process.Start(); err != nil {
		p.t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		_, err := p.ask(p.Directory)
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			p.t.Fatalf("the authority does not answer: %v", err)
		}
	}
}

// Stop ends the authority.
func (p *Pebble) Stop() {
	if p.process != nil {
		p.process.Process.Kill()
		_ = p.process.Wait() // it was killed
		p.process = nil
	}
}

// Pool trusts what the running authority issues.
func (p *Pebble) Pool() *x509.CertPool {
	p.t.Helper()
	root, err := p.ask(p.manage + "/roots/0")
	if err != nil {
		p.t.Fatal(err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(root) {
		p.t.Fatalf("no root: %s", root)
	}
	return pool
}

func (p *Pebble) ask(url string) ([]byte, error) {
	client := http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true,
		TLSClientConfig: &tls.Config{RootCAs: p.ca.Pool()}}}
	res, err := client.Get(url)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	return io.ReadAll(res.Body)
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
