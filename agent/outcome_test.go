package agent_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"docent/agent"
	"docent/api"
)

func starters() map[string]string {
	return map[string]string{
		"index.md":                 "# Home\n\nWelcome to Foo, see [b](b.md).\n",
		"guide/getting-started.md": "---\ntitle: Getting Started\n---\n\n## Getting Started\n\nBegin with Foo.\n",
		"guide/advanced.md":        "# Going further\n\nStarted already?\n", "b.md": "# B\n\n## Part\n\nx\n\n## Part\n\ny\n",
	}
}

func TestTheOutcomeSaysWhatBecameOfAnInstruction(t *testing.T) {
	for _, c := range []struct {
		prompt  string
		want    api.Outcome
		message string
	}{
		{`rename "Foo" to "Bar" everywhere`, api.OutcomeChanged, "Renamed"},
		{`rename "Nowhere" to "Bar" everywhere`, api.OutcomeNothingToDo, "the term “Nowhere” does not occur anywhere."},
		{`replace "nowhere" with "x"`, api.OutcomeNothingToDo, "“nowhere” does not occur anywhere."},
		{`replace "nowhere" with "x" in b.md`, api.OutcomeNothingToDo, "“nowhere” does not occur in b.md."},
		{"fix broken links", api.OutcomeNothingToDo, "there is no broken internal link."},
		{"fix broken links in guide/", api.OutcomeNothingToDo, "there is no broken internal link in guide/."},
		{"fix typos", api.OutcomeNothingToDo, "no word of the list of common misspellings occurs."},
		{`use "-" for lists`, api.OutcomeNothingToDo, "no list has another marker."},
		{`add language "go" to bare code fences`, api.OutcomeNothingToDo, "there is no bare code fence."},
		{"undo that", api.OutcomeNothingToDo, "nothing to undo"},
		{`set title of guide/getting-started.md to "Getting Started"`, api.OutcomeNothingToDo, "already"},
		{"make the docs better please", api.OutcomeNotUnderstood, "did not understand"},
		{"", api.OutcomeNotUnderstood, "asks for nothing"},
		{"Hi team, thanks!", api.OutcomeNotUnderstood, "asks for nothing"},
		{"We renamed our product.", api.OutcomeNotUnderstood, "asks for nothing"},
		{`set title to "X"`, api.OutcomeNeedsDetail, "it does not say which page's title is meant"},
		{`append "x" to nothere.md`, api.OutcomeNeedsDetail, "there is no page"},
		{`delete section "Part" from b.md`, api.OutcomeNeedsDetail, "2 headings"},
		{"delete page b.md", api.OutcomeNeedsDetail, "is linked to"},
		{"create page b.md", api.OutcomeNeedsDetail, "exists already"},
		{`append "[x](nothere.md)" to b.md`, api.OutcomeNeedsDetail, "check of the result"},
		{`rename it to "X"`, api.OutcomeNeedsDetail, "nothing before it says"},
		{`rename "Foo" to "Bar" everywhere. Then fix typos.`, api.OutcomeNeedsDetail, "one part cannot be done"},
	} {
		j := newJob(t, starters())
		res := j.do(c.prompt)
		if res.Outcome != c.want || !strings.Contains(res.Message, c.message) ||
			(len(res.Changes) > 0) != (c.want == api.OutcomeChanged) {
			t.Errorf("%q: %s, %d changes: %s", c.prompt, res.Outcome, len(res.Changes), res.Message)
		}
	}
}

func TestTheOutcomeOfALanguageModel(t *testing.T) {
	edit := []any{read("guide.md"), replace("guide.md", "First", "Firstly")}
	done := func(a args) agent.Reply { a["summary"] = "Done."; return one("finish", a) }
	for name, c := range map[string]struct {
		say  []any
		want api.Outcome
	}{
		"changed": {append(edit, finish, finish), api.OutcomeChanged},
		"changed, but not all": {append(edit, done(args{"not_done": []string{"the video"}}),
			done(args{"not_done": []string{"the video"}})), api.OutcomeChanged},
		"nothing to do":    {[]any{done(args{})}, api.OutcomeNothingToDo},
		"nothing could be": {[]any{done(args{"not_done": []string{"Which guide is meant?"}})}, api.OutcomeNeedsDetail},
		"it asks": {[]any{agent.Reply{Text: "Which page?"}, agent.Reply{Text: "Which page?"}},
			api.OutcomeNeedsDetail},
		"it is content": {[]any{agent.Reply{Text: "All is well."}, agent.Reply{Text: "All is well."}},
			api.OutcomeNothingToDo},
	} {
		if res := newLoop(t, small(), c.say...).must(); res.Outcome != c.want {
			t.Errorf("%s: %q: %s", name, res.Outcome, res.Message)
		}
	}
}

