package main

import (
	"regexp"
	"strings"
	"testing"

	"docent/api"
	"docent/cmd/docent/operator"
)

// The load of people who look at pages finds the pages by itself, and says of each how long it took.
func TestTheConsoleUnderLoadIsMeasured(t *testing.T) {
	t.Parallel()
	h := newGuarded(t, onePage)
	ops := h.app.Operator
	made, err := ops.CreateKey(t.Context(), operator.KeyParams{Project: "acme", Kind: api.AdminKey})
	if err != nil {
		t.Fatal(err)
	}
	var out string
	for _, length := range []string{"1s", "5s", "20s"} { // how many are open after a second depends on the machine
		out = docent(t, "bench", "console", "--url", h.url, "--admin-key", made.Key, "--every", "50ms", "--for", length, "--live", "3")
		if regexp.MustCompile(`[1-3] live parts open`).MatchString(out) {
			break
		}
	}
	for _, want := range []string{"/console/org-a/docs.acme.example/sources", "p99 ms"} {
		if !strings.Contains(out, want) {
			t.Errorf("it lacks %q:\n%s", want, out)
		}
	}
	if !regexp.MustCompile(`[1-3] live parts open`).MatchString(out) {
		t.Errorf("no live part is open:\n%s", out)
	}
	if _, err := tryDocent(t, "bench", "console", "--url", h.url, "--admin-key", made.Key+"x", "--for", "1s"); err == nil {
		t.Error("a key that is wrong is taken")
	}
}
