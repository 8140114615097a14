package stream_test

import (
	"testing"

	"docent/api/stream"
)

// The text of an answer is shown as it comes, and nothing of the block is, wherever the pieces are cut.
func TestSuggestionsAreToldFromTheText(t *testing.T) {
	const text = "Run it:\n\n```sh\nmake\n```\n\nThen wait."
	whole := text + stream.SuggestionsStart + "(What is tea?)[/tea#green]\n(What are cups?)[https://docs.example.com/cups]\n" +
		stream.SuggestionsEnd
	for size := 1; size < 9; size++ {
		shown := 0
		for end := size; ; end = min(end+size, len(whole)) {
			if to := stream.SuggestionsBegin(whole[:end]); to > shown {
				shown = to
			}
			if end == len(whole) {
				break
			}
		}
		if whole[:shown] != text {
			t.Errorf("in pieces of %d: %q", size, whole[:shown])
		}
	}
	got, list := stream.Suggested(whole)
	if got != text || len(list) != 2 || list[0] != (stream.Suggestion{"What is tea?", "/tea#green"}) ||
		list[1].URL != "https://docs.example.com/cups" {
		t.Errorf("%q %+v", got, list)
	}
	if got, list := stream.Suggested(text); got != text || list != nil {
		t.Errorf("%q %+v", got, list)
	}
}