func TestAPageNamedInWordsIsFoundOrAskedFor(t *testing.T) {
	const prompt = `change the heading "Getting Started" to "Get started" on the getting started page`
	j := newJob(t, starters())
	res := j.must(prompt)
	if len(res.Changes) != 1 || res.Changes[0].Path != "guide/getting-started.md" ||
		!strings.Contains(string(res.Changes[0].Content), "## Get started") {
		t.Errorf("%+v", res)
	}
	for _, p := range []string{`replace "Foo" with "Bar" on the getting started page`,
		`append "x" to the Getting Started guide`, "Delete the getting started page.",
		`set description of the getting started page to "D"`,
		`Hi! Please add "x" after heading "Getting Started" on our Getting Started page, thanks!`} {
		if res := newJob(t, starters()).must(p); len(res.Changes) != 1 || res.Changes[0].Path != "guide/getting-started.md" {
			t.Errorf("%q: %s", p, res.Message)
		}
	}
	two := starters()
	two["old/getting-started.md"] = "---\ntitle: Getting Started\n---\n\n## Getting Started\n"
	other := starters()
	delete(other, "guide/getting-started.md")
	for name, c := range map[string]struct {
		files map[string]string
		want  string
	}{
		"two such pages": {two,
			"the path of the page “getting started” is missing; it may be guide/getting-started.md, old/getting-started.md"},
		"none": {other, "the path of the page “getting started” is missing"},
		"one like it": {map[string]string{"start.md": "# Getting things started\n\n## Getting Started\n", "a.md": "# A\n"},
			"is missing; it may be start.md"},
	} {
		res := newJob(t, c.files).do(prompt)
		if len(res.Changes) > 0 || res.Outcome != api.OutcomeNeedsDetail || !strings.Contains(res.Message, c.want) ||
			!strings.Contains(res.Message, `change heading "Getting Started" to "Get started" in PAGE`) {
			t.Errorf("%s: %s: %s", name, res.Outcome, res.Message)
		}
	}
}

func TestContextIsReportedAndNeverSaysWhere(t *testing.T) {
	j := newJob(t, starters())
	res := j.must(`We renamed our product. Rename "Foo" to "Bar" everywhere. Thanks!`)
	if !strings.Contains(res.Message, "Taken as context and not as an instruction: “We renamed our product”") ||
		!strings.Contains(res.Body, "Taken as context") {
		t.Errorf("%s\n%s", res.Message, res.Body)
	}
	for _, said := range []string{"It is Getting Started that was written in a hurry", "We wrote Going further in a hurry",
		"The advanced part is wrong"} {
		res := newJob(t, starters()).do(said + `. Rename "Foo" to "Bar".`)
		if len(res.Changes) > 0 || res.Outcome != api.OutcomeNeedsDetail ||
			!strings.Contains(res.Message, "it may say where") {
			t.Errorf("%q: %s: %s", said, res.Outcome, res.Message)
		}
	}
}

// A tree that cannot be read is no instruction that needs detail.
func TestATreeThatCannotBeReadIsNoLackOfDetail(t *testing.T) {
	dead := errors.New("no disk")
	_, err := agent.New(agent.Options{}).Edit(context.Background(),
		agent.Task{Prompt: "fix typos on the getting started page", Tree: unreadableTree{tree(starters()), dead}}, nil)
	if !errors.Is(err, dead) {
		t.Errorf("%v", err)
	}
}

type unreadableTree struct {
	*memTree
	err error
}

func (u unreadableTree) Read(context.Context, string) ([]byte, error) { return nil, u.err }

// What the forms ask for goes on after an instruction that was not understood: nothing of it is remembered.
func TestAnInstructionThatWasNotUnderstoodIsNotRemembered(t *testing.T) {
	a := agent.New(agent.Options{})
	res, err := a.Edit(context.Background(), agent.Task{Prompt: "do the same in b.md", Tree: tree(starters()),
		Earlier: []agent.Instruction{{Prompt: "We renamed our product. Make it shine.", Commit: "c1"}}}, nil)
	if err != nil || res.Outcome != api.OutcomeNeedsDetail || len(res.Changes) > 0 {
		t.Errorf("%v: %+v", err, res)
	}
}
