package router_test

import (
	"bytes"
	"testing"
	"time"

	"docent/api"
	"docent/router/ownkey"
)

func TestThePreviewOfTheWidgetAsksForAWhile(t *testing.T) {
	h := build(t)
	secret := bytes.Repeat([]byte{7}, 32)
	p := api.Project{ID: "acme"}
	key := ownkey.Preview(secret, p, h.clock.Now())
	h.text(200, "POST", v2, key, ask)
	h.json(404, "POST", "/discovery/v2/assistant/two.acme.example/message", key, ask)
	h.json(403, "GET", "/v2/agent/acme/jobs", key, "")
	h.json(401, "POST", v2, key[:len(key)-2]+"AA", ask)
	h.json(401, "POST", v2, "dct_preview_", ask)
	h.json(401, "POST", v2, ownkey.Preview(bytes.Repeat([]byte{8}, 32), p, h.clock.Now()), ask)
	h.clock.advance(4 * time.Hour)
	h.json(401, "POST", v2, key, ask)
}

// The keys of chats are for this process alone: nobody outside has the addresses that people in chats have here.
func TestTheKeysOfChatsAreGoodFromNoOtherAddress(t *testing.T) {
	h := build(t)
	secret, p := bytes.Repeat([]byte{7}, 32), api.Project{ID: "acme"}
	for _, in := range []api.Channel{api.ChannelSlack, api.ChannelDiscord} {
		h.json(403, "POST", v2, ownkey.Chat(secret, in, p, h.clock.Now()), ask)
	}
}

func TestTheOperatorsCommandsAskAndWorkWithoutAKey(t *testing.T) {
	h := build(t)
	secret, p := bytes.Repeat([]byte{7}, 32), api.Project{ID: "acme"}
	question := ownkey.Operator(secret, api.AssistantKey, p, h.clock.Now())
	h.text(200, "POST", v2, question, ask)
	h.json(403, "GET", "/v2/agent/acme/jobs", question, "")
	work := ownkey.Operator(secret, api.AdminKey, p, h.clock.Now())
	h.json(200, "GET", "/v2/agent/acme/jobs", work, "")
	h.json(401, "GET", "/v2/agent/acme/jobs", "dct_job_"+question[len("dct_ask_"):], "")
	h.clock.advance(4 * time.Hour)
	h.json(401, "GET", "/v2/agent/acme/jobs", work, "")
}
