// Package discord answers in Discord: a command asks, and buttons under an answer rate it. Discord sends what people do to an
// address of this server, signed; what is said back goes to Discord's API. What is asked goes to the assistant by package
// chatapp.
package discord

import (
	"bytes"
	"cmp"
	"context"
	"crypto/ed25519"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"path"
	"strconv"
	"strings"
	"time"

	"docent/api"
	"docent/api/client"
	"docent/internal/backoff"
	"docent/internal/brief"
	"docent/router/chatapp"
)

const (
	// URL is where Discord's API is.
	URL = "https://discord.com/api/v10"
	// Pattern is where Discord sends what people do.
	Pattern = "/v1/discord/:projectId"

	command    = "ask"
	maxBody    = 256 << 10
	maxAge     = 15 * time.Minute // of what Discord has signed: so long it can be answered
	rateWithin = 2 * time.Second  // Discord waits for 3
	tries      = 5
	maxText    = 4000 // characters of an embed, of 4096
	maxSources = 1500 // and of another one, of 6000 together
	maxTitle   = 90   // of a thread, of 100
	maxMessage = 2000 // characters of a message
)

// What people do, and how that is answered.
const (
	ping      = 1
	asks      = 2
	presses   = 3
	saysPong  = 1
	saysText  = 4
	saysLater = 5
	ephemeral = 64 // seen by one alone
)

// Deps is what an app works with.
type Deps struct {
	App     *chatapp.App
	Project func(context.Context, api.ProjectID) (api.Project, error)
	Secret  func(name string) (string, error)
	Now     func() time.Time
	Log     *slog.Logger
	URL     string // of Discord's API
}

// A Discord answers for the projects that have an app.
type Discord struct{ Deps }

type object = map[string]any

type interaction struct {
	ID          string `json:"id"`
	Application string `json:"application_id"`
	Type        int    `json:"type"`
	Token       string `json:"token"`
	ChannelID   string `json:"channel_id"`
	Channel     struct {
		Type int `json:"type"`
	} `json:"channel"`
	Guild  string `json:"guild_id"`
	Member struct {
		User user `json:"user"`
	} `json:"member"`
	User user `json:"user"` // outside of a guild
	Data struct {
		Name    string `json:"name"`
		Button  string `json:"custom_id"`
		Options []struct {
			Name  string `json:"name"`
			Value any    `json:"value"`
		} `json:"options"`
	} `json:"data"`
}

type user struct {
	ID string `json:"id"`
}

func (i *interaction) user() string { return cmp.Or(i.Member.User.ID, i.User.ID) }

// inThread reports whether it was done in a thread, or where two or few talk: what is asked there goes on.
func (i *interaction) inThread() bool {
	switch i.Channel.Type {
	case 1, 3, 10, 11, 12:
		return true
	}
	return false
}

func (i *interaction) question() string {
	for _, o := range i.Data.Options {
		if text, ok := o.Value.(string); ok && o.Name == "question" {
			return strings.TrimSpace(text)
		}
	}
	return ""
}

// Serve answers a request of Discord's. What is not signed with the key of a project's app is refused, as Discord asks, and
// so is what is for no project.
func (d *Discord) Serve(w http.ResponseWriter, req *http.Request, _ netip.Addr) error {
	p, err := d.Project(req.Context(), api.ProjectID(path.Base(req.URL.Path)))
	if err != nil && !errors.Is(err, api.ErrNotFound) {
		http.Error(w, "try again", http.StatusServiceUnavailable)
		return err
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, maxBody))
	if err != nil || !d.signed(&p, req.Header, body) {
		http.Error(w, "invalid request signature", http.StatusUnauthorized)
		return nil
	}
	var i interaction
	if err := json.Unmarshal(body, &i); err != nil {
		http.Error(w, "no interaction", http.StatusBadRequest)
		return nil
	}
	switch {
	case i.Type == ping:
		reply(w, object{"type": saysPong})
	case i.Type == asks && i.Data.Name == command:
		if !d.App.Go(p.ID, func(ctx context.Context) { d.answer(ctx, p, &i) }) {
			reply(w, object{"type": saysText, "data": note("Too many people ask just now. Ask again in a minute.")})
			return nil
		}
		reply(w, object{"type": saysLater})
	case i.Type == presses:
		ctx, cancel := context.WithTimeout(context.WithoutCancel(req.Context()), rateWithin)
		defer cancel()
		reply(w, object{"type": saysText, "data": note(d.App.Rate(ctx, p, i.user(), i.Data.Button))})
	default:
		http.Error(w, "unknown interaction", http.StatusBadRequest)
	}
	return nil
}

