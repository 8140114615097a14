package job

import "docent/api"

// A Stage is how far an instruction has come.
type Stage uint8

const (
	Unheard   Stage = iota // the log does not know it: it was not given to this job, or is too long ago
	Waits                  // others come first
	Works                  // it is worked on
	EndedWell              // it ended well: Outcome says how
	GivenUp                // it failed
)

// Became is what became of an instruction.
type Became struct {
	Stage   Stage
	Text    string // the agent's last word on it
	Outcome api.Outcome
	Commit  string // that it was published as; empty if nothing was
	Link    string // of the pull request that it went into
}

// Over reports whether the instruction is not worked on any more.
func (b Became) Over() bool { return b.Stage >= EndedWell }

// BecameOf says what became of an instruction, from the job's log. A failure ends what waited as well.
func BecameOf(log []Entry, instruction string) (b Became) {
	for _, e := range log {
		switch {
		case e.Type == EntryPrompt && e.Instruction == instruction:
			b = Became{Stage: Waits}
		case e.Type == EntryFailed && (b.Stage == Waits || b.Stage == Works):
			return Became{Stage: GivenUp, Text: e.Text, Commit: b.Commit, Link: b.Link}
		case e.Instruction != instruction || instruction == "":
		case e.Type == EntryPublished:
			b.Stage, b.Commit, b.Link = Works, e.Commit, e.Link
		case e.Type == EntryFinished:
			b.Stage, b.Text, b.Outcome = EndedWell, e.Text, e.Outcome
			return b
		case e.Type == EntryFailed:
			b.Stage, b.Text = GivenUp, e.Text
			return b
		default:
			b.Stage = Works
		}
	}
	return b
}
