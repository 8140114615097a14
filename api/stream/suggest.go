package stream

import (
	"regexp"
	"strings"
)

// A project may have its answers end with questions that the documentation answers too, in the form that widgets of the
// hosted platform read: a fenced block, and in it a line `(question)[address of the page]` for each.
const (
	SuggestionsStart = "\n\n```suggestions\n"
	SuggestionsEnd   = "```\n"
)

// A Suggestion is a further question, and where the documentation answers it.
type Suggestion struct {
	Text string `json:"text"`
	URL  string `json:"url"`
}

var suggestionLine = regexp.MustCompile(`\(([^)]*)\)\[([^\]]*)\]`)

// Suggested splits an answer into its text and the suggestions at its end.
func Suggested(answer string) (text string, list []Suggestion) {
	text, block, _ := strings.Cut(answer, SuggestionsStart)
	for _, m := range suggestionLine.FindAllStringSubmatch(block, -1) {
		list = append(list, Suggestion{m[1], m[2]})
	}
	return text, list
}

// SuggestionsBegin is how many bytes of the text can be shown already: those before a block of suggestions, or before
// what may yet become the beginning of one.
func SuggestionsBegin(text string) int {
	if at := strings.Index(text, SuggestionsStart); at >= 0 {
		return at
	}
	for n := min(len(text), len(SuggestionsStart)-1); n > 0; n-- {
		if strings.HasSuffix(text, SuggestionsStart[:n]) {
			return len(text) - n
		}
	}
	return len(text)
}
