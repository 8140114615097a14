package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"docent/cmd/docent/config"
	"docent/internal/background"
	"docent/internal/certs"
	"docent/internal/systemd"
	"docent/persistence/datadir"
	"docent/router"
)

// A front is how clients get in: over TLS or not, and what plain HTTP gets where they come over TLS.
type front struct {
	config   config.Config
	log      *slog.Logger
	certs    *certs.Keeper // nil without TLS
	redirect net.Listener  // nil if there is none
	public   *url.URL      // where clients reach the server, and browsers are sent on to

	everywhere bool // nobody has set that address, and the server listens on all of the machine's
}

// newFront has the certificate, or what is needed to get one, and listens for what is sent on.
func newFront(c config.Config, dir *datadir.Dir, listener net.Listener, log *slog.Logger) (f *front, err error) {
	f = &front{config: c, log: log}
	defer func() {
		if err != nil {
			f.close()
		}
	}()
	address := c.PublicURL
	if address == "" {
		address, f.everywhere = publicURL(c, listener.Addr())
	}
	if f.public, err = url.Parse(address); err != nil {
		return nil, err
	}
	isRedirect := func(name string) bool { return name == redirectSocket }
	sockets, err := passedSockets()
	if err != nil {
		return nil, err
	}
	passed := slices.ContainsFunc(sockets, func(s systemd.Socket) bool { return isRedirect(s.Name) })
	if !c.OverTLS() {
		if passed {
			return nil, fmt.Errorf("the service manager passed the socket %s, and there is no TLS to send browsers to: "+
				"set tls_cert and tls_key, or acme_domains", redirectSocket)
		}
		return f, nil
	}
	if passed || c.RedirectListen != "" {
		if f.redirect, err = listenOn(c.RedirectListen, isRedirect); err != nil {
			return nil, err
		}
	}
	if c.TLSCert != "" {
		f.certs, err = certs.Files(c.TLSCert, c.TLSKey, log, c.Now)
	} else {
		authority := certs.Authority{Domains: c.ACMEDomains, Email: c.ACMEEmail, Directory: c.ACMEDirectory,
			Root: c.ACMERoot, Folder: dir.File(datadir.Certs), Listener: listener.Addr()}
		if f.redirect != nil {
			authority.Plain = f.redirect.Addr()
		}
		f.certs, err = certs.ACME(authority, log, c.Now)
	}
	return f, err
}

// connections are the server's, as its edge takes them.
func (f *front) connections(edge *router.Server, listener net.Listener) net.Listener {
	if f.certs == nil {
		return edge.Listener(listener)
	}
	return edge.TLSListener(listener, f.certs.Config())
}

// keep keeps the certificates fresh, and sends plain HTTP on, until ctx ends. SIGHUP has changed files read at once.
func (f *front) keep(ctx context.Context) {
	if f.certs == nil {
		return
	}
	if f.config.TLSCert != "" {
		hup := make(chan os.Signal, 1)
		signal.Notify(hup, syscall.SIGHUP)
		defer signal.Stop(hup)
		stopped := make(chan struct{})
		defer close(stopped)
		background.Go("cmd/docent/server.keep", func() {
			for {
				select {
				case <-hup:
					f.certs.Reload()
				case <-stopped:
					return
				}
			}
		})
	}
	if f.redirect != nil {
		server := &http.Server{Handler: f.certs.Challenges(http.HandlerFunc(f.sendOn)), ReadTimeout: 10 * time.Second,
			WriteTimeout: 10 * time.Second, IdleTimeout: 30 * time.Second, MaxHeaderBytes: 16 << 10,
			ErrorLog: slog.NewLogLogger(f.log.Handler(), slog.LevelDebug)}
		defer server.Close()
		background.Go("cmd/docent/server.keep", func() {
			if err := server.Serve(f.redirect); !errors.Is(err, http.ErrServerClosed) {
				f.log.Error("plain HTTP is no longer sent on to https", "error", err)
			}
		})
		f.log.Info("sending plain HTTP on to https", "address", f.redirect.Addr().String())
	}
	f.certs.Run(ctx)
}

// sendOn answers plain HTTP: browsers are sent on to https. A program that calls the API is not: its key and what it
// asks would go over the wire in the clear, each time, and nobody would notice.
func (f *front) sendOn(w http.ResponseWriter, req *http.Request) {
	there := *f.public
	if host, _, err := net.SplitHostPort(req.Host); err == nil {
		req.Host = host
	}
	if host := strings.ToLower(req.Host); slices.Contains(f.config.ACMEDomains, host) {
		there.Host = host
		if port := f.public.Port(); port != "" {
			there.Host = net.JoinHostPort(host, port)
		}
	}
	switch {
	case !f.certs.Ready():
		w.Header().Set("Retry-After", "30")
		refusePlain(w, http.StatusServiceUnavailable, "no_certificate", "the server has no certificate yet: try again in a moment")
	case req.Method != http.MethodGet && req.Method != http.MethodHead || req.Header.Get("Authorization") != "":
		refusePlain(w, http.StatusBadRequest, "https_required",
			"plain HTTP is not answered here: send requests to "+there.Scheme+"://"+there.Host+", and replace a key that was sent without TLS")
	default:
		http.Redirect(w, req, there.Scheme+"://"+there.Host+req.URL.RequestURI(), http.StatusPermanentRedirect)
	}
}

// refusePlain answers plain HTTP with an error as the API has them.
func refusePlain(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"error": message, "message": message, "code": code})
}

// close ends what is sent on.
func (f *front) close() {
	if f.redirect != nil {
		f.redirect.Close()
	}
}

// ownURL is the address under which this machine reaches a listener. One that listens on all of the machine's
// addresses has none that a link could begin with; it also listens where the machine calls itself.
func ownURL(scheme string, addr net.Addr) (url string, everywhere bool) {
	if tcp, ok := addr.(*net.TCPAddr); ok && tcp.IP.IsUnspecified() {
		return scheme + net.JoinHostPort("localhost", strconv.Itoa(tcp.Port)), true
	}
	return scheme + addr.String(), false
}

// publicURL is the address at which clients reach the server, where nobody has set it.
func publicURL(c config.Config, addr net.Addr) (url string, everywhere bool) {
	if len(c.ACMEDomains) > 0 {
		return c.Scheme() + c.ACMEDomains[0], false
	}
	return ownURL(c.Scheme(), addr)
}
