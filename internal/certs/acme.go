package certs

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/caddyserver/certmagic"
	"github.com/mholt/acmez/v3"
	"go.uber.org/zap"
)

// Authority says from whom certificates are got and how.
type Authority struct {
	Domains   []string // each gets a certificate of its own
	Email     string   // that the authority writes to; may be empty
	Directory string   // of the authority; Let's Encrypt if empty
	Root      string   // PEM file of the root that the authority's own address is trusted by; the system's if empty
	Folder    string   // that keys and certificates are kept in

	// Listener takes the connections over TLS, on which the authority looks whether the domains are ours.
	Listener net.Addr
	// Plain, if it is not nil, takes plain HTTP and has the requests answered by Challenges, where the authority looks
	// as well.
	Plain net.Addr

	checkEvery time.Duration // whether something is to be renewed; a test's
}

// ACME gets certificates from an authority and renews them, by itself. Until there is one no connection over TLS comes
// about. What fails is tried again with growing pauses, of a minute to six hours.
func ACME(a Authority, log *slog.Logger, now func() time.Time) (*Keeper, error) {
	k := newKeeper(log, now)
	s := &authority{keeper: k, domains: a.Domains, standIn: sync.OnceValues(standIn)}
	k.source = s
	issuer := certmagic.ACMEIssuer{CA: a.Directory, Email: a.Email, Agreed: true, Logger: zapOver(log),
		DisableHTTPChallenge: a.Plain == nil, DisableDistributedSolvers: true}
	if a.Directory == "" {
		issuer.CA, issuer.TestCA = certmagic.LetsEncryptProductionCA, certmagic.LetsEncryptStagingCA
	}
	if a.Root != "" {
		pem, err := os.ReadFile(a.Root)
		if err != nil {
			return nil, fmt.Errorf("setting acme_ca_root: %w", err)
		}
		issuer.TrustedRoots = x509.NewCertPool()
		if !issuer.TrustedRoots.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("setting acme_ca_root: %s holds no certificate in PEM form", a.Root)
		}
	}
	// The library listens by itself for what the authority asks, unless somebody does so already: the server.
	var err error
	if issuer.ListenHost, issuer.AltTLSALPNPort, err = hostPort(a.Listener); err != nil {
		return nil, err
	}
	if a.Plain != nil {
		if _, issuer.AltHTTPPort, err = hostPort(a.Plain); err != nil {
			return nil, err
		}
	}
	s.cache = certmagic.NewCache(certmagic.CacheOptions{Logger: zapOver(log), RenewCheckInterval: a.checkEvery,
		GetConfigForCert: func(certmagic.Certificate) (*certmagic.Config, error) { return s.config, nil }})
	s.config = certmagic.New(s.cache, certmagic.Config{Storage: &certmagic.FileStorage{Path: a.Folder},
		DefaultServerName: a.Domains[0], FallbackServerName: a.Domains[0], OnEvent: s.event, Logger: zapOver(log)})
	s.issuer = certmagic.NewACMEIssuer(s.config, issuer)
	s.config.Issuers = []certmagic.Issuer{s.issuer}
	return k, nil
}

// hostPort is the address of a listener.
func hostPort(addr net.Addr) (host string, port int, err error) {
	host, text, err := net.SplitHostPort(addr.String())
	if err == nil {
		port, err = strconv.Atoi(text)
	}
	return host, port, err
}

// Challenges answers what an authority asks over plain HTTP, and hands on everything else.
func (k *Keeper) Challenges(next http.Handler) http.Handler {
	if s, ok := k.source.(*authority); ok {
		return s.issuer.HTTPChallengeHandler(next)
	}
	return next
}

// An authority issues the certificates that the server gets by itself.
type authority struct {
	keeper  *Keeper
	domains []string
	config  *certmagic.Config
	issuer  *certmagic.ACMEIssuer
	cache   *certmagic.Cache
	standIn func() (*tls.Certificate, error)
}

// get is the certificate for a client. Until there is one, a client that asks for one of the domains gets none: a
// browser that was shown another could be taught to pass over it. Who names no domain of ours, as probes of health do
// on the machine's own address, sees one that nobody trusts, so that a server is not restarted for what it waits for.
func (s *authority) get(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	cert, err := s.config.GetCertificate(hello)
	if err != nil && !slices.Contains(s.domains, strings.ToLower(hello.ServerName)) &&
		!slices.Contains(hello.SupportedProtos, acmez.ACMETLS1Protocol) {
		return s.standIn()
	}
	return cert, err
}

// standIn makes a certificate that nobody trusts.
func standIn() (*tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "no certificate yet"},
		NotAfter: time.Now().AddDate(1, 0, 0)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
}

func (s *authority) held() map[string]*x509.Certificate {
	held := map[string]*x509.Certificate{}
	for _, domain := range s.domains {
		var latest *x509.Certificate
		for _, c := range s.cache.AllMatchingCertificates(domain) {
			if leaf := c.Leaf; leaf != nil && (latest == nil || leaf.NotAfter.After(latest.NotAfter)) {
				latest = leaf
			}
		}
		held[domain] = latest
	}
	return held
}

func (s *authority) protocols() []string { return []string{acmez.ACMETLS1Protocol} }

func (s *authority) begin(ctx context.Context) {
	if err := s.config.ManageAsync(ctx, s.domains); err != nil {
		s.keeper.log.Error("cannot get certificates", "error", err)
	}
}

func (s *authority) look(bool) {}
func (s *authority) end()      { s.cache.Stop() }

// event receives what the library does.
func (s *authority) event(_ context.Context, event string, data map[string]any) error {
	switch event {
	case "cert_obtained":
		s.keeper.log.Info("certificate obtained", "name", data["identifier"], "issuer", data["issuer"], "renewal", data["renewal"])
	case "cert_failed":
		s.keeper.failures.Inc()
		err, _ := data["error"].(error)
		if err != nil && !errors.Is(err, context.Canceled) {
			s.keeper.log.Error("getting a certificate failed; trying again", "name", data["identifier"],
				"renewal", data["renewal"], "error", err)
		}
	}
	return nil
}

// zapOver is the log as the library wants to have it.
func zapOver(log *slog.Logger) *zap.Logger { return zap.New(zapCore{handler: log.Handler()}) }
