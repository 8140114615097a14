// Package job implements the actor that carries one request through the agent to a pull request.
//
// A job works on one instruction at a time, in the order sent. What a command was answered is on disk; an instruction
// that was accepted is carried out exactly once, whatever dies in between, and ends in exactly one branch and at most
// one open pull request.
package job

import (
	"cmp"
	"context"
	"time"

	"docent/actors/persistent"
	"docent/agent"
	"docent/api"
	"docent/forge"
	"docent/persistence/journal"
	"docent/persistence/quota"
)

// A Command asks the job to do something. It is answered exactly once: with a Reply, or with an error of package api.
//
// A Create or FollowUp whose Claim is taken changes nothing and is answered with the *journal.ClaimedError as it
// came from the journal: the request was made before, Claim.Owner is the stream of the job that answers for it, and a
// Read of that job is the answer to give (or a conflict, if the Digest differs).
type Command interface{ command() }

// An Asker finds or starts the actor of a job and asks it. A command that was refused changed nothing. One that was
// answered with an error of the context may or may not have taken effect.
type Asker interface {
	Ask(ctx context.Context, id api.JobID, cmd Command) (Reply, error)
}

type (
	// Create makes the job. A repeated Create changes nothing.
	Create struct {
		Project api.Project // as it stands now; the job keeps what it needs of it
		User    api.KeyID   // key that asks
		Prompt  string
		Model   string // empty for the project's
		Draft   bool
		Branch  string    // where the changes go; empty for a name made from the job's id
		DryRun  bool      // nothing is published: the log has the diff
		At      time.Time // when it was asked for, which the job's id is made of; when it arrives if zero
		Uses    []quota.Use
		Claim   *journal.Claim
		// What the job shows until its first edit. The actor's supervisor fills it in.
		Source api.JobSource
		Works  string // the model that will work
		Traced string // see tracing.Carried
		Follows
	}

	// FollowUp gives the job one more instruction. A repeated ID changes nothing.
	FollowUp struct {
		Project api.ProjectID
		ID      string
		Prompt  string
		Uses    []quota.Use
		Claim   *journal.Claim
		Traced  string // see Create
		Follows
	}

	// Read asks for the job as it stands.
	Read struct{ Project api.ProjectID }

	// Watch asks for the job once it has moved beyond event After. The answer comes when it has, or when Until passes.
	Watch struct {
		Project api.ProjectID
		After   uint64
		Until   time.Time
		Log     bool // the reply carries the log beyond After
		// Edits makes the reply carry what the edit in hand comes to so far, if that is another version than Seen. Then
		// the answer comes as soon as there is one, even if no event has happened.
		Edits bool
		Seen  uint64
	}

	// Archive marks the job as put away. Its branch and pull request stay.
	Archive struct{ Project api.ProjectID }

	// Cancel ends an active job: failed, with the message "cancelled".
	Cancel struct{ Project api.ProjectID }

	// PullIs reports the state of one of the job's pull requests. A repeat changes nothing, and what is merged stays
	// merged. It is api.ErrNotFound if the job has opened no pull request from that branch, and api.ErrUnavailable
	// while it opens one.
	PullIs struct {
		Project api.ProjectID
		Branch  string // that it comes from; empty for the branch of the newest one
		State   api.PullState
	}

	// Note puts a sentence into the job's log, which becomes its message. One that is its message already changes
	// nothing.
	Note struct {
		Project api.ProjectID
		Text    string
	}
)

// Follows is what an instruction knows of the change of code that it follows. It is empty for others.
type Follows struct {
	Authors []string `cbor:"1,keyasint,omitempty"` // accounts that are asked to review what comes of it
	Pages   []string `cbor:"2,keyasint,omitempty"` // files that the change may concern, which the instruction names
}

// Asks is the model that the job asks for; empty for the default.
func (c Create) Asks() string { return cmp.Or(c.Model, c.Project.JobModel()) }

func (Create) command()   {}
func (FollowUp) command() {}
func (Read) command()     {}
func (Watch) command()    {}
func (Archive) command()  {}
func (Cancel) command()   {}
func (PullIs) command()   {}
func (Note) command()     {}

// A Reply is the job as it stands after the command.
type Reply struct {
	Row   api.JobRow
	Fresh bool // the command changed something; false for a repeat

	// For a Watch that asks for it: the log beyond After as far as it is kept. It is for reading only.
	Log     []Entry
	Omitted uint64 // entries up to this event are no longer kept; 0 if After is beyond it

	// For a Watch that asks for it: the edit in hand; nil if nothing is new, or nothing is edited.
	Edits *Edits
}

// Edits are what a language model has changed so far in the instruction that it works on. They are shown and not kept:
// after a restart they are there again once the work has gone on.
type Edits struct {
	Version uint64 // rises with each change
	Files   []FileChange
	Diff    string // unified, of all files
}

// An Event is a fact about the job. It is journaled before it is applied.
type Event interface{ event() }

