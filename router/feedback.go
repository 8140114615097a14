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
	return s.say(x, req, v.Answer, func(ctx context.Context, caller, reader, key string) error {
		return s.Threads.Rate(ctx, x.thread, thread.Rate{Project: x.project, Caller: caller, Reader: reader, ThreadKey: key,
			Turn: api.TurnID(v.Message), Rating: v.Rating, Comment: v.Comment})
	})
}

// handOver hands a conversation over to people. Who may do so is as with a rating.
func (s *Server) handOver(x *exchange, req bunrouter.Request) error {
	v, err := decode(s, x, req.Request, reqbody.DecodeContact)
	if err != nil {
		return err
	}
	// A form may not know: its page was open before the setting was made, or could not read the settings.
	if x.project.Widget.ContactIssues && !v.Public {
		return &api.StateError{Kind: api.ErrConflict,
			Reason: "what is sent here becomes an issue that others may read, and this form does not say so: load the page again (programs send \"public\": true)"}
	}
	return s.say(x, req, v.Answer, func(ctx context.Context, caller, reader, key string) error {
		return s.Threads.HandOver(ctx, x.thread, thread.HandOver{Project: x.project, Caller: caller, Reader: reader, ThreadKey: key,
			Turn: api.TurnID(v.Message), Contact: thread.Contact{Name: v.Name, Email: v.Email, Message: v.Text}})
	})
}

// say has the thread of an answer told what somebody says about it.
func (s *Server) say(x *exchange, req bunrouter.Request, to reqbody.Answer, tell func(ctx context.Context, caller, reader, key string) error) error {
	if !api.ValidID(api.ThreadPrefix, to.Thread) {
		return api.Missing("message")
	}
	x.thread = api.ThreadID(to.Thread)
	ticket, err := s.enqueue(req.Context())
	if err != nil {
		return err
	}
	defer ticket.Done()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(req.Context()), s.Bounds.CommandTimeout)
	defer cancel()
	caller, reader := x.asks(to.Caller)
	if err := tell(ctx, caller, reader, cmp.Or(to.ThreadKey, req.Header.Get(threadKeyHeader))); err != nil {
		return api.Named(err, "message")
	}
	x.Header().Set("Cache-Control", "no-store")
	x.WriteHeader(http.StatusNoContent)
	return nil
}
