package agent_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"docent/agent"
)

// A server that does not read what its model writes gives calls as text. The model is told once, and then the job
// fails: it is no job without anything to do.
func TestAnEndpointThatDoesNotCallToolsFailsTheJob(t *testing.T) {
	for _, text := range []string{
		`<tool_call>{"name":"read_file","arguments":{"path":"a.md"}}</tool_call>`,
		"```json\n{\"name\": \"functions.read_file\", \"parameters\": {\"path\": \"a.md\"}}\n```",
		`<|tool_calls_section_begin|><|tool_call_begin|>functions.read_file:0<|tool_call_argument_begin|>{"path":"a.md"}<|tool_call_end|>`,
		`[TOOL_CALLS][{"name":"read_file","arguments":{"path":"a.md"}}]`,
		"<function=read_file>{\"path\": \"a.md\"}</function>",
		"[read_file(path=\"a.md\")]",
		"```tool_code\nprint(default_api.read_file(path='a.md'))\n```",
		"I look at the page first.\n\n<read_file>\n<path>a.md</path>\n</read_file>",
		"Thought: I need the page.\nAction: read_file\nAction Input: {\"path\": \"a.md\"}",
		"<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"read_file\">\n<｜DSML｜parameter name=\"path\">a.md</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>",
		"```json\n{\"read_file\": {\"path\": \"a.md\"}}\n```",
		"<|channel|>commentary to=functions.read_file <|constrain|>json<|message|>{\"path\":\"a.md\"}",
		"TOOL_CALL: {\"tool\": \"read_file\", \"args\": {\"path\": \"a.md\"}}",
		"finish(summary=\"All is done.\")",
	} {
		j := newLoop(t, small(), agent.Reply{Text: text}, agent.Reply{Text: text})
		if m := j.ends(); !strings.Contains(m, "does not call tools") || !strings.Contains(m, "Nothing was published") {
			t.Errorf("%s: %s", text, m)
		}
		if len(j.model.asked) != 2 || !strings.Contains(j.model.shown(1), "as text") {
			t.Errorf("%s: asked %d times, told %q", text, len(j.model.asked), j.model.shown(1))
		}
	}
	// Words about tools are no calls.
	for _, text := range []string{"I used read_file and grep: a.md is right.", "Nothing to do: `edit_file` was not needed.", "Use log(x) and grep (as before); the page is fine.",
		"The <move> element stays. Action: none.", "I read a.md (finish)."} {
		j := newLoop(t, small(), agent.Reply{Text: text}, agent.Reply{Text: text})
		if res := j.must(); len(res.Changes) > 0 {
			t.Errorf("%s: %+v", text, res)
		}
	}
	// Who calls after it was told goes on, and words alone are a summary.
	j := newLoop(t, small(), agent.Reply{Text: "<tool_call>read_file</tool_call>"}, read("a.md"), agent.Reply{Text: "All is well."},
		agent.Reply{Text: "All is well."})
	if res := j.must(); len(res.Changes) > 0 || !strings.Contains(res.Message, "All is well") {
		t.Errorf("%+v", res)
	}
}

func TestAModelThatOnlyThinksIsToldToHaveMoreRoom(t *testing.T) {
	cut := agent.Reply{Reason: "length"}
	if m := newLoop(t, small(), cut, cut, cut).ends(); !strings.Contains(m, "length limit") || !strings.Contains(m, "max_tokens") {
		t.Error(m)
	}
}

func TestFencesAndPrefixesOfCallsAreRead(t *testing.T) {
	fenced := func(id, name, arguments string) agent.Reply {
		return calls(agent.Call{ID: id, Name: name, Arguments: arguments})
	}
	j := newLoop(t, small(),
		fenced("f1", "functions.read_file", "```\n{\"path\": \"a.md\"}\n```"),
		fenced("f2", "default_api:read_file", "~~~json\n{\"path\": \"a.md\"}\n~~~"),
		fenced("f3", "functions.read_file:0", "```json {\"path\": \"a.md\"}```"),
		agent.Reply{Text: "Nothing."}, agent.Reply{Text: "Nothing."})
	j.must()
	for n := 1; n <= 3; n++ {
		if shown := j.model.shown(n); strings.Contains(shown, "no tool") || strings.Contains(shown, "no valid JSON") {
			t.Errorf("call %d gave %q", n, shown)
		}
	}
}

