// Package agent edits documentation on request, with a language model or by instructions of fixed forms. It works on a
// workspace, the base commit's tree and an overlay of edited files, and touches nothing outside it; what leaves it is a
// Result that somebody else publishes.
//
// Its packages: workspace (the files and the edits), pages (the documentation as readers meet it), edit (the
// operations), rules (instructions of fixed forms), check (what is looked at before there is a result), codebase (the program's code, which
// is only read), affected (which pages a change of it concerns) and say (what users and models read).
package agent

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"docent/agent/check"
	"docent/agent/edit"
	"docent/agent/say"
	"docent/agent/workspace"
	"docent/api"
)

// What tasks and results hold of the packages below.
type (
	Tree        = workspace.Tree
	History     = workspace.History
	Linked      = workspace.Linked
	Change      = workspace.Change
	Instruction = edit.Instruction
)

// A Task is one instruction with what came before it.
type Task struct {
	Project  api.Project
	Job      api.JobID
	ID       string        // of the instruction, within the job
	Model    string        // asked for by the caller; empty for the project's
	Prompt   string        // the instruction to carry out now
	Earlier  []Instruction // earlier ones of the same job, oldest first
	Tree     Tree          // what to work on: the job's branch, or the base if it has none
	DocsDir  string        // nothing outside it is edited
	Now      time.Time
	Attempts int // how often this instruction has been tried before

	// Fork is the tree that the pull request's changes are counted from, if the job's branch holds some already. Nil
	// means Tree.
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
	// Show receives what a language model's edits come to, each time that they have changed. It may be nil.
	Show func(ctx context.Context, changes []Change)
	// Aside does what takes time but no work, such as asking a model, without holding what a run that works holds: others
	// go on meanwhile. It fails with do's error, or when the run may not go on. Nil just does it.
	Aside func(ctx context.Context, do func(ctx context.Context) error) error
	// Waiting is since when an earlier run has waited for the model; zero if none did.
	Waiting time.Time
	// Extend gives a run the time back that it waits for a model. Nil does nothing.
	Extend func(d time.Duration)
}

// A Step is one answer of a language model with what led to it. What its calls gave is in the next step: for the
// last one the calls are made again.
type Step struct {
	Round    int    `cbor:"1,keyasint"`            // from 1; each further round starts over, on another tree
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
	Output  string // what the project's own check printed, for those who may edit
	Err     error  // for the log; may be nil
}

func (f *Failure) Error() string {
	if f.Err != nil {
		return f.Message + " (" + f.Err.Error() + ")"
	}
	return f.Message
}

func (f *Failure) Unwrap() error { return f.Err }

// A Result is what an instruction led to. No changes is a valid result: Outcome and Message say why.
type Result struct {
	Model   string // which one worked: "rules-1" for the built-in instructions
	Changes []Change
	Title   string // of the pull request: what was done, in one line
	Commit  string // message of the commit
	Body    string // of the pull request, Markdown: what was asked, what changed, what was checked, what could not be done
	Message string // the agent's word to the user
	Todos   []api.Todo
	// Review says that a person looks at the changes before they are on the documentation's branch, even if the project
	// has them committed there directly.
	Review bool `cbor:",omitempty"`
	// Draft says that the pull request is a draft: parts of the request were not read.
	Draft bool `cbor:",omitempty"`
	// Outcome says what became of the instruction. It is never empty.
	Outcome api.Outcome `cbor:",omitempty"`
}

// Progress is what a run reports while it goes on.
type Progress struct {
	Title string
	Todos []api.Todo
	Text  string // one line for people
	// Waiting is since when the work waits for a model or a code host that does not answer; zero if it goes on.
	Waiting time.Time
}

// Rules names the built-in agent, which carries out instructions of fixed forms and no others.
const Rules = "rules-1"

// Options bound what one instruction may do. Zero means the default.
type Options struct {
	MaxFile   int64 // bytes of one file; 2 MiB
	MaxChange int64 // bytes of all changed files together; 32 MiB
	MaxFiles  int   // changed files; 5000

	Models   Models   // nil: instructions of fixed forms alone are understood
	Searcher Searcher // nil: the model has no search
	Code     Code     // nil: the model reads no code
	// Published are the files of a project by the addresses of their pages on its published site, in the form that
	// published.Key gives them. Nil: the generator's rules say which page is where.
	Published func(api.Project) map[string]string
	Checks    check.Checks // nil: no command of the operator's looks at results
	Loop      Limits
	Log       *slog.Logger // nil: what goes wrong inside is not logged

	shared *workspace.SharedPages
}

// workspace bounds what a run may edit.
func (o Options) workspace() workspace.Limits {
	return workspace.Limits{MaxFile: o.MaxFile, MaxChange: o.MaxChange, MaxFiles: o.MaxFiles, Shared: o.shared}
}

// An Agent carries out instructions. It holds no state but pages that runs share: one serves any number of jobs at the
// same time.
type Agent struct{ opts Options }

// New makes an agent. Without Models it is the built-in one, which needs no language model.
func New(opts Options) *Agent {
	opts.Loop = opts.Loop.withDefaults()
	opts.shared = &workspace.SharedPages{}
	if opts.MaxFile <= 0 {
		opts.MaxFile = 2 << 20
	}
	if opts.MaxChange <= 0 {
		opts.MaxChange = 32 << 20
	}
	if opts.MaxFiles <= 0 {
		opts.MaxFiles = 5000
	}
	return &Agent{opts}
}

// Edit carries out one instruction, all of it or nothing: with the language model that the task names, or by the
// instructions of fixed forms if that is the built-in one. What cannot be done, or is not understood, is no error:
// the Result then has no changes and its Message says why. A *Failure says why a language model came to no result; any
// other error means that the tree could not be read or that ctx ended.
func (a *Agent) Edit(ctx context.Context, task Task, progress func(Progress)) (Result, error) {
	if progress == nil {
		progress = func(Progress) {}
	}
	if a.opts.Models != nil {
		m, err := a.opts.Models.LanguageModel(task.Model)
		if err != nil {
			return Result{}, &Failure{Reason: api.HaltError, Message: fmt.Sprintf("The language model %s cannot be used: it is not configured.",
				say.Quote(task.Model)), Err: err}
		}
		if m != nil {
			return a.loop(ctx, m, task, progress)
		}
	}
	return a.rules(ctx, task, progress)
}

// Model is what a task with that model's name will say of which one worked, as far as is known before it does.
func (a *Agent) Model(name string) string {
	if a.opts.Models == nil {
		return Rules
	}
	switch m, err := a.opts.Models.LanguageModel(name); {
	case err != nil:
		return name // the task will fail, and say so
	case m != nil:
		return m.Name()
	}
	return Rules
}

// A work is a task that is carried out, with its checks and what its report needs.
type work struct {
	*edit.Run
	task  Task
	model string // that does the work
	check *check.Checker
	whole []pulledFile // of the pull request, if it holds earlier instructions too
}

func open(ctx context.Context, task Task, opts Options) (*work, error) {
	ws, err := workspace.Open(ctx, task.Tree, task.Project.ID, task.DocsDir, opts.workspace())
	if err != nil {
		return nil, err
	}
	r, err := edit.NewRun(ctx, ws, task.Project, task.Earlier, task.Now)
	if err != nil {
		return nil, err
	}
	if opts.Published != nil {
		r.Site.Published = opts.Published(task.Project)
	}
	return &work{Run: r, task: task, check: check.New(r, task.Prompt, task.Project.Direct)}, nil
}
