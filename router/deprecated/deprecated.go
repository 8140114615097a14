// Package deprecated tells which operations are followed by others, and says so in their answers.
package deprecated

import (
	"net/http"
	"net/url"
	"strings"
)

const (
	since = "@1767225600" // 2026-01-01
	// Sunset is until when the operations of version 1 that have a successor stay.
	Sunset = "Fri, 31 Dec 2027 23:59:59 GMT"
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

// Successor returns the pattern of what follows an operation; empty if it is not deprecated.
func Successor(method, pattern string) string { return successors[method+" "+pattern] }

// Tell says in every answer of a deprecated operation since when it is so (RFC 9745), until when it stays (RFC 8594) and
// what follows it, with the values of its parameters.
func Tell(h http.Header, successor string, value func(name string) string) {
	h.Set("Deprecation", since)
	h.Set("Sunset", Sunset)
	parts := strings.Split(successor, "/")
	for i, part := range parts {
		name, is := strings.CutPrefix(part, ":")
		if !is {
			continue
		}
		value := value(name)
		if value == "" {
			return // the request does not say of what
		}
		parts[i] = url.PathEscape(value)
	}
	h.Set("Link", "<"+strings.Join(parts, "/")+`>; rel="successor-version"`)
}
