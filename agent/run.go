package agent

import (
	"context"
	"docent/api"
	"fmt"
	"maps"
	"slices"
	"time"
)

// A run is one instruction being carried out on a workspace, with the account of what it did.
type run struct {
	ctx     context.Context
	ws      *workspace
	site    *documentation
	earlier []Instruction // of the same job, oldest first

	done     []string // what was done, a sentence each
	left     []string // what was left, and why
	titles   []string
	counts   map[string]map[string]int // file -> what -> how often
	origin   map[string]string         // file moved -> where it was in the base
	dropped  map[string]bool           // pages taken out of the navigation on request
	replaced []replaced
	bounds   *bounds         // of the operation that is carried out
	undone   bool            // an earlier instruction was undone
	meant    map[string]bool // files that built-in instructions delete; nil where a language model works
}

func newRun(ctx context.Context, ws *workspace, project api.Project, earlier []Instruction, now time.Time) (*run, error) {
	site, err := openDocumentation(ws, project, now)
	return &run{
		ctx: ctx, ws: ws, site: site, earlier: earlier,
		counts: map[string]map[string]int{}, origin: map[string]string{}, dropped: map[string]bool{},
	}, err
}

func (r *run) did(format string, args ...any) { r.done = append(r.done, fmt.Sprintf(format, args...)) }
func (r *run) headline(format string, args ...any) {
	r.titles = append(r.titles, fmt.Sprintf(format, args...))
}

func (r *run) kept(format string, args ...any) {
	if s := fmt.Sprintf(format, args...); !slices.Contains(r.left, s) {
		r.left = append(r.left, s)
	}
}

func (r *run) tally(file, what string, n int) {
	if r.counts[file] == nil {
		r.counts[file] = map[string]int{}
	}
	r.counts[file][what] += n
}

// moved carries the account of a file over to its new place.
func (r *run) moved(from, to string) {
	if c := r.counts[from]; c != nil {
		r.counts[to] = c
		delete(r.counts, from)
	}
	first := from
	if o, ok := r.origin[from]; ok {
		first = o
		delete(r.origin, from)
	}
	r.origin[to] = first
}

// means notes what an operation of the built-in instructions deletes: the instruction was read as just that.
func (r *run) means(file string) {
	if r.meant != nil {
		r.meant[file] = true
	}
}

// A savepoint is the state of a run that an operation may be taken back to.
type savepoint struct {
	edits   savedEdits
	done    int
	left    int
	titles  int
	counts  map[string]map[string]int
	origin  map[string]string
	dropped map[string]bool
}

func (r *run) save() savepoint {
	m := savepoint{r.ws.save(), len(r.done), len(r.left), len(r.titles), map[string]map[string]int{}, maps.Clone(r.origin), maps.Clone(r.dropped)}
	for f, c := range r.counts {
		m.counts[f] = maps.Clone(c)
	}
	return m
}

func (r *run) restore(m savepoint) {
	r.ws.restore(m.edits)
	r.done, r.left, r.titles = r.done[:m.done], r.left[:m.left], r.titles[:m.titles]
	r.counts, r.origin, r.dropped = m.counts, m.origin, m.dropped
	r.replaced = nil
}
