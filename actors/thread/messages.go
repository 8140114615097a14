// Package thread implements the actor that holds one assistant conversation.
//
// A thread answers one question at a time; a question that comes meanwhile waits its turn. The question is journaled
// before the stream opens and the answer before it finishes: after a restart an unfinished turn is taken up again, and
// a reader who resumes gets the whole answer from its start.
package thread

import (
	"cmp"
	"slices"
	"time"

	"docent/actors/persistent"
	"docent/api"
	"docent/api/stream"
	"docent/model"
	"docent/persistence/quota"
	"docent/search"
)

// A Command asks the thread to do something. It is answered exactly once: with a reply, or with an error of package
// api.
type Command interface{ command() }

type (
	// Ask puts a question; the answer is a Turn, once the question is on disk. New opens the thread. Without it, the
	// answer is api.ErrNotFound if the thread is unknown, of another project, or not the caller's to continue.
	Ask struct {
		Project api.Project
		New     bool
		Turn    api.TurnID // made by the caller
		// Message is the client's id of its message, if it has one. A message that comes again with the same text is not
		// asked twice.
		Message string
		// Chat names the client's chat and its reader, if there is a chat. It is all that it takes to resume, so the
		// caller makes it hard to guess.
		Chat   string
		Caller string // fp: "anonymous" or a user id
		// Reader is the reader's name by the site's own server; empty if it names none. A thread belongs to the reader
		// who has opened it: no other one, and nobody without a name, goes on in it.
		Reader     string
		Channel    api.Channel
		ThreadKey  string // the thread's secret, if the client sends it
		Text       string
		Context    []model.Snippet
		Before     []model.Message // what was said before, if the thread opens with a conversation that the client has kept
		Setting    string          // what the client's program says of itself; see model.Request
		Query      search.Query    // page size, filter and current path; Text is set by the thread
		Model      string          // that answers in place of the project's; empty for that one
		Explain    bool            // how the answer comes about is kept and told with it
		Regenerate bool            // another answer to a question that was asked
		// Instead names what this question replaces, if the client says so: its id of the message, or the id of the
		// answer. What came after is replaced too, as it is in the client.
		Instead string
		Key     api.KeyID
		Uses    []quota.Use
		Traced  string // see tracing.Carried
	}

	// Resume asks for the stream of the newest turn, from its start. The answer is a Turn, or api.ErrNotFound if the
	// caller may not continue the thread; that is ErrKey if only the key is missing or wrong. With Chat, the newest
	// question has to be of that chat, and Caller may be empty. With Within, the newest turn has to be unfinished, or to
	// have ended no longer ago than that.
	Resume struct {
		Project   api.Project
		Caller    string
		Reader    string // see Ask
		Chat      string
		Within    time.Duration
		ThreadKey string
	}

	// Read asks for the conversation; it is answered with a Conversation.
	Read struct{ Project api.ProjectID }

	// Rate says what the reader thinks of an answer, in place of what they said of it before; the answer is nil once that
	// is on disk. It is api.ErrNotFound if the thread has no such answer, or is not the caller's to continue, and
	// api.ErrConflict once the answer was rated often enough. An empty Caller or ThreadKey is not checked; Reader always is.
	Rate struct {
		Project   api.Project
		Caller    string
		Reader    string // see Ask
		ThreadKey string
		Turn      api.TurnID
		Rating    api.Rating
		Comment   string
	}

	// HandOver hands the conversation over to people, at one of its answers; the answer is nil once that is on disk, and if
	// the same was handed over there before. Something else is api.ErrConflict until the conversation has gone on. Who may do
	// so is as with Rate.
	HandOver struct {
		Project   api.Project
		Caller    string
		Reader    string // see Ask
		ThreadKey string
		Turn      api.TurnID
		Contact   Contact
	}

	// Stop ends the answer of a turn that is in hand, with what was written of it; the answer is nil once that is on
	// disk, and if the turn has already ended or is not in hand.
	Stop struct {
		Project api.ProjectID
		Turn    api.TurnID
	}

	// Forget removes the thread and all that belongs to it; the answer is nil once nothing of it is on disk. An answer
	// that is being written breaks off. With Unused, a thread that was used since then stays, and the answer is
	// api.ErrConflict.
	Forget struct {
		Project api.ProjectID
		Unused  time.Time
	}
)

func (Ask) command()      {}
func (Resume) command()   {}
func (Read) command()     {}
func (Rate) command()     {}
func (HandOver) command() {}
func (Stop) command()     {}
func (Forget) command()   {}

