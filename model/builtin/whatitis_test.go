package builtin

import "testing"

func TestADefinitionOfTheProductIsFound(t *testing.T) {
	for text, want := range map[string]bool{
		"[Kettle](https://x.example/k) is a tea server.": true, "About Kettle\n\n**Kettle** is an app.": true,
		"Welcome to Kettle!\n\nLearn more": false, "Kettle is fast.": false, "A pot is a thing.": false,
	} {
		if got := saysWhatItIs(text, "Kettle"); got != want {
			t.Errorf("%q: %t", text, got)
		}
	}
}
