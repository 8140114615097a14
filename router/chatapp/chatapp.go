// Package chatapp asks the assistant for people who write in a chat, over the API of this process. What is Slack's or
// Discord's own is in packages slack and discord: how they say that somebody has asked, and how they are answered.
package chatapp

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"docent/api"
	"docent/api/client"
	"docent/internal/background"
	"docent/internal/inprocess"
	"docent/router/ownkey"
)

// MaxQuestion is how many characters a question may have.
const MaxQuestion = 4000

const (
	maxAtOnce    = 64 // questions that the app of one project answers at a time
	showAfter    = 700 * time.Millisecond
	showInterval = 2 * time.Second // between two looks at an answer that is being written
	closeTimeout = 5 * time.Second // for what is being said when the server stops
)

// An App is the assistant in one kind of chat.
type App struct {
	Kind   api.Channel
	Secret []byte // signs keys and hides who asks; kept, and the same on all nodes
	Now    func() time.Time

	api     http.Handler
	running background.Work
	ctx     context.Context
	cancel  context.CancelFunc

	mu   sync.Mutex
	busy map[api.ProjectID]int // places that are taken
}

// New makes an app of a kind. The API comes with Over.
func New(kind api.Channel, secret []byte, now func() time.Time) *App {
	a := &App{Kind: kind, Secret: secret, Now: now, busy: map[api.ProjectID]int{}}
	a.ctx, a.cancel = context.WithCancel(context.Background())
	return a
}

// Over says which API is asked. It is called once, before anybody asks.
func (a *App) Over(api http.Handler) { a.api = api }

// Go runs f if the project's app has a place, and reports whether it has. The context ends when the server stops.
func (a *App) Go(p api.ProjectID, f func(ctx context.Context)) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.busy[p] >= maxAtOnce {
		return false
	}
	a.busy[p]++
	a.running.Go("router/chatapp", func() {
		defer a.done(p)
		f(a.ctx)
	})
	return true
}

// done gives a place back.
func (a *App) done(p api.ProjectID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.busy[p]--; a.busy[p] == 0 {
		delete(a.busy, p)
	}
}

// Close waits a moment for what is being said, ends the rest, and waits for it.
func (a *App) Close() error {
	timer := time.AfterFunc(closeTimeout, a.cancel)
	defer timer.Stop()
	a.running.Wait()
	a.cancel()
	return nil
}

// A Question is what somebody asks in a chat.
type Question struct {
	Project      api.Project
	User         string // as the chat names them
	Conversation string // where they ask: the same one is continued
	Message      string // by which a question that comes again is known
	Text         string
}

// as is the API as somebody in the chat calls it. Who it is nobody can tell, and each of them has an address of their own:
// limits of an address are those of a person.
func (a *App) as(p api.Project, user string) (c *client.Client, caller string) {
	sum := a.sign("user of a chat", p.ID, user)
	caller = string(a.Kind) + ":" + hex.EncodeToString(sum[:8])
	address := netip.AddrFrom16([16]byte{0xfd, sum[8], sum[9], sum[10], sum[11], sum[12], sum[13], sum[14], 15: 1})
	transport := from{inprocess.Transport{Handler: a.api}, net.JoinHostPort(address.String(), "0")}
	key := ownkey.Chat(a.Secret, a.Kind, p, a.Now())
	return &client.Client{Base: "http://docent.internal", Key: key, NoProof: true, HTTP: &http.Client{Transport: transport}}, caller
}

func (a *App) sign(purpose string, p api.ProjectID, of ...string) []byte {
	return api.Sign(a.Secret, purpose, []byte(string(a.Kind)+"\x00"+string(p)+"\x00"+strings.Join(of, "\x00")))
}

// from gives requests the address that they come from.
type from struct {
	http.RoundTripper
	address string
}

func (f from) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.RemoteAddr = f.address
	return f.RoundTripper.RoundTrip(req)
}

