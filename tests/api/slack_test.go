package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/coder/websocket"
	"github.com/coder/websocket/wsjson"

	"docent/api/client"
	"docent/tests/harness"
)

const (
	appToken = "xapp-1-A1-the-app"
	botToken = "xoxb-1-the-bot"
)

// A slackMessage is one that the app has sent.
type slackMessage struct {
	Channel, At, Thread, User, Text string
	Buttons                         []string
	Edits                           int
}

// A playedSlack is what an app sees of Slack, by Slack's published rules: tokens, tickets that work once, envelopes that come
// again until they are acknowledged, connections that are refreshed, and the bounds of messages.
type playedSlack struct {
	t   *testing.T
	url string

	mu       sync.Mutex
	tickets  map[string]bool
	conns    []*websocket.Conn
	greeted  int // connections that were ever open
	acks     map[string]chan struct{}
	messages []*slackMessage
	known    map[string]bool // timestamps of messages
	limits   int             // that many calls are too many
	wrong    []string        // what the app did against the rules
	count    int
}

func playSlack(t *testing.T) *playedSlack {
	s := &playedSlack{t: t, tickets: map[string]bool{}, acks: map[string]chan struct{}{}, known: map[string]bool{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /api/{method}", s.method)
	mux.HandleFunc("GET /link", s.link)
	server := httptest.NewServer(mux)
	s.url = server.URL
	t.Cleanup(func() {
		server.CloseClientConnections()
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, w := range s.wrong {
			t.Error("against Slack's rules: " + w)
		}
	})
	return s
}

func (s *playedSlack) foul(format string, args ...any) {
	s.wrong = append(s.wrong, fmt.Sprintf(format, args...))
}

func (s *playedSlack) method(w http.ResponseWriter, req *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name, token := req.PathValue("method"), strings.TrimPrefix(req.Header.Get("Authorization"), "Bearer ")
	want := botToken
	if name == "apps.connections.open" {
		want = appToken
	}
	answer := map[string]any{"ok": true}
	refuse := func(code string) { answer = map[string]any{"ok": false, "error": code} }
	var body struct {
		slackMessage
		At     string `json:"ts"`
		Thread string `json:"thread_ts"`
		Blocks []struct {
			Type     string
			Text     struct{ Type, Text string }
			Elements []struct {
				Type  string
				ID    string `json:"action_id"`
				Value string
				Text  struct{ Type, Text string }
			}
		}
	}
	switch {
	case token != want:
		refuse("invalid_auth")
	case !strings.HasPrefix(req.Header.Get("Content-Type"), "application/json"):
		refuse("invalid_form_data")
	case json.NewDecoder(req.Body).Decode(&body) != nil:
		refuse("invalid_json")
	case name == "apps.connections.open":
		s.count++
		ticket := fmt.Sprint("ticket", s.count)
		s.tickets[ticket] = true
		answer["url"] = "ws" + strings.TrimPrefix(s.url, "http") + "/link?ticket=" + ticket
	case name == "auth.test":
		answer["team"], answer["user_id"] = "Harbour office", "UBOT"
	case s.limits > 0:
		s.limits--
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusTooManyRequests)
		return
	case !slices.Contains([]string{"chat.postMessage", "chat.update", "chat.postEphemeral"}, name):
		refuse("unknown_method")
	default:
		m := body.slackMessage
		m.At, m.Thread = body.At, body.Thread
		if len(body.Blocks) > 50 || m.Channel == "" || m.Text == "" || m.Thread != "" && !s.known[m.Thread] {
			s.foul("%s of %+v with %d blocks", name, m, len(body.Blocks))
		}
		for _, b := range body.Blocks {
			n := utf8.RuneCountInString(b.Text.Text)
			if b.Type == "section" && (n < 1 || n > 3000) || b.Type == "actions" && len(b.Elements) > 25 {
				s.foul("a block of %d characters", n)
			}
			m.Text += "\n" + b.Text.Text
			for _, e := range b.Elements {
				if len(e.Value) > 2000 || len(e.ID) > 255 || e.Text.Type != "plain_text" || utf8.RuneCountInString(e.Text.Text) > 75 {
					s.foul("a button %+v", e)
				}
				m.Buttons = append(m.Buttons, e.ID+" "+e.Value)
			}
		}
		if regexp.MustCompile(`<[!@#]`).MatchString(m.Text) {
			s.foul("somebody is called: %s", m.Text)
		}
		if name == "chat.update" {
			i := slices.IndexFunc(s.messages, func(o *slackMessage) bool { return o.At == m.At && o.Channel == m.Channel })
			if i < 0 {
				refuse("message_not_found")
				break
			}
			m.Thread, m.Edits = s.messages[i].Thread, s.messages[i].Edits+1
			*s.messages[i] = m
		} else {
			m.At = s.stamp()
			s.messages = append(s.messages, &m)
		}
		answer["ts"], answer["channel"] = m.At, m.Channel
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer)
}

func (s *playedSlack) stamp() string {
	s.count++
	at := fmt.Sprintf("17640000%02d.%06d", s.count/100, s.count)
	s.known[at] = true
	return at
}

// link is a connection: it is greeted, and says nothing but what it acknowledges.
func (s *playedSlack) link(w http.ResponseWriter, req *http.Request) {
	s.mu.Lock()
	ticket := req.URL.Query().Get("ticket")
	good := s.tickets[ticket]
	delete(s.tickets, ticket)
	s.mu.Unlock()
	if !good {
		http.Error(w, "used", http.StatusForbidden)
		return
	}
	conn, err := websocket.Accept(w, req, nil)
	if err != nil {
		return
	}
	defer conn.CloseNow()
	_ = wsjson.Write(req.Context(), conn, map[string]any{"type": "hello", "num_connections": 1})
	s.mu.Lock()
	s.conns = append(s.conns, conn)
	s.greeted++
	s.mu.Unlock()
	for {
		var said map[string]string
		if wsjson.Read(req.Context(), conn, &said) != nil {
			break
		}
		s.mu.Lock()
		ack := s.acks[said["envelope_id"]]
		if ack == nil || len(said) != 1 {
			s.foul("it says %v", said)
		} else {
			delete(s.acks, said["envelope_id"])
			close(ack)
		}
		s.mu.Unlock()
	}
	s.mu.Lock()
	s.conns = slices.DeleteFunc(s.conns, func(c *websocket.Conn) bool { return c == conn })
	s.mu.Unlock()
}

func (s *playedSlack) connected() (now, ever int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns), s.greeted
}

