// Package slack answers in Slack, over Socket Mode: mentions in channels, and direct messages. It connects to Slack, which
// needs no address of this server. What is asked goes to the assistant by package chatapp.
//
// A question is acknowledged once its answer is in Slack, or after two seconds, so that Slack delivers it again if this
// process dies before. A delivery that comes again while this process runs is known by its event's id.
package slack

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"
	"github.com/hashicorp/golang-lru/v2"

	"docent/api"
	"docent/internal/background"
	"docent/internal/outbound"
	"docent/internal/task"
	"docent/router/chatapp"
)

// URL is where Slack's methods are.
const URL = "https://slack.com/api"

const (
	place        = "task/slack"    // where all connections are, on one of several nodes
	look         = 5 * time.Second // between two looks at which projects have an app, and whether its connection lives
	ackWithin    = 2 * time.Second // Slack waits for 3
	oldLife      = time.Minute     // of a connection after another one has taken its place
	refusedPause = time.Minute     // after tokens were refused
	callTime     = 15 * time.Second
	tries        = 5
	maxMessage   = 1 << 20 // bytes, of Slack's to us
	maxSeen      = 10_000  // events that are remembered
)

// Deps is what an app works with.
type Deps struct {
	App      *chatapp.App
	Projects func(context.Context) ([]api.Project, error)
	Project  func(context.Context, api.ProjectID) (api.Project, error)
	Secret   func(name string) (string, error)
	Tasks    task.Starter
	Log      *slog.Logger
	URL      string // of Slack's methods
}

// A Slack connects the projects that have an app in a workspace.
type Slack struct {
	Deps
	seen    *lru.Cache[string, struct{}] // events that are being answered, or were
	leaving context.Context
	Leave   context.CancelFunc // ends what is taken in, before the API refuses it: Slack delivers it to the next process
}

// New makes a Slack. It connects with Wake.
func New(deps Deps) *Slack {
	seen, _ := lru.New[string, struct{}](maxSeen) // its error is for a size below 1
	leaving, leave := context.WithCancel(context.Background())
	return &Slack{Deps: deps, seen: seen, leaving: leaving, Leave: leave}
}

// Wake has the apps of all projects connected from now on.
func (s *Slack) Wake() {
	s.Tasks.Start(task.Task{Name: "slack", Place: place, Handle: func(ctx context.Context, _ int) (time.Duration, error) {
		list, err := s.Projects(ctx)
		for _, p := range list {
			if p.Chats.Slack.On() {
				s.Tasks.Start(task.Task{Name: "slack/" + string(p.ID), Place: place, Handle: s.connect(p.ID)})
			}
		}
		return look, err
	}})
}

// A session is the app of one project, as its settings are now.
type session struct {
	*Slack
	project  api.Project
	app, bot string // tokens
}

// connect keeps a project's app connected while its settings stay.
func (s *Slack) connect(id api.ProjectID) func(context.Context, int) (time.Duration, error) {
	return func(ctx context.Context, _ int) (time.Duration, error) {
		p, err := s.Project(ctx, id)
		switch {
		case errors.Is(err, api.ErrNotFound), err == nil && !p.Chats.Slack.On(), s.leaving.Err() != nil:
			return task.Done, nil
		case err != nil:
			return 0, err
		}
		of := session{Slack: s, project: p}
		of.app, err = s.Secret(p.Chats.Slack.AppTokenFile)
		if err == nil {
			of.bot, err = s.Secret(p.Chats.Slack.BotTokenFile)
		}
		if err != nil {
			return refusedPause, fmt.Errorf("the app's tokens are not stored any more: connect it again: %w", err)
		}
		began := time.Now()
		err = of.listen(ctx)
		var said *chatapp.Error
		switch {
		case ctx.Err() != nil, err == nil:
			return 0, nil
		case errors.As(err, &said):
			return max(said.RetryAfter, refusedPause), err
		case time.Since(began) > time.Minute: // connections end now and then
			return 0, nil
		}
		return 0, err
	}
}

// listen reads what Slack says over one connection after the other, until the project's settings change. Slack says when it
// is about to close one: the next one is there before that.
func (s session) listen(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.leaving, cancel)()
	for {
		conn, err := s.dial(ctx)
		if err != nil {
			return err
		}
		replace, ended := make(chan struct{}), make(chan error, 1)
		background.Go("router/slack.read", func() {
			defer conn.CloseNow()
			ended <- s.read(ctx, conn, sync.OnceFunc(func() { close(replace) }))
		})
		if err := s.watch(ctx, conn, replace, ended); err != nil || ctx.Err() != nil {
			return err
		}
		select {
		case <-replace:
		default:
			return nil
		}
	}
}