// What the provider sent with a turn is in the journal's step, and goes back with the conversation, after a restart too.
func TestWhatIsKeptOfATurnGoesBack(t *testing.T) {
	first := read("a.md")
	first.Kept = []byte(`{"by":"x","as":1}`)
	j := newLoop(t, small(), first, errors.New("down"), errors.New("down"), errors.New("down"))
	j.ends()
	if len(j.steps) != 1 || string(j.steps[0].Reply.Kept) != string(first.Kept) {
		t.Fatalf("%+v", j.steps)
	}
	j.model.say = append(j.model.say, agent.Reply{Text: "Nothing."}, agent.Reply{Text: "Nothing."})
	j.must()
	for n, chat := range j.model.asked[1:] {
		if string(chat.Turns[1].Kept) != string(first.Kept) {
			t.Errorf("call %d: %+v", n+1, chat.Turns[1])
		}
	}
}

// Waiting for the model is no work: hours of it do not end a job whose work may take ten minutes.
func TestWaitingForTheModelIsNoWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var say []any
		for range 8 {
			say = append(say, &agent.Unavailable{After: 30 * time.Minute, Err: errors.New("model m at h is not available (status 529)")})
		}
		j := newLoop(t, small(), append(say, agent.Reply{Text: "Nothing."}, agent.Reply{Text: "Nothing."})...)
		var given time.Duration
		j.task.Extend = func(d time.Duration) { given += d }
		began := time.Now()
		j.must()
		if took := time.Since(began); took != 4*time.Hour || given != took {
			t.Errorf("waited %v, given back %v", took, given)
		}
		told := j.told[len(j.told)-1]
		if len(j.told) != 1 || !told.Waiting.Equal(began) ||
			told.Text != "Waiting for the model since "+began.UTC().Format("2006-01-02 15:04")+" UTC: model m at h is not available (status 529)" {
			t.Errorf("told %+v", j.told)
		}
		if spent := j.steps[len(j.steps)-1].Spent.Time; spent > time.Minute {
			t.Errorf("%v of work", spent)
		}
		// A run that takes up the wait goes on from where it began.
		j = newLoop(t, small(), say[0], say[0], say[0])
		j.task.Waiting = time.Now().Add(-6*time.Hour + time.Minute)
		began = time.Now()
		if m := j.ends(); !strings.Contains(m, "could not be asked for 6h0m0s") || time.Since(began) != time.Minute {
			t.Errorf("after %v: %s", time.Since(began), m)
		}
	})
}

// A limit on cost that cannot hold is said.
func TestAModelWithoutAPriceIsNamed(t *testing.T) {
	j := newLoop(t, small(), agent.Reply{Text: "Nothing."}, agent.Reply{Text: "Nothing."})
	j.model.free = true
	j.must()
	if len(j.told) == 0 || !strings.Contains(j.told[0].Text, "No price is known for scripted") {
		t.Errorf("%+v", j.told)
	}
}

