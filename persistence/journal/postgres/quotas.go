package postgres

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"docent/api"
	"docent/internal/backoff"
	"docent/persistence/journal"
	"docent/persistence/quota"
)

const (
	countsOld    = 2 * time.Second        // counts are read again after this, when they are asked for
	countsStale  = 250 * time.Millisecond // and those of a limit that is near
	countsPause  = 50 * time.Millisecond  // between two reads
	countsForget = 10 * time.Minute       // counts that nobody asks for
	countsNear   = 8                      // uses from the limit, or an eighth of it, are near
	countsMost   = 512                    // keys in one read
)

// quotas tells early whether a limit is used up. The authority is the append: the database refuses what goes over a
// limit by the counts of all nodes. What is known here are the counts as they were read last, the uses that this node
// stored since, and those that are reserved.
type quotas struct {
	j      *Journal
	mu     sync.Mutex
	counts map[countKey]*counts
	wanted map[countKey]struct{} // to be read
	wake   chan struct{}
	opened time.Time // when all counts were read
}

type countKey struct {
	window quota.Window
	key    string
}

type counts struct {
	slots    map[int64]int // by end, as stored
	reserved map[int64]int // the same, not stored yet
	read     time.Time     // from the database
	asked    time.Time
}

// init reads all counts.
func (q *quotas) init(ctx context.Context, j *Journal) error {
	q.j = j
	q.counts, q.wanted = make(map[countKey]*counts), make(map[countKey]struct{})
	q.wake = make(chan struct{}, 1)
	q.opened = time.Now()
	all, err := j.uses(ctx, "SELECT kind, key, ends, count FROM journal_uses WHERE ends > $1", j.now().Unix())
	for k, slots := range all {
		q.counts[k] = &counts{slots: slots, reserved: make(map[int64]int), read: q.opened, asked: q.opened}
	}
	return err
}

// uses are the stored counts that a query yields, by what they are of and by end.
func (j *Journal) uses(ctx context.Context, query string, args ...any) (map[countKey]map[int64]int, error) {
	all := make(map[countKey]map[int64]int)
	return all, j.each(ctx, func(rows pgx.Rows) error {
		var kind int16
		var name []byte
		var end int64
		var n int
		if err := rows.Scan(&kind, &name, &end, &n); err != nil {
			return err
		}
		k := countKey{quota.Window(kind), string(name)}
		if all[k] == nil {
			all[k] = make(map[int64]int)
		}
		all[k][end] = n
		return nil
	}, query, args...)
}

// Quotas counts uses over all nodes. Reserve refuses what this node knows to be used up; what it does not know yet is
// refused by Append, with the same error.
func (j *Journal) Quotas() journal.Quotas { return &j.quotas }

// of returns the counts of a use, and requests a new reading if they may matter and are old. Its caller holds mu.
func (q *quotas) of(u *quota.Use, now time.Time) *counts {
	k := countKey{u.Window, u.Key}
	c := q.counts[k]
	if c == nil {
		c = &counts{slots: make(map[int64]int), reserved: make(map[int64]int), read: q.opened}
		q.counts[k] = c
	}
	c.asked = time.Now()
	age := c.asked.Sub(c.read)
	total := 0
	for end, n := range c.slots {
		if end > now.Unix() {
			total += n
		}
	}
	if age > countsOld || age > countsStale && u.Limit-total < max(countsNear, u.Limit/8) {
		q.wanted[k] = struct{}{}
		q.poke()
	}
	return c
}

// counters are the counts of uses as quota.Counters, which know how to decide. Its caller holds mu.
func (q *quotas) counters(now time.Time, uses []quota.Use) *quota.Counters {
	all := quota.New()
	for i := range uses {
		u := &uses[i]
		if u.Limit < 0 || !u.Window.Known() || slices.ContainsFunc(uses[:i], func(other quota.Use) bool {
			return other.Limit >= 0 && other.Window == u.Window && other.Key == u.Key
		}) {
			continue
		}
		c := q.of(u, now)
		for end, n := range c.slots {
			all.Load(u.Window, u.Key, end, n)
		}
		for end, n := range c.reserved {
			all.Load(u.Window, u.Key, end, n)
		}
	}
	return all
}

func (q *quotas) Reserve(now time.Time, uses []quota.Use) error {
	now = q.j.ours(now)
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.counters(now, uses).Reserve(now, uses); err != nil {
		return err
	}
	q.add(now, uses, 1)
	return nil
}

func (q *quotas) Release(now time.Time, uses []quota.Use) {
	now = q.j.ours(now)
	q.mu.Lock()
	defer q.mu.Unlock()
	q.add(now, uses, -1)
}

// add counts reservations.
func (q *quotas) add(now time.Time, uses []quota.Use, n int) {
	for i := range uses {
		u := &uses[i]
		if c := q.counts[countKey{u.Window, u.Key}]; c != nil && u.Limit >= 0 {
			c.reserve(u.Window.End(now), n)
		}
	}
}

// reserve counts reservations in a slot; one that is given back was perhaps taken in the slot before.
func (c *counts) reserve(end int64, n int) {
	if n < 0 && c.reserved[end] == 0 {
		for other := range c.reserved {
			end = other
		}
		if c.reserved[end] == 0 {
			return
		}
	}
	if c.reserved[end] += n; c.reserved[end] <= 0 {
		delete(c.reserved, end)
	}
}

