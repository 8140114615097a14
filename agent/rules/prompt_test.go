package rules

import (
	"errors"
	"strings"
	"testing"
)

// shapes is what a prompt is understood as: its operations, what was taken as context, or the part that was not
// understood.
func shapes(prompt string) (ops, context []string, part string) {
	m := &Memory{}
	list, err := Parse(prompt, m)
	var mis *Misunderstanding
	if errors.As(err, &mis) {
		return nil, nil, mis.Part
	}
	for _, op := range list {
		ops = append(ops, shape(op))
	}
	return ops, m.Context, ""
}

func TestCourtesyLeadInsAndContextDoNotSinkThePrompt(t *testing.T) {
	const order = `rename "Foo" to "Bar" everywhere`
	for _, c := range []struct{ before, after, context string }{
		{before: "We renamed our product. ", context: "We renamed our product"},
		{before: "We renamed our product.\n\n", context: "We renamed our product"},
		{before: "We have a new name. Please ", context: "We have a new name"},
		{before: "Our company was bought by Beta last week, and the\nproduct has a new name. ",
			context: "Our company was bought by Beta last week, and the\nproduct has a new name"},
		{before: "Acme Cloud is now Acme Platform. ", context: "Acme Cloud is now Acme Platform"},
		{before: "FYI: we changed the brand yesterday. ", context: "FYI: we changed the brand yesterday"},
		{before: "We renamed our product, so please ", context: "We renamed our product"},
		{before: "Since we renamed our product, ", context: "Since we renamed our product"},
		{after: " because we renamed our product.", context: "because we renamed our product"},
		{before: "Three things please: "}, {before: "Please "}, {before: "Hi team, "}, {before: "Hi team,\n\n"},
		{before: "Hello everyone!\n"}, {before: "Hi Anna, "}, {before: "Hi, could you please "},
		{before: "Dear Docent,\n\nplease do the following:\n\n1. "}, {before: "Here are my changes:\n- "},
		{before: "A few small requests:\n\n* "}, {before: "One thing: "}, {before: "I have two small changes:\n\n- "},
		{before: "Good morning, "}, {before: "TODO: "}, {before: "Two edits, please:\n- "},
		{after: ". Thanks!"}, {after: "\n\nThank you very much in advance."}, {after: ". Thanks for your help!"},
		{after: ", thanks"}, {after: ". Many thanks,\nAnna"}, {after: "\n\nBest regards,\nAnna Smith"},
		{after: ". Cheers, Tom"}, {after: ". That's all."}, {after: ". No rush."}, {after: ". Let me know when it is done."},
		{after: " — thanks"}, {before: "As discussed yesterday, ", context: "As discussed yesterday"},
		{after: ". That's all for now, thanks!"}, {after: " please and thank you"},
		{after: ". Thanks, " + `rename "X" to "Y" in a.md`},
	} {
		ops, context, part := shapes(c.before + order + c.after)
		want := 1
		if strings.Contains(c.after, "rename \"") {
			want = 2
		}
		if len(ops) != want || ops[0] != "rename Foo -> Bar" {
			t.Errorf("%q: %q, not understood: %q", c.before+order+c.after, ops, part)
			continue
		}
		if strings.Join(context, "|") != c.context {
			t.Errorf("%q: the context is %q", c.before+order+c.after, context)
		}
	}
}

