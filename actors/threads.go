package actors

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"time"

	"docent/actors/thread"
	"docent/api"
	"docent/persistence"
)

// Threads finds or starts the actor of a thread and asks it.
type Threads struct {
	system *System
	dir    *directory
	chats  *chats
}

// Ask puts a question. An error of the context means that it was not asked, unless the error says that this is not known.
func (t *Threads) Ask(ctx context.Context, id api.ThreadID, cmd thread.Ask) (thread.Turn, error) {
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

// Forget removes a thread with everything of it. While it answers, the answer breaks off.
func (t *Threads) Forget(ctx context.Context, id api.ThreadID, cmd thread.Forget) error {
	if !api.ValidID(api.ThreadPrefix, string(id)) {
		return api.ErrNotFound
	}
	if _, err := t.system.ask(ctx, t.dir, string(id), cmd, false); err != nil {
		return err
	}
	t.chats.forget(id)
	return nil
}

// Chat tells which thread a client's chat continues in, also after a restart.
func (t *Threads) Chat(project api.ProjectID, caller, chat string) (api.ThreadID, bool) {
	return t.chats.find(project, caller, chat)
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

// threadResident makes a thread fit into an entity.
type threadResident struct{ *thread.Actor }

func (t threadResident) command(r *request) {
	t.Command(r.command.(thread.Command), r.answer)
}

func (s *System) newThreads(c *chats) *directory {
	deps := &thread.Deps{
		Journal: s.deps.Journal, Searcher: s.deps.Searcher, Model: s.deps.Model, Projects: s.deps.Projects, Slots: s.turnGate,
		Chats: c, Now: s.deps.Now, Log: s.log, Context: s.ctx, Go: s.effects.Go, Backoff: Backoff(s.deps.RetryFirst, s.deps.RetryLimit),
		Grace: s.deps.Grace, TurnLimit: s.deps.TurnLimit, AnswerLimit: s.deps.AnswerLimit,
	}
	return s.newDirectory("thread",
		func(id string, self teller) resident {
			return threadResident{thread.New(api.ThreadID(id), deps, self)}
		},
		func(err error) bool {
			var r *thread.RecoverError
			return errors.As(err, &r) || errors.Is(err, persistence.ErrCorrupt)
		})
}

// chats tells which thread a chat continues in: the newest ones from memory, others by the claim that a thread makes when
// it hears of a chat.
type chats struct {
	claims interface {
		Claim(key string, now time.Time) (persistence.Claim, bool, error)
	}
	now      func() time.Time
	log      *slog.Logger
	mu       sync.Mutex
	new, old map[chatKey]api.ThreadID // when new is full it becomes old
}

type chatKey struct {
	project      api.ProjectID
	caller, chat string
}

// chatsKept is how many chats are remembered at least.
const chatsKept = 50_000

func (c *chats) Remember(project api.ProjectID, caller, chat string, thread api.ThreadID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.new == nil || len(c.new) >= chatsKept {
		c.new, c.old = make(map[chatKey]api.ThreadID), c.new
	}
	c.new[chatKey{project, caller, chat}] = thread
}

func (c *chats) forget(thread api.ThreadID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range []map[chatKey]api.ThreadID{c.new, c.old} {
		maps.DeleteFunc(m, func(_ chatKey, id api.ThreadID) bool { return id == thread })
	}
}

func (c *chats) find(project api.ProjectID, caller, chat string) (api.ThreadID, bool) {
	k := chatKey{project, caller, chat}
	c.mu.Lock()
	id, ok := c.new[k]
	if !ok {
		id, ok = c.old[k]
	}
	c.mu.Unlock()
	if ok || chat == "" {
		return id, ok
	}
	claim, ok, err := c.claims.Claim(thread.ChatKey(project, caller, chat), c.now())
	if err != nil {
		c.log.Error("look up a chat", "project", project, "error", err)
		return "", false
	}
	name, isThread := strings.CutPrefix(claim.Owner, thread.Stream(""))
	return api.ThreadID(name), ok && isThread
}
