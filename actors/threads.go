package actors

import (
	"context"
	"strings"

	"docent/actors/thread"
	"docent/api"
	"docent/internal/tracing"
	"docent/persistence/cluster"
)

// Threads finds or starts the actor of a thread and asks it.
type Threads struct {
	system *System
	dir    *directory
}

// Ask puts a question. An error of the context means that it was not asked, unless the error says that this is not
// known.
func (t *Threads) Ask(ctx context.Context, id api.ThreadID, cmd thread.Ask) (thread.Turn, error) {
	cmd.Traced = tracing.Carried(ctx)
	return askThread[thread.Turn](ctx, t, id, cmd, false)
}

// Resume gets the stream of the newest turn.
func (t *Threads) Resume(ctx context.Context, id api.ThreadID, cmd thread.Resume) (thread.Turn, error) {
	return askThread[thread.Turn](ctx, t, id, cmd, true)
}

// Read gets the conversation.
func (t *Threads) Read(ctx context.Context, id api.ThreadID, cmd thread.Read) (thread.Conversation, error) {
	return askThread[thread.Conversation](ctx, t, id, cmd, true)
}

// Rate stores what a reader thinks of an answer. An error of the context means that it was not stored, unless the error
// says that this is not known.
func (t *Threads) Rate(ctx context.Context, id api.ThreadID, cmd thread.Rate) error {
	if !api.ValidID(api.ThreadPrefix, string(id)) {
		return api.ErrNotFound
	}
	_, err := t.system.ask(ctx, t.dir, string(id), cmd, false)
	return err
}

// HandOver hands the conversation over to people. Errors are as those of Rate.
func (t *Threads) HandOver(ctx context.Context, id api.ThreadID, cmd thread.HandOver) error {
	if !api.ValidID(api.ThreadPrefix, string(id)) {
		return api.ErrNotFound
	}
	_, err := t.system.ask(ctx, t.dir, string(id), cmd, false)
	return err
}

// Stop ends the answer that is being written of a turn.
func (t *Threads) Stop(ctx context.Context, id api.ThreadID, cmd thread.Stop) error {
	if !api.ValidID(api.ThreadPrefix, string(id)) {
		return api.ErrNotFound
	}
	_, err := t.system.ask(ctx, t.dir, string(id), cmd, false)
	return err
}

// Forget removes a thread with everything of it. While it answers, the answer breaks off.
func (t *Threads) Forget(ctx context.Context, id api.ThreadID, cmd thread.Forget) error {
	if !api.ValidID(api.ThreadPrefix, string(id)) {
		return api.ErrNotFound
	}
	_, err := t.system.ask(ctx, t.dir, string(id), cmd, false)
	return err
}

// Chat tells which thread a client's chat continues in.
func (t *Threads) Chat(chat string) (api.ThreadID, bool) {
	if chat == "" {
		return "", false
	}
	claim, ok, err := t.system.deps.Journal.Claim(thread.ChatClaim(chat), t.system.deps.Now())
	if err != nil {
		t.system.log.Error("look up a chat", "error", err)
		return "", false
	}
	name, isThread := strings.CutPrefix(claim.Owner, thread.Stream(""))
	return api.ThreadID(name), ok && isThread
}

func askThread[T any](ctx context.Context, t *Threads, id api.ThreadID, cmd thread.Command, read bool) (T, error) {
	var zero T
	if !api.ValidID(api.ThreadPrefix, string(id)) {
		return zero, api.ErrNotFound // no actor is started for what cannot be an id
	}
	v, err := t.system.ask(ctx, t.dir, string(id), cmd, read)
	if err != nil {
		return zero, err
	}
	return v.(T), nil
}

// threadBehavior makes a thread fit into an entity.
type threadBehavior struct{ *thread.Actor }

func (t threadBehavior) command(r *request) {
	t.Command(r.command.(thread.Command), r.answer)
}

func (s *System) newThreads() *directory {
	deps := &thread.Deps{Deps: s.outside(s.turnGate), Searcher: s.deps.Searcher, Model: s.deps.Model,
		Rewriter: s.deps.Rewriter, Pages: s.deps.Pages, Budget: s.deps.AnswerBudget,
		TurnLimit: s.deps.TurnLimit, AnswerLimit: s.deps.AnswerLimit,
		Open:  func(id api.ThreadID, by int32) { s.open[cluster.Shard(thread.Stream(id))].Add(by) },
		Ended: func(result string) { s.counts.answers.WithLabelValues(result).Inc() }}
	return s.newDirectory("thread", func(id string,
		self self) behavior {
		return threadBehavior{thread.New(api.ThreadID(id), deps, self)}
	})
}