// watch waits until a connection ends, is to be replaced, or is not wanted any more; only the first is an error.
func (s session) watch(ctx context.Context, conn *websocket.Conn, replace <-chan struct{}, ended <-chan error) error {
	ticks := time.NewTicker(look)
	defer ticks.Stop()
	for {
		select {
		case <-replace:
			return nil
		case err := <-ended:
			select {
			case <-replace:
				return nil
			default:
				return err
			}
		case <-ctx.Done():
			return nil
		case <-ticks.C:
			now, err := s.Project(ctx, s.project.ID)
			if err == nil && !reflect.DeepEqual(now, s.project) || errors.Is(err, api.ErrNotFound) {
				return nil
			}
			ping, cancel := context.WithTimeout(ctx, callTime)
			err = conn.Ping(ping)
			cancel()
			if err != nil && ctx.Err() == nil {
				return fmt.Errorf("the connection to Slack does not answer: %w", err)
			}
		}
	}
}

func (s session) dial(ctx context.Context) (*websocket.Conn, error) {
	var opened struct{ URL string }
	if err := call(ctx, s.URL, s.app, "apps.connections.open", object{}, &opened, 1); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	conn, _, err := websocket.Dial(ctx, opened.URL, nil)
	if err != nil {
		return nil, fmt.Errorf("connect to Slack: %w", outbound.Cause(err)) // the address has a ticket
	}
	conn.SetReadLimit(maxMessage)
	return conn, nil
}

// An envelope is what Slack sends over a connection.
type envelope struct {
	ID      string          `json:"envelope_id"`
	Type    string          `json:"type"`
	Reason  string          `json:"reason"`
	Payload json.RawMessage `json:"payload"`
}

// read reads a connection to its end. Replace is called when another one is to take its place. After ctx it takes nothing
// more, and the connection stays until what was taken is acknowledged.
func (s session) read(ctx context.Context, conn *websocket.Conn, replace func()) error {
	reading, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(3*ackWithin, cancel) })()
	for {
		_, text, err := conn.Read(reading)
		if err != nil {
			return fmt.Errorf("read from Slack: %w", err)
		}
		var e envelope
		if json.Unmarshal(text, &e) != nil || ctx.Err() != nil {
			continue
		}
		ack := sync.OnceFunc(func() {
			ctx, cancel := context.WithTimeout(reading, callTime)
			defer cancel()
			answer, _ := json.Marshal(map[string]string{"envelope_id": e.ID})
			_ = conn.Write(ctx, websocket.MessageText, answer) // what did not arrive comes again
		})
		switch e.Type {
		case "hello":
			s.Log.Debug("connected to Slack", "project", s.project.ID)
		case "disconnect":
			if e.Reason == "link_disabled" {
				return &chatapp.Error{Code: e.Reason}
			}
			replace()
			defer time.AfterFunc(oldLife, cancel).Stop()
		case "events_api":
			s.event(e.Payload, ack)
		case "interactive":
			s.pressed(e.Payload, ack)
		default:
			if e.ID != "" {
				ack()
			}
		}
	}
}

type event struct {
	ID    string `json:"event_id"`
	Team  string `json:"team_id"`
	Event struct {
		Type    string `json:"type"`
		Subtype string `json:"subtype"`
		Kind    string `json:"channel_type"`
		User    string `json:"user"`
		Bot     string `json:"bot_id"`
		Channel string `json:"channel"`
		Text    string `json:"text"`
		At      string `json:"ts"`
		Thread  string `json:"thread_ts"`
	} `json:"event"`
}

// event answers somebody. What is too much now is not acknowledged, so that it comes again.
func (s session) event(payload json.RawMessage, ack func()) {
	var e event
	m := &e.Event
	wanted := json.Unmarshal(payload, &e) == nil && (m.Type == "app_mention" || m.Type == "message" && m.Kind == "im")
	text := asked(m.Text)
	if wanted = wanted && m.Subtype == "" && m.Bot == "" && m.User != "" && text != ""; wanted {
		known, _ := s.seen.ContainsOrAdd(e.ID, struct{}{}) // by either connection, while one takes another's place
		wanted = !known
	}
	if !wanted {
		ack()
		return
	}
	if !s.App.Go(s.project.ID, func(ctx context.Context) { s.answer(ctx, &e, text, ack) }) {
		s.seen.Remove(e.ID)
	}
}

