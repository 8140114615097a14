package slack

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/coder/websocket/wsjson"

	"docent/api"
	"docent/router/chatapp"
)

// joined is a session over a Slack that says what it is told over the connection, and the methods that are called.
func joined(t *testing.T, answers http.HandlerFunc) (s session, conn *websocket.Conn, acks, calls chan string) {
	conns := make(chan *websocket.Conn, 1)
	acks, calls = make(chan string, 8), make(chan string, 8)
	mux := http.NewServeMux()
	var address string
	mux.HandleFunc("/link", func(w http.ResponseWriter, req *http.Request) {
		conn, err := websocket.Accept(w, req, nil)
		if err != nil {
			return
		}
		conns <- conn
		for {
			var said map[string]string
			if wsjson.Read(context.Background(), conn, &said) != nil {
				acks <- "closed"
				return
			}
			acks <- said["envelope_id"]
		}
	})
	mux.HandleFunc("/apps.connections.open", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(object{"ok": true, "url": "ws" + strings.TrimPrefix(address, "http") + "/link"})
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, req *http.Request) {
		calls <- req.URL.Path
		_ = json.NewEncoder(w).Encode(object{"ok": true, "ts": "1"})
	})
	server := httptest.NewServer(mux)
	address = server.URL
	app := chatapp.New(api.ChannelSlack, []byte("secret"), time.Now)
	app.Over(answers)
	p := api.Project{ID: "p", Domain: "d.example"}
	project := func(context.Context, api.ProjectID) (api.Project, error) { return p, nil }
	s = session{Slack: New(Deps{App: app, Project: project, Log: slog.New(slog.DiscardHandler), URL: address}), project: p}
	ended := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { ended <- s.listen(ctx) }()
	conn = <-conns
	t.Cleanup(func() {
		cancel()
		<-ended
		conn.CloseNow()
		server.Close()
	})
	return s, conn, acks, calls
}

func mention(t *testing.T, conn *websocket.Conn, id string) {
	t.Helper()
	if err := wsjson.Write(t.Context(), conn, object{"type": "events_api", "envelope_id": id, "payload": object{"event_id": "Ev" + id,
		"team_id": "T", "event": object{"type": "app_mention", "user": "U", "channel": "C", "text": "How?", "ts": "1.1"}}}); err != nil {
		t.Fatal(err)
	}
}

// A question that is begun when the process stops is acknowledged, though its connection is not wanted any more; one that
// comes after that is left to the next process.
func TestWhatIsTakenIsAcknowledgedAndNothingIsTakenAnyMore(t *testing.T) {
	t.Parallel()
	asked, over := make(chan bool, 8), make(chan bool)
	s, conn, acks, _ := joined(t, func(w http.ResponseWriter, req *http.Request) {
		asked <- true
		<-over
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	mention(t, conn, "1")
	<-asked
	s.Leave()
	mention(t, conn, "2")
	if got := <-acks; got != "1" {
		t.Errorf("the first acknowledgment is %q", got)
	}
	if got := <-acks; got != "closed" {
		t.Errorf("after that it says %q", got)
	}
	close(over)
	if err := s.App.Close(); err != nil || len(asked) > 0 {
		t.Errorf("%v, and %d more are asked", err, len(asked))
	}
}

// What the API refuses because the process stops is left to the next one, and nobody is told.
func TestAQuestionThatComesTooLateIsLeftToTheNextProcess(t *testing.T) {
	t.Parallel()
	var s session
	ready := make(chan bool)
	s, conn, acks, calls := joined(t, func(w http.ResponseWriter, req *http.Request) {
		<-ready
		s.Leave()
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	close(ready)
	mention(t, conn, "1")
	if got := <-acks; got != "closed" || len(calls) > 0 {
		t.Errorf("it says %q and calls %d methods", got, len(calls))
	}
	_ = s.App.Close()
}
