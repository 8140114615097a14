package analysis

import (
	"slices"
	"testing"
)

// A word that some write as two is found in each of its forms.
func TestCompoundsHaveTheirClosedForm(t *testing.T) {
	a := Get()
	defer a.Put()
	for text, want := range map[string]string{
		"Back up your data": "backup", "how to back-up": "backup", "it backs up": "backup", "the last Backups": "backup",
		"log in": "login", "who has logged in": "login", "Log-in page": "login", "logging out": "logout", "signing in": "signin",
		"the request timed out": "timeout", "time-outs": "timeout", "roll it out, then roll back": "rollback", "nodes fail over": "failov",
		"set up a proxy": "setup", "setting up": "setup", "shutting down": "shutdown", "host names": "hostnam", "web hooks": "webhook",
		"How do I back it up?": "backup", "set this up": "setup", "it logged me in": "login", "rolling that back": "rollback", "Shut it down": "shutdown",
		"re-index": "reindex", "sub-domains": "subdomain",
	} {
		var got []string
		covered := 0
		parts := a.Tokens(text, "en", func(tok Token) {
			got = append(got, tok.Term)
			covered = max(covered, tok.At+tok.Covers)
		})
		if !slices.Contains(got, want) || covered > parts {
			t.Errorf("%q has the terms %q, not %s, and %d of %d parts", text, got, want, covered, parts)
		}
	}
	for _, text := range []string{"the logs in the console", "Give it back. Up to you", "log it in the console", "back it, up", "back this it up", "back, up", "dry-run", "back up"} {
		language := "en"
		if text == "back up" {
			language = "de"
		}
		a.Tokens(text, language, func(tok Token) {
			if tok.Term == "login" || tok.Term == "backup" || tok.Term == "dryrun" {
				t.Errorf("%q has the term %s", text, tok.Term)
			}
		})
	}
}
