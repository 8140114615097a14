package api

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"docent/actors/webhooks"
	"docent/api"
	"docent/api/client"
	"docent/forge/forgetest"
	"docent/tests/harness"
)

// TestAConversationReachesPeople hands a conversation over that the documentation did not help, against a server that is killed
// right after: a webhook gets it with what was said, and it becomes one issue of the repository once the project's settings say so.
func TestAConversationReachesPeople(t *testing.T) {
	t.Parallel()
	const secret = "hst_TheTokenOfTheTracker"
	host := forgetest.NewStandIn(t)
	host.Do(func() { host.Tokens = []string{secret} })
	harness.Setenv(t, "CONTACT_DOCS_TOKEN", secret)
	events := make(chan webhooks.Payload, 16)
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		var p webhooks.Payload
		if err := json.Unmarshal(body, &p); err != nil {
			t.Errorf("%v: %s", err, body)
		}
		events <- p
		w.WriteHeader(http.StatusNoContent)
	}))
	t.Cleanup(receiver.Close)
	data, config := filepath.Join(t.TempDir(), "data"), harness.AllowLoopback(t)
	p := harness.NewProject(t, data, "harbour", "", "--host", "gitea", "--host-url", host.URL, "--repository", "acme/docs",
		"--token-env", "CONTACT_DOCS_TOKEN")
	harness.AddTestWebhook(t, data, config, p.ID, receiver.URL, "--event", string(api.EventContactRequested))
	server := harness.NewServer(t, data, "--config", config)
	cl := server.Client(p.Assistant)
	set := func(widget string) {
		t.Helper()
		harness.Docent(t, "project", "set", p.ID, "--data", data, "--config", config, "--file", harness.SettingsFile(t, widget))
	}
	ask := func() client.HandOver {
		t.Helper()
		answer, err := cl.Ask(t.Context(), client.Question{Domain: p.Domain, Text: "What does a zeppelin cost?", Caller: "ada"}, io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		return client.HandOver{ThreadID: answer.ThreadID, MessageID: answer.MessageID, FP: "ada", Name: "Ada",
			Email: "ada@example.org", Message: "Is there a price list?"}
	}
	first := ask()
	if err := cl.HandOver(t.Context(), p.Domain, first); err == nil || !strings.Contains(err.Error(), "not the form") {
		t.Errorf("without the form: %v", err)
	}
	set(`{"widget": {"contact": "form"}}`)
	for range 2 { // the same again changes nothing
		if err := cl.HandOver(t.Context(), p.Domain, first); err != nil {
			t.Fatal(err)
		}
	}
	server.Kill()
	server.Start()
	var e webhooks.Payload
	harness.Until(t, "the event", func() bool {
		select {
		case e = <-events:
			return true
		default:
			return false
		}
	})
	if e.Type != api.EventContactRequested || e.Data.Contact.Email != "ada@example.org" || e.Data.Contact.Reader != "ada" ||
		len(e.Data.Conversation) != 1 || e.Data.Conversation[0].Question != "What does a zeppelin cost?" || e.Data.Conversation[0].Answered {
		t.Errorf("the event is %+v", e)
	}
	if len(host.Issues) != 0 {
		t.Error("an issue without the setting")
	}
	set(`{"widget": {"contact": "form", "contactIssues": true}}`)
	second := ask()
	if err := cl.HandOver(t.Context(), p.Domain, second); err == nil || !strings.Contains(err.Error(), "others may read") {
		t.Errorf("from a form that does not say so: %v", err)
	}
	second.Public = true
	if err := cl.HandOver(t.Context(), p.Domain, second); err != nil {
		t.Fatal(err)
	}
	second.Message = "And another thing."
	if err := cl.HandOver(t.Context(), p.Domain, second); err == nil || !strings.Contains(err.Error(), "already") {
		t.Errorf("a second message: %v", err)
	}
	issues := func() (list []forgetest.StandInIssue) {
		host.Do(func() { list = append(list, host.Issues...) })
		return list
	}
	harness.Until(t, "the issue", func() bool { return len(issues()) == 1 })
	if text := issues()[0].Title + issues()[0].Body; !strings.Contains(text, "Is there a price list") || !strings.Contains(text, "zeppelin") ||
		strings.Contains(text, "ada") || strings.Contains(text, "Ada") {
		t.Errorf("the issue is %s", text)
	}
	list := harness.Docent(t, "webhook", "list", "--data", data)
	if !strings.Contains(list, api.IssuesURL) {
		t.Errorf("the webhooks are\n%s", list)
	}
	set(`{"widget": {"contactIssues": false}}`)
	if list := harness.Docent(t, "webhook", "list", "--data", data); strings.Contains(list, api.IssuesURL) {
		t.Errorf("with the setting off:\n%s", list)
	}
}