// A Turn is a question that was accepted, and the stream of its answer. Any number of readers may follow the log.
type Turn struct {
	Thread api.ThreadID
	ID     api.TurnID
	Key    string // the thread's secret, only when this turn opened the thread
	Log    *stream.Log
	Fresh  bool // the question was new; false for a repeat or a resumed stream
	// Prepared is closed when a fresh turn needs this machine's processors no more: it has found what the model is told,
	// has ended without, or has to wait for the turns before it. If the model is local, it is closed when the answer
	// is made. It is nil if the turn is not fresh.
	Prepared <-chan struct{}
}

// A Conversation is a thread as it stands.
type Conversation struct {
	Thread  api.ThreadID
	Project api.ProjectID
	Caller  string
	Opened  time.Time
	Chat    string // that the newest question was asked in, see Ask
	Turns   []Exchange
	// Replaced are exchanges that others took the place of, and what came after those; the newest of them.
	Replaced []Exchange
}

// Used is when the conversation was last asked something or answered.
func (c Conversation) Used() time.Time {
	last := c.Opened
	for _, e := range c.Turns {
		for _, at := range []time.Time{e.Asked, e.Ended} {
			if at.After(last) {
				last = at
			}
		}
	}
	return last
}

// Claims are the keys in the journal that lead to the conversation.
func (c Conversation) Claims() []string {
	if c.Chat == "" {
		return nil
	}
	return []string{ChatClaim(c.Chat)}
}

// An Exchange is one question and its answer.
type Exchange struct {
	Turn     api.TurnID   `cbor:"1,keyasint" json:"id"`
	Message  string       `cbor:"2,keyasint" json:"messageId,omitempty"`
	Question string       `cbor:"3,keyasint" json:"question"`
	Asked    time.Time    `cbor:"4,keyasint" json:"askedAt"`
	Answer   string       `cbor:"5,keyasint" json:"answer"`
	Sources  []Source     `cbor:"6,keyasint" json:"-"`
	Model    string       `cbor:"7,keyasint" json:"model"`
	Answered bool         `cbor:"8,keyasint" json:"answered"` // the documentation had an answer
	Done     bool         `cbor:"9,keyasint" json:"done"`
	Error    string       `cbor:"10,keyasint" json:"error,omitempty"`
	Ended    time.Time    `cbor:"11,keyasint" json:"endedAt,omitzero"`
	Wanted   *Wanted      `cbor:"17,keyasint,omitempty" json:"-"` // nil once the turn has ended
	Usage    stream.Usage `cbor:"14,keyasint" json:"usage"`
	Reason   string       `cbor:"15,keyasint" json:"-"` // why the answer ended: "stop" or "length"
	Text     string       `cbor:"16,keyasint" json:"-"` // what had been written when the turn failed
	Channel  api.Channel  `cbor:"18,keyasint,omitempty" json:"-"`
	Page     string       `cbor:"19,keyasint,omitempty" json:"-"` // that the reader was on
	Feedback *Feedback    `cbor:"20,keyasint,omitempty" json:"-"` // nil if the answer is not rated
	// FallbackFor is the model that was asked and could not answer, if Model answered in its place.
	FallbackFor string `cbor:"21,keyasint,omitempty" json:"fallbackFor,omitempty"`
	Trace       *Trace `cbor:"22,keyasint,omitempty" json:"-"` // nil if nothing is known of it, as in older answers
	// Degraded are the parts that did not take part in the answer as they should have, see model.Result.
	Degraded []string `cbor:"23,keyasint,omitempty" json:"degraded,omitempty"`
	// Traced is the turn's place in a trace that is sampled, see tracing.Carried.
	Traced string `cbor:"24,keyasint,omitempty" json:"-"`
	// Contact is what the reader wrote to people with whom they left the conversation here; nil if they did not.
	Contact *Contact `cbor:"25,keyasint,omitempty" json:"-"`
}

// Feedback is what a reader thinks of an answer.
type Feedback struct {
	Rating  api.Rating `cbor:"1,keyasint"`
	Comment string     `cbor:"2,keyasint"`
	At      time.Time  `cbor:"3,keyasint"`
	Changes int        `cbor:"4,keyasint,omitempty"` // how often another rating of the answer came before
}

// Contact is what a reader writes to people, and where people reach the reader.
type Contact struct {
	Name    string    `cbor:"1,keyasint,omitempty"`
	Email   string    `cbor:"2,keyasint,omitempty"`
	Message string    `cbor:"3,keyasint"`
	At      time.Time `cbor:"4,keyasint"`
}