func TestSeveralReplacementsAreMadeTogetherOrNotAtAll(t *testing.T) {
	files := map[string]string{"a.md": "# A\r\n\r\none\r\ntwo\r\nthree\r\n"}
	edits := func(list ...args) agent.Reply { return one("edit_file", args{"path": "a.md", "edits": list}) }
	j := newLoop(t, files, read("a.md"),
		edits(args{"old_text": "one", "new_text": "1"}, args{"old_text": "zero", "new_text": "0"}),
		edits(args{"old_text": "three", "new_text": "3\nand more"}, args{"old_text": "one", "new_text": "1\n1"}, args{"old_text": "# A", "new_text": "# B"}),
		finish, finish)
	res := j.must()
	if len(res.Changes) != 1 || string(res.Changes[0].Content) != "# B\r\n\r\n1\r\n1\r\ntwo\r\n3\r\nand more\r\n" {
		t.Errorf("%+v", res.Changes)
	}
	if shown := j.model.shown(2); !strings.Contains(shown, "Replacement 2 of 2") && !strings.Contains(shown, "eplacement 2 of 2 can't be made, so none was") {
		t.Errorf("told %q", shown)
	}
	if shown := j.model.shown(3); !strings.Contains(shown, "6\t3") || !strings.Contains(shown, "1\t# B") {
		t.Errorf("shown %q", shown)
	}
}

func TestTextIsInsertedBehindALine(t *testing.T) {
	for _, c := range []struct {
		src   string
		after int
		text  string
		want  string
	}{
		{"a\nb\n", 1, "x", "a\nx\nb\n"}, {"a\nb\n", 0, "x\n", "x\na\nb\n"}, {"a\nb\n", 2, "x\ny\n", "a\nb\nx\ny\n"},
		{"a\nb", 2, "x", "a\nb\nx"}, {"a\r\nb\r\n", 1, "x\ny", "a\r\nx\r\ny\r\nb\r\n"},
	} {
		j := newLoop(t, map[string]string{"a.md": c.src}, read("a.md"), one("insert_text", args{"path": "a.md", "after_line": c.after, "text": c.text}), finish, finish)
		if res := j.must(); len(res.Changes) != 1 || string(res.Changes[0].Content) != c.want {
			t.Errorf("%q after %d: %+v", c.src, c.after, res.Changes)
		}
	}
	j := newLoop(t, map[string]string{"a.md": "a\n"}, one("insert_text", args{"path": "a.md", "after_line": 0, "text": "x"}), read("a.md"),
		one("insert_text", args{"path": "a.md", "after_line": 9, "text": "x"}), agent.Reply{Text: "No."}, agent.Reply{Text: "No."})
	j.must()
	if !strings.Contains(j.model.shown(1), "has not been read") || !strings.Contains(j.model.shown(3), "there is no line 9") {
		t.Errorf("%q, %q", j.model.shown(1), j.model.shown(3))
	}
}

func TestAFileIsTakenBack(t *testing.T) {
	files := map[string]string{"a.md": "# A\n\none\n", "b.md": "# B\n\ntwo\n"}
	j := newLoop(t, files, read("a.md"), read("b.md"), replace("a.md", "one", "1"), replace("b.md", "two", "2"),
		one("undo_file", args{"path": "a.md"}), one("undo_file", args{"path": "a.md"}), finish, finish)
	if res := j.must(); len(res.Changes) != 1 || res.Changes[0].Path != "b.md" || strings.Contains(res.Body, "a.md") {
		t.Errorf("%+v", res)
	}
	if !strings.Contains(j.model.shown(6), "has not been edited") {
		t.Errorf("%q", j.model.shown(6))
	}
}

func TestPicturesAreLeftOutOfListings(t *testing.T) {
	files := map[string]string{"a.md": "# A\n", "images/x.png": "p", "images/y.JPG": "p"}
	j := newLoop(t, files, one("list_files", args{}), one("list_files", args{"path": "images"}), one("list_files", args{"glob": "**/*.png"}),
		agent.Reply{Text: "No."}, agent.Reply{Text: "No."})
	j.must()
	for n, want := range map[int]string{1: "2 pictures left out", 2: "2 pictures left out", 3: "images/x.png (1)"} {
		if shown := j.model.shown(n); !strings.Contains(shown, want) || n < 3 && strings.Contains(shown, "x.png") {
			t.Errorf("listing %d: %q", n, shown)
		}
	}
}
