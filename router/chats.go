package router

import (
	"sync"

	"docent/actors/thread"
	"docent/api"
)

// chats remembers which thread the newest question of a chat went to, so that a page that was loaded anew finds its
// stream: the chat SDK resumes by its own chat id and knows no thread. Clients make these ids. One of the SDK's own cannot
// be guessed and is enough; a short one, which a page may have hard-coded, is only good from the address that asked.
//
// It holds the newest ones only, and forgets them with the process: resuming by thread id needs none of it.
type chats struct {
	mu           sync.Mutex
	young, older map[chatID]chat // when the young ones are many, they become the older ones and those are forgotten
}

const (
	maxChats    = 50_000 // in each generation
	unguessable = 16     // characters of the SDK's own ids
)

type chatID struct {
	project api.ProjectID
	key     api.KeyID
	id      string
	address string // of the caller, for ids that can be guessed
}

type chat struct {
	thread api.ThreadID
	caller string
	secret string // the thread's key, where the client has sent it
}

func newChats() *chats { return &chats{young: map[chatID]chat{}} }

func (c *chats) name(x *exchange, id string) chatID {
	n := chatID{project: x.project.ID, key: x.key.ID, id: id}
	if len(id) < unguessable {
		n.address = counted(x.client)
	}
	return n
}

func (c *chats) put(x *exchange, q question, turn thread.Turn) {
	if q.Chat == "" {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.young) >= maxChats {
		c.young, c.older = make(map[chatID]chat, maxChats/4), c.young
	}
	c.young[c.name(x, q.Chat)] = chat{thread: turn.Thread, caller: q.Caller, secret: or(q.ThreadKey, turn.Key)}
}

func (c *chats) find(x *exchange, id string) (chat, bool) {
	if len(id) > maxID {
		return chat{}, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	name := c.name(x, id)
	if v, ok := c.young[name]; ok {
		return v, true
	}
	v, ok := c.older[name]
	return v, ok
}
