package router_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"flag"
	"math/big"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"docent/router/openapi/openapitest"
)

// over has every test of this room reach its server over TLS: "tls" with HTTP/1.1, "h2" with HTTP/2 where a client of
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

// below is the TCP connection below TLS, where there is any.
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
