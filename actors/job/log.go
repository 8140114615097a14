package job

import (
	"fmt"
	"slices"
	"time"

	"docent/actors/persistent"
	"docent/agent"
	"docent/api"
	"docent/internal/brief"
)

// What a job's log keeps. It is there for people and programs that follow the job; the job itself does not read it.
const (
	maxLog      = 400       // entries
	maxLogBytes = 512 << 10 // of them, the diffs not counted
)

// An EntryType says what an entry of a job's log tells.
type EntryType string

const (
	EntryCreated   EntryType = "created"
	EntryPrompt    EntryType = "prompt"    // an instruction was accepted: Text
	EntryProgress  EntryType = "progress"  // how far the work is: Title, Todos and Text, if they are news
	EntryTool      EntryType = "tool"      // tools are used: Calls, and Text if the model said something
	EntryEdited    EntryType = "edited"    // the edit is made: Files, Diff, and Branch, to which it is to be published
	EntryPublished EntryType = "published" // the edit stands on the code host: Branch, Commit, Link
	EntryRetried   EntryType = "retried"   // the work is taken up once more: Text says why
	EntryFinished  EntryType = "finished"  // the instruction ended well: Text, and Outcome
	EntryFailed    EntryType = "failed"    // the instruction, and those that waited, ended without success: Text
	EntryArchived  EntryType = "archived"
	EntryPull      EntryType = "pull" // a pull request was merged, closed or opened again: Text says which; Branch, Link
)

// An Entry is one line of a job's log: an event as who follows the job sees it. Fields that its type does not name are
// empty. It does not change once it is written, but that the diff of an older edit is taken off.
type Entry struct {
	Seq    uint64        `cbor:"1,keyasint"` // of the event; rises, not always by one
	Type   EntryType     `cbor:"2,keyasint"`
	At     time.Time     `cbor:"3,keyasint"`
	Status api.JobStatus `cbor:"4,keyasint"` // of the job after it
	Title  string        `cbor:"5,keyasint,omitempty"`
	Text   string        `cbor:"6,keyasint,omitempty"`
	Todos  []api.Todo    `cbor:"7,keyasint,omitempty"`
	Tool   *ToolUse      `cbor:"8,keyasint,omitempty"` // all calls of an answer in one, as earlier programs wrote them
	Files  []FileChange  `cbor:"9,keyasint,omitempty"`
	Diff   string        `cbor:"10,keyasint,omitempty"` // unified, of all files
	Branch string        `cbor:"11,keyasint,omitempty"`
	Commit string        `cbor:"12,keyasint,omitempty"`
	Link   string        `cbor:"13,keyasint,omitempty"`

	Outcome api.Outcome `cbor:"14,keyasint,omitempty"`

	// Instruction is the id of the one that the entry is about. EntryFailed ends those that waited as well.
	Instruction string `cbor:"15,keyasint,omitempty"`
	// Of a language model's answer: its calls one by one, what earlier calls gave, and what it took.
	Calls   []ToolUse    `cbor:"16,keyasint,omitempty"` // without their outputs
	Results []ToolUse    `cbor:"17,keyasint,omitempty"` // of the last calls of an instruction: at its end, without outputs
	Model   string       `cbor:"18,keyasint,omitempty"`
	Usage   *agent.Usage `cbor:"19,keyasint,omitempty"`
	Spent   *agent.Spent `cbor:"20,keyasint,omitempty"` // on the instruction, up to here
	// Printed is what the project's own check printed in an instruction that failed with it. As the outputs of results
	// that say so, it is for those who may edit: code of the repository may have run there.
	Printed string `cbor:"21,keyasint,omitempty"`
}

// A ToolUse is one use of a tool, in few words.
type ToolUse struct {
	Name   string `cbor:"1,keyasint"`
	Input  string `cbor:"2,keyasint,omitempty"`
	Output string `cbor:"3,keyasint,omitempty"`
	Failed bool   `cbor:"4,keyasint,omitempty"`
	ID     string `cbor:"5,keyasint,omitempty"` // of the call, within the job
	// Printed says that Output has what the project's own check printed.
	Printed bool `cbor:"6,keyasint,omitempty"`
}

// maxShownCall is how many bytes of a call's input, and of its output, the log keeps.
const maxShownCall = 1500

func (e Entry) size() int {
	n := 160 + len(e.Title) + len(e.Text) + len(e.Branch) + len(e.Commit) + len(e.Link)
	for _, t := range e.Todos {
		n += len(t.ID) + len(t.Content) + 32
	}
	for _, f := range e.Files {
		n += len(f.Path) + len(f.From) + 16
	}
	if e.Tool != nil {
		n += len(e.Tool.Name) + len(e.Tool.Input) + len(e.Tool.Output)
	}
	for _, list := range [][]ToolUse{e.Calls, e.Results} {
		for _, t := range list {
			n += len(t.Name) + len(t.Input) + len(t.Output) + len(t.ID) + 64
		}
	}
	return n + len(e.Instruction) + len(e.Model) + len(e.Printed)
}

