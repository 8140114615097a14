package analysis

import (
	"slices"
	"testing"
)

func termsIn(text string) (out []string) {
	a := Get()
	defer a.Put()
	a.Tokens(text, "en", func(tok Token) { out = append(out, tok.Term) })
	return out
}

// What an address begins with is no word: each page with a link would have it, and "How do I set up HTTPS?" would find it.
func TestTheSchemeOfAnAddressIsNoWord(t *testing.T) {
	for text, want := range map[string][]string{
		"see https://example.com": {"see", "example.com", "exampl", "com"},
		"http://localhost":        {"localhost"},
		"HTTPS over http":         {"https", "over", "http"},
		"oci://https":             {"oci", "https"},
	} {
		if got := termsIn(text); !slices.Equal(got, want) {
			t.Errorf("%q has the terms %q, not %q", text, got, want)
		}
	}
}

func TestIrregularVerbsAreFoundInEachOfTheirForms(t *testing.T) {
	for _, pair := range [][2]string{{"I forgot", "if you have forgotten"}, {"lost", "losing"}, {"frozen", "freezes"}, {"it was written", "writing"}} {
		a, b := termsIn(pair[0]), termsIn(pair[1])
		if a[len(a)-1] != b[len(b)-1] {
			t.Errorf("%q and %q have other words: %q, %q", pair[0], pair[1], a, b)
		}
	}
}