// Ask puts a question and returns its answer. Show is called with what there is of an answer that takes its time, nothing
// at first, and returns for how long it is not to be called again.
func (a *App) Ask(ctx context.Context, q Question, show func(text string) (pause time.Duration)) (answer client.Answer, err error) {
	if n := utf8.RuneCountInString(q.Text); n > MaxQuestion {
		return answer, &client.AnswerError{Reason: fmt.Sprintf("Your question has %d characters. Ask in %d at most.", n, MaxQuestion)}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c, caller := a.as(q.Project, q.User)
	chat := hex.EncodeToString(a.sign("conversation in a chat", q.Project.ID, q.User, q.Conversation))
	thread, err := continued(ctx, c, q.Project.Domain, chat, caller)
	if err != nil {
		return answer, err
	}
	type step struct {
		client.Part
		err error
	}
	steps := make(chan step)
	background.Go("router/chatapp.ask", func() {
		defer close(steps)
		for part, err := range c.AskStream(ctx, client.Question{Domain: q.Project.Domain, Text: q.Text, Caller: caller,
			Thread: thread, Chat: chat, Message: q.Message}) {
			select {
			case steps <- step{part, err}:
			case <-ctx.Done():
				return
			}
		}
	})
	var text strings.Builder
	shown := -1
	look := time.NewTimer(showAfter)
	defer look.Stop()
	for {
		select {
		case s, more := <-steps:
			switch {
			case !more:
				return answer, context.Cause(ctx)
			case s.err != nil:
				return answer, s.err
			case s.Kind == client.PartText:
				text.WriteString(s.Text)
			case s.Kind == client.PartRestart:
				text.Reset()
			case s.Kind == client.PartFinish:
				return s.Answer, nil
			}
		case <-look.C:
			var pause time.Duration
			if text.Len() != shown {
				shown = text.Len()
				pause = show(text.String())
			}
			look.Reset(max(showInterval, pause))
		}
	}
}

// continued is the thread that a conversation goes on in; empty if it begins.
func continued(ctx context.Context, c *client.Client, domain, chat, caller string) (string, error) {
	s, err := c.ResumeV2(ctx, domain, chat, caller)
	switch {
	case errors.Is(err, client.ErrNoStream), errors.Is(err, client.ErrNotFound): // that it has a key nobody has here
		return "", nil
	case err != nil:
		return "", err
	}
	return s.ThreadID, s.Close()
}

// MayRate reports whether answers of a project can be rated by who has not asked: not if that takes a thread's key.
func MayRate(p api.Project) bool { return !p.Options.RequireThreadKey }

// Rated names a verdict on an answer, as a button of a chat keeps it.
func Rated(up bool, answer client.Answer) string {
	if up {
		return "up " + answer.ThreadID + " " + answer.MessageID
	}
	return "down " + answer.ThreadID + " " + answer.MessageID
}

// Rate stores a verdict that Rated has named, and returns what is said to who gave it.
func (a *App) Rate(ctx context.Context, p api.Project, user, rated string) string {
	verdict, ids, _ := strings.Cut(rated, " ")
	thread, message, _ := strings.Cut(ids, " ")
	rating := api.RatedDown
	if verdict == "up" {
		rating = api.RatedUp
	}
	c, _ := a.as(p, user)
	if err := c.RateAnswer(ctx, p.Domain, client.RateAnswer{ThreadID: thread, MessageID: message, Rating: rating}); err != nil {
		return Say(err)
	}
	return "Thank you: the people who write the documentation read it."
}

// Say is why there is no answer, in words for who has asked.
func Say(err error) string {
	var said *client.AnswerError
	var refused *client.Error
	switch {
	case errors.As(err, &said):
		return said.Reason
	case errors.Is(err, client.ErrLimited):
		return "That is enough for now: the limit of questions is reached. Ask again later."
	case errors.As(err, &refused) && errors.Is(err, client.ErrNotFound):
		return "This answer is not there any more."
	}
	return "The answer could not be written. Ask again in a minute."
}
