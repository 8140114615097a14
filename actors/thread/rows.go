package thread

import (
	"sync"

	"docent/api"
	"docent/persistence/journal"
)

// row is a thread as analytics see it: its questions that have come to their end, and the rated answers that were
// replaced. What no reader has asked, as in the console's playground, is not among them.
func (s state) row() api.ThreadRow {
	row := api.ThreadRow{ID: s.id, Project: s.project, Caller: s.caller}
	add := func(e Exchange, replaced bool) {
		if !e.Channel.ByReader() {
			return
		}
		q := api.QuestionRow{ID: e.Turn, Thread: s.id, Project: s.project, Caller: s.caller, Channel: e.Channel, Page: e.Page,
			Question: e.Question, Answer: e.Answer, Error: e.Error, Answered: e.Answered, Replaced: replaced, Model: e.Model,
			FallbackFor: e.FallbackFor, Degraded: e.Degraded,
			Asked: e.Asked, Ended: e.Ended}
		if e.Error != "" {
			q.Answer = e.Text // as far as it had come
		}
		if e.Trace != nil {
			if q.Before = e.Trace.Before; q.Before != "" {
				q.Rewritten = e.Trace.Read()
			}
			if e.Trace.First > 0 {
				q.FirstText = max(1, e.Trace.First.Duration().Milliseconds())
			}
		}
		for _, s := range e.Cited() {
			q.Sources = append(q.Sources, api.PageRef{URL: s.URL, Title: s.Title})
		}
		if f := e.Feedback; f != nil {
			q.Rating, q.Comment, q.Rated = f.Rating, f.Comment, f.At
		}
		row.Questions = append(row.Questions, q)
	}
	for _, e := range s.replaced {
		if e.Feedback != nil {
			add(e, true)
		}
	}
	for _, e := range s.done {
		add(e, false)
	}
	return row
}

// Find is a question and its answer, as far as the journal's state of the thread remembers it, and the thread's project.
// The project is empty if no thread was opened.
func Find(id api.ThreadID, rec journal.Recovered, turn api.TurnID) (project api.ProjectID, e Exchange, found bool,
	err error) {
	s, err := kind.Recovered(string(id), rec)
	if err != nil || !s.opened {
		return "", e, false, err
	}
	for _, list := range [][]Exchange{s.open, s.done, s.replaced} {
		if i, ok := index(list, turn); ok {
			return s.project, list[i], true, nil
		}
	}
	return s.project, e, false, nil
}

// Rows makes the rows of threads that change again and again, from their new events alone: what a question costs must
// not grow with the thread that it is asked in. It remembers of each of the last threads how far it has come and what
// is open there. The zero value is ready.
type Rows struct {
	mu       sync.Mutex
	new, old map[api.ThreadID]rowState // when new is full it becomes old
}

// A rowState is a thread without its past.
type rowState struct {
	state
	seq uint64
}

// rowsKept is how many threads are remembered at least.
const rowsKept = 20_000

// Whole is the row of a thread, from what the journal holds of it. It is false if no thread was opened.
func (r *Rows) Whole(id api.ThreadID, rec journal.Recovered) (api.ThreadRow, bool, error) {
	s, err := kind.Recovered(string(id), rec)
	if err != nil || !s.opened {
		r.forget(id)
		return api.ThreadRow{}, false, err
	}
	r.remember(s, rec.Seq)
	return s.row(), true, nil
}

// Changed is the part of the row that some events change, the first of which has the sequence number first. It is the
// whole row if the thread is not remembered and these are all its events. It is false if only the whole thread
// tells: when these events do not come right after those of the last row, or change something before them.
func (r *Rows) Changed(id api.ThreadID, first uint64, events []journal.Event) (api.ThreadRow, bool) {
	r.mu.Lock()
	last, ok := r.new[id]
	if !ok {
		last, ok = r.old[id]
	}
	r.mu.Unlock()
	whole := !ok && first == 1 // a young thread: these are all its events
	if whole {
		last.state.id = id
	}
	if !ok && !whole || len(events) == 0 || first != last.seq+1 {
		return api.ThreadRow{}, false
	}
	s := last.state
	for _, stored := range events {
		ev, err := codec.Decode(stored)
		if err != nil {
			return api.ThreadRow{}, false
		}
		switch ev := ev.(type) {
		case Rated:
			if _, ok := s.find(ev.Turn); !ok {
				return api.ThreadRow{}, false
			}
		case Asked:
			if ev.Replaces && !s.holds(ev.From) {
				return api.ThreadRow{}, false
			}
		}
		s = s.apply(ev)
	}
	if !s.opened {
		return api.ThreadRow{}, false
	}
	r.remember(s, last.seq+uint64(len(events)))
	row := s.row()
	row.Part = !whole
	return row, true
}

// holds reports whether a turn is in the conversation as far as it is remembered; the last one if none is named.
func (s *state) holds(turn api.TurnID) bool {
	if turn == "" {
		_, ok := s.newest()
		return ok
	}
	_, open := index(s.open, turn)
	_, done := index(s.done, turn)
	return open || done
}

func (r *Rows) remember(s state, seq uint64) {
	s.done, s.replaced = nil, nil
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.new == nil || len(r.new) >= rowsKept {
		r.new, r.old = make(map[api.ThreadID]rowState), r.new
	}
	r.new[s.id] = rowState{s, seq}
}

func (r *Rows) forget(id api.ThreadID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.new, id)
	delete(r.old, id)
}