// signed reports whether Discord has sent a request for a project's app, not long ago.
func (d *Discord) signed(p *api.Project, h http.Header, body []byte) bool {
	key, err := hex.DecodeString(p.Chats.Discord.PublicKey)
	signature, bad := hex.DecodeString(h.Get("X-Signature-Ed25519"))
	at := h.Get("X-Signature-Timestamp")
	seconds, no := strconv.ParseInt(at, 10, 64)
	if err != nil || bad != nil || no != nil || len(key) != ed25519.PublicKeySize {
		return false
	}
	age := d.Now().Sub(time.Unix(seconds, 0))
	return max(age, -age) <= maxAge && ed25519.Verify(key, append([]byte(at), body...), signature)
}

func reply(w http.ResponseWriter, what object) {
	text, _ := json.Marshal(what) // of strings and numbers
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	_, _ = io.Copy(w, bytes.NewReader(text))
	_ = http.NewResponseController(w).Flush() // before anything is said about it
}

// note is what one person reads.
func note(text string) object {
	return object{"content": brief.Runes(text, maxMessage, ""), "flags": ephemeral, "allowed_mentions": nobody}
}

// nobody is called by a message, whatever stands in it.
var nobody = object{"parse": []string{}}

// answer writes an answer into the message that Discord shows as being written.
func (d *Discord) answer(ctx context.Context, p api.Project, i *interaction) {
	original := d.URL + "/webhooks/" + i.Application + "/" + i.Token + "/messages/@original"
	say := func(what object, tries int) error {
		what["allowed_mentions"] = nobody
		return chatapp.Call{Method: http.MethodPatch, URL: original, Body: what, Tries: tries, Repeatable: true}.Do(ctx)
	}
	message := d.original(ctx, original)
	q := chatapp.Question{Project: p, User: i.user(), Conversation: cmp.Or(message, i.ID), Message: i.ID, Text: i.question()}
	if i.inThread() {
		q.Conversation = i.ChannelID
	}
	answer, err := d.App.Ask(ctx, q, func(text string) time.Duration {
		var limited *chatapp.Error
		if text == "" {
			return 0 // Discord says itself that it is being written
		}
		if err := say(object{"embeds": []object{{"description": brief.Runes(text, maxText, "") + " …"}}}, 1); errors.As(err, &limited) {
			return limited.RetryAfter
		}
		return 0
	})
	final := answered(answer, chatapp.MayRate(p))
	if err != nil {
		d.Log.Warn("a chat question got no answer", "project", p.ID, "error", err)
		final = object{"content": brief.Runes(chatapp.Say(err), maxMessage, ""), "embeds": []object{}}
	}
	if failed := say(final, tries); failed != nil {
		d.Log.Error("could not send an answer to a chat", "project", p.ID, "thread", answer.ThreadID, "error", failed)
		return
	}
	if err == nil && message != "" && i.Guild != "" && !i.inThread() {
		d.thread(ctx, p, i.ChannelID, message, q.Text)
	}
}

// original is the id of the message that an answer is written into, once Discord has it; empty if it does not get to know.
func (d *Discord) original(ctx context.Context, address string) string {
	var is struct {
		ID string `json:"id"`
	}
	for n := range tries {
		err := chatapp.Call{Method: http.MethodGet, URL: address, Into: &is, Tries: tries, Repeatable: true}.Do(ctx)
		var refused *chatapp.Error
		if !errors.As(err, &refused) || refused.Status != http.StatusNotFound {
			break
		}
		if backoff.Sleep(ctx, time.Duration(n+1)*200*time.Millisecond) != nil { // it has not read our reply yet
			break
		}
	}
	return is.ID
}

