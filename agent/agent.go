// Package agent edits documentation on request. It works on a workspace, the base commit's tree and an overlay of
// edited files, and touches nothing outside it; what leaves it is a Result that somebody else publishes.
package agent

import (
	"context"
	"time"

	"docent/api"
)

// A Tree is the repository at one commit. Paths are relative to the repository's root.
type Tree interface {
	Commit() string
	Files(ctx context.Context) ([]api.File, error)
	Read(ctx context.Context, path string) ([]byte, error) // fs.ErrNotExist where there is no such file
}

// A Task is one instruction with what came before it.
type Task struct {
	Project  api.Project
	Job      api.JobID
	ID       string        // of the instruction, within the job
	Model    string        // asked for by the caller; empty for the project's
	Prompt   string        // the instruction to carry out now
	Earlier  []Instruction // earlier ones of the same job, oldest first
	Tree     Tree          // what to work on: the job's branch, or the base where it has none
	DocsDir  string        // nothing outside it is edited
	Now      time.Time
	Attempts int // how often this instruction has been tried before

	// Fork is the tree that the pull request's changes are counted from, where the job's branch holds some already. Nil means
	// Tree.
	Fork func(ctx context.Context) (Tree, error)
	// Base is the tree of the branch that the changes are meant for: what steers the agent is read there, not on a
	// branch that anybody may have pushed to. Nil means Tree.
	Base func(ctx context.Context) (Tree, error)
	// Steps are what earlier runs of this instruction recorded, in order. They are gone through again without asking the
	// model, and the work goes on behind them.
	Steps []Step
	// Record keeps a step. The loop goes on when it has returned, so what a model has answered is not asked again. Nil
	// keeps nothing.
	Record func(ctx context.Context, s Step) error
	// Aside does what takes time but no work, such as asking a model, without holding what a run that works holds: others
	// go on meanwhile. It fails with do's error, or when the run may not go on. Nil just does it.
	Aside func(ctx context.Context, do func(ctx context.Context) error) error
}

// A Step is one answer of a language model with what led to it. What its calls gave is in the next step: in the last one
// it is found out anew.
type Step struct {
	Round    int    `cbor:"1,keyasint"`            // from 1; a further one begins anew, on another tree
	Number   int    `cbor:"2,keyasint"`            // within the round, from 1
	Commit   string `cbor:"3,keyasint"`            // of the tree that the round works on
	State    string `cbor:"4,keyasint,omitempty"`  // of the edits when the model was asked
	Before   []Turn `cbor:"5,keyasint,omitempty"`  // what came to the conversation since the step before
	Left     int    `cbor:"6,keyasint,omitempty"`  // turns whose results were left out when the model was asked
	Cap      int    `cbor:"7,keyasint,omitempty"`  // bytes that each result was cut to; 0 for whole ones
	Summary  bool   `cbor:"8,keyasint,omitempty"`  // the answer takes the place of the conversation before it
	Reply    Reply  `cbor:"9,keyasint"`            // what the model said
	Spent    Spent  `cbor:"10,keyasint"`           // on the instruction altogether, this step included
	Repairs  int    `cbor:"11,keyasint,omitempty"` // times that the checks had failed
	Reviewed string `cbor:"12,keyasint,omitempty"` // state of the edits that the model was last shown whole
	Misses   int    `cbor:"13,keyasint,omitempty"` // answers in a row, before this one, that were no use
}

// Spent is what an instruction has used of its limits.
type Spent struct {
	Steps  int           `cbor:"1,keyasint"`
	Tokens int64         `cbor:"2,keyasint"`
	Cost   int64         `cbor:"3,keyasint"` // millionths of a US dollar
	Time   time.Duration `cbor:"4,keyasint"`
	Bytes  int64         `cbor:"5,keyasint"` // recorded
}

// A Failure is an ending without a result, in words that the user may read.
type Failure struct {
	Reason  api.HaltReason
	Message string
	Err     error // for the log; may be nil
}

func (f *Failure) Error() string {
	if f.Err != nil {
		return f.Message + " (" + f.Err.Error() + ")"
	}
	return f.Message
}
func (f *Failure) Unwrap() error { return f.Err }

// An Instruction is an earlier instruction of the job and what became of it.
type Instruction struct {
	Prompt  string
	Message string // what the agent said at its end
	Commit  string // where it ended in a commit
	Branch  string // that the commit was made for

	// Pull is the state of the pull request that it went into: open where this instruction adds to it. It is empty where that
	// is not known.
	Pull api.PullState `cbor:"-"`
}

// A Change is one file as it is to be. Paths are relative to the repository's root.
type Change struct {
	Path    string
	Content []byte
	Delete  bool
	From    string // where the file was moved from
}

// A Result is what an instruction led to. No changes is a valid result: Outcome and Message say why.
type Result struct {
	Model   string // which one worked: "rules-1" for the built-in instructions
	Changes []Change
	Title   string // of the pull request: what was done, in one line
	Commit  string // message of the commit
	Body    string // of the pull request, Markdown: what was asked, what changed, what was checked, what could not be done
	Message string // the agent's word to the user
	Todos   []api.Todo
	// Review says that a person looks at the changes before they are on the documentation's branch, also where the project has them
	// committed there directly.
	Review bool `cbor:",omitempty"`
	// Outcome says what became of the instruction. It is never empty.
	Outcome api.Outcome `cbor:",omitempty"`
}

// Progress is what a run reports while it goes on.
type Progress struct {
	Title string
	Todos []api.Todo
	Text  string // one line for people
}
