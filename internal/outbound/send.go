package outbound

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"docent/internal/brief"
)

const (
	// maxPause is how long a receiver may ask to be left alone.
	maxPause = 24 * time.Hour
	readMost = 64 << 10 // bytes of an answer
	keepMost = 300      // bytes of an answer that are given back
)

// A Sender sends messages where its policy lets them go.
type Sender struct {
	policy Policy
	client *http.Client
}

// New makes a sender. Names are looked up with the resolver; nil is the machine's own.
func New(p Policy, resolver *net.Resolver) *Sender { return &Sender{p, p.Client(resolver, timeout)} }

// CheckURL is Policy.CheckURL.
func (s *Sender) CheckURL(text string) string { return s.policy.CheckURL(text) }

// A Message is what is sent.
type Message struct {
	URL     string
	ID      string   // what the receiver knows it by: the same in every attempt
	Secrets []string // that it is signed with; several while one takes the place of another
	Body    []byte   // JSON
	At      time.Time
}

// An Answer is what a receiver says.
type Answer struct {
	Code  int           // 0 if there was none
	Pause time.Duration // for which the receiver wants to be left alone
	Text  string        // the beginning of the body, on one line
}

// Send makes one request. It fails unless the receiver has taken the message; the error is in words for the operator.
func (s *Sender) Send(ctx context.Context, m Message) (Answer, error) {
	if say := s.policy.CheckURL(m.URL); say != "" {
		return Answer{}, errors.New("the address " + say)
	}
	signature, err := sign(m.Secrets, m.ID, m.At, m.Body)
	if err != nil {
		return Answer{}, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, m.URL, bytes.NewReader(m.Body))
	if err != nil {
		return Answer{}, errors.New("the address cannot be used")
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "Docent")
	req.Header.Set("webhook-id", m.ID)
	req.Header.Set("webhook-timestamp", strconv.FormatInt(m.At.Unix(), 10))
	req.Header.Set("webhook-signature", signature)
	res, err := s.client.Do(req)
	if err != nil {
		return Answer{}, errors.New(failure(err))
	}
	defer res.Body.Close()
	body, _ := io.ReadAll(io.LimitReader(res.Body, readMost)) // what it says is nothing to act on
	answer := Answer{Code: res.StatusCode, Text: brief.Bytes(strings.ToValidUTF8(brief.Line(string(body)), ""), keepMost, "…")}
	if res.StatusCode >= 200 && res.StatusCode < 300 {
		return answer, nil
	}
	answer.Pause = pauseOf(res.Header.Get("Retry-After"), m.At)
	say := fmt.Sprintf("the receiver answered %d %s", res.StatusCode, http.StatusText(res.StatusCode))
	if res.StatusCode/100 == 3 {
		say += ": redirects are not followed, give the address that it leads to"
	}
	return answer, errors.New(strings.TrimSpace(say))
}

// pauseOf reads the header Retry-After: seconds, or a time.
func pauseOf(header string, now time.Time) time.Duration {
	if n, err := strconv.Atoi(header); err == nil {
		return min(time.Duration(max(0, min(n, 1<<20)))*time.Second, maxPause)
	}
	if at, err := http.ParseTime(header); err == nil {
		return min(max(0, at.Sub(now)), maxPause)
	}
	return 0
}