// thread begins a thread under an answer, whose id is the message's: what is asked there continues the conversation. The
// app may do without the right to.
func (d *Discord) thread(ctx context.Context, p api.Project, channel, message, title string) {
	token, err := d.Secret(p.Chats.Discord.TokenFile)
	if err == nil {
		err = chatapp.Call{Method: http.MethodPost, URL: d.URL + "/channels/" + channel + "/messages/" + message + "/threads",
			Authorization: "Bot " + token, Tries: 2,
			Body: object{"name": brief.Runes(brief.Line(title), maxTitle, "…"), "auto_archive_duration": 1440}}.Do(ctx)
	}
	if err != nil {
		d.Log.Debug("an answer in Discord has no thread", "project", p.ID, "error", err)
	}
}

// answered is a whole answer: its text, the pages that it is from, and two buttons. Discord reads Markdown.
func answered(a client.Answer, buttons bool) object {
	embeds := []object{{"description": cut(a.Text)}}
	var lines strings.Builder
	add := func(line string) {
		if lines.Len()+len(line) < maxSources {
			lines.WriteString(line + "\n")
		}
	}
	for n, s := range a.Sources {
		add(fmt.Sprintf("`%d` %s", n+1, link(s.Title, s.URL)))
	}
	for _, c := range a.Cards {
		add("See also " + link(c.Title, c.URL))
	}
	if lines.Len() > 0 {
		embeds = append(embeds, object{"title": "Sources", "description": lines.String()})
	}
	m := object{"content": "", "embeds": embeds, "components": []object{}}
	if buttons {
		button := func(label string, up bool) object {
			return object{"type": 2, "style": 2, "label": label, "custom_id": chatapp.Rated(up, a)}
		}
		m["components"] = []object{{"type": 1, "components": []object{button("Helpful", true), button("Not helpful", false)}}}
	}
	return m
}

// cut is a text within an embed, cut where a line ends.
func cut(text string) string {
	head := brief.Runes(text, maxText, "")
	if head == text {
		return text
	}
	if at := strings.LastIndexByte(head, '\n'); at > len(head)/2 {
		head = head[:at]
	}
	if strings.Count(head, "```")%2 == 1 {
		head += "\n```"
	}
	return head + "\n…"
}

func link(title, address string) string {
	title = strings.NewReplacer("[", "(", "]", ")", "`", "").Replace(brief.Line(cmp.Or(title, address)))
	if !strings.HasPrefix(address, "https://") && !strings.HasPrefix(address, "http://") {
		return title
	}
	return "[" + title + "](" + strings.NewReplacer(" ", "%20", "(", "%28", ")", "%29").Replace(address) + ")"
}

// Check finds out whose a bot's token is, and gives that app its command.
func Check(ctx context.Context, base, token string) (app api.DiscordApp, err error) {
	var is struct {
		ID   string `json:"id"`
		Name string `json:"name"`
		Key  string `json:"verify_key"`
	}
	c := chatapp.Call{Method: http.MethodGet, URL: base + "/applications/@me", Authorization: "Bot " + token, Into: &is}
	if err := c.Do(ctx); err != nil {
		return app, fmt.Errorf("the bot token is refused: %w", err)
	}
	c = chatapp.Call{Method: http.MethodPost, URL: base + "/applications/" + is.ID + "/commands", Authorization: "Bot " + token,
		Body: object{"name": command, "type": 1, "description": "Ask the documentation", "options": []object{{"type": 3,
			"name": "question", "description": "Your question", "required": true, "max_length": chatapp.MaxQuestion}}}}
	if err := c.Do(ctx); err != nil {
		return app, fmt.Errorf("the command /%s could not be made: %w", command, err)
	}
	return api.DiscordApp{Name: is.Name, PublicKey: is.Key}, nil
}
