package main

import (
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"docent/api"
	"docent/client"
	"docent/datadir"
)

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{Dir: "testdata/script", Setup: func(env *testscript.Env) error {
		env.Setenv(raceOptions, os.Getenv(raceOptions))
		return nil
	}})
}

func TestDemoShowsTheWholeOfDocent(t *testing.T) {
	t.Parallel()
	out := docent(t, "demo")
	for _, want := range []string{"Thread: thr_", "Sources:", "Pull request: http://127.0.0.1:", "completed", "+description:", "is still completed", "goes on", "docent serve"} {
		if !strings.Contains(out, want) {
			t.Errorf("the demo does not show %q:\n%s", want, out)
		}
	}
}

func TestOperatorsCommandsTakeEffectInARunningServer(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	server := newTestServer(t, data)
	source := writeFiles(t, map[string]string{"tea.md": "# Tea\n\nGreen tea is brewed at eighty degrees.\n"})
	p := newTestProject(t, data, "tea", source)

	out := docent(t, "ask", "--url", server.url, "--domain", p.domain, "--key", p.assistant, "--json", "At how many degrees is green tea brewed?")
	var a client.Answer
	if err := json.Unmarshal([]byte(out), &a); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(a.Text, "eighty degrees") || len(a.Sources) != 1 || !strings.Contains(a.Sources[0].URL, "tea") || a.ThreadID == "" {
		t.Errorf("the answer is %+v", a)
	}

	var keys []api.Key
	for line := range strings.Lines(docent(t, "key", "list", "--data", data, "--json")) {
		var k api.Key
		if err := json.Unmarshal([]byte(line), &k); err != nil {
			t.Fatal(err)
		}
		if k.Kind == api.AssistantKey {
			keys = append(keys, k)
		}
	}
	if len(keys) != 1 {
		t.Fatalf("there are %d assistant keys", len(keys))
	}
	docent(t, "key", "revoke", "--data", data, string(keys[0].ID))
	if _, err := tryDocent(t, "ask", "--url", server.url, "--domain", p.domain, "--key", p.assistant, "Is the key revoked?"); err == nil || !strings.Contains(err.Error(), "unauthorized") {
		t.Errorf("a revoked key is answered %v", err)
	}
}

func TestSecondServerIsRefused(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	newTestServer(t, data)
	cmd := exec.Command(self(t), datadir.Server, "--data", data, "--listen", "127.0.0.1:0")
	cmd.Env = docentEnvironment(t)
	out, err := cmd.CombinedOutput()
	if err == nil || cmd.ProcessState.ExitCode() != exitFailed || !strings.Contains(string(out), "in use by process") {
		t.Errorf("the second server ended with %v: %s", err, out)
	}
}

func TestStoppingServerLetsAStreamFinish(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	config := filepath.Join(t.TempDir(), "docent.toml")
	text := "[models.slow]\nprovider = \"scripted\"\nrate = 50\nparts = 50\n"
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	server := newTestServer(t, data, "--config", config)
	source := writeFiles(t, map[string]string{"tea.md": "# Tea\n\nGreen tea is brewed at eighty degrees.\n"})
	p := newTestProject(t, data, "tea", source, "--model", "slow")

	answered := make(chan error, 1)
	begun := make(chan struct{})
	go func() {
		cl := server.client(p.assistant)
		resp, err := cl.Do(t.Context(), http.MethodPost, "/discovery/v2/assistant/"+p.domain+"/message",
			map[string]any{"fp": "anonymous", "messages": []any{map[string]any{"role": "user", "content": "Tea?"}}})
		close(begun)
		if err != nil {
			answered <- err
			return
		}
		_, err = readAnswer(resp)
		answered <- err
	}()
	<-begun
	server.stop()
	if err := <-answered; err != nil {
		t.Errorf("the stream that was open when the server stopped: %v", err)
	}
}

func TestMergeUpdatesTheFolderAndTheAnswers(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	source := writeFiles(t, map[string]string{
		"index.md": "---\ntitle: Home\n---\n\nWelcome.\n",
		"tea.md":   "# Tea\n\nGreen tea is brewed at eighty degrees. `eighty` is a constant.\n",
	})
	p := newTestProject(t, data, "tea", source)
	server := newTestServer(t, data)

	var j api.Job
	out := docent(t, "job", "create", "--wait", "--json", "--url", server.url, "--project", p.id, "--key", p.admin, `replace "eighty" with "seventy" in tea.md`)
	if err := json.Unmarshal([]byte(out), &j); err != nil {
		t.Fatal(err)
	}
	if j.Status != api.JobCompleted || j.PRLink == nil {
		t.Fatalf("the job is %+v", j)
	}
	page, err := get(t.Context(), *j.PRLink)
	if err != nil || !strings.Contains(page, "seventy") || !strings.Contains(page, "tea.md") {
		t.Errorf("the pull request's page: %v\n%s", err, page)
	}
	docent(t, "pull", "merge", "--data", data, *j.PRLink)
	text, err := os.ReadFile(filepath.Join(source, "tea.md"))
	if err != nil || string(text) != "# Tea\n\nGreen tea is brewed at seventy degrees. `eighty` is a constant.\n" {
		t.Errorf("after the merge the folder has %q, %v", text, err)
	}
	deadline := time.Now().Add(30 * time.Second)
	for {
		var a client.Answer
		out := docent(t, "ask", "--url", server.url, "--domain", p.domain, "--key", p.assistant, "--json", "At how many degrees is green tea brewed?")
		if err := json.Unmarshal([]byte(out), &a); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(a.Text, "seventy degrees") {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("after the merge the answer is still %q", a.Text)
		}
	}
}

func TestUndoTakesBackWhatAJobDid(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	source := writeFiles(t, map[string]string{"tea.md": "# Tea\n\nGreen tea is brewed at eighty degrees.\n", "index.md": "# Home\n"})
	p := newTestProject(t, data, "tea", source)
	server := newTestServer(t, data)
	var j api.Job
	for _, step := range [][]string{{"create", `replace "eighty" with "seventy" in tea.md`}, {"message", "undo that"}} {
		args := []string{"job", step[0], "--wait", "--json", "--url", server.url, "--project", p.id, "--key", p.admin}
		if step[0] == "message" {
			args = append(args, string(j.ID))
		}
		if err := json.Unmarshal([]byte(docent(t, append(args, step[1])...)), &j); err != nil {
			t.Fatal(err)
		}
		if j.Status != api.JobCompleted || j.PRLink == nil {
			t.Fatalf("%q: %+v", step[1], j)
		}
	}
	diff, err := get(t.Context(), *j.PRLink+".diff")
	if err != nil || strings.TrimSpace(diff) != "" {
		t.Errorf("after the undo the pull request still changes something: %v\n%s\n%s", err, diff, j.Message)
	}
}
