package router

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/uptrace/bunrouter"
)

const (
	deprecatedSince = "@1767225600"                   // 2026-01-01
	sunset          = "Fri, 31 Dec 2027 23:59:59 GMT" // until then the operations of version 1 that have a successor stay
)

// successors are the operations that follow deprecated ones, by method and pattern. A parameter that the path of the
// old one does not have stands in its query.
var successors = map[string]string{
	"POST /v1/agent/:projectId/job":                "/v2/agent/:projectId/job",
	"GET /v1/agent/:projectId/jobs":                "/v2/agent/:projectId/jobs",
	"GET /v1/agent/:projectId/job/:id":             "/v2/agent/:projectId/job/:id",
	"POST /discovery/v1/assistant/:domain/message": "/discovery/v2/assistant/:domain/message",
	"GET /discovery/v1/assistant/:domain/message":  "/discovery/v2/assistant/:domain/message/:chatId/stream",
}

// successor is the pattern of what follows an operation; empty if it is not deprecated.
func (r *route) successor() string {
	pattern := r.pattern
	if r.readers() && !strings.HasPrefix(pattern, "/discovery") {
		pattern = "/discovery" + pattern
	}
	return successors[r.method+" "+pattern]
}

// deprecate says in every answer of a deprecated operation since when it is so (RFC 9745), until when it stays (RFC
// 8594) and what follows it.
func deprecate(h http.Header, successor string, req bunrouter.Request) {
	h.Set("Deprecation", deprecatedSince)
	h.Set("Sunset", sunset)
	parts := strings.Split(successor, "/")
	for i, part := range parts {
		name, is := strings.CutPrefix(part, ":")
		if !is {
			continue
		}
		value := param(req, name)
		if value == "" {
			value = req.URL.Query().Get(name)
		}
		if value == "" {
			return // the request does not say of what
		}
		parts[i] = url.PathEscape(value)
	}
	h.Set("Link", "<"+strings.Join(parts, "/")+`>; rel="successor-version"`)
}
