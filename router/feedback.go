package router

import (
	"cmp"
	"context"
	"net/http"

	"github.com/uptrace/bunrouter"

	"docent/actors/thread"
	"docent/api"
	"docent/router/reqbody"
)

// rateAnswer stores what a reader thinks of an answer. Anyone who knows the ids of a thread and of an answer
// in it may rate that answer; fp and threadKey must be right if they are sent, or if the project requires them. The
// answers of a reader whom the site's server names are rated by that reader alone.
func (s *Server) rateAnswer(x *exchange, req bunrouter.Request) error {
	v, err := decode(s, x, req.Request, reqbody.DecodeVerdict)
	if err != nil {
		return err
	}
	if !api.ValidID(api.ThreadPrefix, v.Thread) {
		return api.Missing("message")
	}
	x.thread = api.ThreadID(v.Thread)
	ticket, err := s.enqueue(req.Context())
	if err != nil {
		return err
	}
	defer ticket.Done()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(req.Context()), s.Bounds.CommandTimeout)
	defer cancel()
	caller, reader := x.asks(v.Caller)
	err = s.Threads.Rate(ctx, x.thread, thread.Rate{Project: x.project, Caller: caller, Reader: reader,
		ThreadKey: cmp.Or(v.ThreadKey, req.Header.Get(threadKeyHeader)),
		Turn:      api.TurnID(v.Message), Rating: v.Rating, Comment: v.Comment})
	if err != nil {
		return api.Named(err, "message")
	}
	x.Header().Set("Cache-Control", "no-store")
	x.WriteHeader(http.StatusNoContent)
	return nil
}
