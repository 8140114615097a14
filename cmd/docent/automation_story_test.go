package main

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"docent/api"
)

// TestAutomationsFromPushToPullRequest lets an automation run by hand, by a change of the documentation and by a webhook,
// over a restart, and looks that there is one open pull request at a time.
func TestAutomationsFromPushToPullRequest(t *testing.T) {
	t.Parallel()
	setenv(t, "TEA_HOOK", "sesame")
	data := filepath.Join(t.TempDir(), "data")
	source := writeFiles(t, map[string]string{
		"tea.md":            "# Tea\n\nPour teh water over teh leaves.\n",
		".docent/typos.md":  `replace "teh" with "the" in all pages`,
		".docent/nothing":   "",
		"docs/unrelated.md": "# Unrelated\n",
	})
	p := newTestProject(t, data, "tea", source, "--webhook-env", "TEA_HOOK")
	for _, c := range []struct{ flags, want string }{
		{"--prompt .docent/none --cron @daily", "there is no file"}, {"--prompt .docent/nothing --cron @daily", "is empty"},
		{"--prompt .docent/typos.md", "cron: is required"}, {"--prompt .docent/typos.md --cron 61", "five fields"},
		{"--prompt ../x --cron @daily", "inside the repository"}, {"--prompt .docent/typos.md --cron @daily --time-zone Nowhere", "time zone"},
		{"--prompt .docent/typos.md --on-push-of api", "OWNER/NAME"}, {"--prompt .docent/typos.md --cron @daily --daily-cap 0", "--daily-cap"},
	} {
		args := append([]string{"automation", "add", "--data", data, "--project", p.id, "--name", "bad"}, strings.Fields(c.flags)...)
		if _, err := tryDocent(t, args...); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.flags, err)
		}
	}
	docent(t, "automation", "add", "--data", data, "--project", p.id, "--name", "typos", "--prompt", ".docent/typos.md",
		"--cron", "0 6 1 1 *", "--time-zone", "Europe/Berlin", "--on-push", "--on-push-of", "acme/kettle", "--draft")
	state := func() api.Automation {
		t.Helper()
		var a api.Automation
		if err := json.Unmarshal([]byte(docent(t, "automation", "list", "--data", data, "--project", p.id, "--json")), &a); err != nil {
			t.Fatal(err)
		}
		return a
	}
	if a := state(); a.Next == nil || a.Next.Before(time.Now()) || a.Last != nil {
		t.Errorf("%+v", a)
	}
	docent(t, "automation", "run", "--data", data, "typos") // no server runs: the next one carries it out
	if a := state(); a.Last == nil || a.Last.Status != api.RunAccepted {
		t.Errorf("%+v", a.Last)
	}

	server := newTestServer(t, data)
	at := []string{"--url", server.url, "--project", p.id, "--key", p.admin}
	// ran waits for the run after the one with a key, and for its job to end.
	ran := func(after string) (api.AutomationRun, api.Job) {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); ; {
			a := state()
			if a.Last != nil && a.Last.Key != after && a.Last.Status != api.RunAccepted {
				var j api.Job
				if a.Last.Status != api.RunStarted {
					t.Fatalf("%+v", a.Last)
				}
				out, err := tryDocent(t, append([]string{"job", "watch", "--json", string(a.Last.Job)}, at...)...)
				if jerr := json.Unmarshal([]byte(out), &j); jerr != nil || (err == nil) != (j.Outcome == api.OutcomeChanged) {
					t.Fatalf("%v, %v: %s", err, jerr, out)
				}
				return *a.Last, j
			}
			if time.Now().After(deadline) {
				t.Fatalf("the automation does not run: %+v\n%s", a.Last, server.log)
			}
		}
	}
	first, made := ran("")
	if first.Trigger != api.TriggerManual || first.FollowUp || made.PRLink == nil {
		t.Fatalf("%+v, %+v", first, made)
	}

	// The documentation changes: the open pull request is appended to.
	if err := os.WriteFile(filepath.Join(source, "more.md"), []byte("# More\n\nDrink teh tea.\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	pushed, second := ran(first.Key)
	if pushed.Trigger != api.TriggerPush || len(pushed.Commit) != 40 || !pushed.FollowUp || second.ID != made.ID || *second.PRLink != *made.PRLink {
		t.Errorf("%+v, %+v", pushed, second)
	}

	// The code is pushed to, and its host tells so twice, with a restart in between.
	body := []byte(`{"ref":"refs/heads/main","after":"` + strings.Repeat("ab", 20) + `","repository":{"full_name":"acme/kettle","default_branch":"main"}}`)
	hook := func(secret string, want int) string {
		t.Helper()
		mac := hmac.New(sha256.New, []byte(secret))
		mac.Write(body)
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.url+"/v1/webhook/tea/push", bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("X-GitHub-Event", "push")
		req.Header.Set("X-Hub-Signature-256", "sha256="+hex.EncodeToString(mac.Sum(nil)))
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, _ := io.ReadAll(resp.Body)
		if resp.StatusCode != want {
			t.Errorf("the webhook answers %s: %s", resp.Status, text)
		}
		return string(text)
	}
	hook("open", http.StatusUnauthorized)
	hook("sesame", http.StatusAccepted)
	told, third := ran(pushed.Key)
	if told.Repository != "acme/kettle" || !told.FollowUp || third.ID != made.ID {
		t.Errorf("%+v, %+v", told, third)
	}
	server.kill()
	server.start()
	hook("sesame", http.StatusAccepted)
	if a := state(); a.Last.Key != told.Key {
		t.Errorf("the same push ran twice: %+v", a.Last)
	}

	// Its pull request is merged, which is a push: what is left to do comes in a new one.
	docent(t, "pull", "merge", "--data", data, *made.PRLink)
	last, fresh := ran(told.Key)
	if last.FollowUp || fresh.ID == made.ID || fresh.PRLink == nil || *fresh.PRLink == *made.PRLink {
		t.Errorf("%+v, %+v", last, fresh)
	}
	if pulls := docent(t, "pull", "list", "--data", data, "--project", p.id, "--state", "open", "--json"); strings.Count(pulls, "\n") != 1 {
		t.Errorf("the open pull requests are\n%s", pulls)
	}
	docent(t, "automation", "remove", "--data", data, "typos")
	if left := docent(t, "automation", "list", "--data", data); strings.Contains(left, "typos") {
		t.Errorf("%s", left)
	}
	if _, err := tryDocent(t, "automation", "run", "--data", data, "typos"); err == nil {
		t.Error("a removed automation runs")
	}
}
