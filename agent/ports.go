package agent

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"docent/agent/codebase"
	"docent/api"
)

// A LanguageModel answers a conversation, perhaps with calls of tools. A call that is repeated bears the same key.
type LanguageModel interface {
	Name() string // as a job shows it
	Chat(ctx context.Context, c Chat) (Reply, error)
	// Window is how many tokens prompt and reply may have together.
	Window() int
	// Priced reports whether it is known what its tokens cost.
	Priced() bool
	// Sees reports whether it reads pictures.
	Sees() bool
}

// Models finds a language model by the name in a task; the empty name stands for the default. It is nil if the
// named one is built in and follows instructions of fixed forms instead.
type Models interface {
	LanguageModel(name string) (LanguageModel, error)
}

// A Searcher finds sections of the documentation as it was last indexed.
type Searcher interface {
	Search(ctx context.Context, project string, query string, limit int) ([]Found, error)
}

// Code is what a project's jobs may read of code. It is never written.
type Code interface {
	// OpenCode reads a source of kind code as it is now.
	OpenCode(ctx context.Context, source api.Project) (*codebase.Code, error)
	// PullDiff is what a pull request of its repository changes, as git writes it.
	PullDiff(ctx context.Context, source api.Project, number int) (string, error)
}

// A Found is one section that a search found.
type Found struct {
	Path    string
	Heading string
	Text    string
}

// A Chat is a conversation with a language model.
type Chat struct {
	System    string
	Turns     []Turn
	Tools     []Tool
	MaxTokens int
	Key       string
}

// A Turn is one utterance: of the user, of the assistant with its calls, or a tool's answer to one call.
type Turn struct {
	Role   string `cbor:"1,keyasint"` // "user", "assistant" or "tool"
	Text   string `cbor:"2,keyasint,omitempty"`
	Calls  []Call `cbor:"3,keyasint,omitempty"`
	CallID string `cbor:"4,keyasint,omitempty"`
	Failed bool   `cbor:"5,keyasint,omitempty"`
	// Printed says that Text has what the project's own check printed: only those who may edit see it.
	Printed bool `cbor:"6,keyasint,omitempty"`
	// Kept is what came with an assistant's turn and is for its model alone. It goes back to it unread.
	Kept []byte `cbor:"7,keyasint,omitempty"`
	// Picture is what a tool shows beside its text.
	Picture *Picture `cbor:"8,keyasint,omitempty"`
}

// A Picture is a file of the documentation that a model looks at. Its bytes are read again for each question.
type Picture struct {
	Path  string `cbor:"1,keyasint"`
	Media string `cbor:"2,keyasint"`
	Data  []byte `cbor:"-"`
}

// A Tool is what the model may call.
type Tool struct {
	Name        string
	Description string
	Schema      json.RawMessage
}

// A Call is a model's wish to have a tool run; its arguments are as the model wrote them.
type Call struct {
	ID        string `cbor:"1,keyasint"`
	Name      string `cbor:"2,keyasint"`
	Arguments string `cbor:"3,keyasint"`
}

// A Reply is what the model said.
type Reply struct {
	Model  string `cbor:"1,keyasint"`
	Text   string `cbor:"2,keyasint"`
	Calls  []Call `cbor:"3,keyasint"`
	Reason string `cbor:"4,keyasint"` // "stop", "tools" or "length"
	Usage  Usage  `cbor:"5,keyasint"`
	Kept   []byte `cbor:"6,keyasint,omitempty"` // goes back with the turn
}

// A Usage is what calls took; Cost is in millionths of a US dollar.
type Usage struct {
	PromptTokens     int   `cbor:"1,keyasint"`
	CachedTokens     int   `cbor:"2,keyasint"`
	CompletionTokens int   `cbor:"3,keyasint"`
	Cost             int64 `cbor:"4,keyasint"`
}

// Why a chat failed, if the loop can do something about it.
var (
	ErrTooLong = errors.New("the conversation is longer than the model's window")
	ErrRefused = errors.New("the model declined to answer")
)

// Unavailable says that a model cannot be asked before some time has passed.
type Unavailable struct {
	After time.Duration
	Err   error
}

func (e *Unavailable) Error() string { return "the model cannot be asked now: " + e.Err.Error() }

func (e *Unavailable) Unwrap() error { return e.Err }
