package router

import (
	"cmp"
	"context"
	"docent/internal/background"
	"net/http"
	"net/netip"

	"github.com/uptrace/bunrouter"

	"docent/actors/thread"
	"docent/api"
	"docent/api/stream"
	"docent/internal/budget"
	"docent/persistence/cluster"
	"docent/persistence/journal"
	"docent/persistence/quota"
	"docent/router/overload"
	"docent/router/reqbody"
)

// anonymous is the caller that sends no id of a user.
const anonymous = "anonymous"

// ask serves an assistant message in one of the two wire forms.
func (s *Server) ask(form stream.Form) func(*exchange, bunrouter.Request) error {
	return func(x *exchange, req bunrouter.Request) error {
		turn, done, err := s.put(x, req.Request, form)
		if err != nil {
			return err
		}
		return s.follow(x, req.Request, turn, form, done)
	}
}

// put reads a question and puts it to its thread. It has returned when the answer is followed: a stream that waits
// for a model holds none of what asking took, be it on the stack.
//
//go:noinline
func (s *Server) put(x *exchange, req *http.Request, form stream.Form) (turn thread.Turn, done func(), err error) {
	q, err := decode(s, x, req, func(raw []byte) (reqbody.Question, error) { return reqbody.DecodeQuestion(raw, form) })
	if err != nil {
		return turn, nil, err
	}
	if err := mayAsk(x.key.Kind, q.Explain); err != nil {
		return turn, nil, err
	}
	if q.Query.Filter.Groups, err = x.audience("filter.groups", q.Query.Filter.Groups); err != nil {
		return turn, nil, err
	}
	caller, reader := x.asks(q.Caller)
	id, fresh := api.ThreadID(q.Thread), q.Thread == ""
	if fresh {
		id = api.ThreadID(s.IDs.New(api.ThreadPrefix, x.started))
	} else if !api.ValidID(api.ThreadPrefix, q.Thread) {
		return turn, nil, api.Missing("thread")
	}
	x.thread = id
	uses, unproven := s.askUses(x)
	again, err := s.proven(x, req, uses, unproven)
	if err != nil {
		return turn, nil, err
	}
	unsure := false // whether it was accepted
	defer func() {
		if !turn.Fresh && !unsure {
			again()
		}
	}()
	end, err := s.open(x, budget.Streams) // before the question is accepted: an answer that nobody may read is not begun
	if err != nil {
		return turn, nil, err
	}
	defer func() {
		if err != nil {
			end()
		}
	}()
	ticket, err := s.enqueue(req.Context())
	if err != nil {
		return turn, nil, err
	}
	give, err := s.reserve(x, uses)
	if err != nil {
		ticket.Done()
		return turn, nil, err
	}
	// A question that another node sends again, since the one that it sent it to died, is still the same turn: the thread
	// may have answered it by then.
	name := api.TurnPrefix + cluster.Once(req.Context())
	if name == api.TurnPrefix {
		name = s.IDs.New(api.TurnPrefix, x.started)
	} else if err := req.Context().Err(); err != nil { // it was long on its way, and its reader may have asked again
		ticket.Done()
		give()
		return turn, nil, err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(req.Context()), s.Bounds.CommandTimeout)
	turn, err = s.Threads.Ask(ctx, id, thread.Ask{
		Project: x.project, New: fresh, Turn: api.TurnID(name),
		Message: q.Message, Chat: s.chat(x, req, q.Chat, reader), Caller: caller, Reader: reader, Channel: channel(req),
		ThreadKey: cmp.Or(q.ThreadKey, req.Header.Get(threadKeyHeader)), Text: q.Text,
		Context: q.Context, Query: q.Query, Regenerate: q.Regenerate, Instead: q.Instead, Explain: q.Explain, Key: x.key.ID, Uses: uses,
	})
	cancel()
	if err != nil {
		ticket.Done()
		if q.Message != "" { // by which the thread knows a question that comes again
			cluster.Repeatable(req.Context())
		}
		if unsure = journal.Unsure(err); !unsure {
			give()
		}
		return turn, nil, api.Named(err, "thread")
	}
	if !turn.Fresh {
		give()
		ticket.Done()
		return turn, end, nil
	}
	background.Go("router.put", func() { s.prepared(ticket, &turn) })
	return turn, end, nil
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

// prepared lets the next one in when a turn needs this machine's processors no more: a stream that lasts has no handler
// any more.
func (s *Server) prepared(ticket *overload.Ticket, turn *thread.Turn) {
	select {
	case <-turn.Prepared:
	case <-s.leaving.Done():
	}
	ticket.Done()
}

// Put puts a question for somebody in the console, as one that comes over the API: it waits in the same queue and counts
// against the same quotas, but for that of a key. The question's turn is made here, and its thread where none is named.
func (s *Server) Put(ctx context.Context, client netip.Addr, id api.ThreadID, ask thread.Ask) (thread.Turn, error) {
	ticket, err := s.enqueue(ctx)
	if err != nil {
		return thread.Turn{}, err
	}
	now := s.Now()
	ask.Uses = limited([]quota.Use{s.orgUse(&ask.Project), s.clientUse(&ask.Project, client)})
	ask.Turn = api.TurnID(s.IDs.New(api.TurnPrefix, now))
	if err := s.Quotas.Reserve(now, ask.Uses); err != nil {
		s.metrics.refuse("quota")
		ticket.Done()
		return thread.Turn{}, err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.Bounds.CommandTimeout)
	defer cancel()
	if ask.New = id == ""; ask.New {
		id = api.ThreadID(s.IDs.New(api.ThreadPrefix, now))
	}
	turn, err := s.Threads.Ask(ctx, id, ask)
	if err != nil {
		ticket.Done()
		if !journal.Unsure(err) {
			s.Quotas.Release(now, ask.Uses)
		}
		return thread.Turn{}, err
	}
	background.Go("router.Put", func() { s.prepared(ticket, &turn) })
	return turn, nil
}