type (
	Created struct {
		Project api.ProjectID `cbor:"1,keyasint"`
		Job     api.JobID     `cbor:"2,keyasint"`
		User    api.KeyID     `cbor:"3,keyasint"`
		Source  api.JobSource `cbor:"4,keyasint"`
		Model   string        `cbor:"5,keyasint"`
		Draft   bool          `cbor:"6,keyasint"`
		At      time.Time     `cbor:"7,keyasint"`
		Branch  string        `cbor:"8,keyasint,omitempty"`
		DryRun  bool          `cbor:"9,keyasint,omitempty"`
		// the model that the job shows; empty in events of before it was kept
		Works string `cbor:"10,keyasint,omitempty"`
	}
	// Prompted adds an instruction. The first one follows Created in the same append.
	Prompted struct {
		ID     string    `cbor:"1,keyasint"`
		Prompt string    `cbor:"2,keyasint"`
		At     time.Time `cbor:"3,keyasint"`
		// Traced is the work's place in a trace that is sampled, see tracing.Carried.
		Traced  string  `cbor:"4,keyasint,omitempty"`
		Follows Follows `cbor:"5,keyasint,omitzero"`
	}
	// Progressed shows how far the run is, for listings and logs.
	Progressed struct {
		Title string     `cbor:"1,keyasint"`
		Todos []api.Todo `cbor:"2,keyasint"`
		Text  string     `cbor:"3,keyasint"`
		At    time.Time  `cbor:"4,keyasint"`
		// Waiting is since when a model or a code host that does not answer is waited for, in milliseconds; 0 for none.
		Waiting int64 `cbor:"5,keyasint,omitempty"`
	}
	// Stepped is one answer of a language model in the edit, with what led to it: after a crash the edit goes on behind
	// it without asking again. A step of a new round takes the place of those of earlier rounds.
	Stepped struct {
		Step agent.Step `cbor:"1,keyasint"`
		At   time.Time  `cbor:"2,keyasint"`
	}
	// Edited is the outcome of the edit and the intent to publish it, in full: what is published after a crash is this.
	Edited struct {
		Branch string       `cbor:"1,keyasint"` // where it goes
		Base   string       `cbor:"2,keyasint"`
		Parent string       `cbor:"3,keyasint"` // commit that the changes build on
		Result agent.Result `cbor:"4,keyasint"`
		At     time.Time    `cbor:"5,keyasint"` // also the commit's time
		Repo   string       `cbor:"6,keyasint"`
		Number int          `cbor:"7,keyasint"` // which of the job's branches: 1 for the first
		Files  []FileChange `cbor:"8,keyasint,omitempty"`
		Diff   string       `cbor:"9,keyasint,omitempty"`
		// of the commit; empty in events of before it was kept, for Docent's own name
		Author  string `cbor:"10,keyasint,omitempty"`
		SignOff bool   `cbor:"11,keyasint,omitempty"`
	}
	// Published is the outcome of the publication.
	Published struct {
		Result forge.Published `cbor:"1,keyasint"`
		At     time.Time       `cbor:"2,keyasint"`
		Opened bool            `cbor:"3,keyasint,omitempty"` // it is the job's first publication in that pull request
	}
	// Retried says that the run in hand broke off without a result: the work is taken up once more.
	Retried struct {
		Reason persistent.RetryReason `cbor:"1,keyasint"`
		At     time.Time              `cbor:"2,keyasint"`
	}
	// Stale says that the branch moved between edit and publication: the instruction is edited again.
	Stale struct {
		At time.Time `cbor:"1,keyasint"`
	}
	// Finished ends the instruction in hand well; the next one, if any, starts.
	Finished struct {
		Message string      `cbor:"1,keyasint"`
		At      time.Time   `cbor:"2,keyasint"`
		Outcome api.Outcome `cbor:"3,keyasint,omitempty"` // empty in events of before it was kept
		Ended   Ended       `cbor:"4,keyasint,omitzero"`
	}
	// Failed ends the instruction in hand, and those that wait, without success.
	Failed struct {
		Reason  api.HaltReason `cbor:"1,keyasint"`
		Message string         `cbor:"2,keyasint"`
		At      time.Time      `cbor:"3,keyasint"`
		Ended   Ended          `cbor:"4,keyasint,omitzero"`
		Output  string         `cbor:"5,keyasint,omitempty"` // what the project's own check printed, for those who may edit
	}
	Archived struct {
		At time.Time `cbor:"1,keyasint"`
	}
	// PullChanged says that a pull request of the job was merged, closed, or opened again.
	PullChanged struct {
		Branch string        `cbor:"1,keyasint"`
		Link   string        `cbor:"2,keyasint"`
		State  api.PullState `cbor:"3,keyasint"`
		At     time.Time     `cbor:"4,keyasint"`
	}
)

// Ended tells who hears of the end of an instruction what it was. It is empty in events of before it was kept.
type Ended struct {
	Instruction string `cbor:"1,keyasint"`
	Link        string `cbor:"2,keyasint,omitempty"` // of the job's pull request then
	Waiting     int    `cbor:"3,keyasint,omitempty"` // instructions that the job goes on with
}

func (Created) event()    {}
func (Prompted) event()   {}
func (Progressed) event() {}
func (Stepped) event()    {}
func (Edited) event()     {}
func (Published) event()  {}
func (Retried) event()    {}
func (Stale) event()      {}
func (Finished) event()   {}
func (Failed) event()     {}
func (Archived) event()   {}

func (PullChanged) event() {}