// entry is how the log shows an event that has just been applied. Not every event is worth an entry.
func (s state) entry(ev Event) (Entry, bool) {
	e := Entry{Seq: s.seq, Status: s.status}
	switch ev := ev.(type) {
	case Created:
		e.Type, e.At = EntryCreated, ev.At
		if !s.dryRun {
			e.Branch = s.branch
		}
	case Prompted:
		e.Type, e.At, e.Text = EntryPrompt, ev.At, clip(ev.Prompt, maxText)
	case Progressed:
		e.Type, e.At, e.Title, e.Todos, e.Text = EntryProgress, ev.At, ev.Title, ev.Todos, ev.Text
	case Stepped:
		e.Type, e.At, e.Text = EntryTool, ev.At, clip(ev.Step.Reply.Text, maxText)
		e.Calls, e.Results = calls(ev.Step), s.results(ev.Step)
		e.Model, e.Usage, e.Spent = clip(brief.Line(ev.Step.Reply.Model), 200), &ev.Step.Reply.Usage, &ev.Step.Spent
		switch {
		case len(e.Calls) > 0:
		case ev.Step.Summary || e.Text == "":
			if e.Text = ""; len(e.Results) == 0 {
				return Entry{}, false
			}
		default:
			e.Type = EntryProgress
		}
	case Edited:
		if len(ev.Result.Changes) == 0 {
			return Entry{}, false // the instruction ends with it, and says why
		}
		e.Type, e.At, e.Files, e.Diff = EntryEdited, ev.At, ev.Files, ev.Diff
		e.Results = s.unanswered()
		if !s.dryRun {
			e.Branch = ev.Branch
		}
	case Published:
		e.Type, e.At, e.Branch, e.Commit, e.Link = EntryPublished, ev.At, s.branch, ev.Result.Commit, ev.Result.Link
	case Retried:
		if ev.Reason == persistent.Left {
			return Entry{}, false // that it goes on is an entry
		}
		e.Type, e.At, e.Text = EntryRetried, ev.At, string(ev.Reason)
	case Stale:
		e.Type, e.At, e.Text = EntryRetried, ev.At, "the branch moved"
	case Finished:
		e.Type, e.At, e.Text, e.Results = EntryFinished, ev.At, ev.Message, s.unanswered()
		e.Outcome = ev.Outcome
	case Failed:
		e.Type, e.At, e.Text, e.Printed, e.Results = EntryFailed, ev.At, ev.Message, ev.Output, s.unanswered()
	case Archived:
		e.Type, e.At = EntryArchived, ev.At
	case PullChanged:
		e.Type, e.At, e.Text, e.Branch, e.Link = EntryPull, ev.At, string(ev.State), ev.Branch, ev.Link
	default:
		return Entry{}, false
	}
	return e, true
}

// calls are what a step's answer asks for, as the log keeps it.
func calls(s agent.Step) []ToolUse {
	var out []ToolUse
	for _, c := range s.Reply.Calls {
		out = append(out, ToolUse{ID: callID(s.Round, c.ID), Name: clip(brief.Line(c.Name), 100),
			Input: clip(c.Arguments, maxShownCall)})
	}
	return out
}

// results are what the calls of the step before gave, each with what it was.
func (s state) results(step agent.Step) []ToolUse {
	open := s.unanswered()
	var out []ToolUse
	for _, t := range step.Before {
		if t.Role != "tool" {
			continue
		}
		use := ToolUse{ID: callID(step.Round, t.CallID), Output: clip(t.Text, maxShownCall), Failed: t.Failed, Printed: t.Printed}
		if n := slices.IndexFunc(open, func(c ToolUse) bool { return c.ID == use.ID }); n >= 0 {
			use.Name, use.Input = open[n].Name, open[n].Input
		}
		out = append(out, use)
	}
	return out
}

// unanswered are the calls of the last answer, unless an entry says already what they gave.
func (s state) unanswered() []ToolUse {
	for _, e := range slices.Backward(s.log) {
		if len(e.Calls) > 0 {
			return slices.Clone(e.Calls)
		}
		if len(e.Results) > 0 {
			return nil
		}
	}
	return nil
}

// callID tells calls of different rounds apart: models restart their numbering.
func callID(round int, id string) string {
	return fmt.Sprintf("%d/%s", round, clip(brief.Line(id), 100))
}

// record writes the event that has just been applied into the log. When the log is full its older half goes. inHand is
// the instruction that was worked on before the event.
func (s state) record(ev Event, inHand string) state {
	e, ok := s.entry(ev)
	if !ok {
		return s
	}
	switch ev := ev.(type) {
	case Prompted:
		e.Instruction = ev.ID
	case Created, Archived, PullChanged:
	default:
		e.Instruction = inHand
	}
	if e.Diff != "" && slices.ContainsFunc(s.log, hasDiff) {
		s.log = slices.Clone(s.log)
		for i := range s.log {
			s.log[i].Diff = "" // the newest one is worth its room
		}
	}
	if size := e.size(); len(s.log) > 0 && (len(s.log) >= maxLog || s.logBytes+size > maxLogBytes) {
		cut := (len(s.log) + 1) / 2
		s.dropped = s.log[cut-1].Seq
		s.log = slices.Clone(s.log[cut:])
		s.logBytes = logBytes(s.log)
	}
	s.logBytes += e.size()
	s.log = append(s.log, e)
	return s
}

func hasDiff(e Entry) bool { return e.Diff != "" }

func logBytes(log []Entry) (n int) {
	for _, e := range log {
		n += e.size()
	}
	return n
}

// entries is the log beyond an event. The caller may read it for as long as it likes, and must not write.
func (s state) entries(after uint64) []Entry {
	i, _ := slices.BinarySearchFunc(s.log, after, func(e Entry, after uint64) int {
		if e.Seq <= after {
			return -1
		}
		return 1
	})
	return slices.Clip(s.log[i:])
}
