package router

import (
	"context"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"github.com/uptrace/bunrouter"

	"docent/api"
	"docent/internal/budget"
)

// toolRoutes are the routes of the Model Context Protocol. A client posts its messages, gets a stream of what the
// server says by itself, and deletes its session.
func (s *Server) toolRoutes() []route {
	if s.Tools == nil {
		return nil
	}
	var list []route
	for _, method := range []string{http.MethodPost, http.MethodGet, http.MethodDelete} {
		list = append(list,
			route{method, "/mcp/:domain", tools, s.serveTools(s.Tools.ServeReaders)},
			route{method, "/mcp/agent/:projectId", agent, s.serveTools(s.Tools.ServeAgent)})
	}
	return list
}

// oauthRoutes let clients of these tools in that have nothing but their address.
func (s *Server) oauthRoutes() (list []route) {
	for _, r := range append(s.OAuth.Routes(), s.Further...) {
		list = append(list, route{r.Method, r.Pattern, anywhere, func(x *exchange, req bunrouter.Request) error {
			if err := s.whole(x, req.Request, s.Bounds.BodyBytes); err != nil {
				return err
			}
			return r.Serve(x, req.Request, x.client)
		}})
	}
	return list
}

// maxToolMessage is what one message of a client of MCP may have.
const maxToolMessage = 1 << 20

func (s *Server) serveTools(serve func(http.ResponseWriter, *http.Request, api.Project, netip.Addr)) func(*exchange,
	bunrouter.Request) error {
	return func(x *exchange, req bunrouter.Request) error {
		if err := s.whole(x, req.Request, max(s.Bounds.BodyBytes, maxToolMessage)); err != nil {
			return err
		}
		kind := budget.Streams
		if req.Method == http.MethodGet {
			kind = budget.Standing // a client keeps it while its session lasts
		}
		end, err := s.open(x, kind)
		if err != nil {
			return err
		}
		defer end()
		s.release(x) // counted as a stream: it may last
		ctx, cancel := context.WithCancel(req.Context())
		defer cancel()
		ends := s.cutting
		if req.Method == http.MethodGet {
			ends = s.retired // it waits for nothing that was asked
		}
		defer context.AfterFunc(ends, cancel)()
		serve(x, req.Request.WithContext(ctx), x.project, x.client)
		switch x.status {
		case http.StatusTooManyRequests:
			s.metrics.refuse("client_" + budget.Sessions.String())
		case http.StatusServiceUnavailable:
			s.metrics.refuse(budget.Sessions.String())
		}
		return nil
	}
}

// keyless lets in callers without a key, if the project lets everybody use its tools.
func (s *Server) keyless(x *exchange, req bunrouter.Request) error {
	p, err := s.Catalog.ProjectByDomain(req.Context(), param(req, "domain"))
	if err != nil || !p.Options.Public {
		s.metrics.refuse("unauthorized")
		return errNoKey // even if there is no such project
	}
	if from := req.Header.Get("Origin"); from != "" && !s.isOwn(x, req.Request, from) && !p.OpenTo(from) {
		s.metrics.refuse("unauthorized")
		return &keyError{kind: api.ErrForbidden, reason: "pages of this origin may not use this without a key: send one, or add the origin to " +
			"those that may (docent project set --public-origins)"}
	}
	x.project, x.key = p, api.Key{ID: api.KeyID("tools:" + p.ID), Kind: api.AssistantKey, Org: p.Org, Project: p.ID}
	return nil
}

// isOwn reports whether an origin is the server's: that of its public address, or of one that no foreign name leads to.
func (s *Server) isOwn(x *exchange, req *http.Request, origin string) bool {
	at, err := url.Parse(s.base(x, req))
	if err != nil || !strings.EqualFold(origin, at.Scheme+"://"+at.Host) {
		return false
	}
	_, err = netip.ParseAddr(at.Hostname())
	return s.PublicURL != "" || err == nil || at.Hostname() == "localhost"
}

// tooling marks the requests of the tools.
type tooling struct{}

// ofTools reports whether a request is one that the tools make, for a client that has called them.
func ofTools(req *http.Request) bool { return req.Context().Value(tooling{}) != nil }

// ForTools is the API for what the tools of projects do. Nothing from outside comes here.
func (s *Server) ForTools() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		s.ServeHTTP(w, req.WithContext(context.WithValue(req.Context(), tooling{}, true)))
	})
}
