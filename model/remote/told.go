package remote

import (
	"encoding/json"

	"docent/model"
)

// Prompt is what the model would be sent first for a request. Nothing is sent.
func (r *Model) Prompt(req model.Request) model.Prompt {
	req.Key = ""
	a := r.prepare(req, nil)
	r.bound(&a.chat)
	p := &model.RemotePrompt{Named: r.Model, Chat: a.chat, Given: a.c.given, Searches: a.limit,
		MaxTokens: a.chat.MaxTokens, Window: r.Config.Window, Tokens: tokens(a.chat.System)}
	for _, t := range a.chat.Turns {
		p.Tokens += tokens(t.Text)
	}
	for _, t := range a.chat.Tools {
		p.Tokens += tokens(t.Name + t.Description + string(t.Schema))
	}
	m := r.manners.now()
	p.Body, _ = json.Marshal(r.request(r.wire(&m), &m, &a.chat)) // texts and numbers: cannot fail
	return model.Prompt{Model: r.name, Provider: r.provider, Remote: p}
}

// Provider is whose form of requests the endpoint speaks.
func (r *Model) Provider() string { return r.provider }
