package persistence

import "time"

const (
	holdMost    = 10 * time.Millisecond // that an append is held back
	holdAppends = 64                    // or until there are so many
	holdBytes   = 256 << 10             // or so much
	holdRare    = 10 * holdMost         // a longer pause counts as one of this length: it is soon forgotten
)

// heldAppends may wait, and do so for company: each commit takes them along. They are held only where appends have come
// so fast lately that one is to be expected in time; where little happens, an append that may wait is written at once, since
// nobody would come. Journal.mu guards all of it.
type heldAppends struct {
	reqs  []*appendRequest
	bytes int
	due   *time.Timer
	// Commits with appends that may not wait: when the last one began, and how far they were apart lately.
	last time.Time
	gap  time.Duration
}

func (h *heldAppends) init(j *Journal) {
	h.gap = holdRare
	h.due = time.AfterFunc(time.Hour, func() {
		j.releaseHeld()
		j.poke()
	})
	h.due.Stop()
}

// hurried notes that a commit begins which does not wait.
func (h *heldAppends) hurried(now time.Time) {
	h.gap += (min(now.Sub(h.last), holdRare) - h.gap) / 4
	h.last = now
}

// hold keeps r back, or says that it is not to wait. Its caller holds mu.
func (j *Journal) hold(r *appendRequest) bool {
	h := &j.held
	if h.gap >= holdMost || time.Since(h.last) >= holdMost || len(h.reqs) == holdAppends-1 || h.bytes+r.bytes > holdBytes {
		return false
	}
	h.reqs = append(h.reqs, r)
	h.bytes += r.bytes
	if len(h.reqs) == 1 {
		h.due.Reset(holdMost)
	}
	return true
}

// letGo moves what is held back to where the committer takes it from. Its caller holds mu.
func (j *Journal) letGo() {
	h := &j.held
	if len(h.reqs) == 0 {
		return
	}
	h.due.Stop()
	for _, r := range h.reqs {
		j.enqueue(r)
	}
	clear(h.reqs)
	h.reqs, h.bytes = h.reqs[:0], 0
}

func (j *Journal) releaseHeld() {
	j.mu.Lock()
	j.letGo()
	j.mu.Unlock()
}

// hurried counts the appends whose writers are there again at once: not those who let theirs wait.
func hurried(reqs []*appendRequest) (n int) {
	for _, r := range reqs {
		if !r.a.MayWait {
			n++
		}
	}
	return n
}
