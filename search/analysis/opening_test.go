package analysis

import "testing"

func TestOpenings(t *testing.T) {
	for question, want := range map[string]Opening{
		"How do I get started?": Start, "Where do I begin?": Start, "getting started": Start, "first steps with Acme": Start,
		"How do I use it?": Start, "How can I use Acme?": Start,
		"How do I install Acme?": Install, "installation": Install, "Where can I download it?": Install, "How do I set it up?": Install, "setup": Install,
		"What is Acme?": About, "What's Acme": About, "what does acme do": About, "What can it do?": About, "How does it work?": About,
		"Who is Acme for?":     About,
		"Is there an example?": Example, "show me some sample code": Example,
		"How much does it cost?": Price, "Is it free?": Price, "How much is Acme for a team?": Price, "pricing": Price,
		"How do I contact you?": Contact, "Where do I get help?": Contact, "Can I email support?": NoOpening, "can I call someone": Contact,
		"What license is Acme under?": License, "Is Acme open source?": License,
		"What's new?": Changelog, "What changed in the last release?": Changelog, "Where is the changelog?": Changelog,
		"What is the latest version?": Latest, "Which version of Acme is the newest": Latest,
		"How do I get started with webhooks?": NoOpening, "How do I install the plugin?": NoOpening, "What is a webhook?": NoOpening,
		"How much memory does it need?": NoOpening, "How do I pay with Bitcoin?": NoOpening, "Which version of Go is needed?": NoOpening,
		"What is the meaning of life?": NoOpening, "Does Acme support plugins?": NoOpening, "Was ist Acme?": NoOpening, "": NoOpening,
		"How do I change the license key?": NoOpening, "What is the default?": NoOpening, "How do I use Redis?": NoOpening, "How do I set up webhooks?": NoOpening, "Can it be set?": NoOpening,
	} {
		if got := OpeningOf(question, "Acme"); got != want {
			t.Errorf("%q is %q, not %q", question, got, want)
		}
	}
	if Install.Fit("Download invoices") > 0 || Install.Fit("Download") == 0 {
		t.Error("what is downloaded is no installation")
	}
	for question, want := range map[string]Opening{"What is Kettle Maker?": About, "what is kettle": About, "What is Maker?": About, "What is a maker?": NoOpening, "How do I start a maker?": NoOpening} {
		if got := OpeningOf(question, "Kettle Maker"); got != want {
			t.Errorf("of Kettle Maker, %q is %q, not %q", question, got, want)
		}
	}
	if n := testing.AllocsPerRun(100, func() { OpeningOf("How do I get started with webhooks in Acme?", "Acme") }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
