package main

import (
	"os"
	"path/filepath"
	"testing"
)

// TestTheAPIPageInABrowser reads the page of the API as developers do, and tries requests on it.
func TestTheAPIPageInABrowser(t *testing.T) {
	t.Parallel()
	chromium := needsBrowser(t)
	data := filepath.Join(t.TempDir(), "data")
	server := newTestServer(t, data, "--config",
		settingsFile(t, "[models.slow]\nprovider = \"scripted\"\nrate = 40\nparts = 100\n"+endlessModel))
	pages := map[string]string{
		"index.md":          "# Harbour\n\nHarbour keeps boats.\n",
		"guides/mooring.md": "---\ntitle: Mooring\n---\n# Mooring\n\nTo moor a boat, run `harbour moor BOAT`. It takes a minute.\n",
	}
	p := newTestProject(t, data, "harbour", writeFiles(t, pages))
	slow := newTestProject(t, data, "slow", writeFiles(t, pages), "--model", "slow")
	endless := newEndlessProject(t, data)
	settings := map[string]any{"chromium": chromium, "domain": p.domain, "project": p.id, "admin": p.admin,
		"assistant": p.assistant, "slowDomain": slow.domain, "slowAssistant": slow.assistant,
		"endlessDomain": endless.domain, "endlessAssistant": endless.assistant, "pictures": os.Getenv("DOCENT_TEST_PICTURES")}
	inBrowser(t, "api.mjs", settings, server)
}
