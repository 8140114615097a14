package router

import (
	"cmp"
	"strings"

	"github.com/uptrace/bunrouter"

	"docent/router/deprecated"
)

// successor is the pattern of what follows an operation; empty if it is not deprecated.
func (r *route) successor() string {
	pattern := r.pattern
	if r.readers() && !strings.HasPrefix(pattern, "/discovery") {
		pattern = "/discovery" + pattern
	}
	return deprecated.Successor(r.method, pattern)
}

// deprecate says in an answer what follows its operation, and once in the log that somebody uses it.
func (s *Server) deprecate(x *exchange, r *route, successor string, req bunrouter.Request) {
	deprecated.Tell(x.Header(), successor, func(name string) string { return cmp.Or(param(req, name), req.URL.Query().Get(name)) })
	if _, told := s.deprecated.LoadOrStore(successor, true); !told {
		s.Log.Warn("a client used a deprecated operation", "operation", r.method+" "+r.pattern, "until", deprecated.Sunset,
			"instead", successor, "user_agent", req.UserAgent())
	}
}
