// Package edit holds the operations on documentation, such as replacing a term or moving a page with all links to it.
// The built-in instructions and the tools of language models both work through them.
//
// An operation names what it does and where: its Scope. Run.Do carries it out and refuses whatever it changes outside
// of its scope. The run keeps the account of what was done, which the report of the result is written from.
package edit

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"docent/agent/pages"
	"docent/agent/workspace"
	"docent/api"
)

// An Instruction is an earlier instruction of the job and what became of it.
type Instruction struct {
	Prompt  string
	Message string // what the agent said at its end
	Commit  string // if it ended in a commit
	Branch  string // that the commit was made for

	// Pull is the state of the pull request that it went into: open if this instruction adds to it. It is empty if
	// that is not known.
	Pull api.PullState `cbor:"-"`
}

// A Run is one instruction being carried out on a workspace, with the account of what it did.
type Run struct {
	Context context.Context
	Files   *workspace.Workspace
	Site    *pages.Site
	Earlier []Instruction // of the same job, oldest first

	Done    []string // what was done, a sentence each
	Left    []string // what was left, and why
	Titles  []string
	Counts  map[string]map[string]int // file -> what -> how often
	Origin  map[string]string         // file moved -> where it was in the base
	Dropped map[string]bool           // pages taken out of the navigation on request
	bounds  *bounds                   // of the operation that is carried out
	Undone  bool                      // an earlier instruction was undone
	Mass    bool                      // an operation changed more places than its words say
	Meant   map[string]bool           // files that built-in instructions delete; nil if a language model works
}

// NewRun begins to carry out an instruction on a workspace.
func NewRun(ctx context.Context, ws *workspace.Workspace, project api.Project, earlier []Instruction,
	now time.Time) (*Run, error) {
	site, err := pages.Open(ws, project, now)
	return &Run{
		Context: ctx, Files: ws, Site: site, Earlier: earlier,
		Counts: map[string]map[string]int{}, Origin: map[string]string{}, Dropped: map[string]bool{},
	}, err
}

// Did notes what was done, as a sentence.
func (r *Run) Did(format string, args ...any) { r.Done = append(r.Done, fmt.Sprintf(format, args...)) }

// headline notes what was done, for a title.
func (r *Run) headline(format string, args ...any) {
	r.Titles = append(r.Titles, fmt.Sprintf(format, args...))
}

// Kept notes what was left as it is, and why.
func (r *Run) Kept(format string, args ...any) {
	if s := fmt.Sprintf(format, args...); !slices.Contains(r.Left, s) {
		r.Left = append(r.Left, s)
	}
}

// Tally counts what was done in a file.
func (r *Run) Tally(file, what string, n int) {
	if r.Counts[file] == nil {
		r.Counts[file] = map[string]int{}
	}
	r.Counts[file][what] += n
}

// moved carries the account of a file over to its new path.
func (r *Run) moved(from, to string) {
	if c := r.Counts[from]; c != nil {
		r.Counts[to] = c
		delete(r.Counts, from)
	}
	first := from
	if o, ok := r.Origin[from]; ok {
		first = o
		delete(r.Origin, from)
	}
	r.Origin[to] = first
}

// means notes what an operation of the built-in instructions deletes: the instruction was read as just that.
func (r *Run) means(file string) {
	if r.Meant != nil {
		r.Meant[file] = true
	}
}

// A savepoint is the state of a run that an operation may be taken back to.
type savepoint struct {
	edits   workspace.Saved
	done    int
	left    int
	titles  int
	counts  map[string]map[string]int
	origin  map[string]string
	dropped map[string]bool
}

// Save gives the state that Restore goes back to.
func (r *Run) Save() savepoint {
	m := savepoint{r.Files.Save(), len(r.Done), len(r.Left), len(r.Titles), map[string]map[string]int{},
		maps.Clone(r.Origin), maps.Clone(r.Dropped)}
	for f, c := range r.Counts {
		m.counts[f] = maps.Clone(c)
	}
	return m
}

// Restore takes back what was done since a state was saved.
func (r *Run) Restore(m savepoint) {
	r.Files.Restore(m.edits)
	r.Done, r.Left, r.Titles = r.Done[:m.done], r.Left[:m.left], r.Titles[:m.titles]
	r.Counts, r.Origin, r.Dropped = m.counts, m.origin, m.dropped
}

// An Operation is one thing that the rules can do.
type Operation interface {
	Todo() string  // what is to be done, in one line
	Where() *Scope // where; nil for what is about things that it names itself
	Run(r *Run) error
}

// A Scoped operation can be done again in another place.
type Scoped interface {
	Operation
	Within(s Scope) Operation
}

// again is an operation as it is done again: in the places of another scope.
func again[T any, P interface {
	*T
	Operation
}](op P, s Scope) Operation {
	other := *op
	where := P(&other).Where()
	*where = where.elsewhere(s)
	return P(&other)
}

// Many are the operations of one instruction.
type Many []Operation

// Members are the operations that one instruction asks for.
func Members(op Operation) []Operation {
	if list, ok := op.(*Many); ok {
		return *list
	}
	return []Operation{op}
}

func (l *Many) Todo() string {
	var out []string
	for _, op := range *l {
		out = append(out, op.Todo())
	}
	return strings.Join(out, "; ")
}

func (l *Many) Where() *Scope { return nil } // each has its own

func (l *Many) Run(r *Run) error {
	for _, op := range *l {
		if err := r.Do(op); err != nil {
			return err
		}
	}
	return nil
}
