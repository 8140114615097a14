package builtin

import (
	"slices"
	"strings"
	"testing"

	"docent/model"
)

// A message that nobody has quoted is known by its form, and searched for without the reader's words around it.
func TestAMessageIsKnownByItsForm(t *testing.T) {
	for question, want := range map[string]string{
		"Error: listen failed on the socket when I start the gateway":    "Error: listen failed on the socket",
		"why do I get TS2307 in my editor":                               "TS2307",
		"build stops with ERR_PACKAGE_PATH_NOT_EXPORTED":                 "ERR_PACKAGE_PATH_NOT_EXPORTED",
		"the gateway says panic: runtime error: index out of range, why": "panic: runtime error: index out of range",
		"My worker dies of a TimeoutException every hour":                "TimeoutException",
		"the container stops with exit code 137 at night":                "exit code 137",
		"uploads end in 413 Request Entity Too Large behind the gateway": "413 Request Entity Too Large",
		"What is the difference between an error and a warning?":         "",
		"How do I upgrade from version 3 to version 4?":                  "",
		"Where do I see errors?":                                         "",
		"How do I import 500 Users with SHA256 sums and RFC3339 dates?":  "",
		"I use HTML5 and need 404 pages":                                 "",
	} {
		got := messageOf(question)
		if got != want {
			t.Errorf("%s: %q, want %q", question, got, want)
		}
		if want != "" && !slices.Contains(Queries(question, nil, nil), want) {
			t.Errorf("%s is searched for as %q", question, Queries(question, nil, nil))
		}
	}
}

// The page that has the message word for word goes first, though the search is surer of another.
func TestThePageWithTheMessageGoesFirst(t *testing.T) {
	passages := []model.Passage{
		{Path: "start.md", Title: "Gateway", Heading: "Start the gateway", Score: 0.9,
			Text: "Start the gateway with `gateway run`. A socket is opened when the gateway starts."},
		{Path: "trouble.md", Title: "Trouble", Heading: "The socket is taken", Score: 0.6,
			Text: "`listen failed on the socket` means that another gateway runs. Stop it with `gateway stop`."},
	}
	text, cited, _, _ := answerOf(t, model.Request{Passages: passages,
		Question: "Error: listen failed on the socket /run/gw.sock when I start the gateway"})
	if len(cited) == 0 || cited[0] != 1 || !strings.Contains(text, "gateway stop") {
		t.Errorf("cited %v\n%s", cited, text)
	}
}
