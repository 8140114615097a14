package router

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/uptrace/bunrouter"

	"docent/actors/thread"
	"docent/api"
	"docent/api/client"
	"docent/api/stream"
	"docent/internal/measure"
	"docent/router/reqbody"
)

// The operations that clients of OpenAI's API call: a project's domain is the name of a model, its key is the API key, and
// an answer is a turn as any other.

// complete reads a request for a chat completion or a response: the question, and how its answer is to be written.
func (s *Server) complete(x *exchange, req *http.Request, form stream.Form) (reqbody.Question, error) {
	c, err := decode(s, x, req, func(raw []byte) (reqbody.Completion, error) { return reqbody.DecodeCompletion(raw, form) })
	if err != nil {
		return c.Question, err
	}
	p, err := s.Catalog.ProjectByDomain(context.WithoutCancel(req.Context()), c.Model)
	if err != nil && !errors.Is(err, api.ErrNotFound) {
		return c.Question, err
	}
	if p.ID != x.project.ID {
		return c.Question, noModel(x)
	}
	x.whole, x.asked = !c.Stream, stream.Asked{Model: x.project.Domain, Created: x.started, Usage: c.Usage, Previous: c.Previous}
	return c.Question, nil
}

func noModel(x *exchange) error {
	return &api.StateError{Kind: api.ErrNotFound, Reason: fmt.Sprintf("there is no such model for this key: the name of the model is the domain %s",
		x.project.Domain)}
}

func (s *Server) listModels(x *exchange, _ bunrouter.Request) error {
	return encode(x, http.StatusOK, client.ModelsOf(x.project))
}

func (s *Server) readModel(x *exchange, req bunrouter.Request) error {
	p, err := s.Catalog.ProjectByDomain(req.Context(), param(req, "model"))
	if err != nil || p.ID != x.project.ID {
		return noModel(x)
	}
	return encode(x, http.StatusOK, client.ModelOf(p))
}

// inOnePiece sends an answer in one piece when it has ended.
func (s *Server) inOnePiece(x *exchange, req *http.Request, turn *thread.Turn, form stream.Form) error {
	s.release(x) // it is counted as a stream
	x.thread = turn.Thread
	m := s.metrics.stream(form)
	m.open.Inc()
	defer m.open.Dec()
	ctx, cancel := context.WithCancel(req.Context())
	defer cancel()
	defer context.AfterFunc(s.cutting, cancel)()
	answer, err := client.Collect(ctx, turn.Log)
	switch {
	case err != nil && s.isCut(), turn.Log.Broken() && answer == nil: // it goes on, without this client
		return &api.BusyError{Kind: api.ErrShuttingDown, RetryAfter: 5 * time.Second}
	case err != nil:
		return err
	}
	if turn.Fresh {
		measure.Seconds(m.whole, time.Since(x.began), measure.TraceOf(req.Context()))
	}
	x.how = "finished"
	m.end(x.how)
	x.Header().Set("X-Thread-Id", string(turn.Thread))
	if turn.Key != "" {
		x.Header().Set(threadKeyHeader, turn.Key)
	}
	if x.openai {
		return encode(x, http.StatusOK, answer.As(form, x.asked, string(turn.Thread), turn.Key))
	}
	return encode(x, http.StatusOK, client.Whole(answer, string(turn.Thread), turn.Key, x.key.Kind == api.AdminKey))
}
