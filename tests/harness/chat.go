package harness

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// ChatControl is NewControl, and shows what the server holds of a thread.
func ChatControl(server *Server, projects ...Project) *http.ServeMux {
	operate := NewControl(server)
	for _, p := range projects {
		operate.HandleFunc("GET /threads/"+p.ID+"/{thread}", func(w http.ResponseWriter, req *http.Request) {
			forward(w, req, server.URL+"/v1/analytics/"+p.ID+"/assistant/threads/"+req.PathValue("thread"), p.Admin)
		})
	}
	return operate
}

// forward answers with what the address answers to a key.
func forward(w http.ResponseWriter, req *http.Request, address, key string) {
	out, err := http.NewRequestWithContext(req.Context(), http.MethodGet, address, nil)
	if err == nil {
		out.Header.Set("Authorization", "Bearer "+key)
		var res *http.Response
		if res, err = http.DefaultClient.Do(out); err == nil {
			defer res.Body.Close()
			w.WriteHeader(res.StatusCode)
			_, err = io.Copy(w, res.Body)
		}
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
	}
}

// FromAddress is another address of a server: what comes there reaches the server from a client address of its own,
// byte for byte, as if the client were on another machine.
func FromAddress(t *testing.T, server, address string) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer client.Close()
				there, err := dialer.Dial("tcp", strings.TrimPrefix(server, "http://"))
				if err != nil {
					return
				}
				defer there.Close()
				go func() {
					_, _ = io.Copy(there, client)
					there.Close()
				}()
				_, _ = io.Copy(client, there)
			}()
		}
	}()
	return "http://" + listener.Addr().String()
}

// EndlessModel writes for longer than any test looks at an answer: what is seen of one, or stopped of it, is in its midst
// however late it is looked at.
const EndlessModel = "[models.endless]\nprovider = \"scripted\"\nrate = 40\nparts = 40000\n"

// NewEndlessProject has the endless model, which the server's configuration names.
func NewEndlessProject(t *testing.T, data string) Project {
	t.Helper()
	return NewProject(t, data, "endless", WriteFiles(t, map[string]string{"a.md": "# Ferry\n\nThe ferry is here.\n"}),
		"--model", "endless")
}

// NewChatServer starts a server for chats: one project answers at once, the other from a model that writes parts
// pieces, so many a second. There is an endless model too.
func NewChatServer(t *testing.T, rate, parts int) (server *Server, data string, harbour, slow Project) {
	t.Helper()
	return NewChatServerWith(t, SettingsFile(t,
		fmt.Sprintf("[models.slow]\nprovider = \"scripted\"\nrate = %d\nparts = %d\n", rate, parts)+EndlessModel))
}

// NewChatServerWith is NewChatServer with a configuration that has a model named slow.
func NewChatServerWith(t *testing.T, config string) (server *Server, data string, harbour, slow Project) {
	t.Helper()
	data = filepath.Join(t.TempDir(), "data")
	server = NewServer(t, data, "--config", config)
	source := WriteFiles(t, map[string]string{
		"ferries.md":    "# Ferries\n\nThe ferry to the island leaves every hour from pier two.\n\n## Tickets\n\nTickets cost four coins and are sold on board.\n",
		"lighthouse.md": "# Lighthouse\n\nThe lighthouse stands at the end of the north mole.\n",
	})
	harbour = NewProject(t, data, "harbour", source, "--site-url", "https://harbour.example.com")
	slow = NewProject(t, data, "slow", source, "--site-url", "https://slow.example.com", "--model", "slow")
	return server, data, harbour, slow
}

// NginxProgram is nginx below the folder of the proxies.
const NginxProgram = "nginx/nginx"

// InstalledProxy is the file of a program that scripts/install-proxies installs; one that does not exist if it did not.
func InstalledProxy(find string) string {
	cache, err := os.UserCacheDir()
	if err != nil {
		return find
	}
	pattern := filepath.Join(cache, "docent-tests/proxies", find)
	if found, _ := filepath.Glob(pattern); len(found) == 1 {
		return found[0]
	}
	return pattern // which is no file
}

// A GatedModel is a provider that writes the second half of an answer only when it is let.
type GatedModel struct {
	*httptest.Server
	Second chan struct{}
}

const (
	firstHalf  = "The ferry leaves every hour [1]. It is told so on the page. A sentence is held back until it is whole. "
	secondHalf = "It leaves from pier two [1]."
)

// NewGatedModel answers by halves.
func NewGatedModel(t *testing.T) *GatedModel {
	g := &GatedModel{Second: make(chan struct{})}
	g.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		_, _ = io.Copy(io.Discard, req.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		say := func(text string) {
			piece, _ := json.Marshal(map[string]any{"choices": []any{map[string]any{"index": 0,
				"delta": map[string]string{"content": text}}}})
			fmt.Fprintf(w, "data: %s\n\n", piece)
			_ = http.NewResponseController(w).Flush()
		}
		say(firstHalf)
		select {
		case <-g.Second:
		case <-req.Context().Done():
			return
		}
		say(secondHalf)
		fmt.Fprint(w, "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
	}))
	t.Cleanup(g.Close)
	return g
}

// NewControl takes what a program in another language asks of a test: to have the server killed and started again.
func NewControl(server *Server) *http.ServeMux {
	control := http.NewServeMux()
	control.HandleFunc("POST /restart", func(w http.ResponseWriter, _ *http.Request) {
		server.Kill()
		if err := server.TryStart(); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	})
	return control
}