// Wanted is what a question came with.
type Wanted struct {
	Context []model.Snippet `cbor:"1,keyasint"`
	Query   search.Query    `cbor:"2,keyasint"`
	Model   string          `cbor:"3,keyasint,omitempty"` // see Ask
	Explain bool            `cbor:"4,keyasint,omitempty"`
	Before  []model.Message `cbor:"5,keyasint,omitempty"`
	Setting string          `cbor:"6,keyasint,omitempty"`
}

// placed is the query of a reader who is on the page that they have selected something of, unless they say where they are.
func (w *Wanted) placed() search.Query {
	q := w.Query
	for _, s := range w.Context {
		q.CurrentPath = cmp.Or(q.CurrentPath, s.Path)
	}
	return q
}

// A Source is a page that an answer cites, or a section that it only points to, with what that says.
type Source struct {
	ID    string `cbor:"1,keyasint"` // unique in the answer
	URL   string `cbor:"2,keyasint"`
	Title string `cbor:"3,keyasint"`
	Label string `cbor:"4,keyasint,omitempty"` // of the project's source, if it has several
	// Excerpt is a line or two of a section that is only pointed to, as plain text; empty for a page that is cited.
	Excerpt string `cbor:"5,keyasint,omitempty"`
}

// Cited are the pages that an answer is made from.
func (e *Exchange) Cited() []Source {
	return slices.DeleteFunc(slices.Clone(e.Sources), func(s Source) bool { return s.Excerpt != "" })
}

// An Event is a fact about the thread. It is journaled before it is applied.
type Event interface{ event() }

type (
	Opened struct {
		Project api.ProjectID `cbor:"1,keyasint"`
		Caller  string        `cbor:"2,keyasint"`
		KeyHash [32]byte      `cbor:"3,keyasint"` // of the thread's secret
		At      time.Time     `cbor:"4,keyasint"`
		Reader  string        `cbor:"5,keyasint,omitempty"` // see Ask
	}
	Asked struct {
		Exchange Exchange `cbor:"1,keyasint"`
		Replaces bool     `cbor:"2,keyasint"` // an exchange is replaced by this one
		Chat     string   `cbor:"3,keyasint"` // see Ask; in older events the client's own id, which leads nowhere
		// From is the exchange that is replaced, with all that came after it; the last one in older events.
		From api.TurnID `cbor:"4,keyasint,omitempty"`
	}
	Answered struct {
		Turn     api.TurnID   `cbor:"1,keyasint"`
		Text     string       `cbor:"2,keyasint"`
		Sources  []Source     `cbor:"3,keyasint"`
		Model    string       `cbor:"4,keyasint"`
		Answered bool         `cbor:"5,keyasint"`
		Usage    stream.Usage `cbor:"6,keyasint"`
		At       time.Time    `cbor:"7,keyasint"`
		Reason   string       `cbor:"8,keyasint"`

		FallbackFor string `cbor:"9,keyasint,omitempty"`
		Trace       *Trace `cbor:"10,keyasint,omitempty"`

		Channel api.Channel `cbor:"11,keyasint,omitempty"` // of the question; empty in events of before it was kept

		Degraded []string `cbor:"12,keyasint,omitempty"`
	}
	// Retried says that the turn in hand broke off without a result: it is answered again, from its start.
	Retried struct {
		Turn   api.TurnID             `cbor:"1,keyasint"`
		Reason persistent.RetryReason `cbor:"2,keyasint"`
		At     time.Time              `cbor:"3,keyasint"`
	}
	// TurnFailed ends a turn without an answer: Reason is for a person.
	TurnFailed struct {
		Turn   api.TurnID `cbor:"1,keyasint"`
		Reason string     `cbor:"2,keyasint"`
		Text   string     `cbor:"3,keyasint"` // what had been written by then
		At     time.Time  `cbor:"4,keyasint"`

		Usage stream.Usage `cbor:"5,keyasint,omitzero"`
		Trace *Trace       `cbor:"6,keyasint,omitempty"`
	}
	Rated struct {
		Turn     api.TurnID  `cbor:"1,keyasint"`
		Feedback Feedback    `cbor:"2,keyasint"`
		Channel  api.Channel `cbor:"3,keyasint,omitempty"` // of the question; empty in events of before it was kept
	}
	HandedOver struct {
		Turn    api.TurnID `cbor:"1,keyasint"`
		Contact Contact    `cbor:"2,keyasint"`
	}
)

func (Opened) event()     {}
func (Asked) event()      {}
func (Answered) event()   {}
func (Retried) event()    {}
func (TurnFailed) event() {}
func (Rated) event()      {}
func (HandedOver) event() {}
