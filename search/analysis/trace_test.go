package analysis

import "testing"

func TestATraceIsItsMessage(t *testing.T) {
	node := "> next build\n\nFailed to compile.\n\nTypeError: x is not iterable\n    at Object.<anonymous> (/app/nav.js:12:7)\n    at node:internal/main:23:47\nnpm ERR! code ELIFECYCLE"
	python := "Why is this?\nTraceback (most recent call last):\n  File \"a.py\", line 1, in <module>\n    f()\nacme.errors.PortError: port 80 is taken\n"
	prose := "One.\n\nTwo.\n\nThree: an Error: no.\n\nFour.\n"
	for text, want := range map[string]string{node: "TypeError: x is not iterable", python: "Why is this?\nacme.errors.PortError: port 80 is taken", prose: prose, "TypeError: x": "TypeError: x"} {
		if got := Message(text); got != want {
			t.Errorf("%q", got)
		}
	}
}
