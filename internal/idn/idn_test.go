package idn

import "testing"

func TestANameIsAsTheNetworkKnowsIt(t *testing.T) {
	for name, want := range map[string]string{
		"Docs.Example.com": "docs.example.com", " docs ": "docs", "bücher.example": "xn--bcher-kva.example",
		"BÜCHER.example": "xn--bcher-kva.example", "xn--bcher-kva.example": "xn--bcher-kva.example", "ä b": "ä b", "": "",
	} {
		if got := ASCII(name); got != want {
			t.Errorf("%q is %q, want %q", name, got, want)
		}
	}
}
