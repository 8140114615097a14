// Package budget keeps one client from taking what is there for all: connections, requests, streams, memory.
//
// A Table knows how much of everything there is, and how much of it each client holds. Each client may hold a share of
// what is left, and a few always. The more clients take, the smaller the share of each: a new one finds something left
// even when many others take as much as they may. That is the rule of shared buffers in switches
// (Choudhury and Hahne, "Dynamic queue length thresholds", 1998), and it needs no number for each client.
package budget

import (
	"cmp"
	"hash/maphash"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// A Kind is something that there is only so much of.
type Kind uint8

// What clients hold for a while.
const (
	Connections Kind = iota
	Bodies           // requests whose body has not arrived
	BodyMemory       // bytes of bodies
	Requests         // that are worked on
	Pages            // of the console, likewise
	Streams          // answers and jobs that are followed
	Standing         // streams that wait for nothing that was asked, as clients of MCP keep
	Sessions         // of MCP
	kinds
)

// String is the kind's name in metrics, errors and the documentation.
func (k Kind) String() string {
	return [...]string{"connections", "bodies", "body_memory", "requests", "pages", "streams", "standing",
		"sessions"}[k]
}

// Kinds are all kinds.
func Kinds() []Kind {
	list := make([]Kind, kinds)
	for i := range list {
		list[i] = Kind(i)
	}
	return list
}

// A Verdict says whether something was taken.
type Verdict uint8

const (
	Taken Verdict = iota
	Used          // the client holds its share
	Full          // nothing is left for anybody
)

const (
	// Least is what each client may hold or use, however little is left.
	Least = 16
	// all is the share that keeps nobody from anything.
	all = 100
	// shards are that many locks, so that clients rarely wait for each other.
	shards = 32
	// remembered are clients that hold nothing, for each shard: what they used recently is known.
	remembered = 1024
)

// Share is what one client may have when so much is left: percent of it, and at least Least.
func Share(percent, left int) int {
	if percent >= all {
		return max(left, Least)
	}
	return max(left*percent/100, Least)
}

// A Pool is how much there is of a kind. The zero value is without bound.
type Pool struct {
	Max   int
	Least int  // that one client may hold, however little is left; the package's Least if 0
	Soft  bool // Max is what shares are of, and refuses nobody
}

// A Table counts what clients hold and use. Its memory is bounded by what they hold, and by a number of clients that
// are remembered beside them. It is safe for use by many goroutines, and must not be copied.
type Table struct {
	percent int
	pools   [kinds]struct {
		Pool
		open atomic.Int64
	}
	seed   maphash.Seed
	shards [shards]shard
}

// New makes a table in which one client may hold so many percent of what is left; 100 bounds nobody.
func New(percent int, pools map[Kind]Pool) *Table {
	t := &Table{percent: percent, seed: maphash.MakeSeed()}
	for k, p := range pools {
		p.Least = cmp.Or(p.Least, Least)
		t.pools[k].Pool = p
	}
	for i := range t.shards {
		s := &t.shards[i]
		s.accounts = map[name]*Account{}
		s.idle.older, s.idle.newer = &s.idle, &s.idle
	}
	return t
}

// A name is whose an account is: a network's or a key's.
type name struct {
	network netip.Addr
	key     string
}

// A shard is a part of the clients. Those that hold nothing stand in idle, a ring, the one that was used last first.
type shard struct {
	mu       sync.Mutex
	accounts map[name]*Account
	idle     Account
	resting  int
}

// An Account is what one client holds. A nil one is of a client that is not bounded.
type Account struct {
	table   *Table
	percent int // that it may hold of what is left
	held    [kinds]atomic.Int64

	// What follows is the shard's.
	name         name
	uses         int
	older, newer *Account
	window       int64 // that used counts for
	used         int
}

// Network is what an address is counted as: who has one IPv6 address has its /64.
func Network(addr netip.Addr) netip.Addr {
	if addr.Is6() {
		if p, err := addr.Prefix(64); err == nil {
			return p.Addr()
		}
	}
	return addr
}

// Client is the account of an address; nil if clients are not bounded. The caller calls its Done.
func (t *Table) Client(addr netip.Addr) *Account {
	if t.percent >= all {
		return nil
	}
	return t.account(name{network: Network(addr)}, t.percent)
}

// Key is the account of a key, which many clients have: it may hold so many percent of what is left, which may be more
// than a hundred. The caller calls its Done.
func (t *Table) Key(key string, percent int) *Account {
	return t.account(name{key: key}, percent)
}

func (t *Table) shard(n name) *shard { return &t.shards[maphash.Comparable(t.seed, n)%shards] }

func (t *Table) account(n name, percent int) *Account {
	s := t.shard(n)
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.find(n)
	if a == nil {
		a = &Account{table: t, percent: percent, name: n}
		s.accounts[n] = a
	}
	a.uses++
	return a
}

// find takes an account out of those that rest.
func (s *shard) find(n name) *Account {
	a := s.accounts[n]
	if a != nil && a.uses == 0 {
		a.older.newer, a.newer.older = a.newer, a.older
		s.resting--
	}
	return a
}

// rest puts an account to those that nobody uses, and forgets the one that nobody has used for longest.
func (s *shard) rest(a *Account) {
	a.older, a.newer = s.idle.older, &s.idle
	a.older.newer, s.idle.older = a, a
	if s.resting++; s.resting > remembered {
		last := s.idle.newer
		last.older.newer, last.newer.older = last.newer, last.older
		s.resting--
		delete(s.accounts, last.name)
	}
}

// Keep is the same account for somebody else, who calls Done as well.
func (a *Account) Keep() *Account {
	if a != nil {
		s := a.table.shard(a.name)
		s.mu.Lock()
		a.uses++
		s.mu.Unlock()
	}
	return a
}

// Done says that the caller has given everything back, and needs the account no more.
func (a *Account) Done() {
	if a == nil {
		return
	}
	s := a.table.shard(a.name)
	s.mu.Lock()
	defer s.mu.Unlock()
	if a.uses--; a.uses == 0 {
		s.rest(a)
	}
}

// Take takes n of a kind for each of the accounts, or nothing. Of what is taken for several accounts there is one.
func (t *Table) Take(k Kind, n int64, accounts ...*Account) Verdict {
	p := &t.pools[k]
	open := p.open.Add(n)
	left := int64(p.Max) - open + n
	if p.Max > 0 && n > left && !p.Soft {
		p.open.Add(-n)
		return Full
	}
	for i, a := range accounts {
		if a == nil || p.Max == 0 {
			continue
		}
		if a.held[k].Add(n) <= max(left*int64(a.percent)/100, int64(p.Least)) {
			continue
		}
		for _, b := range accounts[:i+1] {
			if b != nil {
				b.held[k].Add(-n)
			}
		}
		p.open.Add(-n)
		return Used
	}
	return Taken
}

// Give gives back what was taken.
func (t *Table) Give(k Kind, n int64, accounts ...*Account) {
	p := &t.pools[k]
	p.open.Add(-n)
	for _, a := range accounts {
		if a != nil && p.Max > 0 {
			a.held[k].Add(-n)
		}
	}
}

// Open is how much of a kind is taken.
func (t *Table) Open(k Kind) int64 { return t.pools[k].open.Load() }

// Use counts one use of a key within the window of time that now lies in, and says whether it was within most. What is
// refused is not counted. A client that was not seen for long may be forgotten early.
func (t *Table) Use(key string, now time.Time, window time.Duration, most int) bool {
	n := name{key: key}
	s := t.shard(n)
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.find(n)
	if a == nil {
		a = &Account{table: t, name: n}
		s.accounts[n] = a
	}
	if a.uses == 0 {
		defer s.rest(a)
	}
	if at := now.UnixNano() / int64(window); at != a.window {
		a.window, a.used = at, 0
	}
	if a.used >= most {
		return false
	}
	a.used++
	return true
}

// Left is how many uses of a key are left of so many, within the window of time that now lies in.
func (t *Table) Left(key string, now time.Time, window time.Duration, most int) int {
	n := name{key: key}
	s := t.shard(n)
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.accounts[n]
	if a == nil || a.window != now.UnixNano()/int64(window) {
		return most
	}
	return max(most-a.used, 0)
}
