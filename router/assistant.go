package router

import (
	"cmp"
	"context"
	"net/http"
	"net/netip"

	"github.com/uptrace/bunrouter"

	"docent/actors/thread"
	"docent/api"
	"docent/api/stream"
	"docent/internal/background"
	"docent/internal/budget"
	"docent/internal/grant"
	"docent/persistence/cluster"
	"docent/persistence/journal"
	"docent/persistence/quota"
	"docent/router/reqbody"
)

// anonymous is the caller that sends no id of a user.
const anonymous = "anonymous"

// ask serves an assistant message in one of the wire forms, or in one piece.
func (s *Server) ask(form stream.Form) func(*exchange, bunrouter.Request) error {
	return func(x *exchange, req bunrouter.Request) error {
		x.whole = reqbody.OnlyJSON(req.Request)
		turn, done, err := s.pose(x, req.Request, form)
		if err != nil {
			return err
		}
		if x.whole {
			defer done()
			return s.inOnePiece(x, req.Request, &turn, form)
		}
		return s.follow(x, req.Request, turn, form, done)
	}
}

// pose reads a question and puts it to its thread; done ends the stream of the answer. It has returned when the answer
// is followed: a stream that waits for a model holds none of what asking took, be it on the stack.
//
//go:noinline
func (s *Server) pose(x *exchange, req *http.Request, form stream.Form) (turn thread.Turn, done func(), err error) {
	id, ask, err := s.question(x, req, form)
	if err != nil {
		return turn, nil, err
	}
	done, err = s.open(x, budget.Streams) // before the question is accepted: an answer that nobody may read is not begun
	if err != nil {
		return turn, nil, err
	}
	g, unproven := new(grant.Grant), 0
	ask.Uses, unproven = s.askUses(x)
	if err = s.proven(g, x, req, ask.Uses, unproven); err == nil {
		turn, err = s.put(req.Context(), g, x.Header(), id, &ask)
	}
	if err != nil {
		done()
		return turn, nil, api.Named(err, "thread")
	}
	return turn, done, nil
}

// question reads a question and whom it is for: a new thread where it names none.
func (s *Server) question(x *exchange, req *http.Request, form stream.Form) (id api.ThreadID, ask thread.Ask, err error) {
	var q reqbody.Question
	switch form {
	case stream.Completions, stream.Responses:
		q, err = s.complete(x, req, form)
	case stream.AGUI:
		run, failed := decode(s, x, req, reqbody.DecodeRun)
		q, err, x.asked = run.Question, failed, stream.Asked{Thread: run.ThreadID, Run: run.RunID}
	default:
		q, err = decode(s, x, req, func(raw []byte) (reqbody.Question, error) { return reqbody.DecodeQuestion(raw, form) })
	}
	if err != nil {
		return "", ask, err
	}
	if err := mayAsk(x.key.Kind, q.Explain); err != nil {
		return "", ask, err
	}
	if q.Query.Filter.Groups, err = x.audience("filter.groups", q.Query.Filter.Groups); err != nil {
		return "", ask, err
	}
	id = api.ThreadID(q.Thread)
	if id == "" {
		id = api.ThreadID(s.IDs.New(api.ThreadPrefix, x.started))
	} else if !api.ValidID(api.ThreadPrefix, q.Thread) {
		return "", ask, api.Missing("thread")
	}
	x.thread = id
	// A question that another node sends again, since the one that it sent it to died, is still the same turn: the thread
	// may have answered it by then.
	turn := api.TurnPrefix + cluster.Once(req.Context())
	if turn == api.TurnPrefix {
		turn = s.IDs.New(api.TurnPrefix, x.started)
	}
	caller, reader := x.asks(q.Caller)
	return id, thread.Ask{
		Project: x.project, New: q.Thread == "", Turn: api.TurnID(turn),
		Message: q.Message, Chat: s.chat(x, req, q.Chat, reader), Caller: caller, Reader: reader, Channel: channel(x, req),
		ThreadKey: cmp.Or(q.ThreadKey, req.Header.Get(threadKeyHeader)), Text: q.Text,
		Context: q.Context, Before: q.Before, Setting: q.Setting, Query: q.Query, Regenerate: q.Regenerate, Instead: q.Instead, Explain: q.Explain, Key: x.key.ID,
	}, nil
}

// put puts a question to its thread, for every caller. The grant is what it was given already; what it takes beside that
// is a place in the queue, until the turn needs this machine's processors no more, and its uses of quotas. It costs
// something once the thread has accepted it, or may have: a repeat costs nothing. Headers say what is left of the
// quotas; they may be nil.
func (s *Server) put(
	ctx context.Context, g *grant.Grant, h http.Header, id api.ThreadID, ask *thread.Ask,
) (turn thread.Turn, err error) {
	defer func() {
		if !turn.Fresh {
			g.Close()
		}
	}()
	if err := s.enter(ctx, g, h, ask.Uses); err != nil {
		return turn, err
	}
	if err := ctx.Err(); err != nil && cluster.Once(ctx) != "" {
		return turn, err // it was long on its way from another node, and its reader may have asked again
	}
	command, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.Bounds.CommandTimeout)
	defer cancel()
	turn, err = s.Threads.Ask(command, id, *ask)
	if turn.Fresh || journal.Unsure(err) {
		g.Keep()
	}
	if err != nil && ask.Message != "" { // by which the thread knows a question that comes again
		cluster.Repeatable(ctx)
	}
	if prepared := turn.Prepared; turn.Fresh {
		background.Go("router.put", func() { s.prepared(g, prepared) })
	}
	return turn, err
}

// prepared lets the next one in when a turn is prepared: a stream that lasts has no handler any more.
func (s *Server) prepared(g *grant.Grant, prepared <-chan struct{}) {
	defer g.Close()
	select {
	case <-prepared:
	case <-s.leaving.Done():
	}
}

// mayAsk refuses readers an explanation, and admin keys what readers do.
func mayAsk(kind api.KeyKind, explain bool) error {
	switch {
	case explain && kind != api.AdminKey:
		return &keyError{kind: api.ErrForbidden, reason: "explain needs an admin key, since an explanation shows what readers " +
			"are not told: leave explain out, or ask with an admin key of the organization"}
	case !explain && kind == api.AdminKey:
		return &keyError{kind: api.ErrForbidden, reason: "this operation needs an assistant key, and this is an admin key; " +
			"an admin key may ask with explain: true"}
	}
	return nil
}

// Put puts a question for somebody in the console, as one that comes over the API: it waits in the same queue and counts
// against the same quotas, but for that of a key. The question's turn is made here, and its thread if none is named.
func (s *Server) Put(ctx context.Context, client netip.Addr, id api.ThreadID, ask thread.Ask) (thread.Turn, error) {
	now := s.Now()
	ask.Uses = limited([]quota.Use{s.orgUse(&ask.Project), s.clientUse(&ask.Project, client)})
	ask.Turn = api.TurnID(s.IDs.New(api.TurnPrefix, now))
	if ask.New = id == ""; ask.New {
		id = api.ThreadID(s.IDs.New(api.ThreadPrefix, now))
	}
	return s.put(ctx, new(grant.Grant), nil, id, &ask)
}
