package models

import (
	"context"
	"strings"
	"testing"
	"time"

	"docent/api/client"
	"docent/model/modeltest"
	"docent/tests/harness"
)

// A model writes the questions of each section while nobody waits; a kill loses none that are there; and then a page is
// found in words that it does not have.
func TestPagesAreFoundByQuestionsThatAModelWrote(t *testing.T) {
	t.Parallel()
	const none = `{"questions": []}`
	s := harness.NewModelledServer(t, "openai", "[questions]\nmodel = \"peer\"\nday_cost = 50\n",
		modeltest.Script{Match: "four coins", Shared: true, Steps: []modeltest.Step{{Hold: "tickets", Text: `{"questions": ["How expensive is the passage to Skarholm?"]}`}}},
		modeltest.Script{Match: "from pier two", Shared: true, Steps: []modeltest.Step{{Text: `{"questions": ["Which boat brings me over the sound?"]}`}}},
		modeltest.Script{Shared: true, Steps: []modeltest.Step{{Text: none}}})
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	s.Peer.Held("tickets")
	for harness.ServerStatusOf(t, s.Data).Questions[0].Written < 2 {
		if ctx.Err() != nil {
			t.Fatal(s.Log)
		}
	}
	s.Kill()
	asked := len(s.Peer.Asked())
	s.Peer.Release("tickets")
	s.Start()
	for {
		q := harness.ServerStatusOf(t, s.Data).Questions[0]
		if q.Written == q.Sections && q.Sections == 3 && q.ToGoCents == 0 {
			if q.CostCents == 0 || q.Model != "peer" || q.Problem != "" {
				t.Errorf("the state is %+v", q)
			}
			break
		}
		if ctx.Err() != nil {
			t.Fatal(s.Log)
		}
	}
	if again := len(s.Peer.Asked()) - asked; again > 1 {
		t.Errorf("%d sections were asked about again after the kill", again)
	}
	for question, heading := range map[string]string{"over the sound by boat": "Ferries", "how expensive is the passage": "Tickets"} {
		for {
			found, err := s.Client(s.Project.Assistant).Search(ctx, s.Project.Domain, client.Search{Query: question})
			if err != nil {
				t.Fatal(err)
			}
			if len(found) > 0 && strings.Contains(found[0].Path, "ferries") { // an index that is open reads them at once
				break
			}
			if ctx.Err() != nil {
				t.Fatalf("%q does not find %s: %+v\n%s", question, heading, found, s.Log)
			}
		}
	}
	if out := harness.Docent(t, "status", "--data", s.Data); !strings.Contains(out, "3 of 3 sections have questions by peer, $0.0") {
		t.Errorf("status says\n%s", out)
	}
}
