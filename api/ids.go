package api

import (
	"crypto/rand"
	"encoding/binary"
	"strings"
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
)

// base62 in ASCII order, so that encoded numbers of equal width sort as the numbers do.
const base62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// NewID returns an opaque, URL-safe identifier: the prefix, the milliseconds of now in 8 base62 digits (IDs of one
// prefix sort by creation time), and 22 base62 digits from 128 random bits (an ID cannot be guessed).
func NewID(prefix string, now time.Time) string {
	var random [16]byte
	rand.Read(random[:]) // never fails: crypto/rand crashes the program instead
	var b strings.Builder
	b.Grow(len(prefix) + 30)
	b.WriteString(prefix)
	b.WriteString(digits(uint64(now.UnixMilli()), 8))
	b.WriteString(digits(binary.BigEndian.Uint64(random[:8]), 11))
	b.WriteString(digits(binary.BigEndian.Uint64(random[8:]), 11))
	return b.String()
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
