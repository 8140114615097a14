// Package password keeps passwords as Argon2id hashes, and keeps the hashing of many at once from eating the machine.
package password

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/crypto/argon2"

	"docent/api"
)

// The parameters are OWASP's for Argon2id (Password Storage Cheat Sheet, 2025): 19 MiB, two passes, one lane.
const (
	memory  = 19 * 1024 // KiB
	passes  = 2
	lanes   = 1
	saltLen = 16
	hashLen = 32
)

// The bounds of what a stored hash may ask for: a damaged row must not ask for all memory.
const (
	maxMemory = 256 * 1024
	maxPasses = 16
	maxLanes  = 16
)

// Shortest and Longest are the bounds of a password, in characters.
const (
	Shortest = 10
	Longest  = 200
)

// A Hasher hashes a bounded number of passwords at once. The others wait, and who would wait long is refused.
type Hasher struct {
	slots chan struct{}
	wait  time.Duration
	dummy string
}

// NewHasher makes one that occupies at most half of the processors, with 19 MiB for each.
func NewHasher() *Hasher { return newHasher(max(1, runtime.GOMAXPROCS(0)/2), 5*time.Second) }

func newHasher(slots int, wait time.Duration) *Hasher {
	h := &Hasher{slots: make(chan struct{}, slots), wait: wait}
	h.dummy = encode(make([]byte, saltLen), make([]byte, hashLen)) // no password has this hash, as far as anybody knows
	return h
}

// take waits for a place.
func (h *Hasher) take(ctx context.Context) (release func(), err error) {
	timer := time.NewTimer(h.wait)
	defer timer.Stop()
	select {
	case h.slots <- struct{}{}:
		return func() { <-h.slots }, nil
	case <-timer.C:
		return nil, &api.BusyError{Kind: api.ErrOverloaded, RetryAfter: h.wait}
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Hash is what is kept of a password, in the PHC string format.
func (h *Hasher) Hash(ctx context.Context, password string) (string, error) {
	release, err := h.take(ctx)
	if err != nil {
		return "", err
	}
	defer release()
	salt := make([]byte, saltLen)
	rand.Read(salt) // never fails: crypto/rand crashes the program instead
	return encode(salt, argon2.IDKey([]byte(password), salt, passes, memory, lanes, hashLen)), nil
}

// Verify reports whether kept is of this password. If nothing is kept, because there is no such person or the person
// has no password, it says no after the same work.
func (h *Hasher) Verify(ctx context.Context, kept, password string) (bool, error) {
	there := kept != ""
	if !there {
		kept = h.dummy
	}
	k, err := parse(kept)
	if err != nil {
		return false, err
	}
	release, err := h.take(ctx)
	if err != nil {
		return false, err
	}
	defer release()
	got := argon2.IDKey([]byte(password), k.salt, k.passes, k.memory, k.lanes, uint32(len(k.hash)))
	return subtle.ConstantTimeCompare(got, k.hash) == 1 && there, nil
}

type kept struct {
	memory, passes uint32
	lanes          uint8
	salt, hash     []byte
}

var base = base64.RawStdEncoding

func encode(salt, hash []byte) string {
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, memory, passes, lanes,
		base.EncodeToString(salt), base.EncodeToString(hash))
}

var errKept = errors.New("what is kept of a password is damaged")

func parse(s string) (k kept, err error) {
	parts := strings.Split(s, "$")
	if len(parts) != 6 || parts[0] != "" || parts[1] != "argon2id" || parts[2] != fmt.Sprintf("v=%d", argon2.Version) {
		return k, errKept
	}
	if n, err := fmt.Sscanf(parts[3], "m=%d,t=%d,p=%d", &k.memory, &k.passes, &k.lanes); err != nil || n != 3 {
		return k, errKept
	}
	k.salt, err = base.DecodeString(parts[4])
	hash, also := base.DecodeString(parts[5])
	k.hash = hash
	if err != nil || also != nil || len(k.salt) < 8 || len(hash) < 16 || len(hash) > 64 ||
		k.memory == 0 || k.memory > maxMemory || k.passes == 0 || k.passes > maxPasses || k.lanes == 0 ||
		k.lanes > maxLanes {
		return k, errKept
	}
	return k, nil
}

// common are passwords of at least Shortest characters that stand at the top of every list of leaked ones.
var common = []string{
	"1234567890", "12345678910", "0123456789", "0987654321", "9876543210", "1q2w3e4r5t", "1qaz2wsx3edc", "qwertyuiop",
	"qwerty12345", "qwerty123456", "qwertyuiop123", "password12", "password123", "password1234", "password12345",
	"passw0rd123", "passwordpassword", "letmein123", "administrator", "changeme123", "iloveyou123", "welcome123",
	"welcome1234", "abcdefghij", "abcdefghijk", "asdfghjkl;", "asdfghjkl123", "1234qwerasdf", "11111111111",
	"123456789a", "a123456789", "documentation", "correcthorsebatterystaple",
}

// Problem says why a password is not taken for a person, or nothing.
func Problem(password, email, name string) string {
	n := utf8.RuneCountInString(password)
	lower := strings.ToLower(password)
	switch {
	case !utf8.ValidString(password):
		return "must be text"
	case n < Shortest:
		return fmt.Sprintf("must have at least %d characters; a few words are easy to remember", Shortest)
	case n > Longest:
		return fmt.Sprintf("must have at most %d characters", Longest)
	case lower == strings.ToLower(email), lower == strings.ToLower(name):
		return "must not be your name or address"
	case strings.Trim(password, password[:1]) == "":
		return "must not be one character again and again"
	}
	if slices.Contains(common, lower) {
		return "is one of those that are tried first: choose another one"
	}
	return ""
}
