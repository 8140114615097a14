package persistence

import "time"

const (
	laterMost   = 10 * time.Millisecond // that an append of urgency Later is held back
	soonMost    = 8 * time.Millisecond  // and one of urgency Soon
	soonEnough  = 4                     // of the latter, which are not held back any more
	soonBusy    = 4                     // streams have work under way where the latter are held back
	holdAppends = 64                    // that are held back at once
	holdBytes   = 256 << 10             // and their size
	holdRare    = 10 * laterMost        // a longer pause counts as one of this length: it is soon forgotten
)

// heldAppends can wait, and do so for company: each commit takes them along. They are held only where appends have come
// so fast lately that one is to be expected in time; where little happens, an append is written at once, since nobody would
// come. Those that begin work wait for no more than are expected, and only where several streams have work under way: one
// caller who asks again and again finds nobody to wait for. (PostgreSQL's commit_delay and commit_siblings are the same
// idea.) Journal.mu guards all of it.
type heldAppends struct {
	reqs  []*appendRequest
	soon  int // of urgency Soon among them
	bytes int
	due   *time.Timer
	at    time.Time // when it is due
	// Appends that want to be written before Later: when the last one came, and how far they were apart lately.
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

// hold keeps r back, or says that it is not to wait. Its caller holds mu.
func (j *Journal) hold(r *appendRequest) bool {
	h, now, most := &j.held, time.Now(), laterMost
	if r.a.Urgency != Later {
		h.gap += (min(now.Sub(h.last), holdRare) - h.gap) / 8
		h.last = now
	}
	switch r.a.Urgency {
	case AtOnce:
		return false
	case Soon:
		if j.busy.Load() < soonBusy || h.soon+1 >= min(soonEnough, 1+int(soonMost/max(h.gap, 1))) {
			return false
		}
		most = soonMost
	case Later:
		if h.gap >= laterMost || now.Sub(h.last) >= laterMost {
			return false
		}
	}
	if len(h.reqs) == holdAppends-1 || h.bytes+r.bytes > holdBytes {
		return false
	}
	if r.a.Urgency == Soon {
		h.soon++
	}
	h.bytes += r.bytes
	h.reqs = append(h.reqs, r)
	if at := now.Add(most); len(h.reqs) == 1 || at.Before(h.at) {
		h.at = at
		h.due.Reset(most)
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
	h.reqs, h.soon, h.bytes = h.reqs[:0], 0, 0
}

func (j *Journal) releaseHeld() {
	j.mu.Lock()
	j.letGo()
	j.mu.Unlock()
}

// returning counts the appends whose writers are there again at once: not those who let theirs wait.
func returning(reqs []*appendRequest) (n int) {
	for _, r := range reqs {
		if r.a.Urgency == AtOnce {
			n++
		}
	}
	return n
}
