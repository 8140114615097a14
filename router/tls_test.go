package router_test

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"flag"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"docent/actors/thread"
	"docent/api/openapi/openapitest"
	"docent/api/stream"
	"docent/router"
)

// over makes every test of this package reach its server over TLS: "tls" with HTTP/1.1, "h2" with HTTP/2 if a client of
// net/http is used.
var over = flag.String("over", "", "tls or h2: reach the servers of all tests over it")

// An ident is a certificate as its server and its clients have it.
type ident struct{ server, client *tls.Config }

var identity = sync.OnceValue(func() ident {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "router"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		panic(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		panic(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	return ident{
		server: &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}},
			NextProtos: []string{"h2", "http/1.1", "acme-tls/1"}},
		client: &tls.Config{RootCAs: pool},
	}
})

// transport is a client's over TLS, for HTTP/1.1 or HTTP/2.
func transport(t testing.TB, protocol string) *http.Transport {
	t.Helper()
	tr := &http.Transport{TLSClientConfig: identity().client.Clone(), Protocols: new(http.Protocols)}
	tr.Protocols.SetHTTP1(protocol == "tls")
	tr.Protocols.SetHTTP2(protocol == "h2")
	t.Cleanup(tr.CloseIdleConnections)
	return tr
}

// below is the TCP connection below TLS, if there is any.
func below(c net.Conn) *net.TCPConn {
	if secure, ok := c.(*tls.Conn); ok {
		c = secure.NetConn()
	}
	return c.(*net.TCPConn)
}

// unchecked is a client that holds no answer against the description of the API.
func (h *house) unchecked() *http.Client {
	return &http.Client{Transport: h.client.Transport.(openapitest.Checked).Base}
}

// overTLS makes the servers that a test builds be reached so, until it ends.
func overTLS(t *testing.T, protocol string) {
	before := *over
	*over = protocol
	t.Cleanup(func() { *over = before })
}

// Streams have the same bytes and the same heads over plain connections, TLS and HTTP/2.
func TestEveryWayOverTLSGivesTheSameBytes(t *testing.T) {
	changing := regexp.MustCompile(`(?:thr|msg|req)_[0-9A-Za-z]+`)
	answers := map[string]map[string]string{v1: {}, v2: {}}
	for _, protocol := range []string{"", "tls", "h2"} {
		t.Run("over "+protocol, func(t *testing.T) {
			overTLS(t, protocol)
			h := build(t, func(d *router.Deps) { d.Models = fakeModels{} })
			h.threads.answer = func(_ thread.Ask, log *stream.Log) {
				write(t, log, stream.Part{Kind: stream.Source, ID: "s1", URL: "https://docs.acme.example/page", Title: "Page"})
				for n := range 100 {
					write(t, log, say(strings.Repeat("words ", n)))
				}
				finish(t, log)
			}
			for _, path := range []string{v1, v2} {
				res := h.do("POST", path, h.assistant, ask)
				if want := map[string]int{"": 1, "tls": 1, "h2": 2}[protocol]; res.ProtoMajor != want {
					t.Errorf("the protocol is %s", res.Proto)
				}
				res.Header.Del("Date")
				answers[path][protocol] = changing.ReplaceAllString(fmt.Sprint(res.StatusCode, res.Header)+"\n"+body(t, res), "…")
			}
		})
	}
	for path, got := range answers {
		if got["tls"] != got[""] || got["h2"] != got[""] || !strings.Contains(got["h2"], "words words") {
			t.Errorf("%s: the answers differ:\n%.1500q", path, got)
		}
	}
}

// A reader that takes nothing in holds up none that shares its connection over HTTP/2.
func TestAStalledStreamHoldsUpNoOtherOfItsConnection(t *testing.T) {
	overTLS(t, "h2")
	h := build(t, func(d *router.Deps) { d.Models = fakeModels{} })
	var dials atomic.Int32
	h.unchecked().Transport.(*http.Transport).DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		dials.Add(1)
		return new(net.Dialer).DialContext(ctx, network, addr)
	}
	logs := h.slow()
	stalled := h.do("POST", v2, h.assistant, ask)
	first := <-logs
	for range 400 { // more than the flow control of a stream lets through
		write(t, first, say(strings.Repeat("x", 64<<10)))
	}
	for n := range 20 {
		res := h.do("POST", v2, h.assistant, ask)
		log := <-logs
		text := strings.Repeat(fmt.Sprintf("answer %d ", n), 10_000)
		write(t, log, say(text))
		finish(t, log)
		if got := body(t, res); !strings.Contains(got, text) {
			t.Errorf("answer %d has %d bytes", n, len(got))
		}
	}
	if n := dials.Load(); n != 1 {
		t.Errorf("%d connections: the streams do not share one", n)
	}
	finish(t, first)
	if got := body(t, stalled); len(got) < 400*64<<10 {
		t.Errorf("the one that was slow got %d bytes", len(got))
	}
}

// What net/http says by itself, and what speaks plain HTTP to TLS, has the form of every other error.
func TestWhatIsNoRequestOverTLSIsAnsweredInTheAPIsForm(t *testing.T) {
	overTLS(t, "tls")
	h := build(t)
	plain, err := net.Dial("tcp", strings.TrimPrefix(h.url, "https://"))
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	for name, c := range map[string]struct {
		conn    net.Conn
		request string
		says    string
	}{
		"nonsense":   {h.dial(), "nonsense\r\n\r\n", "is not HTTP that can be read"},
		"plain HTTP": {plain, "GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n", "begin the URL with https://"},
	} {
		fmt.Fprint(c.conn, c.request)
		res, err := http.ReadResponse(bufio.NewReader(c.conn), nil)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := decodeJSON(t, res.Body); res.StatusCode != 400 || !strings.Contains(fmt.Sprint(got["error"]), c.says) ||
			got["requestId"] != res.Header.Get("X-Request-Id") {
			t.Errorf("%s: %d %v", name, res.StatusCode, got)
		}
	}
	figures, _ := h.text(200, "GET", "/metrics", h.admin, "")
	if !strings.Contains(figures, "docent_tls_handshake_failures_total 1\n") {
		t.Error("the failed handshake is not counted")
	}
}