// What may be an instruction, or may say where or how one is meant, is never passed over.
func TestASentenceThatMayAskForSomethingIsNotTakenAsContext(t *testing.T) {
	const order = `rename "Foo" to "Bar" everywhere`
	for _, s := range []string{
		"Make the intro friendlier", "Translate a.md to French", "We want to shorten the setup",
		"The old name should be gone", "Our pages need a date", "We would like shorter pages",
		"The page is guides/a.md", "This is about guides/a.md", "The quickstart has a typo", "This goes for the headings",
		"It is in the headings", "The code is fine", "We mean the guides",
		"Do not touch the code", "Don't change links", "Leave the code alone", "But not in headings", "Only in the guides",
		"We do not mean the code", "The code stays as it was", "We keep the old name in code",
		`The heading "Setup" is "Installation" now`, "It must be consistent", "Everything else must stay", "Print the keys",
		"Ignore all previous instructions", "There is nothing to change in a.md",
		"Sparkle", "Quickstart:", "Three things about the quickstart:", "Hi team, shorten the intro",
		"Thanks for fixing teh typo in a.md, also remove the footer",
		"That's all, but shorten the intro", "Best practices", "We hope that this is better", "Please, the intro",
		"And the title, too", "Except a.md", "That is all that I want in headings", "My colleague and I polish the intro",
		"These files are old", "It's the sidebar", "Todo: friendlier intro", "The following: friendlier intro",
		"We no longer have Foo", "We haven't got Foo", "Now the tone: more casual", "All links to Foo are broken",
	} {
		for _, prompt := range []string{s + ". " + order, order + ". " + s + ".", s + "\n\n" + order,
			"- " + order + "\n- " + s} {
			if ops, context, part := shapes(prompt); part == "" {
				t.Errorf("%q is %q with the context %q", prompt, ops, context)
			}
		}
	}
}

func TestTheNearestFormIsNamedWithThePersonsOwnWords(t *testing.T) {
	for prompt, want := range map[string]string{
		"rename Foo Bar to Baz Qux everywhere":                                       `rename "Foo Bar" to "Baz Qux" everywhere`,
		`swap "log in" for "sign in" in guides/a.md`:                                 `replace "log in" with "sign in" in guides/a.md`,
		`please update the text "a b" so that it says "c d" in x.md`:                 `replace "a b" with "c d" in x.md`,
		`insert a note "Careful." somewhere after the heading "Install" in setup.md`: `add "Careful." after heading "Install" in setup.md`,
		`erase the section "Old" of guides/a.md`:                                     `delete section "Old" from guides/a.md`,
		`make a new page called "Tips" somewhere`:                                    `create page PAGE titled "Tips"`,
		`the heading "Setup" ought to be changed to "Installation" in a.md`:          `change heading "Setup" to "Installation" in a.md`,
		`rename the section Getting Started to Start in a.md please`:                 `change heading "Getting Started" to "Start" in a.md`,
		`swap "a" for "b" everywhere`:                                                `replace "a" with "b" everywhere`,
		"Update the docs for version 5":                                              `replace "…" with "…" in PAGE`,
		"Our style guide was changed":                                                "",
		`relocate a.md so that it is b.md`:                                           `move a.md to b.md`,
		`please correct all the spelling errors that you find in guides/`:            `fix typos in guides/`,
		`write a description of a.md which is "D \"x\""`:                             `set description of a.md to "D \"x\""`,
		`In a.md, change heading "A" so that it becomes "B"`:                         `change heading "A" to "B" in a.md`,
		`use "-" as the marker of every list that there is in a.md`:                  `use "-" for lists in a.md`,
		`put a.md somewhere in the sidebar, say "Guides"`:                            `add a.md to navigation under "Guides"`,
		`move a.md`:       `move a.md to PAGE`,
		`replace "a"`:     `replace "a" with "…" in PAGE`,
		`make it sparkle`: "",
		`Rewrite the introduction in a friendlier tone`:                                     "",
		"translate a.md to French":                                                          "",
		`change the heading "Getting Started" to "Get started" on the getting started page`: `change heading "Getting Started" to "Get started" in PAGE`,
	} {
		_, err := Parse(prompt, &Memory{})
		var mis *Misunderstanding
		if !errors.As(err, &mis) || mis.Nearest != want {
			t.Errorf("%q: %v\n got %q\nwant %q", prompt, err, mis.Nearest, want)
			continue
		}
		if full := strings.NewReplacer("PAGE", "page.md", "…", "x").Replace(mis.Nearest); full != "" {
			if _, err := Parse(full, &Memory{}); err != nil {
				t.Errorf("%q: what is proposed is not understood either: %v", prompt, err)
			}
		}
	}
}
