package builtin

import (
	"slices"
	"strings"
	"testing"

	"docent/model"
)

// Steps under headings of their own are quoted as one procedure, in the order of the page.
func TestStepsUnderSeveralHeadingsAreOneAnswer(t *testing.T) {
	t.Parallel()
	section := func(anchor, heading, text string) model.Passage {
		return model.Passage{Path: "auth.md", Anchor: anchor, URL: "https://docs.example/auth#" + anchor, Title: "Securing Heron with a password",
			Heading: heading, Text: text, Score: 0.6}
	}
	page := []model.Passage{
		section("", "", "Heron can ask for a password before it shows anything.\n"),
		section("hash", "Hashing a password", "Passwords are kept as hashes. Make one with this command:\n\n```sh\nheron hash\n```\n"),
		section("config", "Creating heron.yml", "Write the hash into the file:\n\n```yaml\npassword: $2b$12$h\n```\n\nThe file may hold several.\n"),
		section("start", "Launching Heron", "1. Stop the server.\n2. Start it with `--config heron.yml`.\n"),
		section("test", "Testing", "Open the page. "+strings.Repeat("It asks for the password of the user. ", 30)),
		section("next", "Next steps", "Read about users.\n"),
	}
	around := func(path, _ string) []model.Passage {
		if path != "auth.md" {
			return nil
		}
		return page
	}
	ask := func(question string, passages ...model.Passage) string {
		text, _, _, _ := answerOf(t, model.Request{Question: question, Passages: passages, Around: around})
		return text
	}
	whole := ask("How do I secure Heron with a password?", page[1], page[4])
	at := 0
	for _, want := range []string{"Heron can ask for a password", "**1. [Hashing a password](https://docs.example/auth#hash)**", "heron hash",
		"**2. [Creating heron.yml](", "password: $2b$12$h", "**3. [Launching Heron](", "1. Stop the server.\n2. Start it", "**4. [Testing](", " [1]"} {
		n := strings.Index(whole[at:], want)
		if n < 0 {
			t.Fatalf("no %q where it belongs in\n%s", want, whole)
		}
		at += n
	}
	if strings.Contains(whole, "Next steps") || len(strings.Fields(whole)) > 150 {
		t.Errorf("%d words\n%s", len(strings.Fields(whole)), whole)
	}
	for _, question := range []string{
		"How do I secure Heron with a password, hashing it?", // names one of them
		"What is a password of Heron?", "Can I secure Heron with a password?",
		"How do I secure the gateway with a certificate?", // the title does not say so
	} {
		if text := ask(question, page[1], page[4]); strings.Contains(text, "**3. ") {
			t.Errorf("%s\n%s", question, text)
		}
	}
}

// A section whose heading has all that is asked is the answer, and not one of the steps of its page, which speaks of the same.
func TestTheOneSectionThatIsAskedForIsNoProcedure(t *testing.T) {
	t.Parallel()
	var page []model.Passage
	for anchor, p := range map[int][2]string{0: {"", "Teams work together."}, 1: {"Creating a team", "Choose *Create*."},
		2: {"Inviting team members and assigning roles", "Open the team's page and add the address."}, 3: {"Leaving a team", "Choose *Leave*."}} {
		page = append(page, model.Passage{Path: "teams.md", Anchor: string(rune('a' + anchor)), Title: "Invite team members and guests", Heading: p[0], Text: p[1], Score: 0.6})
	}
	slices.SortFunc(page, func(a, b model.Passage) int { return strings.Compare(a.Anchor, b.Anchor) })
	text, _, _, _ := answerOf(t, model.Request{Question: "How do I invite a team member?", Passages: []model.Passage{page[2], page[1]},
		Around: func(string, string) []model.Passage { return page }})
	if !strings.Contains(text, "add the address") || strings.Contains(text, "Leaving") {
		t.Error(text)
	}
}

// Long code within steps has a link in its place, so that the steps stay whole.
func TestStepsWithLongCodeStayWhole(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("   key: value of the workflow that is long\n", 120)
	text, _, _, _ := answerOf(t, model.Request{Question: "How do I deploy the site to Heron?", Passages: []model.Passage{{Path: "deploy.md",
		URL: "https://docs.example/deploy", Title: "Deploy to Heron", Score: 0.8, Text: "1. Create a project for the site.\n2. Write the workflow:\n\n   ```yaml\n" + long +
			"   ```\n\n3. Press **Deploy**.\n"}}})
	if !strings.Contains(text, "1. Create a project for the site.\n2. Write the workflow:\n   [… 120 more](https://docs.example/deploy)\n3. Press **Deploy**.") {
		t.Errorf("got\n%.600s", text)
	}
}

// A verb with its particle, which is read as one word, does what the verb does, and says what it says.
func TestPhrasalVerbsAreVerbs(t *testing.T) {
	for _, heading := range []string{"Set up the key", "Sign in to the console", "Roll back a release", "Turn on alerts", "2. Log in"} {
		if !isStep(heading) {
			t.Errorf("%q is no step", heading)
		}
	}
	if isStep("Database limits") {
		t.Error("a thing is taken for a step")
	}
	if !doing[termsOf("setup")[0].text] {
		t.Error("to set up is taken for a thing that is asked about")
	}
	if said, asked := split("extensions slow down a reload"), split("why is it slow"); termsOf(said[1].text)[0].text != termsOf(asked[3].text)[0].text {
		t.Errorf("%+v says nothing of %+v", said[1], asked[3])
	}
}
