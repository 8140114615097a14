package api

import (
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"docent/tests/harness"
)

// The settings reach what they are for: a server whose operator has named nobody that is not limited counts this
// machine as a client.
func TestTheShareOfAClientHoldsOnARunningServer(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	config := harness.SettingsFile(t, "max_client_share = 10\nunlimited_clients = []\n[limits]\nkey_month = 400\n")
	server := harness.NewServer(t, data, "--config", config)
	p := harness.NewProject(t, data, "docs", harness.WriteFiles(t, map[string]string{"a.md": "# Boats\n\nA boat is moored with a rope.\n"}))
	send := func(key, heads string) (int, string) {
		req, err := http.NewRequestWithContext(t.Context(), "POST", server.URL+"/discovery/v2/assistant/"+p.Domain+"/message",
			strings.NewReader(`{"fp":"anonymous","messages":[{"role":"user","parts":[{"type":"text","text":"How is a boat moored?"}]}]}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+key)
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Cookie", heads)
		res, err := (&http.Client{Transport: harness.Patient{}}).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, string(text)
	}
	asked := 0
	for ; asked < 40; asked++ {
		if status, text := send(p.Assistant, ""); status != http.StatusOK {
			if status != http.StatusForbidden || !strings.Contains(text, "proof_of_work") {
				t.Errorf("%d %s", status, text)
			}
			break
		}
	}
	if asked < 4 || asked > 10 { // a quarter of a tenth of 400, or four where the month has just begun
		t.Errorf("%d questions were answered without a proof of work", asked)
	}
	if status, text := send(harness.NewKey(t, data, "docs", "assistant", "--allow-ip", "127.0.0.0/8"), ""); status != http.StatusOK {
		t.Errorf("with a server's key: %d %s", status, text)
	}
	if status, text := send(p.Assistant, strings.Repeat("x", 40<<10)); status != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("a head of 40 KiB: %d %s", status, text)
	}
}
