package router_test

import (
	"encoding/json"
	"strings"
	"testing"

	"docent/api"
	"docent/router/proof"
)

const challenges = "/discovery/v1/assistant/docs.acme.example/challenge"

// worked makes the project ask for a proof of work, and returns solutions.
func worked(t *testing.T) (h *house, solve func() string) {
	h = build(t)
	p := h.catalog.projects["acme"]
	p.Options.ProofOfWork = api.LeastProofOfWork
	h.catalog.projects["acme"] = p
	return h, func() string {
		t.Helper()
		text, res := h.text(200, "GET", challenges, h.assistant, "", "Origin", "https://docs.acme.example")
		header(t, res, "Cache-Control", "no-store")
		header(t, res, "Access-Control-Allow-Origin", "*")
		var c proof.Challenge
		if err := json.Unmarshal([]byte(text), &c); err != nil {
			t.Fatal(err)
		}
		return proof.Solve(c)
	}
}

func TestAQuestionNeedsAProofOfWorkWhereTheProjectSaysSo(t *testing.T) {
	h, solve := worked(t)
	for _, path := range []string{v1, v2} {
		got := h.json(403, "POST", path, h.assistant, ask)
		if got["code"] != "proof_of_work" || got["challenge"] != challenges || !strings.Contains(got["message"].(string), challenges) {
			t.Errorf("%v", got)
		}
		solution := solve()
		h.text(200, "POST", path, h.assistant, ask, "X-Altcha", solution)
		if got := h.json(403, "POST", path, h.assistant, ask, "X-Altcha", solution); !strings.Contains(got["message"].(string), "used before") {
			t.Errorf("a replay: %v", got)
		}
	}
	h.json(403, "POST", v2, h.assistant, ask, "X-Altcha", "e30=")
	late := solve()
	h.clock.advance(proof.Life)
	if got := h.json(403, "POST", v2, h.assistant, ask, "X-Altcha", late); !strings.Contains(got["message"].(string), "expired") {
		t.Errorf("one that is late: %v", got)
	}
	// Reading and searching need none.
	h.text(200, "POST", "/discovery/v1/search/docs.acme.example", h.assistant, `{"query":"x"}`)
	h.text(200, "HEAD", challenges, h.assistant, "")
	h.text(204, "OPTIONS", challenges, "", "", "Origin", "https://docs.acme.example")
	// Who is not let in gets no challenge either.
	h.json(401, "GET", challenges, "", "")
	h.json(404, "GET", "/discovery/v1/assistant/two.acme.example/challenge", h.assistant, "")
	h.text(200, "GET", "/discovery/v1/assistant/two.acme.example/challenge", // it may be asked for one
		h.key(api.Key{Kind: api.AssistantKey, Org: "org-a", Project: "acme-two"}), "")
}

// A key that is limited to addresses is a server's: it is worth nothing to somebody who reads it in a page.
func TestAServersKeyNeedsNoProofOfWork(t *testing.T) {
	h, _ := worked(t)
	own := h.key(api.Key{Kind: api.AssistantKey, Org: "org-a", Project: "acme", AllowIP: []string{"127.0.0.0/8"}})
	h.text(200, "POST", v2, own, ask)
	page := h.key(api.Key{Kind: api.AssistantKey, Org: "org-a", Project: "acme", Origins: []string{"https://docs.acme.example"}})
	h.json(403, "POST", v2, page, ask, "Origin", "https://docs.acme.example")
}

// What is refused for another reason has not used its proof of work, and neither has a question that was asked already.
func TestAProofOfWorkIsUsedByAnAcceptedQuestionOnly(t *testing.T) {
	h, solve := worked(t)
	solution := solve()
	h.json(404, "POST", v2, h.assistant, strings.Replace(ask, `{`, `{"threadId":"thr_000000000000000000000000000000",`, 1),
		"X-Altcha", solution)
	h.json(400, "POST", v2, h.assistant, `{}`, "X-Altcha", solution)
	for range 10_000 { // the quota of its network
		h.quotas.used["ip/127.0.0.1ip-day"]++
	}
	h.json(429, "POST", v2, h.assistant, ask, "X-Altcha", solution)
	clear(h.quotas.used)
	h.threads.repeat = true
	h.text(200, "POST", v2, h.assistant, ask, "X-Altcha", solution)
	h.threads.repeat = false
	h.text(200, "POST", v2, h.assistant, ask, "X-Altcha", solution)
	h.json(403, "POST", v2, h.assistant, ask, "X-Altcha", solution)
}
