package remote_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"docent/model"
	"docent/model/modeltest"
	"docent/model/registry"
	"docent/model/remote"
)

// What an operator is shown as the prompt is, byte for byte, what the provider is sent; and no secret is in it.
func TestThePromptIsWhatIsSent(t *testing.T) {
	for provider, form := range providers {
		t.Run(provider, func(t *testing.T) {
			var sent []byte
			transport := modeltest.Transport(func(req *http.Request) (*http.Response, error) {
				sent, _ = io.ReadAll(req.Body)
				return modeltest.Response(200, nil, io.NopCloser(strings.NewReader(form.text("So. [1]")+form.end("stop")))), nil
			})
			for name, change := range map[string]func(*remote.Config, *model.Request){
				"plain": func(*remote.Config, *model.Request) {},
				"with a conversation": func(_ *remote.Config, q *model.Request) {
					q.History = []model.Message{{Role: "user", Text: "What is it?"}, {Role: "assistant", Text: "A widget."}}
					q.Context = []model.Snippet{{Kind: "code", Text: "widget --x", Path: "start.md"}}
					q.Deflection = "help@widget.example"
				},
				"a small window": func(c *remote.Config, q *model.Request) {
					c.Window, c.MaxTokens = 3000, 200
					q.Passages = append([]model.Passage{{Title: "Long", Text: strings.Repeat("many words ", 700)}}, q.Passages...)
				},
				"with searches": func(_ *remote.Config, q *model.Request) {
					q.Search = func(context.Context, string) ([]model.Found, error) { return nil, nil }
				},
			} {
				c := remote.Config{BaseURL: "http://models.example/v1", Model: "m-1", Key: modeltest.Key(secret), Transport: transport}
				q := request
				q.Key = "turn_secretly"
				change(&c, &q)
				r, err := registry.New(registry.Config{Default: "r",
					Models: []registry.Named{{Name: "r", Provider: provider, Remote: c}}})
				if err != nil {
					t.Fatal(err)
				}
				sent = nil
				p, err := r.Prompt("", q)
				if err != nil || sent != nil || p.Remote == nil || p.Provider != provider || p.Remote.Named != "m-1" {
					t.Fatalf("%s: %+v, %v; sent %q", name, p, err, sent)
				}
				var got collected
				if _, err := r.Answer(t.Context(), "r", q, got.emit); err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(bytes.TrimSpace(sent), bytes.TrimSpace(p.Remote.Body)) {
					t.Errorf("%s: shown\n%s\nsent\n%s", name, p.Remote.Body, sent)
				}
				if tools := len(p.Remote.Chat.Tools); (tools > 0) != (name == "with searches") || (p.Remote.Searches > 0) != (tools > 0) {
					t.Errorf("%s: %d tools, %d searches", name, tools, p.Remote.Searches)
				}
				all := string(p.Remote.Body) + p.Remote.Chat.System + p.Remote.Chat.Key
				if strings.Contains(all, secret) || strings.Contains(all, "turn_secretly") {
					t.Errorf("%s: a secret is shown: %s", name, all)
				}
				if last := p.Remote.Chat.Turns[len(p.Remote.Chat.Turns)-1]; !strings.Contains(last.Text, q.Question) ||
					len(p.Remote.Given) == 0 || p.Remote.Tokens < 100 || p.Remote.Tokens > p.Remote.Window {
					t.Errorf("%s: %+v", name, p.Remote)
				}
			}
		})
	}
}