// send sends an envelope over the newest connection until it is acknowledged, as Slack does up to four times.
func (s *playedSlack) send(kind string, payload any) {
	s.t.Helper()
	for attempt := range 4 {
		ack := make(chan struct{})
		s.mu.Lock()
		s.count++
		id := fmt.Sprint("envelope", s.count)
		s.acks[id] = ack
		var conn *websocket.Conn
		if n := len(s.conns); n > 0 {
			conn = s.conns[n-1]
		}
		s.mu.Unlock()
		if conn != nil {
			_ = wsjson.Write(context.Background(), conn, map[string]any{"type": kind, "envelope_id": id, "payload": payload,
				"retry_attempt": attempt, "accepts_response_payload": kind == "interactive"})
		}
		select {
		case <-ack:
			return
		case <-time.After(15 * time.Second): // Slack's own are 3; a machine may stand still
		}
	}
	s.t.Fatal("an envelope was never acknowledged")
}

// say has somebody write a message, in a thread or not; it is delivered as often as is said.
func (s *playedSlack) say(kind, channel, user, text, thread string, times int) (at string) {
	s.t.Helper()
	s.mu.Lock()
	at = s.stamp()
	id := fmt.Sprint("Ev", s.count)
	s.mu.Unlock()
	event := map[string]any{"type": kind, "channel": channel, "user": user, "text": text, "ts": at}
	if thread != "" {
		event["thread_ts"] = thread
	}
	if kind == "message" {
		event["channel_type"] = "im"
	}
	for range times {
		s.send("events_api", map[string]any{"type": "event_callback", "team_id": "T1", "event_id": id, "event": event})
	}
	return at
}

// answered waits for the whole answer in a thread that has so many of the app's messages.
func (s *playedSlack) answered(thread string, n int) (m slackMessage) {
	s.t.Helper()
	harness.Until(s.t, "an answer in Slack", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		var in []*slackMessage
		for _, m := range s.messages {
			if m.Thread == thread && m.User == "" {
				in = append(in, m)
			}
		}
		if len(in) > n {
			s.t.Fatalf("%d messages in the thread: %+v", len(in), in[len(in)-1])
		}
		if len(in) == n && len(in[n-1].Buttons) > 0 {
			m = *in[n-1]
		}
		return m.At != ""
	})
	return m
}

// thread is Docent's thread of an answer, as its buttons have it.
func (m slackMessage) thread() string { return strings.Fields(m.Buttons[0])[2] }

// command runs the program with an input.
func command(t *testing.T, in string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), harness.Self(t), args...)
	cmd.Env, cmd.Stdin = harness.Environment(t), strings.NewReader(in)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// TestTheAssistantAnswersInSlack has people ask in a workspace: mentions and direct messages, threads, deliveries that come
