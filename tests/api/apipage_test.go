package api

import (
	"os"
	"path/filepath"
	"testing"

	"docent/tests/harness"
)

// TestTheAPIPageInABrowser reads the page of the API as developers do, and tries requests on it.
func TestTheAPIPageInABrowser(t *testing.T) {
	t.Parallel()
	chromium := harness.NeedsBrowser(t)
	data := filepath.Join(t.TempDir(), "data")
	server := harness.NewServer(t, data, "--config",
		harness.SettingsFile(t, "[models.slow]\nprovider = \"scripted\"\nrate = 40\nparts = 100\n"+harness.EndlessModel))
	pages := map[string]string{
		"index.md":          "# Harbour\n\nHarbour keeps boats.\n",
		"guides/mooring.md": "---\ntitle: Mooring\n---\n# Mooring\n\nTo moor a boat, run `harbour moor BOAT`. It takes a minute.\n",
	}
	p := harness.NewProject(t, data, "harbour", harness.WriteFiles(t, pages))
	slow := harness.NewProject(t, data, "slow", harness.WriteFiles(t, pages), "--model", "slow")
	endless := harness.NewEndlessProject(t, data)
	settings := map[string]any{"chromium": chromium, "domain": p.Domain, "project": p.ID, "admin": p.Admin,
		"assistant": p.Assistant, "slowDomain": slow.Domain, "slowAssistant": slow.Assistant,
		"endlessDomain": endless.Domain, "endlessAssistant": endless.Assistant, "pictures": os.Getenv("DOCENT_TEST_PICTURES")}
	harness.InBrowser(t, "api.mjs", settings, server)
}
