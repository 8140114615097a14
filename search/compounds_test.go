package search

import (
	"testing"

	"docent/api"
)

// A question finds the page that writes its word open, hyphenated, or closed.
func TestAQuestionFindsEachFormOfAWord(t *testing.T) {
	t.Parallel()
	l := openTest(t, Options{})
	files := map[string]string{
		"move.md":    "# Move to several nodes\n\n## Move the data\n\nStop the server. Go back to the old machine if the new one does not come up.\n",
		"backup.md":  "# Backups\n\nA backup holds the data of all projects.\n",
		"account.md": "# Your account\n\nLog in with your address. A session times out after an hour.\n",
		"pages.md":   "# Pages\n\nA page that changed is re-indexed.\n",
	}
	for i := range 20 { // words are rare or not among others
		files[string(rune('a'+i))+".md"] = "# A page on something else\n\nThe data of the other machine goes up and comes back.\n"
	}
	if _, err := l.Update(t.Context(), api.Project{ID: "p"}, &memTree{commit: "1", files: files}, nil); err != nil {
		t.Fatal(err)
	}
	for question, want := range map[string]string{
		"How do I back up my data?": "backup.md", "backing up": "backup.md", "back-up": "backup.md", "How do backups work?": "backup.md",
		"login": "account.md", "log-in": "account.md", "session timeout": "account.md", "reindex a page": "pages.md",
	} {
		hits, err := l.Search(t.Context(), "p", Query{Text: question})
		if err != nil || len(hits) == 0 || hits[0].Path != want {
			t.Errorf("%q finds %v, not %s: %v", question, paths(hits), want, err)
		}
	}
}
