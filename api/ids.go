package api

import (
	"crypto/rand"
	"encoding/binary"
	"strings"
	"sync"
	"time"
)

// IDs are types, so that they cannot be swapped.
type (
	OrgID     string // an organization: the owner of projects and keys
	ProjectID string // chosen by the operator; part of URLs
	JobID     string
	ThreadID  string
	TurnID    string // one question and its answer in a thread; also the id of the answer's message
	KeyID     string // an API key's public name; never the secret itself
)

// DefaultOrg owns every project that names no other organization.
const DefaultOrg OrgID = "default"

// Prefixes of generated IDs: a reader of a log knows what an ID names.
const (
	JobPrefix     = "job_"
	ThreadPrefix  = "thr_"
	TurnPrefix    = "msg_"
	KeyPrefix     = "key_"
	PullPrefix    = "pr_"
	UpdatePrefix  = "upd_"
	RequestPrefix = "req_"

	AutomationPrefix = "aut_"

	ReaderSecretPrefix = "rds_"
)

// base62 in ASCII order, so that encoded numbers of equal width sort as the numbers do.
const base62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// timeDigits is how many digits of an identifier say when it was made.
const timeDigits = 8

// NewID returns an opaque, URL-safe identifier: the prefix, the milliseconds of now in 8 base62 digits (IDs of one
// prefix sort by creation time), and 22 base62 digits from 128 random bits (an ID cannot be guessed).
func NewID(prefix string, now time.Time) string {
	var random [16]byte
	rand.Read(random[:]) // never fails: crypto/rand crashes the program instead
	var b strings.Builder
	b.Grow(len(prefix) + 30)
	b.WriteString(prefix)
	b.WriteString(digits(uint64(now.UnixMilli()), timeDigits))
	b.WriteString(digits(binary.BigEndian.Uint64(random[:8]), 11))
	b.WriteString(digits(binary.BigEndian.Uint64(random[8:]), 11))
	return b.String()
}

// FirstID sorts before every identifier that was made at that time or later, and after every earlier one.
func FirstID(prefix string, at time.Time) string {
	return prefix + digits(uint64(max(0, at.UnixMilli())), timeDigits)
}

// Earlier reports whether a was made in an earlier millisecond than b, of the same prefix. The order of those that were
// made in the same one says nothing.
func Earlier(prefix, a, b string) bool {
	n := len(prefix) + timeDigits
	return a[:min(n, len(a))] < b[:min(n, len(b))]
}

// digits writes n in exactly width base62 digits, the lowest ones when it does not fit.
func digits(n uint64, width int) string {
	out := make([]byte, width)
	for i := width - 1; i >= 0; i-- {
		out[i] = base62[n%62]
		n /= 62
	}
	return string(out)
}

// ValidID reports whether s has the form that NewID gives for the prefix. Anything else cannot be an ID of ours.
func ValidID(prefix, s string) bool {
	rest, ok := strings.CutPrefix(s, prefix)
	if !ok || len(rest) != 30 {
		return false
	}
	for i := range len(rest) {
		c := rest[i]
		if (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') {
			return false
		}
	}
	return true
}

// IDs makes identifiers whose order a clock that is set back does not turn around: what is made later does not sort
// before what was made earlier, but for the moments (up to clockSlack) that callers took their time apart. While the
// clock is behind, the time in an identifier goes on from the youngest one at half the speed, until the clock has
// caught up.
//
// The zero value is ready for use.
type IDs struct {
	// Mine is whether this node runs what an identifier names; nil if it runs everything. It is set before the first
	// use, and identifiers are made for which it is true, if some are found soon.
	Mine func(prefix, id string) bool

	mu       sync.Mutex
	youngest int64     // milliseconds
	at       time.Time // when it came; by the clock that cannot be set
}

// clockSlack is how far back a time may lie without meaning that the clock was set back: requests take their time when
// they begin.
const clockSlack = 10 * time.Second

// New is NewID at now, or somewhat later if the clock was set back.
func (g *IDs) New(prefix string, now time.Time) string {
	at := time.UnixMilli(g.milli(now.UnixMilli()))
	id := NewID(prefix, at)
	for range mineTries {
		if g.Mine == nil || g.Mine(prefix, id) {
			break
		}
		id = NewID(prefix, at)
	}
	return id
}

// mineTries is how many identifiers are made at most in search of one that this node runs. A node of twenty finds none
// once in a thousand times, and then the request is forwarded.
const mineTries = 128

// After lets all that is made from now on sort after id, which may come from an earlier process. What is no such ID
// counts for nothing.
func (g *IDs) After(prefix, id string) {
	if !ValidID(prefix, id) {
		return
	}
	var ms int64
	for i := range timeDigits {
		ms = ms*62 + int64(strings.IndexByte(base62, id[len(prefix)+i]))
	}
	g.milli(ms + 1)
}

func (g *IDs) milli(ms int64) int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	if ms >= g.youngest-clockSlack.Milliseconds() {
		if ms > g.youngest {
			g.youngest, g.at = ms, time.Now()
		}
		return ms
	}
	if gone := time.Since(g.at).Milliseconds() / 2; gone > 0 {
		g.youngest += gone
		g.at = g.at.Add(time.Duration(2*gone) * time.Millisecond)
	}
	return g.youngest
}
