package thread

import (
	"strings"
	"testing"
)

func TestAHeadingBecomesAQuestion(t *testing.T) {
	for _, test := range []struct{ heading, title, want string }{
		{"How do I rotate a key?", "Keys", "How do I rotate a key?"},
		{"Make a backup", "Backups", "How do I make a backup?"},
		{"Install the CLI", "", "How do I install the CLI?"},
		{"How to install the CLI", "", "How do I install the CLI?"},
		{"How retries work", "", ""},
		{"How does it scale", "", "How does it scale?"},
		{"Configuring a proxy", "", "How does configuring a proxy work?"},
		{"Run the tests", "", "How do I run the tests?"},
		{"Run options", "", "What are Run options?"},
		{"Rate limits", "", "What are Rate limits?"},
		{"Durability", "", "What is Durability?"},
		{"Next steps", "Rate limits", "What are Rate limits?"},
		{"Overview", "Overview", ""},
		{"", "", ""},
		{"`docent serve` (the server)", "", "What is docent serve?"},
		{"Let us host it", "", "How do I let us host it?"},
		{"Show and hide content", "", "How do I show and hide content?"},
		{"Alerting rules", "", "How do alerting rules work?"},
		{"Adobe Analytics", "", "What is Adobe Analytics?"},
		{"Retry-After header", "", "What is the Retry-After header?"},
		{"Alternative: run it in a container", "", ""},
		{"Histograms with native buckets", "", "What are Histograms with native buckets?"},
		{"Histogram with native buckets", "", "What is the Histogram with native buckets?"},
		{"Node metrics", "", "What are Node metrics?"},
		{"Mute an alert", "", "How do I mute an alert?"},
		{"Under the hood", "", ""},
		{"API and CLI", "", "What are API and CLI?"},
	} {
		if got := questionAbout(candidate{heading: test.heading, title: test.title}, true); got != test.want {
			t.Errorf("%q of %q: %q, want %q", test.heading, test.title, got, test.want)
		}
	}
	if got := questionAbout(candidate{heading: "Limites de débit"},
		isEnglish("Comment sauvegarder mes données ?")); got != "Limites de débit" {
		t.Errorf("for a French reader: %q", got)
	}
	if !isEnglish("How long are backups kept?") || !isEnglish("can I pay by card") {
		t.Error("English is not known")
	}
}

func TestAnAddressStaysWithinItsBrackets(t *testing.T) {
	if got := suggestedURL.Replace("/a [b] (c)"); strings.ContainsAny(got, "[]() ") {
		t.Errorf("%q", got)
	}
}