func (q *quotas) Remaining(now time.Time, use quota.Use) (left int, reset time.Duration) {
	now = q.j.ours(now)
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.counters(now, []quota.Use{use}).Remaining(now, use)
}

// stored says that an append with these uses was stored: they are reserved no longer.
func (q *quotas) stored(uses []quota.Use) {
	if len(uses) == 0 {
		return
	}
	now := q.j.now()
	q.mu.Lock()
	defer q.mu.Unlock()
	for i := range uses {
		u := &uses[i]
		if c := q.counts[countKey{u.Window, u.Key}]; c != nil && u.Limit >= 0 {
			c.reserve(u.Window.End(now), -1)
			c.slots[u.Window.End(now)]++
		}
	}
}

// unknown says that nobody knows whether an append with these uses was stored. The database does, and is asked before
// they matter again. Their callers do not give them back: see journal.Unsure.
func (q *quotas) unknown(uses []quota.Use) {
	if len(uses) == 0 {
		return
	}
	now := q.j.now()
	q.mu.Lock()
	defer q.mu.Unlock()
	for i := range uses {
		u := &uses[i]
		if c := q.counts[countKey{u.Window, u.Key}]; c != nil && u.Limit >= 0 {
			c.reserve(u.Window.End(now), -1)
			c.read = time.Time{}
		}
	}
}

// stand reads the counts of what a batch was refused for, once, and tells why each was refused; nil if it is within
// its limits by now. That may well be: one that is refused for another of its limits counts against those behind it.
func (q *quotas) stand(list []refused) func(refused) error {
	var keys []countKey
	for _, r := range list {
		for _, u := range r.a.Uses {
			if r.status == usedUp && u.Limit >= 0 {
				keys = append(keys, countKey{u.Window, u.Key})
			}
		}
	}
	if len(keys) == 0 {
		return nil
	}
	found, err := q.fetch(keys)
	now := q.j.now()
	all := quota.New()
	for k, slots := range found {
		for end, n := range slots {
			all.Load(k.window, k.key, end, n)
		}
	}
	return func(r refused) error {
		if err != nil {
			return err
		}
		refusal := all.Reserve(now, r.a.Uses)
		if refusal == nil {
			all.Release(now, r.a.Uses) // those behind it are judged by what is stored
		}
		if refusal == nil && r.alone && r.tries >= againMost {
			u := &r.a.Uses[slices.IndexFunc(r.a.Uses, func(u quota.Use) bool { return u.Limit >= 0 })]
			refusal = &api.LimitError{Name: u.Name, Limit: u.Limit, Window: u.Window.Length(now), RetryAfter: time.Minute}
		}
		return refusal
	}
}

// refused marks the counts of what was refused for a limit to be read again.
func (q *quotas) refused(uses []quota.Use, err error) {
	if len(uses) == 0 || !errors.Is(err, api.ErrLimited) {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for i := range uses {
		if uses[i].Limit >= 0 {
			q.wanted[countKey{uses[i].Window, uses[i].Key}] = struct{}{}
		}
	}
	q.poke()
}

func (q *quotas) poke() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// fetch reads counts.
func (q *quotas) fetch(keys []countKey) (map[countKey]map[int64]int, error) {
	kinds, names := make([]int16, len(keys)), make([][]byte, len(keys))
	for i, k := range keys {
		kinds[i], names[i] = int16(k.window), []byte(k.key)
	}
	var found map[countKey]map[int64]int
	err := q.j.read("read what is used of a quota", func(ctx context.Context) (err error) {
		found, err = q.j.uses(ctx, "SELECT u.kind, u.key, u.ends, u.count FROM "+
			"(SELECT DISTINCT * FROM unnest($1::smallint[], $2::bytea[])) k(kind, key) "+
			"CROSS JOIN LATERAL (SELECT * FROM journal_uses u WHERE u.kind = k.kind AND u.key = k.key) u", kinds, names)
		return err
	})
	return found, err
}

// loop reads counts that are asked for, many at a time, and forgets those that are not.
func (q *quotas) loop() {
	ctx, cancel := q.j.whileOpen()
	defer cancel()
	tick := time.NewTicker(countsForget)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			q.forget()
		case <-q.wake:
			q.refresh()
			_ = backoff.Sleep(ctx, countsPause)
		}
	}
}

func (q *quotas) refresh() {
	q.mu.Lock()
	var keys []countKey
	for k := range q.wanted {
		if len(keys) == countsMost {
			break
		}
		keys = append(keys, k)
		delete(q.wanted, k)
	}
	more := len(q.wanted) > 0
	q.mu.Unlock()
	if more {
		q.poke()
	}
	if len(keys) == 0 || q.j.down() {
		return
	}
	found, err := q.fetch(keys)
	if err != nil {
		return // appends are refused meanwhile, and count
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, k := range keys {
		if c := q.counts[k]; c != nil {
			if c.slots = found[k]; c.slots == nil {
				c.slots = make(map[int64]int)
			}
			c.read = time.Now()
		}
	}
}

func (q *quotas) forget() {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.j.now().Unix()
	for k, c := range q.counts {
		for end := range c.reserved {
			if end <= now {
				delete(c.reserved, end)
			}
		}
		if len(c.reserved) == 0 && time.Since(c.asked) > countsForget {
			delete(q.counts, k)
		}
	}
}
