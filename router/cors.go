package router

import (
	"net/http"
	"strings"

	"github.com/uptrace/bunrouter"
)

// What a page on another origin may read of a response, and send with a request if it does not say what it wants to.
const (
	exposedHeaders = "X-Thread-Id, X-Thread-Key, X-Request-Id, RateLimit, RateLimit-Policy, Retry-After, WWW-Authenticate, Deprecation, Sunset, Link, X-Vercel-AI-Data-Stream, X-Vercel-AI-UI-Message-Stream, Mcp-Session-Id"
	allowedHeaders = "Authorization, Content-Type, X-Request-Id, X-Thread-Key, " + readerHeader + ", " + proofHeader
)

// allowOrigin lets a page of any origin read the response, errors included: without it the page would see "Failed to
// fetch" in place of a 401. Which origins may use a key is checked with the key; nothing here depends on cookies.
func allowOrigin(h http.Header) {
	h.Set("Access-Control-Allow-Origin", "*")
	h.Set("Access-Control-Expose-Headers", exposedHeaders)
}

// preflight answers what a browser asks before it sends a request with a key. It needs none itself.
func (s *Server) preflight(pattern string) bunrouter.HandlerFunc {
	var methods []string
	for _, r := range s.routes {
		if r.pattern == pattern {
			methods = append(methods, r.method)
		}
	}
	allow := strings.Join(append(methods, http.MethodOptions), ", ")
	return func(w http.ResponseWriter, req bunrouter.Request) error {
		x := w.(*exchange)
		x.route = pattern
		h := x.Header()
		allowOrigin(h)
		h.Set("Allow", allow)
		h.Set("Access-Control-Allow-Methods", allow)
		h.Set("Access-Control-Allow-Headers", wanted(req.Header.Values("Access-Control-Request-Headers")))
		h.Set("Access-Control-Max-Age", "7200")
		h.Add("Vary", "Access-Control-Request-Headers")
		x.WriteHeader(http.StatusNoContent)
		return nil
	}
}

// wanted are the headers that the page wants to send, if they are header names: pages add their own for tracing and the
// like, and no header beyond the key has a meaning that could be abused.
func wanted(headers []string) string {
	list := strings.Join(headers, ",")
	if list == "" || len(list) > 2048 {
		return allowedHeaders
	}
	for i := range len(list) {
		c := list[i]
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && strings.IndexByte("-_, ", c) < 0 {
			return allowedHeaders
		}
	}
	return list
}
