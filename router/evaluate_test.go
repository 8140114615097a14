package router_test

import (
	"strings"
	"testing"
	"time"

	"docent/actors/thread"
	"docent/api"
	"docent/api/stream"
)

// A conversation that is judged is had in a thread that is gone afterwards, and counts against no quota.
func TestAnEvaluationLeavesNothingBehind(t *testing.T) {
	h := build(t)
	h.threads.answer = func(cmd thread.Ask, log *stream.Log) {
		id := api.ThreadID("")
		for thr := range h.threads.all { // there is one
			id = thr
		}
		c := h.threads.read[id]
		c.Project = cmd.Project.ID
		c.Turns = append(c.Turns, thread.Exchange{Turn: cmd.Turn, Question: cmd.Text, Answer: "Run it.", Answered: true,
			Model: cmd.Model, Asked: time.Unix(0, 0), Ended: time.Unix(1, 0), Done: true,
			Sources: []thread.Source{{URL: "https://docs.acme.example/guide/start#run", Title: "Start"}}})
		h.threads.read = map[api.ThreadID]thread.Conversation{id: c}
		log.Append(stream.Part{Kind: stream.Finish, Reason: "stop"})
		log.Close()
	}
	body := `{"questions":[{"question":" how? "},{"question":"and then?","filter":{"version":"2"},"currentPath":"a"}],"model":"builtin"}`
	text, _ := h.text(200, "POST", "/v1/evaluation/acme", h.admin, body)
	for _, want := range []string{`"question":"how?"`, `"question":"and then?"`, `"answered":true`, `"tookMs":1000`,
		`"anchor":"run"`, `"fallbackFor":null`, `"model":"builtin"`} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is not in %s", want, text)
		}
	}
	last := h.threads.last
	if last.Channel != api.ChannelEvaluation || last.Query.Filter.Version != "2" || last.New || len(last.Uses) > 0 ||
		last.Caller != "evaluation" {
		t.Errorf("asked %+v", last)
	}
	if h.quotas.total() != 0 || len(h.threads.all) != 0 {
		t.Errorf("%d uses, threads %v", h.quotas.total(), h.threads.all)
	}
}

func TestAnEvaluationNeedsAnAdminKeyAndQuestions(t *testing.T) {
	h := build(t)
	h.text(403, "POST", "/v1/evaluation/acme", h.assistant, `{"questions":[{"question":"x"}]}`)
	h.text(404, "POST", "/v1/evaluation/nobodys", h.admin, `{"questions":[{"question":"x"}]}`)
	for body, want := range map[string]string{
		`{}`:                  "questions is required",
		`{"questions":[]}`:    "must have 1 to 10 entries",
		`{"questions":[{}]}`:  "questions[0].question",
		`{"questions":["x"]}`: "questions[0] must be an object",
		`{"questions":[{"question":"x"}],"model":"nobody"}`: "model",
	} {
		if text, _ := h.text(400, "POST", "/v1/evaluation/acme", h.admin, body); !strings.Contains(text, want) {
			t.Errorf("%s: %s", body, text)
		}
	}
	if h.threads.asked != 0 {
		t.Errorf("%d questions were asked", h.threads.asked)
	}
}
