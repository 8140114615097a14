package index

import (
	"path/filepath"
	"testing"

	"docent/internal/testing/need"
	"docent/search/page"
)

// A page that has as many sections as its size allows is read back: it can't keep its project's index from opening.
func TestAPageWithEverySectionThatItsSizeAllowsIsReadBack(t *testing.T) {
	need.NoRace(t, "one goroutine computes for long")
	dir := t.TempDir()
	w, err := createLog(dir, "pages")
	if err != nil {
		t.Fatal(err)
	}
	many := &page.Record{Path: "a.md", Sections: make([]page.Section, maxFileSize/len("#\n"))}
	for _, err := range []error{w.add(many), w.finish(), w.close()} {
		if err != nil {
			t.Fatal(err)
		}
	}
	read, err := readRecords(filepath.Join(dir, "pages"), 0, w.written.Size)
	if err != nil || len(read) != 1 || len(read[0].Sections) != len(many.Sections) {
		t.Fatalf("%d pages: %v", len(read), err)
	}
}
