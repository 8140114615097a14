package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"docent/internal/testing/need"
)

// TestRealChatClients drives the server with the real hooks of every release line of the chat SDK, the strict first
// releases among them.
func TestRealChatClients(t *testing.T) {
	t.Parallel()
	const dir = "testdata/clients"
	need.Installed(t, "the real chat clients", "scripts/install-clients", dir+"/node_modules/ai7")
	for _, client := range [][]string{{"v4.mjs"}, {"modern.mjs", "5"}, {"modern.mjs", "500"}, {"modern.mjs", "6"},
		{"modern.mjs", "600"}, {"modern.mjs", "7"}} {
		t.Run(strings.Join(client, " "), func(t *testing.T) {
			t.Parallel() // each has a server of its own, which it restarts
			server, data, harbour, slow := newChatServer(t, 40, 60)
			locked := newTestProject(t, data, "locked", writeFiles(t, map[string]string{"a.md": "# A\n\nText.\n"}), "--model",
				"slow", "--require-thread-key")
			endless := newEndlessProject(t, data)
			control := httptest.NewServer(chatControl(server, harbour, slow))
			defer control.Close()
			settings, err := json.Marshal(map[string]string{"url": server.url,
				"otherUrl": fromAddress(t, server.url, "127.0.0.2"), "domain": harbour.domain, "key": harbour.assistant,
				"slowDomain": slow.domain, "slowKey": slow.assistant, "lockedDomain": locked.domain, "lockedKey": locked.assistant,
				"endlessDomain": endless.domain, "endlessKey": endless.assistant, "control": control.URL})
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), "node", client...)
			cmd.Dir = dir
			cmd.Env = append(os.Environ(), "DOCENT_CLIENTS="+string(settings))
			out, err := cmd.CombinedOutput()
			t.Logf("%s", out)
			if err != nil {
				t.Errorf("%v\nthe server's log:\n%s", err, server.log)
			}
		})
	}
}

// chatControl is newControl, and shows what the server holds of a thread.
func chatControl(server *testServer, projects ...testProject) *http.ServeMux {
	operate := newControl(server)
	for _, p := range projects {
		operate.HandleFunc("GET /threads/"+p.id+"/{thread}", func(w http.ResponseWriter, req *http.Request) {
			forward(w, req, server.url+"/v1/analytics/"+p.id+"/assistant/threads/"+req.PathValue("thread"), p.admin)
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

// fromAddress is another address of a server: what comes there reaches the server from a client address of its own,
// byte for byte, as if the client were on another machine.
func fromAddress(t *testing.T, server, address string) string {
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

// endlessModel writes for longer than any test looks at an answer: what is seen of one, or stopped of it, is in its midst
// however late it is looked at.
const endlessModel = "[models.endless]\nprovider = \"scripted\"\nrate = 40\nparts = 40000\n"

// newEndlessProject has the endless model, which the server's configuration names.
func newEndlessProject(t *testing.T, data string) testProject {
	t.Helper()
	return newTestProject(t, data, "endless", writeFiles(t, map[string]string{"a.md": "# Ferry\n\nThe ferry is here.\n"}),
		"--model", "endless")
}

// newChatServer starts a server for chats: one project answers at once, the other from a model that writes parts
// pieces, so many a second. There is an endless model too.
func newChatServer(t *testing.T, rate, parts int) (server *testServer, data string, harbour, slow testProject) {
	t.Helper()
	return newChatServerWith(t, settingsFile(t,
		fmt.Sprintf("[models.slow]\nprovider = \"scripted\"\nrate = %d\nparts = %d\n", rate, parts)+endlessModel))
}

// newChatServerWith is newChatServer with a configuration that has a model named slow.
func newChatServerWith(t *testing.T, config string) (server *testServer, data string, harbour, slow testProject) {
	t.Helper()
	data = filepath.Join(t.TempDir(), "data")
	server = newTestServer(t, data, "--config", config)
	source := writeFiles(t, map[string]string{
		"ferries.md":    "# Ferries\n\nThe ferry to the island leaves every hour from pier two.\n\n## Tickets\n\nTickets cost four coins and are sold on board.\n",
		"lighthouse.md": "# Lighthouse\n\nThe lighthouse stands at the end of the north mole.\n",
	})
	harbour = newTestProject(t, data, "harbour", source, "--site-url", "https://harbour.example.com")
	slow = newTestProject(t, data, "slow", source, "--site-url", "https://slow.example.com", "--model", "slow")
	return server, data, harbour, slow
}
