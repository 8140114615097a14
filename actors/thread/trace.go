package thread

import (
	"strconv"
	"strings"
	"time"
)

// A Trace is how an answer came about: where its time went, and what was found for it. It is a part of each answer in
// the journal and of a thread in memory, so it is small: times in microseconds, and of the passages, in one text, no
// more than finds them again.
type Trace struct {
	Waited   Micros `cbor:"1,keyasint,omitempty"` // from the question until the turn was in hand and had a slot
	Searched Micros `cbor:"2,keyasint,omitempty"` // from there until the model's request was made
	// First is from the question until the first text of the answer; 0 if there was none.
	First Micros `cbor:"3,keyasint,omitempty"`
	// Passages are the first of those that the model was given or has found by itself, one a line: the score in
	// thousandths, then the page's path, "#" and the anchor. "=2" stands for the path of the second line.
	Passages string `cbor:"4,keyasint,omitempty"`
	Found    int    `cbor:"5,keyasint,omitempty"` // how many there were, if not all are kept
	// Rewritten is the question as a model has rewritten it, and after it the searches that it made of that, one a line;
	// empty if none did.
	Rewritten string `cbor:"6,keyasint,omitempty"`
	// Before is what was said before the question that it leans on; empty if it stands by itself.
	Before string `cbor:"8,keyasint,omitempty"`
	// Explained is the whole explanation as JSON, if it was asked for.
	Explained []byte `cbor:"7,keyasint,omitempty"`
}

// Micros is a time in microseconds.
type Micros int64

// Duration is the time as Go has it.
func (m Micros) Duration() time.Duration { return time.Duration(m) * time.Microsecond }

// micros is the time from one moment to a later one. If that is earlier by the clock, which can be set, it is 0.
func micros(from, to time.Time) Micros { return Micros(max(0, to.Sub(from).Microseconds())) }

// A Retrieved is a passage that was found for an answer.
type Retrieved struct {
	Path, Anchor string
	Score        float64 // 0 to 1, in thousandths
}

const (
	tracedPassages = 8
	tracedBytes    = 512 // of their lines
)

// traced are the passages of an answer as its trace keeps them.
func traced(candidates []candidate) (lines string, found int) {
	var room [tracedBytes]byte
	out := room[:0]
	n := 0
	for ; n < min(len(candidates), tracedPassages); n++ {
		c := &candidates[n]
		before := len(out)
		out = append(strconv.AppendInt(out, int64(min(1, max(0, c.score))*1000+0.5), 10), ' ')
		same := 0
		for same < n && candidates[same].path != c.path {
			same++
		}
		if same < n {
			out = strconv.AppendInt(append(out, '='), int64(same)+1, 10)
		} else {
			out = append(out, c.path...)
		}
		out = append(append(append(out, '#'), c.anchor...), '\n')
		if len(out) > tracedBytes || strings.ContainsAny(c.path+c.anchor, "\n#") {
			out = out[:before]
			break
		}
	}
	if n < len(candidates) {
		found = len(candidates)
	}
	return string(out), found
}

// Read is the question as a model has rewritten it; empty if none did.
func (t *Trace) Read() string {
	if t == nil {
		return ""
	}
	read, _, _ := strings.Cut(t.Rewritten, "\n")
	return read
}

// Queries are the searches that a model has made of the question.
func (t *Trace) Queries() []string {
	if t == nil {
		return nil
	}
	_, queries, any := strings.Cut(t.Rewritten, "\n")
	if !any {
		return nil
	}
	return strings.Split(queries, "\n")
}

// Retrieved lists the passages, and says how many were found.
func (t *Trace) Retrieved() (list []Retrieved, found int) {
	if t == nil {
		return nil, 0
	}
	for line := range strings.Lines(t.Passages) {
		score, place, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		path, anchor, _ := strings.Cut(place, "#")
		points, _ := strconv.Atoi(score)
		if number, same := strings.CutPrefix(path, "="); same {
			if n, err := strconv.Atoi(number); err == nil && n >= 1 && n <= len(list) {
				path = list[n-1].Path
			}
		}
		list = append(list, Retrieved{Path: path, Anchor: anchor, Score: float64(points) / 1000})
	}
	return list, max(t.Found, len(list))
}
