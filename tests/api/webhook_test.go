package api

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"docent/cmd/docent/operator"
	"docent/internal/testing/need"
	"docent/tests/harness"
)

// TestDocumentedReceiversVerifyDeliveries runs the receivers that the documentation prints, and sends them a test: they take it,
// and refuse one that is signed with another secret.
func TestDocumentedReceiversVerifyDeliveries(t *testing.T) {
	t.Parallel()
	data, config := filepath.Join(t.TempDir(), "data"), harness.AllowLoopback(t)
	p := harness.NewProject(t, data, "tea", harness.WriteFiles(t, map[string]string{"index.md": "# Tea\n\nGreen.\n"}))
	fences := harness.ReadFences(t, "docs/api/outgoing-webhooks.mdx")
	snippet := func(language string) string {
		i := slices.IndexFunc(fences, func(f harness.Fence) bool { return f.Language == language })
		if i < 0 {
			t.Fatalf("the page has no block of %s", language)
		}
		return fences[i].Text
	}
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	node, err := exec.LookPath("node")
	if err != nil && need.All {
		t.Fatal("node is not there, which CI has")
	} else if err != nil {
		t.Skip("there is no node")
	}
	receivers := map[string][]string{"Node": {node, write("receiver.mjs", snippet("js"))}}
	for name, command := range receivers {
		listen := harness.OwnAddress(t)
		id, secret := harness.AddTestWebhook(t, data, config, p.ID, "http://"+listen+"/docs")
		cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
		out := new(harness.LockedBuffer)
		cmd.Env = append(os.Environ(), "WEBHOOK_SECRET="+secret, "LISTEN="+listen)
		cmd.Stdout, cmd.Stderr = out, out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
		for until := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
			resp, err := http.Get("http://" + listen + "/docs")
			if err == nil {
				resp.Body.Close()
				if resp.StatusCode != http.StatusUnauthorized {
					t.Errorf("%s: a request without a signature: %d", name, resp.StatusCode)
				}
				break
			}
			if time.Now().After(until) {
				t.Fatalf("%s does not listen: %v\n%s", name, err, out.String())
			}
		}
		test := []string{"webhook", "test", id, "--data", data, "--config", config}
		if said := harness.Docent(t, test...); !strings.Contains(said, "was taken: 204") {
			t.Errorf("%s: %s\n%s", name, said, out.String())
		}
		harness.Until(t, name+" shows the event", func() bool { return strings.Contains(out.String(), `"webhook.test"`) })
		harness.Docent(t, "webhook", "rotate", id, "--data", data, "--config", config)
		if said := harness.Docent(t, test...); !strings.Contains(said, "was taken") {
			t.Errorf("%s, during a rotation: %s", name, said)
		}
		harness.Docent(t, "webhook", "rotate", id, "--overlap", "0s", "--data", data, "--config", config)
		if said, err := harness.TryDocent(t, test...); err == nil || !strings.Contains(err.Error(), "401") {
			t.Errorf("%s takes what another secret signs: %s, %v", name, said, err)
		}
	}
}

// TestWebhooksByCommand has a webhook added, looked at, paused, tested, sent again and removed by command, beside a server.
func TestWebhooksByCommand(t *testing.T) {
	t.Parallel()
	data, config := filepath.Join(t.TempDir(), "data"), harness.AllowLoopback(t)
	p := harness.NewProject(t, data, "tea", harness.WriteFiles(t, map[string]string{"index.md": "# Tea\n\nGreen.\n"}))
	server := harness.NewServer(t, data, "--config", config)
	r := harness.NewHookReceiver(t, nil, 1)
	var id string
	id, r.Secret = harness.AddTestWebhook(t, data, config, p.ID, r.URL+"/with-a-token", "--event", "job.ended")
	run := func(args ...string) string {
		t.Helper()
		return harness.Docent(t, append(append([]string{"webhook"}, args...), "--data", data)...)
	}
	until := func(what string, so func() bool) {
		t.Helper()
		for end := time.Now().Add(time.Minute); !so(); time.Sleep(20 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%s: %d events came\n%s\n%s", what, len(r.All()), run("list"), server.Log.String())
			}
		}
	}
	job := func() {
		t.Helper()
		harness.Docent(t, "job", "create", fmt.Sprintf("create page p%d.md titled \"P\" with content: \"x\"", len(r.All())), "--wait", "--url", server.URL, "--project", p.ID, "--key", p.Admin)
	}
	job()
	until("the first event", func() bool { return len(r.All()) == 1 })
	run("pause", id)
	job()
	if out := run("list", "--project", p.ID); !strings.Contains(out, "off") || !strings.Contains(out, "it was paused") || !strings.Contains(out, "job.ended") {
		t.Errorf("listed is\n%s", out)
	}
	run("resume", id)
	until("the second event", func() bool { return len(r.All()) == 2 })
	until("its delivery", func() bool { return strings.Count(run("deliveries", id), "delivered") == 2 })
	if out := run("replay", id, "--event", r.All()[0].ID); !strings.Contains(out, "was taken: 204") {
		t.Errorf("sent again: %s", out)
	}
	if out := run("replay", id, "--since", "1h"); !strings.Contains(out, "2 events") {
		t.Errorf("all again: %s", out)
	}
	until("all again", func() bool { return len(r.All()) == 5 })
	for _, wrong := range [][]string{{"replay", id}, {"replay", id, "--since", "soon"}, {"replay", "whk_none", "--since", "1h"},
		{"replay", id, "--event", "evt_none"}, {"test", "whk_none"}, {"add", "http://192.168.0.1/", "--project", p.ID},
		{"add", r.URL, "--project", p.ID, "--event", "job.begun"}, {"rotate", id, "--overlap", "soon"}} {
		if out, err := harness.TryDocent(t, append(append([]string{"webhook"}, wrong...), "--data", data, "--config", config)...); err == nil {
			t.Errorf("%v: %s", wrong, out)
		}
	}
	audit := harness.Docent(t, "audit", "--data", data)
	for _, action := range []string{operator.OpWebhookAdd, operator.OpWebhookPause, "webhook.resume", operator.OpWebhookReplay} {
		if !strings.Contains(audit, action) {
			t.Errorf("the audit log lacks %s:\n%s", action, audit)
		}
	}
	run("remove", id)
	if out := run("list", "--json"); strings.TrimSpace(out) != "" {
		t.Errorf("after its removal: %s", out)
	}
	if text := server.Log.String() + audit; strings.Contains(text, r.Secret) || strings.Contains(text, "with-a-token") {
		t.Error("the secret or the whole address is in the log")
	}
	if list := harness.Holders(t, data, r.Secret); len(list) > 0 {
		t.Errorf("after its removal the secret is in %q", list)
	}
	server.Stop()
	if _, err := os.Stat(filepath.Join(data, "secrets")); err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	if bytes.Contains([]byte(server.Log.String()), []byte("level=ERROR")) {
		t.Errorf("the server says\n%s", server.Log.String())
	}
}