// twice, a limit, a refreshed connection, a restart, and buttons.
func TestTheAssistantAnswersInSlack(t *testing.T) {
	t.Parallel()
	harness.SkipShort(t)
	slack := playSlack(t)
	harness.Setenv(t, harness.SlackOfTest, slack.url+"/api")
	data := filepath.Join(t.TempDir(), "data")
	p := harness.NewProject(t, data, "harbour", harness.WriteFiles(t, harness.Harbour), "--site-url", "https://harbour.example.com")
	chat := []string{"project", "chat", p.ID, "--app", "slack", "--data", data}
	if out, err := command(t, appToken+"\nxoxb-another\n", chat...); err == nil || !strings.Contains(out, "bot token is refused") {
		t.Fatalf("tokens that Slack refuses: %v, %s", err, out)
	}
	server := harness.NewServer(t, data)
	if now, _ := slack.connected(); now != 0 {
		t.Error("the app is on by default")
	}
	if out, err := command(t, botToken+"\n"+appToken+"\n", chat...); err != nil || !strings.Contains(out, "Harbour office") {
		t.Fatalf("%v, %s", err, out)
	}
	open := func(n int) {
		t.Helper()
		harness.Until(t, "a connection to Slack", func() bool { now, ever := slack.connected(); return now > 0 && ever >= n })
	}
	open(1)

	at := slack.say("app_mention", "C1", "U1", "<@UBOT> When does the ferry to the &lt;island&gt; leave?", "", 2)
	first := slack.answered(at, 1)
	if !strings.Contains(first.Text, "every hour from pier two") || !strings.Contains(first.Text, "[1] <https://harbour.example.com/ferries|") {
		t.Errorf("the answer: %+v", first)
	}
	slack.say("app_mention", "C1", "U1", "<@UBOT> What do tickets cost?", at, 1)
	second := slack.answered(at, 2)
	if !strings.Contains(second.Text, "four coins") || second.thread() != first.thread() {
		t.Errorf("a further question of the thread: %+v after %+v", second, first)
	}
	slack.say("app_mention", "C1", "U2", "<@UBOT> How many piers are there?", at, 1)
	if third := slack.answered(at, 3); third.thread() == first.thread() {
		t.Error("somebody else goes on with a conversation that is not theirs")
	}
	slack.say("message", "D1", "UBOT2", "", "", 1) // nothing that can be answered
	slack.mu.Lock()
	slack.limits = 1
	slack.mu.Unlock()
	direct := slack.say("message", "D1", "U1", "How many piers are there?", "", 1)
	if m := slack.answered(direct, 1); !strings.Contains(m.Text, "three piers") {
		t.Errorf("a direct message: %+v", m)
	}

	slack.mu.Lock()
	old := slack.conns[0]
	slack.mu.Unlock()
	_ = wsjson.Write(t.Context(), old, map[string]any{"type": "disconnect", "reason": "refresh_requested"})
	open(2) // before Slack closes the old one
	_ = old.Close(websocket.StatusNormalClosure, "")
	server.Kill()
	server.Start()
	open(3)
	slack.say("app_mention", "C1", "U1", "<@UBOT> Where does the ferry leave?", at, 1)
	fourth := slack.answered(at, 4)
	if fourth.thread() != first.thread() {
		t.Error("a restart ends a conversation")
	}

	slack.send("interactive", map[string]any{"type": "block_actions", "user": map[string]string{"id": "U3"},
		"team": map[string]string{"id": "T1"}, "channel": map[string]string{"id": "C1"},
		"message": map[string]string{"ts": fourth.At, "thread_ts": at},
		"actions": []map[string]string{{"action_id": "docent_down", "value": strings.SplitN(fourth.Buttons[1], " ", 2)[1]}}})
	harness.Until(t, "thanks", func() bool {
		slack.mu.Lock()
		defer slack.mu.Unlock()
		last := slack.messages[len(slack.messages)-1]
		return last.User == "U3" && strings.Contains(last.Text, "Thank you")
	})
	harness.Until(t, "the questions are counted", func() bool {
		list, err := client.New(server.URL, p.Admin).ListConversations(t.Context(), p.ID, client.Period{})
		if err != nil {
			t.Fatal(err)
		}
		rated := 0
		for _, c := range list.Conversations {
			if c.Channel == nil || *c.Channel != "slack" || !strings.HasPrefix(c.Caller, "slack:") || strings.Contains(c.Caller, "U1") {
				t.Errorf("a question in the analytics: %+v", c)
			}
			if c.Rating == "down" {
				rated++
			}
		}
		return len(list.Conversations) == 5 && rated == 1
	})

	if out, err := command(t, "", append(chat, "--remove")...); err != nil {
		t.Fatalf("%v, %s", err, out)
	}
	harness.Until(t, "the app is off", func() bool { now, _ := slack.connected(); return now == 0 })
	for _, token := range []string{appToken, botToken} {
		if left := harness.Holders(t, data, token); len(left) > 0 {
			t.Errorf("a token is still in %v", left)
		}
	}
	if strings.Contains(server.Log.String(), botToken) || strings.Contains(server.Log.String(), "ticket") {
		t.Error("the log has a secret")
	}
}
