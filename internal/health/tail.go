package health

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"
)

// kept is how many records of a kind a Tail keeps.
const kept = 1000

// A Tail keeps the newest records of a log in memory: those that are information, and apart from them warnings and
// errors, which a busy hour's requests would push out. It keeps what the log says and nothing more.
//
// A record is stored as it is and put into words when somebody looks: what the log costs a request stays as it was.
type Tail struct {
	mu        sync.Mutex
	count     uint64
	info      ring
	warnings  ring
	followers []chan struct{}
}

// A Record is one line of the log.
type Record struct {
	Number  uint64 // from 1; later records have higher ones
	At      time.Time
	Level   slog.Level
	Message string
	Fields  []Field
}

// A Field is what a record says beside its message.
type Field struct{ Name, Value string }

// A ring holds the newest of what was put into it.
type ring struct {
	slots []slot
	next  int
}

type slot struct {
	number uint64
	from   *tailHandler
	record slog.Record
}

func (r *ring) put(s slot) {
	if len(r.slots) < kept {
		r.slots = append(r.slots, s)
		return
	}
	r.slots[r.next] = s
	r.next = (r.next + 1) % kept
}

// Handler is the source of records. It takes those of a level and above, and none below info: a log that leaves
// something out does so to spare the time that it takes.
func (t *Tail) Handler(level slog.Level) slog.Handler {
	return &tailHandler{tail: t, level: max(level, slog.LevelInfo)}
}

// Newest returns at most n records of a level and above, the newest first.
func (t *Tail) Newest(n int, level slog.Level) []Record {
	t.mu.Lock()
	slots := slices.Concat(t.warnings.slots, t.info.slots)
	t.mu.Unlock()
	slices.SortFunc(slots, func(a, b slot) int { return int(int64(b.number - a.number)) })
	out := make([]Record, 0, min(n, len(slots)))
	for _, s := range slots {
		if len(out) == n {
			break
		}
		if s.record.Level >= level {
			out = append(out, s.words())
		}
	}
	return out
}

// Follow tells of new records: something comes through the channel after one or more have come. The caller calls stop.
func (t *Tail) Follow() (changes <-chan struct{}, stop func()) {
	c := make(chan struct{}, 1)
	t.mu.Lock()
	t.followers = append(t.followers, c)
	t.mu.Unlock()
	return c, func() {
		t.mu.Lock()
		t.followers = slices.DeleteFunc(t.followers, func(f chan struct{}) bool { return f == c })
		t.mu.Unlock()
	}
}

func (t *Tail) add(from *tailHandler, r slog.Record) {
	t.mu.Lock()
	t.count++
	s := slot{t.count, from, r}
	if r.Level >= slog.LevelWarn {
		t.warnings.put(s)
	} else {
		t.info.put(s)
	}
	for _, f := range t.followers {
		select {
		case f <- struct{}{}:
		default: // it has not looked since the last one
		}
	}
	t.mu.Unlock()
}

// words is a stored record as people read it.
func (s *slot) words() Record {
	r := Record{Number: s.number, At: s.record.Time.UTC(), Level: s.record.Level, Message: s.record.Message,
		Fields: slices.Clone(s.from.fields)}
	s.record.Attrs(func(a slog.Attr) bool {
		r.Fields = appendFields(r.Fields, s.from.group, a)
		return true
	})
	return r
}

// appendFields appends what an attribute says; a group is its members, named after it.
func appendFields(fields []Field, group string, a slog.Attr) []Field {
	v := a.Value.Resolve()
	if v.Kind() != slog.KindGroup {
		if a.Key == "" && v.Any() == nil {
			return fields // as slog has it: an empty attribute is none
		}
		return append(fields, Field{group + a.Key, v.String()})
	}
	if a.Key != "" {
		group += a.Key + "."
	}
	for _, member := range v.Group() {
		fields = appendFields(fields, group, member)
	}
	return fields
}

// A tailHandler takes in the records of a logger.
type tailHandler struct {
	tail   *Tail
	level  slog.Level
	fields []Field // that the logger adds to each record
	group  string  // that stands before names
}

// Enabled implements slog.Handler.
func (h *tailHandler) Enabled(_ context.Context, level slog.Level) bool {
	return level >= h.level
}

// Handle implements slog.Handler.
func (h *tailHandler) Handle(_ context.Context, r slog.Record) error {
	settled := true
	r.Attrs(func(a slog.Attr) bool {
		switch a.Value.Kind() {
		case slog.KindAny, slog.KindLogValuer, slog.KindGroup:
			settled = false
		}
		return settled
	})
	if !settled { // what a record points to may change, and may be large
		next := slog.NewRecord(r.Time, r.Level, r.Message, r.PC)
		r.Attrs(func(a slog.Attr) bool {
			for _, f := range appendFields(nil, "", a) {
				next.AddAttrs(slog.String(f.Name, f.Value))
			}
			return true
		})
		r = next
	}
	h.tail.add(h, r)
	return nil
}

// WithAttrs implements slog.Handler.
func (h *tailHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	next := *h
	next.fields = slices.Clone(h.fields)
	for _, a := range attrs {
		next.fields = appendFields(next.fields, h.group, a)
	}
	return &next
}

// WithGroup implements slog.Handler.
func (h *tailHandler) WithGroup(name string) slog.Handler {
	if name == "" {
		return h
	}
	next := *h
	next.group += name + "."
	return &next
}

// String is a record as one line.
func (r Record) String() string {
	line := fmt.Sprintf("%s %s %s", r.At.Format(time.RFC3339Nano), r.Level, r.Message)
	for _, f := range r.Fields {
		line += fmt.Sprintf(" %s=%q", f.Name, f.Value)
	}
	return line
}
