package journal

import "time"

const (
	laterMost   = 10 * time.Millisecond // that an append of urgency Later is held back for those that come before
	endsMost    = 20 * time.Millisecond // and for others of its kind
	soonMost    = 16 * time.Millisecond // and one of urgency Soon
	soonEnough  = 4                     // of the latter, which are not held back any more
	holdBusy    = 4                     // streams have work under way where appends are held back for others of their kind
	holdAppends = 64                    // that are held back at once
	holdBytes   = 256 << 10             // and their size
	holdRare    = 10 * laterMost        // a longer pause counts as one of this length: it is soon forgotten
)

// heldAppends can wait, and do so for company: each commit takes them along. They are held only where appends have come
// so fast lately that one is to be expected in time; where little happens, an append is written at once, since nobody would
// come. They wait for others of their kind only where several streams have work under way: one caller who asks again and
// again finds nobody to wait for. Those that begin work wait for no more than are expected. (PostgreSQL's commit_delay and
// commit_siblings are the same idea.) Journal.mu guards all of it.
type heldAppends struct {
	reqs        []*appendRequest
	soon        int // of urgency Soon among them
	bytes       int
	due         *time.Timer
	at          time.Time // when it is due
	first, ends paceOf    // of appends that want to be written before Later, and of those
}

// A paceOf knows when the last append of a kind came, and how far they were apart lately.
type paceOf struct {
	last time.Time
	gap  time.Duration
}

func (p *paceOf) came(now time.Time) {
	p.gap += (min(now.Sub(p.last), holdRare) - p.gap) / 8
	p.last = now
}

// within says whether another one is to be expected before d is over.
func (p *paceOf) within(d time.Duration, now time.Time) bool { return p.gap < d && now.Sub(p.last) < d }

func (h *heldAppends) init(j *Journal) {
	h.first.gap, h.ends.gap = holdRare, holdRare
	h.due = time.AfterFunc(time.Hour, func() {
		j.releaseHeld()
		j.poke()
	})
	h.due.Stop()
}

// hold keeps r back, or says that it is not to wait. Its caller holds mu.
func (j *Journal) hold(r *appendRequest) bool {
	h, now := &j.held, time.Now()
	others := j.busy.Load() >= holdBusy
	var most time.Duration
	switch r.a.Urgency {
	case AtOnce:
		h.first.came(now)
		return false
	case Soon:
		h.first.came(now)
		if !others || h.soon+1 >= min(soonEnough, 1+int(soonMost/max(h.first.gap, 1))) {
			return false
		}
		most = soonMost
	case Later:
		ends := others && h.ends.within(endsMost, now)
		h.ends.came(now)
		switch {
		case h.first.within(laterMost, now):
			most = laterMost
		case ends:
			most = endsMost
		default:
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
