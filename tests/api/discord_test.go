package api

import (
	"bytes"
	"crypto/ed25519"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"docent/tests/harness"
)

const discordToken = "discord-bot-token"

// A discordMessage is the app's response to an interaction.
type discordMessage struct {
	ID      string `json:"id"`
	Content string
	Embeds  []struct{ Title, Description string }
	Rows    []struct {
		Type       int
		Components []struct {
			Type, Style int
			Label       string
			ID          string `json:"custom_id"`
		}
	} `json:"components"`
	Mentions *struct{ Parse []string } `json:"allowed_mentions"`
	edits    int
}

func (m discordMessage) text() string {
	text := m.Content
	for _, e := range m.Embeds {
		text += "\n" + e.Description
	}
	return text
}

// A playedDiscord is what an app sees of Discord, by Discord's published rules: an application and its command, signed
// interactions, a response that is there once the app has deferred it, tokens of interactions, threads, and the bounds of
// messages.
type playedDiscord struct {
	t       *testing.T
	url     string
	private ed25519.PrivateKey
	public  string

	mu       sync.Mutex
	commands []string
	messages map[string]*discordMessage // by the tokens of interactions
	threads  map[string]string          // names by the ids of messages
	wrong    []string
	count    int
}

func playDiscord(t *testing.T) *playedDiscord {
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	d := &playedDiscord{t: t, private: private, public: hex.EncodeToString(public), messages: map[string]*discordMessage{},
		threads: map[string]string{}}
	mux := http.NewServeMux()
	bot := func(serve func(w http.ResponseWriter, req *http.Request)) http.HandlerFunc {
		return func(w http.ResponseWriter, req *http.Request) {
			if req.Header.Get("Authorization") != "Bot "+discordToken {
				http.Error(w, `{"message": "401: Unauthorized", "code": 0}`, http.StatusUnauthorized)
				return
			}
			d.mu.Lock()
			defer d.mu.Unlock()
			w.Header().Set("Content-Type", "application/json")
			serve(w, req)
		}
	}
	mux.HandleFunc("GET /applications/@me", bot(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"id": "77", "name": "Harbour docs", "verify_key": %q}`, d.public)
	}))
	mux.HandleFunc("POST /applications/77/commands", bot(func(w http.ResponseWriter, req *http.Request) {
		var c struct {
			Name, Description string
			Options           []struct{ Name, Description string }
		}
		_ = json.NewDecoder(req.Body).Decode(&c)
		d.commands = append(d.commands, c.Name+" "+c.Options[0].Name)
		w.WriteHeader(http.StatusCreated)
		fmt.Fprint(w, `{"id": "1"}`)
	}))
	mux.HandleFunc("POST /channels/{channel}/messages/{message}/threads", bot(func(w http.ResponseWriter, req *http.Request) {
		var made struct{ Name string }
		_ = json.NewDecoder(req.Body).Decode(&made)
		if n := utf8.RuneCountInString(made.Name); n < 1 || n > 100 {
			d.wrong = append(d.wrong, "a thread's name "+made.Name)
		}
		d.threads[req.PathValue("message")] = made.Name
		w.WriteHeader(http.StatusCreated)
		fmt.Fprintf(w, `{"id": %q}`, req.PathValue("message"))
	}))
	mux.HandleFunc("/webhooks/77/{token}/messages/@original", d.original)
	server := httptest.NewServer(mux)
	d.url = server.URL
	t.Cleanup(func() {
		server.Close()
		for _, w := range d.wrong {
			t.Error("against Discord's rules: " + w)
		}
	})
	return d
}

// original is the message that responds to an interaction: read and edited with the interaction's token alone.
func (d *playedDiscord) original(w http.ResponseWriter, req *http.Request) {
	d.mu.Lock()
	defer d.mu.Unlock()
	m := d.messages[req.PathValue("token")]
	if m == nil {
		http.Error(w, `{"message": "Unknown Webhook", "code": 10015}`, http.StatusNotFound)
		return
	}
	if req.Method == http.MethodPatch {
		now := discordMessage{ID: m.ID, edits: m.edits + 1}
		if err := json.NewDecoder(req.Body).Decode(&now); err != nil {
			d.wrong = append(d.wrong, err.Error())
		}
		size := 0
		for _, e := range now.Embeds {
			size += utf8.RuneCountInString(e.Description) + utf8.RuneCountInString(e.Title)
			if utf8.RuneCountInString(e.Description) > 4096 {
				d.wrong = append(d.wrong, "a long embed")
			}
		}
		if utf8.RuneCountInString(now.Content) > 2000 || size > 6000 || len(now.Embeds) > 10 || now.Mentions == nil || now.Mentions.Parse == nil {
			d.wrong = append(d.wrong, fmt.Sprintf("the message %+v", now))
		}
		for _, row := range now.Rows {
			for _, c := range row.Components {
				if row.Type != 1 || c.Type != 2 || len(c.ID) > 100 || len(c.Label) > 80 {
					d.wrong = append(d.wrong, fmt.Sprintf("the button %+v", c))
				}
			}
		}
		*m = now
	}
	_ = json.NewEncoder(w).Encode(map[string]string{"id": m.ID})
}

// send sends what somebody has done to the app, signed at a time. A deferred response is there once it was read.
func (d *playedDiscord) send(to string, i map[string]any, at time.Time, key ed25519.PrivateKey) (status int, answer map[string]any) {
	d.t.Helper()
	body, _ := json.Marshal(i)
	stamp := fmt.Sprint(at.Unix())
	req, err := http.NewRequestWithContext(d.t.Context(), http.MethodPost, to, bytes.NewReader(body))
	if err != nil {
		d.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Signature-Timestamp", stamp)
	req.Header.Set("X-Signature-Ed25519", hex.EncodeToString(ed25519.Sign(key, append([]byte(stamp), body...))))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		d.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		d.t.Fatal(err)
	}
	_ = json.Unmarshal(text, &answer)
	if answer["type"] == 5.0 {
		d.mu.Lock()
		d.count++
		d.messages[i["token"].(string)] = &discordMessage{ID: fmt.Sprint(9000 + d.count)}
		d.mu.Unlock()
	}
	return resp.StatusCode, answer
}

// ask uses the command, and waits for the whole answer.
func (d *playedDiscord) ask(to, channel string, kind int, user, question string) (m discordMessage) {
	d.t.Helper()
	d.mu.Lock()
	d.count++
	token := fmt.Sprint("token", d.count)
	d.mu.Unlock()
	status, answer := d.send(to, map[string]any{"id": token, "application_id": "77", "type": 2, "token": token, "channel_id": channel,
		"channel": map[string]any{"id": channel, "type": kind}, "guild_id": "5", "member": map[string]any{"user": map[string]string{"id": user}},
		"data": map[string]any{"name": "ask", "type": 1, "options": []map[string]any{{"name": "question", "type": 3, "value": question}}}},
		time.Now(), d.private)
	if status != http.StatusOK || answer["type"] != 5.0 {
		d.t.Fatalf("the command: %d %v", status, answer)
	}
	harness.Until(d.t, "an answer in Discord", func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		m = *d.messages[token]
		return len(m.Rows) > 0
	})
	return m
}

// TestTheAssistantAnswersInDiscord has Discord check the address, people ask by the command in a channel and in the thread
// under an answer, and press a button.
func TestTheAssistantAnswersInDiscord(t *testing.T) {
	t.Parallel()
	harness.SkipShort(t)
	discord := playDiscord(t)
	harness.Setenv(t, harness.DiscordOfTest, discord.url)
	data := filepath.Join(t.TempDir(), "data")
	p := harness.NewProject(t, data, "harbour", harness.WriteFiles(t, harness.Harbour), "--site-url", "https://harbour.example.com")
	server := harness.NewServer(t, data)
	to := server.URL + "/v1/discord/" + p.ID
	ping := map[string]any{"id": "1", "application_id": "77", "type": 1, "token": "x"}
	if status, _ := discord.send(to, ping, time.Now(), discord.private); status != http.StatusUnauthorized {
		t.Errorf("the app is on by default: %d", status)
	}
	chat := []string{"project", "chat", p.ID, "--app", "discord", "--data", data}
	if out, err := command(t, "another", chat...); err == nil || !strings.Contains(out, "bot token is refused") {
		t.Fatalf("a token that Discord refuses: %v, %s", err, out)
	}
	if out, err := command(t, discordToken+"\n", chat...); err != nil || !strings.Contains(out, "Harbour docs") || !strings.Contains(out, "/v1/discord/harbour") {
		t.Fatalf("%v, %s", err, out)
	}
	if fmt.Sprint(discord.commands) != "[ask question]" {
		t.Errorf("the commands %v", discord.commands)
	}
	_, another, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		of     string
		to     string
		at     time.Time
		key    ed25519.PrivateKey
		status int
	}{
		{"Discord's", to, time.Now(), discord.private, 200},
		{"somebody else's", to, time.Now(), another, 401},
		{"an old one", to, time.Now().Add(-time.Hour), discord.private, 401},
		{"another project's", server.URL + "/v1/discord/another", time.Now(), discord.private, 401},
	} {
		if status, answer := discord.send(c.to, ping, c.at, c.key); status != c.status || status == 200 && answer["type"] != 1.0 {
			t.Errorf("a ping, %s: %d %v", c.of, status, answer)
		}
	}

	first := discord.ask(to, "50", 0, "7", "When does the ferry to the island leave?")
	if text := first.text(); !strings.Contains(text, "every hour from pier two") || !strings.Contains(text, "](https://harbour.example.com/ferries") {
		t.Errorf("the answer: %+v", first)
	}
	harness.Until(t, "a thread", func() bool {
		discord.mu.Lock()
		defer discord.mu.Unlock()
		return discord.threads[first.ID] != ""
	})
	thread := func(m discordMessage) string { return strings.Fields(m.Rows[0].Components[0].ID)[1] }
	second := discord.ask(to, first.ID, 11, "7", "What do tickets cost?")
	if !strings.Contains(second.text(), "four coins") || thread(second) != thread(first) {
		t.Errorf("a further question of the thread: %+v after %+v", second, first)
	}
	if third := discord.ask(to, "50", 0, "7", "How many piers are there?"); thread(third) == thread(first) {
		t.Error("two questions in a channel are one conversation")
	}
	status, answer := discord.send(to, map[string]any{"id": "3", "application_id": "77", "type": 3, "token": "y", "channel_id": "50",
		"user": map[string]string{"id": "8"}, "data": map[string]any{"custom_id": second.Rows[0].Components[0].ID, "component_type": 2}},
		time.Now(), discord.private)
	said, _ := answer["data"].(map[string]any)
	if status != http.StatusOK || answer["type"] != 4.0 || said["flags"] != 64.0 || !strings.Contains(fmt.Sprint(said["content"]), "Thank you") {
		t.Errorf("a button: %d %v", status, answer)
	}

	if out, err := command(t, "", append(chat, "--remove")...); err != nil {
		t.Fatalf("%v, %s", err, out)
	}
	if status, _ := discord.send(to, ping, time.Now(), discord.private); status != http.StatusUnauthorized {
		t.Errorf("an app that was removed: %d", status)
	}
	if left := harness.Holders(t, data, discordToken); len(left) > 0 {
		t.Errorf("the token is still in %v", left)
	}
}
