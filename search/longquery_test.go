package search

import (
	"fmt"
	"strings"
	"testing"
)

// A query is read up to its bound, whatever its length: what it costs is bounded too.
func TestALongQueryIsReadUpToItsBound(t *testing.T) {
	l := openTest(t, Options{})
	mustUpdate(t, l, docs, made(5, 1))
	snap, err := l.acquire("docs")
	if err != nil {
		t.Fatal(err)
	}
	defer snap.release()
	var words strings.Builder
	for n := 0; words.Len() < 1<<20; n++ {
		fmt.Fprintf(&words, "topic%d ", n)
	}
	for name, text := range map[string]string{"words": words.String(), "one name": strings.Repeat("a-", 1<<19),
		"one word": strings.Repeat("a", 1<<20), "characters": strings.Repeat("語", 1<<18)} {
		for _, box := range []bool{false, true} {
			w := new(scratch)
			groups, err := snap.parse(t.Context(), w, Query{Text: text, Box: box}, snap.languages)
			if err != nil || len(w.tokens) == 0 || len(w.tokens) > 2*longestQuery || len(groups) > len(w.tokens) {
				t.Errorf("%s: %d tokens, %d groups, %v", name, len(w.tokens), len(groups), err)
			}
			for _, token := range w.tokens {
				if token.End > longestQuery {
					t.Fatalf("%s is read up to %d", name, token.End)
				}
			}
		}
	}
}
