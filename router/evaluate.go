package router

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/uptrace/bunrouter"

	"docent/actors/thread"
	"docent/api"
	"docent/internal/grant"
	"docent/persistence/journal"
	"docent/router/reqbody"
)

// evaluator is who asks questions whose answers are judged.
const evaluator = "evaluation"

// An EvaluatedAnswer is what came of one question of an evaluation, on the wire.
type EvaluatedAnswer struct {
	Question string            `json:"question"`
	Answer   string            `json:"answer"`
	Answered bool              `json:"answered"`
	Sources  []EvaluatedSource `json:"sources"`
	Model    string            `json:"model"`
	// FallbackFor is the model that was asked and could not answer, where another answered in its place.
	FallbackFor *string `json:"fallbackFor"`
	Error       *string `json:"error"`  // why there is no answer
	TookMS      int64   `json:"tookMs"` // from the question to the answer's end
	// Degraded are the parts that did not take part in the answer as they should have.
	Degraded []string `json:"degraded,omitempty"`
}

// An EvaluatedSource is a place that the answer cites. The path is empty if the index no longer has the page.
type EvaluatedSource struct {
	Path   string `json:"path,omitempty"`
	Anchor string `json:"anchor,omitempty"`
	URL    string `json:"url"`
	Title  string `json:"title"`
}

// evaluate asks the questions of one conversation, for somebody who judges the answers.
func (s *Server) evaluate(x *exchange, req bunrouter.Request) error {
	e, err := decode(s, x, req.Request, reqbody.DecodeEvaluation)
	if err != nil {
		return err
	}
	for i := range e.Questions {
		f := &e.Questions[i].Query.Filter
		if f.Groups, err = x.audience(fmt.Sprintf("questions[%d].filter.groups", i), f.Groups); err != nil {
			return err
		}
	}
	answers, err := s.Evaluate(req.Context(), x.project, e)
	if err != nil {
		return err
	}
	return encode(x, http.StatusOK, struct {
		Answers []EvaluatedAnswer `json:"answers"`
	}{answers})
}

// Evaluate asks the questions of one conversation in a thread of its own, which is removed afterwards: analytics,
// topics and webhooks hear of none of it, and it counts against no quota of readers. It waits in the queue as readers
// do.
func (s *Server) Evaluate(ctx context.Context, p api.Project, e reqbody.Evaluation) ([]EvaluatedAnswer, error) {
	if e.Model != "" {
		if _, err := s.Models.Resolve(e.Model); err != nil {
			return nil, err
		}
	}
	p.Options.RequireThreadKey = false // that is for readers
	id := api.ThreadID(s.IDs.New(api.ThreadPrefix, s.Now()))
	opened := false
	defer func() {
		if opened {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.Bounds.CommandTimeout)
			defer cancel()
			if err := s.Threads.Forget(ctx, id, thread.Forget{Project: p.ID}); err != nil {
				s.Log.Error("could not remove the thread of an evaluation", "thread", id, "error", err)
			}
		}
	}()
	answers := make([]EvaluatedAnswer, 0, len(e.Questions))
	for _, q := range e.Questions {
		exchange, err := s.evaluateOne(ctx, id, thread.Ask{
			Project: p, New: !opened, Turn: api.TurnID(s.IDs.New(api.TurnPrefix, s.Now())), Caller: evaluator,
			Channel: api.ChannelEvaluation, Text: q.Text, Query: q.Query, Model: e.Model,
		}, &opened)
		if err != nil {
			return nil, err
		}
		answers = append(answers, s.evaluated(ctx, p.ID, &exchange, q.Query.Filter.Groups))
	}
	return answers, nil
}

// evaluateOne puts one question and waits for the end of its answer.
func (s *Server) evaluateOne(ctx context.Context, id api.ThreadID, ask thread.Ask, opened *bool) (thread.Exchange,
	error) {
	turn, err := s.put(ctx, new(grant.Grant), nil, id, &ask)
	*opened = *opened || err == nil || journal.Unsure(err)
	if err != nil {
		return thread.Exchange{}, err
	}
	log := turn.Log.Reader(0)
	defer log.Close()
	for more := true; more; {
		if _, more, err = log.Next(ctx); err != nil {
			return thread.Exchange{}, err
		}
	}
	c, err := s.Threads.Read(ctx, id, thread.Read{Project: ask.Project.ID})
	if err != nil {
		return thread.Exchange{}, err
	}
	at := slices.IndexFunc(c.Turns, func(e thread.Exchange) bool { return e.Turn == turn.ID })
	if at < 0 {
		return thread.Exchange{}, api.Missing("answer")
	}
	return c.Turns[at], nil
}

func (s *Server) evaluated(ctx context.Context, project api.ProjectID, e *thread.Exchange, groups []string) EvaluatedAnswer {
	a := EvaluatedAnswer{Question: e.Question, Answer: e.Answer, Answered: e.Answered, Model: e.Model,
		Sources: []EvaluatedSource{}, FallbackFor: optional(e.FallbackFor), Error: optional(e.Error),
		Degraded: e.Degraded, TookMS: max(0, e.Ended.Sub(e.Asked).Milliseconds())}
	if e.Error != "" {
		a.Answer = e.Text // as far as it had come
	}
	for _, source := range e.Cited() {
		address, anchor, _ := strings.Cut(source.URL, "#")
		out := EvaluatedSource{Anchor: anchor, URL: source.URL, Title: source.Title}
		if p, err := s.Documents.Page(ctx, project, address, groups); err == nil {
			out.Path = p.Path
		}
		a.Sources = append(a.Sources, out)
	}
	return a
}
