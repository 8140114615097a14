package journal

import "time"

const (
	laterDelay    = 10 * time.Millisecond // at most, of an append of urgency Later, for those that begin work
	endsDelay     = 20 * time.Millisecond // and for others of its kind
	soonDelay     = 16 * time.Millisecond // and of one of urgency Soon
	soonTogether  = 4                     // of the latter, which are delayed no longer
	delaySiblings = 4                     // streams must have work under way when appends wait for others of their kind
	delayedMost   = 64                    // appends at once
	delayedBytes  = 256 << 10             // and their size
	rareGap       = 10 * laterDelay       // a longer pause counts as one of this length: it is soon forgotten
)

// Commit delay: appends that can wait are delayed for a few milliseconds, and share the next commit. (PostgreSQL's
// commit_delay and commit_siblings are the same idea.) They are delayed only if appends have come so fast lately
// that another one is to be expected in time; on a quiet server an append is written at once. They wait for others of
// their own kind only if several streams have work under way: for a lone caller who asks again and again no other
// would come. Appends that begin work wait for no more of their kind than are expected.

// delayedAppends are the appends that wait for the next commit, or for their time. Journal.mu guards all of it.
type delayedAppends struct {
	reqs        []*appendRequest
	soon        int // of urgency Soon among them
	bytes       int
	timer       *time.Timer
	due         time.Time // when the timer ends
	first, ends arrivals  // of appends that want to be written before Later, and of those
}

// arrivals of appends of one kind: when the last came, and how far they were apart lately.
type arrivals struct {
	last time.Time
	gap  time.Duration
}

func (a *arrivals) came(now time.Time) {
	a.gap += (min(now.Sub(a.last), rareGap) - a.gap) / 8
	a.last = now
}

// expected reports whether another one is to be expected within a time.
func (a *arrivals) expected(within time.Duration, now time.Time) bool {
	return a.gap < within && now.Sub(a.last) < within
}

func (d *delayedAppends) init(j *Journal) {
	d.first.gap, d.ends.gap = rareGap, rareGap
	d.timer = time.AfterFunc(time.Hour, func() {
		j.releaseDelayed()
		j.poke()
	})
	d.timer.Stop()
}

// delay keeps r back for a while, or says that it is to be written at once. Its caller holds mu.
func (j *Journal) delay(r *appendRequest) bool {
	d, now := &j.delayed, time.Now()
	others := j.busy.Load() >= delaySiblings
	var most time.Duration
	switch r.a.Urgency {
	case AtOnce:
		d.first.came(now)
		return false
	case Soon:
		d.first.came(now)
		if !others || d.soon+1 >= min(soonTogether, 1+int(soonDelay/max(d.first.gap, 1))) {
			return false
		}
		most = soonDelay
	case Later:
		ends := others && d.ends.expected(endsDelay, now)
		d.ends.came(now)
		switch {
		case d.first.expected(laterDelay, now):
			most = laterDelay
		case ends:
			most = endsDelay
		default:
			return false
		}
	}
	if len(d.reqs) == delayedMost-1 || d.bytes+r.bytes > delayedBytes {
		return false
	}
	if r.a.Urgency == Soon {
		d.soon++
	}
	d.bytes += r.bytes
	d.reqs = append(d.reqs, r)
	if due := now.Add(most); len(d.reqs) == 1 || due.Before(d.due) {
		d.due = due
		d.timer.Reset(most)
	}
	return true
}

// enqueueDelayed moves the delayed appends to where the committer takes them from. Its caller holds mu.
func (j *Journal) enqueueDelayed() {
	d := &j.delayed
	if len(d.reqs) == 0 {
		return
	}
	d.timer.Stop()
	for _, r := range d.reqs {
		j.enqueue(r)
	}
	clear(d.reqs)
	d.reqs, d.soon, d.bytes = d.reqs[:0], 0, 0
}

func (j *Journal) releaseDelayed() {
	j.mu.Lock()
	j.enqueueDelayed()
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
