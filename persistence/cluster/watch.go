package cluster

import "time"

// How often a node has to be looked at, a beat apart, with its counter where it was, before it is given up.
const (
	roundsFree      = 3 // its lock is free: the process ended, or lost its connection and comes back at once
	roundsSilent    = 5 // its lock is held: it was stopped, or cut off
	roundsReturning = 8 // nothing was heard of it over this connection: the database was away for all
)

// A watch is what one node has seen of the others over one connection. It counts looks, not time: a node that was
// stopped itself, or a database that was away, makes nobody look dead.
type watch struct {
	beat  time.Duration
	nodes map[string]*watched
}

type watched struct {
	counter int64
	heard   bool      // its counter has changed
	rounds  int       // that its counter has not
	last    time.Time // of the look that found the counter, or of the round that counted last
}

func newWatch(beat time.Duration) *watch { return &watch{beat: beat, nodes: map[string]*watched{}} }

// look takes in what was read just now and names those that are to be given up, with why. A look
// counts against a node a beat after its counter was last seen to change, and then a beat after the last that counted: so
// nobody is given up before it knows itself that it has not beaten.
func (w *watch) look(now time.Time, self string, nodes []member) map[string]string {
	var dead map[string]string
	there := make(map[string]*watched, len(nodes))
	for i, n := range nodes {
		if n.ID == self {
			continue
		}
		seen, known := w.nodes[n.ID]
		switch {
		case !known:
			seen = &watched{counter: n.Counter, last: now}
		case seen.counter != n.Counter:
			*seen = watched{counter: n.Counter, heard: true, last: now}
		case now.Sub(seen.last) >= w.beat:
			seen.rounds++
			seen.last = now
		}
		there[n.ID] = seen
		nodes[i].Silence = seen.rounds
		if why := seen.why(n.Locked); why != "" {
			if dead == nil {
				dead = map[string]string{}
			}
			dead[n.ID] = why
		}
	}
	w.nodes = there
	return dead
}

func (s *watched) why(locked bool) string {
	switch {
	case !s.heard && s.rounds < roundsReturning:
		return ""
	case !locked && s.rounds >= roundsFree:
		return "its connection to the database ended and it did not come back"
	case s.rounds >= roundsSilent:
		return "it was stopped, or cut off from the database"
	}
	return ""
}
