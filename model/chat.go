package model

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// A Chat is a conversation with a language model that may answer with calls of tools.
type Chat struct {
	System    string
	Turns     []Turn
	Tools     []Tool
	MaxTokens int    // of the reply; the model's configured limit if zero
	Key       string // names this call: repeated after a failure or a restart it bears the same key
	Once      bool   // a failed try is not repeated: somebody waits, and can do without
	Exact     bool   // MaxTokens is all that may be used, even if nothing is seen of the reply
}

// A Turn is one utterance of a conversation.
type Turn struct {
	Role   string // "user", "assistant" or "tool"
	Text   string // for a tool: what the call gave
	Calls  []Call // of an assistant
	CallID string // of a tool: the call that this answers
	Failed bool   // of a tool: the call went wrong, and Text says how
	// Picture is what a tool's call gave beside its text: for models that read pictures.
	Picture *Picture
	// Kept is what came with a turn of the assistant's that is for its model alone: it goes back to it unread.
	Kept json.RawMessage
}

// A Picture is a PNG, JPEG, GIF or WebP.
type Picture struct {
	Media string
	Data  []byte
}

// CallID is an id for the n-th call of the reply, for providers that give none: the same for the same conversation.
func (c Chat) CallID(n int) string {
	h := sha256.New()
	fmt.Fprintf(h, "%s %d %d", c.Key, len(c.Turns), n)
	return "call_" + hex.EncodeToString(h.Sum(nil)[:8])
}

// A Tool is what the model may call.
type Tool struct {
	Name        string
	Description string
	Schema      json.RawMessage // JSON Schema of the arguments, an object
}

// A Call is a model's wish to have a tool run. Arguments are as the model wrote them and may be no JSON at all.
type Call struct {
	ID        string
	Name      string
	Arguments string
}

// A Reply is what a model said.
type Reply struct {
	Model  string // which one worked, as shown to users
	Text   string
	Calls  []Call
	Kept   json.RawMessage // goes back with the turn
	Reason string          // "stop", "tools" or "length"
	Usage  Usage
}

// A Usage is what a call took. Cost is in millionths of a US dollar, by the configured prices; zero if there are
// none.
type Usage struct {
	PromptTokens     int
	CachedTokens     int // of the prompt's tokens
	CompletionTokens int
	Cost             int64
}

// Add adds what another call took.
func (u *Usage) Add(v Usage) {
	u.PromptTokens += v.PromptTokens
	u.CachedTokens += v.CachedTokens
	u.CompletionTokens += v.CompletionTokens
	u.Cost += v.Cost
}

// Reasons of a failed chat that a caller can do something about.
var (
	ErrTooLong = errors.New("the conversation is longer than the model's window")
	ErrRefused = errors.New("the provider declined to answer")
	ErrBudget  = errors.New("it would take more than one answer may")
)

// Unavailable says that a model cannot be asked now: its endpoint failed repeatedly, or asks for less.
type Unavailable struct {
	Model string
	After time.Duration // when to try again
	Err   error
}

func (e *Unavailable) Error() string {
	return "model " + e.Model + " cannot be asked now: " + e.Err.Error()
}
func (e *Unavailable) Unwrap() error { return e.Err }
