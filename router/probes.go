package router

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/uptrace/bunrouter"

	"docent/api"
	"docent/api/openapi"
	"docent/internal/gzipped"
	"docent/router/peer"
)

type statusBody struct {
	Status  string `json:"status"`
	Version string `json:"version,omitempty"`
}

// health says that the process lives.
func (s *Server) health(x *exchange, req bunrouter.Request) error {
	return encode(x, http.StatusOK, statusBody{Status: "ok", Version: s.versionFor(x, req)})
}

// ready says that work is taken.
func (s *Server) ready(x *exchange, req bunrouter.Request) error {
	if err := s.Serving(req.Context()); err != nil {
		return err
	}
	return encode(x, http.StatusOK, statusBody{Status: "ready", Version: s.versionFor(x, req)})
}

// versionFor is the version for those who may read metrics by their address, and empty for strangers.
func (s *Server) versionFor(x *exchange, req bunrouter.Request) string {
	if s.monitors(x, req) {
		return s.Version
	}
	return ""
}

// monitors reports whether a request comes from where metrics are read without a key.
func (s *Server) monitors(x *exchange, req bunrouter.Request) bool {
	from := peer.Address(req.RemoteAddr)
	// Who is spoken for by a proxy that trusted_proxies does not name may be anybody.
	return peer.In(s.MetricsFrom, x.client) && peer.In(s.MetricsFrom, from) && (peer.In(s.TrustedProxies, from) || !forwarded(req.Header))
}

// Serving is nil while work is taken.
func (s *Server) Serving(ctx context.Context) error {
	if s.retired.Err() != nil {
		return &api.BusyError{Kind: api.ErrShuttingDown, RetryAfter: 5 * time.Second}
	}
	if err := s.Ready(ctx); err != nil {
		return &api.BusyError{Kind: &notReady{err}, RetryAfter: time.Second}
	}
	return nil
}

// notReady keeps the reason for the log.
type notReady struct{ err error }

func (e *notReady) Error() string   { return "not ready: " + e.err.Error() }
func (e *notReady) Unwrap() []error { return []error{api.ErrOverloaded, e.err} }

// showMetrics is for scrapers: those in networks that may, and holders of an admin key.
func (s *Server) showMetrics(x *exchange, req bunrouter.Request) error {
	if !s.monitors(x, req) {
		if err := s.authorize(x, req, api.AdminKey, false); err != nil {
			return err
		}
	}
	x.deadline()
	s.ShowMetrics(x, req.Request)
	return nil
}

// forwarded reports whether a proxy says that it speaks for somebody.
func forwarded(h http.Header) bool {
	return len(h.Values("X-Forwarded-For"))+len(h.Values("Forwarded"))+len(h.Values("X-Real-Ip")) > 0
}

// ShowMetrics shows the metrics to any client: for a listener of the operator's own.
func (s *Server) ShowMetrics(w http.ResponseWriter, req *http.Request) { s.scrape.ServeHTTP(w, req) }

// scrapesAtOnce bounds what scrapers cost that ask again before they were answered.
const scrapesAtOnce = 4

// newScrape shows metrics in the form that the scraper asks for; in OpenMetrics' they have exemplars. If one package
// fails to report, the others still do.
func newScrape(metrics prometheus.Gatherer, log *slog.Logger) http.Handler {
	return promhttp.HandlerFor(metrics, promhttp.HandlerOpts{
		EnableOpenMetrics: true, MaxRequestsInFlight: scrapesAtOnce, ErrorHandling: promhttp.ContinueOnError,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelError),
	})
}

// The description of the API, compressed when somebody first asks for it.
var (
	openapiJSON = sync.OnceValue(func() gzipped.File { return gzipped.NewFile(openapi.JSON()) })
	openapiYAML = sync.OnceValue(func() gzipped.File { return gzipped.NewFile(openapi.YAML) })
)

// description serves the description of the API, which every page may read.
func (s *Server) description(kind string, file func() gzipped.File) func(*exchange, bunrouter.Request) error {
	return func(x *exchange, req bunrouter.Request) error {
		allowOrigin(x.Header())
		x.Header().Set("Cache-Control", "public, max-age=300")
		fixed(x, req, kind, file())
		return nil
	}
}