// answer answers in the thread of a question, which the question begins if it is in none.
func (s session) answer(ctx context.Context, e *event, text string, ack func()) {
	m := &e.Event
	thread := cmp.Or(m.Thread, m.At)
	late := time.AfterFunc(ackWithin, ack)
	posted := "" // the message that the answer is written into
	say := func(what object, again int) error {
		method := "chat.postMessage"
		what["channel"] = m.Channel
		if posted != "" {
			method, what["ts"] = "chat.update", posted
		} else {
			what["thread_ts"] = thread
		}
		var said struct {
			At string `json:"ts"`
		}
		err := call(ctx, s.URL, s.bot, method, what, &said, again)
		posted = cmp.Or(said.At, posted)
		return err
	}
	q := chatapp.Question{Project: s.project, User: e.Team + "/" + m.User, Conversation: e.Team + "/" + m.Channel + "/" + thread,
		Message: e.Team + "/" + m.Channel + "/" + m.At, Text: text}
	answer, err := s.App.Ask(ctx, q, func(text string) time.Duration {
		if text == "" {
			text = "_Looking it up …_"
		} else {
			text = mrkdwn(text) + " …"
		}
		if limited, is := errors.AsType[*chatapp.Error](say(message(text), 1)); is {
			return limited.RetryAfter
		}
		return 0
	})
	final := answered(answer, chatapp.MayRate(s.project))
	if err != nil && s.leaving.Err() != nil && posted == "" && late.Stop() { // the next process answers: nobody was told yet
		s.seen.Remove(e.ID)
		return
	}
	if err != nil {
		s.Log.Warn("a chat question got no answer", "project", s.project.ID, "error", err)
		final = message(escaper.Replace(chatapp.Say(err)))
	}
	if err := say(final, tries); err != nil {
		s.Log.Error("could not send an answer to a chat", "project", s.project.ID, "thread", answer.ThreadID, "error", err)
	}
	ack()
}

type named struct {
	ID   string `json:"id"`
	Team string `json:"team_id"`
}

type pressed struct {
	Type    string `json:"type"`
	User    named  `json:"user"`
	Team    named  `json:"team"`
	Channel named  `json:"channel"`
	Message struct {
		Thread string `json:"thread_ts"`
	} `json:"message"`
	Actions []struct {
		ID    string `json:"action_id"`
		Value string `json:"value"`
	} `json:"actions"`
}

// pressed takes what somebody thinks of an answer, and tells nobody else.
func (s session) pressed(payload json.RawMessage, ack func()) {
	var p pressed
	if json.Unmarshal(payload, &p) != nil || p.Type != "block_actions" || len(p.Actions) == 0 ||
		!strings.HasPrefix(p.Actions[0].ID, "docent_") {
		ack()
		return
	}
	s.App.Go(s.project.ID, func(ctx context.Context) {
		said := s.App.Rate(ctx, s.project, cmp.Or(p.Team.ID, p.User.Team)+"/"+p.User.ID, p.Actions[0].Value)
		ack()
		note := object{"channel": p.Channel.ID, "user": p.User.ID, "text": escaper.Replace(said)}
		if p.Message.Thread != "" {
			note["thread_ts"] = p.Message.Thread
		}
		if err := call(ctx, s.URL, s.bot, "chat.postEphemeral", note, nil, tries); err != nil {
			s.Log.Warn("could not confirm a rating in a chat", "project", s.project.ID, "error", err)
		}
	})
}

// call calls a method of Slack's, which says in its answer whether it did what it was to.
func call(ctx context.Context, base, token, method string, body, into any, tries int) error {
	var answer json.RawMessage
	err := chatapp.Call{Method: http.MethodPost, URL: base + "/" + method, Authorization: "Bearer " + token, Body: body, Into: &answer,
		Tries: tries, Repeatable: method != "chat.postMessage"}.Do(ctx)
	if err != nil {
		return err
	}
	var said struct {
		OK    bool   `json:"ok"`
		Error string `json:"error"`
	}
	switch err := json.Unmarshal(answer, &said); {
	case err != nil:
		return fmt.Errorf("%s of Slack: %w", method, err)
	case !said.OK:
		return &chatapp.Error{Status: http.StatusOK, Code: said.Error}
	case into == nil:
		return nil
	}
	return json.Unmarshal(answer, into)
}

// Check finds out whether Slack takes two tokens, and what the workspace is called.
func Check(ctx context.Context, base, app, bot string) (team string, err error) {
	if err := call(ctx, base, app, "apps.connections.open", object{}, nil, 1); err != nil {
		return "", fmt.Errorf("the app-level token is refused: %w", err)
	}
	var is struct{ Team string }
	if err := call(ctx, base, bot, "auth.test", object{}, &is, 1); err != nil {
		return "", fmt.Errorf("the bot token is refused: %w", err)
	}
	return is.Team, nil
}
