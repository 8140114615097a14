package search

import (
	"fmt"
	"slices"
	"testing"

	"docent/api"
)

// A word that is not finished stands for the words that most pages have, wherever these are in the alphabet.
func TestAPrefixIsCompletedByTheWordsThatMostPagesHave(t *testing.T) {
	files := map[string]string{"setup.md": "# Setup\n\nThe container reads its configuration.\n"}
	for i := range 60 { // more than are looked at, and before it in the alphabet
		files[fmt.Sprintf("rare/%02d.md", i)] = fmt.Sprintf("# Page\n\nconaa%02d\n", i)
	}
	for i := range 5 {
		files[fmt.Sprintf("more/%d.md", i)] = "# More\n\nA container and its configuration.\n"
	}
	l := openTest(t, Options{})
	tree := &memTree{commit: "1", files: files}
	if _, err := l.Update(t.Context(), api.Project{ID: "p"}, tree, nil); err != nil {
		t.Fatal(err)
	}
	completions := func(begin string, most int) []string {
		t.Helper()
		s, err := l.acquire("p")
		if err != nil {
			t.Fatal(err)
		}
		defer s.release()
		return s.completions(begin, most)
	}
	if got, want := completions("con", 3), []string{"configuration", "container", "conaa00"}; !slices.Equal(got, want) {
		t.Errorf("con is completed by %q, not by %q", got, want)
	}
	hits, err := l.Search(t.Context(), "p", Query{Text: "setup conf", Box: true})
	if err != nil || len(hits) == 0 || hits[0].Path != "setup.md" {
		t.Errorf("setup conf finds %v, %v", hits, err)
	}
	// What deleted pages had does not count.
	for i := range 5 {
		files[fmt.Sprintf("more/%d.md", i)] = "# More\n\nA container.\n"
	}
	delete(files, "setup.md")
	files["conab.md"], files["conac.md"] = "# One\n\nconab\n", "# Two\n\nconab\n"
	if _, err := l.Update(t.Context(), api.Project{ID: "p"}, &memTree{commit: "2", files: files}, nil); err != nil {
		t.Fatal(err)
	}
	if got, want := completions("con", 3), []string{"container", "conab", "conaa00"}; !slices.Equal(got, want) {
		t.Errorf("after an update con is completed by %q, not by %q", got, want)
	}
	if got := completions("conf", 3); len(got) > 0 {
		t.Errorf("conf is completed by %q, which no page has", got)
	}
}
