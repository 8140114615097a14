package console

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"docent/api"
	"docent/cmd/docent/config"
	"docent/tests/harness"
)

// TestAnAppInAChatIsConnectedInTheConsole has an operator connect Slack on the page Settings, see what was wrong with the
// tokens, and disconnect it. An owner does not: it is who runs the server that opens a project to a workspace.
func TestAnAppInAChatIsConnectedInTheConsole(t *testing.T) {
	t.Parallel()
	slack := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if !strings.HasSuffix(req.Header.Get("Authorization"), "-good") {
			fmt.Fprint(w, `{"ok": false, "error": "invalid_auth"}`)
			return
		}
		fmt.Fprint(w, `{"ok": true, "url": "wss://wss.example/link", "team": "Tea & <Co>"}`)
	}))
	t.Cleanup(slack.Close)
	h, stop := openConsoleHouse(t, filepath.Join(t.TempDir(), "data"), func(c *config.Config) { c.SlackURL = slack.URL })
	t.Cleanup(stop)
	withProject(h, "tea", harness.OnePage)
	const page = "/console/default/tea.example.com/settings"
	form := url.Values{"app": {"slack"}, "appToken": {"xapp-good"}, "botToken": {"xoxb-bad"}}
	owner := h.As(api.RoleOwner)
	if status, _, _ := owner.Send(page, page+"/chat", form); status != http.StatusNotFound || strings.Contains(owner.Open(page), "xoxb") {
		t.Errorf("an owner connects an app: %d", status)
	}
	b := h.As("")
	if status, text, _ := b.Send(page, page+"/chat", form); status != http.StatusBadRequest || !strings.Contains(text, "invalid_auth") || strings.Contains(text, "xoxb-bad") {
		t.Errorf("a token that Slack refuses: %d\n%s", status, text)
	}
	form.Set("botToken", "xoxb-good")
	status, text, to := b.Send(page, page+"/chat", form)
	if status != http.StatusSeeOther {
		t.Fatalf("connecting it: %d\n%s", status, text)
	}
	shown := b.Open(to)
	wants(t, shown, "The assistant answers in Tea &amp; &lt;Co&gt;", "Disconnect Slack", "Connect Discord")
	if strings.Contains(shown, "-good") {
		t.Error("a token is shown")
	}
	if status, _, _ = b.Send(page, page+"/change", url.Values{"name": {"Tea"}, "domain": {"tea.example.com"}}); status != http.StatusSeeOther {
		t.Errorf("other settings: %d", status)
	}
	p, err := h.App.Stores.Catalog.Project(t.Context(), "tea")
	if err != nil || !p.Chats.Slack.On() || p.Name != "Tea" {
		t.Errorf("after a change of other settings: %+v, %v", p.Chats, err)
	}
	if status, _, to = b.Send(page, page+"/chat", url.Values{"app": {"slack"}, "remove": {"yes"}}); status != http.StatusSeeOther {
		t.Errorf("removing it: %d", status)
	}
	wants(t, b.Open(to), "Connect Slack")
	if left := harness.Holders(t, h.Data, "xoxb-good"); len(left) > 0 {
		t.Errorf("the token is still in %v", left)
	}
}
