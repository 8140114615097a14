package job

import (
	"encoding/hex"
	"slices"
	"testing"

	"docent/agent"
	"docent/api"
	"docent/persistence/journal"
)

// A step of before it kept what its provider sent is read as one without, and one that keeps it gives it back as it was.
func TestStepsOfEveryProgramAreRead(t *testing.T) {
	old, err := hex.DecodeString("a201ad01020203036263300461730582a40164746f6f6c0261740462633105f5a20169617373697374616e740381a30162633102616e03627b7d0604070508f509a501616d0261780381a30162633202616e03617b0465746f6f6c7305a401010202030304040aa5010102020303040405050b010c61720d010274323032362d30312d30325430333a30343a30355a")
	if err != nil {
		t.Fatal(err)
	}
	ev, err := Decode(journal.Event{Type: "job.stepped.1", Data: old})
	if err != nil {
		t.Fatal(err)
	}
	step := ev.(Stepped).Step
	if step.Reply.Kept != nil || step.Before[1].Kept != nil || step.Reply.Calls[0].ID != "c2" {
		t.Errorf("%+v", step)
	}
	step.Reply.Kept = []byte(`{"by":"chat h m","as":{"message":{"reasoning_content":"\u003c"}}}`)
	step.Before[1].Kept = []byte{0, 255}
	stored, err := Encode(Stepped{Step: step, At: t0})
	if err != nil {
		t.Fatal(err)
	}
	back, err := Decode(stored)
	if err != nil || string(back.(Stepped).Step.Reply.Kept) != string(step.Reply.Kept) || !slices.Equal(back.(Stepped).Step.Before[1].Kept, []byte{0, 255}) {
		t.Errorf("%+v, %v", back, err)
	}
}

// Each call of a tool is told once with what it was and what it gave: with the answer after it, or at the end.
func TestEachCallIsToldOnceWithWhatItGave(t *testing.T) {
	reply := func(calls ...agent.Call) agent.Reply { return agent.Reply{Calls: calls} }
	s := state{id: testID}
	for _, ev := range []Event{Created{Project: "p", Job: testID, At: t0}, Prompted{ID: "i", At: t0},
		Stepped{At: t0, Step: agent.Step{Round: 1, Number: 1, Reply: reply(agent.Call{ID: "a", Name: "read_file", Arguments: `{"path":"x"}`}, agent.Call{ID: "b", Name: "grep"})}},
		Stepped{At: t0, Step: agent.Step{Round: 1, Number: 2, Before: []agent.Turn{{Role: "assistant"},
			{Role: "tool", CallID: "a", Text: "1"}, {Role: "tool", CallID: "b", Text: "2", Failed: true}}, Reply: reply(agent.Call{ID: "a", Name: "finish"})}},
		edit("b", 1, "a.md"), Finished{At: t0},
	} {
		s = s.apply(ev)
	}
	var told []ToolUse
	for _, e := range s.log {
		if e.Tool != nil {
			t.Errorf("%+v", e.Tool)
		}
		told = append(told, e.Results...)
	}
	want := []ToolUse{{Name: "read_file", Input: `{"path":"x"}`, Output: "1", ID: "1/a"}, {Name: "grep", Output: "2", Failed: true, ID: "1/b"}, {Name: "finish", ID: "1/a"}}
	if !slices.Equal(told, want) {
		t.Errorf("%+v", told)
	}
}

// Since when a job waits for its model is in the journal, and is over with the model's next answer.
func TestTheWaitForAModelIsKept(t *testing.T) {
	s := state{id: testID}.apply(Created{Project: "p", Job: testID, At: t0}).apply(Prompted{ID: "i", At: t0})
	s = s.apply(Progressed{Text: "Waiting for the model since …", At: t0, Waiting: t0.UnixMilli()})
	snapshot, err := s.snapshot()
	if err != nil {
		t.Fatal(err)
	}
	back, err := restore(testID, snapshot)
	if err != nil || back.waiting != t0.UnixMilli() || !(&effect{state: back}).waiting().Equal(t0) || back.message != "Waiting for the model since …" {
		t.Errorf("%+v, %v", back, err)
	}
	if back = back.apply(Stepped{At: t0, Step: agent.Step{Round: 1, Number: 1}}); back.waiting != 0 {
		t.Error("it goes on to wait")
	}
}

// What commits are by is in the journal with the edit: who changes the project's settings changes no commit that was begun,
// and what earlier programs wrote stays the commit that it was.
func TestTheAuthorOfAnEditIsKept(t *testing.T) {
	s := state{id: testID}
	project := api.Project{ID: "p", Pulls: api.PullForm{Author: "Other <other@acme.example>", Draft: true}}
	signed := edit("b", 1, "a.md")
	signed.Author, signed.SignOff = "Docs <docs@acme.example>", true
	for _, ev := range []Event{Created{Project: "p", Job: testID, At: t0},
		Prompted{ID: "i", At: t0, Follows: Follows{Authors: []string{"ann"}, Pages: []string{"a.md", "b.md"}}}, signed} {
		stored, err := Encode(ev)
		if err != nil {
			t.Fatal(err)
		}
		if ev, err = Decode(stored); err != nil {
			t.Fatal(err)
		}
		s = s.apply(ev)
	}
	snapshot, err := s.snapshot()
	if err != nil {
		t.Fatal(err)
	}
	back, err := restore(testID, snapshot)
	if err != nil {
		t.Fatal(err)
	}
	if p := back.publication(project); p.Author != signed.Author || !p.SignOff || !p.Draft || back.queue[0].Follows.Authors[0] != "ann" {
		t.Errorf("%+v", p)
	}
	old := state{id: testID, edited: edit("b", 1, "a.md")}
	if p := old.publication(project); p.Author != "" || p.SignOff {
		t.Errorf("%+v", p)
	}
	e := &effect{state: back, deps: patient().deps}
	if got := e.leftAlone(back.queue[0], signed.Result); got != "Done.\n\nLooked at for the change of code, and left as they are: b.md." {
		t.Errorf("%q", got)
	}
}
