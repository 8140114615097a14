// Package proof makes challenges of a proof of work, and takes each solution once.
//
// A challenge has the form of altcha's first version, which all of its clients solve: the SHA-256 of a salt and a number
// that the client has to find, and a signature. Nothing is kept of a challenge until it is solved. The key is made for
// each project, so that a solution is good for one alone.
//
// Solutions that were used are kept in memory until their challenges expire, and at most so many. If there would be
// more, or after a restart, the oldest challenges expire early: a solution is never taken twice.
package proof

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"math/big"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Life is how long a challenge can be solved.
const Life = 10 * time.Minute

// A Challenge is what a client has to solve, with altcha's names.
type Challenge struct {
	Algorithm string `json:"algorithm"`
	Challenge string `json:"challenge"`
	MaxNumber int    `json:"maxnumber"`
	Salt      string `json:"salt"`
	Signature string `json:"signature"`
}

// An Error says why a solution is not taken.
type Error string

func (e Error) Error() string { return string(e) }

// Why a solution is not taken.
const (
	ErrNone    Error = "it came without one"
	ErrInvalid Error = "its solution is not valid for this project"
	ErrExpired Error = "its challenge has expired"
	ErrUsed    Error = "its solution was used before"
)

const (
	algorithm  = "SHA-256"
	saltBytes  = 12
	maxPayload = 2048    // bytes of a solution
	remembered = 1 << 17 // solutions of a generation: 16 bytes each, and what a map takes
)

// Challenges makes challenges and takes solutions. It must not be copied.
type Challenges struct {
	// Shared, if it is set before the first use, notes that a solution is used, for as long as it could be: several nodes
	// remember them together. It returns false if it was used before. give undoes it.
	Shared func(ctx context.Context, solution string, life time.Duration) (fresh bool, give func(), err error)

	secret []byte
	bound  int // solutions of a generation

	mu       sync.Mutex
	since    int64 // Unix nanoseconds: challenges that were made before have expired
	now, old generation
}

// A generation holds solutions that were used one after the other.
type generation struct {
	began  time.Time
	newest int64 // when the latest of their challenges was made
	used   map[[16]byte]struct{}
}

// New takes a secret that outlives a restart, and the time from which on challenges are taken.
func New(secret []byte, now time.Time) *Challenges {
	return &Challenges{secret: secret, bound: remembered, since: now.UnixNano(), now: generation{began: now}}
}

// Make makes a challenge of a project whose number is at most most.
func (c *Challenges) Make(project string, most int, now time.Time) Challenge {
	var random [saltBytes]byte
	rand.Read(random[:]) // never fails
	number, err := rand.Int(rand.Reader, big.NewInt(int64(most)+1))
	if err != nil {
		panic(err) // never fails
	}
	// What altcha's clients read is expires; the & at the end keeps the number apart.
	salt := hex.EncodeToString(random[:]) + "?at=" + strconv.FormatInt(now.UnixNano(), 10) +
		"&expires=" + strconv.FormatInt(now.Add(Life).Unix(), 10) + "&"
	sum := sha256.Sum256([]byte(salt + number.String()))
	challenge := hex.EncodeToString(sum[:])
	return Challenge{Algorithm: algorithm, Challenge: challenge, MaxNumber: most, Salt: salt,
		Signature: c.sign(project, challenge)}
}

func (c *Challenges) sign(project, challenge string) string {
	of := hmac.New(sha256.New, c.secret)
	of.Write([]byte("proof of work\x00" + project))
	mac := hmac.New(sha256.New, of.Sum(nil))
	mac.Write([]byte(challenge))
	return hex.EncodeToString(mac.Sum(nil))
}

// Use takes a solution, as altcha's clients send it: JSON in base64. It fails with an Error, or with what keeps nodes
// from remembering it together. What give returns may be used again: for a request that was refused for another reason.
func (c *Challenges) Use(ctx context.Context, project, payload string, now time.Time) (give func(), err error) {
	if payload == "" {
		return nil, ErrNone
	}
	var s struct {
		Algorithm, Challenge, Salt, Signature string
		Number                                uint64
	}
	if len(payload) > maxPayload {
		return nil, ErrInvalid
	}
	raw, err := base64.StdEncoding.DecodeString(payload)
	if err != nil || json.Unmarshal(raw, &s) != nil || s.Algorithm != algorithm || !strings.HasSuffix(s.Salt, "&") {
		return nil, ErrInvalid
	}
	sum := sha256.Sum256([]byte(s.Salt + strconv.FormatUint(s.Number, 10)))
	challenge := hex.EncodeToString(sum[:])
	if s.Challenge != challenge || !hmac.Equal([]byte(s.Signature), []byte(c.sign(project, challenge))) {
		return nil, ErrInvalid
	}
	_, query, _ := strings.Cut(s.Salt, "?") // ours: the signature is
	params, err := url.ParseQuery(query)
	if err != nil {
		return nil, ErrInvalid
	}
	at, err := strconv.ParseInt(params.Get("at"), 10, 64)
	if err != nil {
		return nil, ErrInvalid
	}
	if c.Shared == nil {
		return c.take([16]byte(sum[:16]), at, now)
	}
	if now.Sub(time.Unix(0, at)) >= Life {
		return nil, ErrExpired
	}
	// Twice its life: the clocks of nodes may differ.
	fresh, give, err := c.Shared(ctx, hex.EncodeToString(sum[:16]), 2*Life)
	if err == nil && !fresh {
		err = ErrUsed
	}
	return give, err
}

func (c *Challenges) take(solution [16]byte, at int64, now time.Time) (give func(), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if at < c.since || now.Sub(time.Unix(0, at)) >= Life {
		return nil, ErrExpired
	}
	for _, g := range []generation{c.now, c.old} {
		if _, ok := g.used[solution]; ok {
			return nil, ErrUsed
		}
	}
	if len(c.now.used) >= c.bound || now.Sub(c.now.began) >= Life {
		if len(c.old.used) > 0 { // they are forgotten: none of their age is taken any more
			c.since = max(c.since, c.old.newest+1)
		}
		c.old, c.now = c.now, generation{began: now}
		if at < c.since {
			return nil, ErrExpired
		}
	}
	if c.now.used == nil {
		c.now.used = make(map[[16]byte]struct{})
	}
	c.now.used[solution] = struct{}{}
	c.now.newest = max(c.now.newest, at)
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.now.used, solution)
		delete(c.old.used, solution)
	}, nil
}

// Solve finds a challenge's number and gives the solution as it is sent; empty if there is none.
func Solve(c Challenge) string {
	for n := range c.MaxNumber + 1 {
		if sum := sha256.Sum256([]byte(c.Salt + strconv.Itoa(n))); hex.EncodeToString(sum[:]) == c.Challenge {
			raw, _ := json.Marshal(map[string]any{"algorithm": c.Algorithm, "challenge": c.Challenge, "number": n, "salt": c.Salt,
				"signature": c.Signature}) // no value of it can fail
			return base64.StdEncoding.EncodeToString(raw)
		}
	}
	return ""
}
