package kill

import (
	"errors"
	"log/slog"
	"os"
	"strings"
	"testing"

	"docent/cmd/docent/stores"
	"docent/internal/cell"
	"docent/search/page"
	"docent/tests/harness"
)

// A PDF file is read in a process of its own: what it does there costs nobody else anything.
func TestPDFFilesAreReadApart(t *testing.T) {
	t.Setenv(harness.RunAsDocent, "1")
	cells := stores.NewCells(slog.New(slog.DiscardHandler))
	defer cells.Close()
	printed, err := os.ReadFile("../../search/sources/pdf/testdata/printed.pdf")
	if err != nil {
		t.Fatal(err)
	}
	read := func(content []byte) ([]byte, error) { return cells.Reading.Do(t.Context(), page.KindPDF, content) }
	if text, err := read(printed); err != nil || !strings.Contains(string(text), "### Default limits") {
		t.Errorf("%s, %v", text, err)
	}
	// nested so deep that reading it takes all memory that there is
	deep := "%PDF-1.4\ntrailer\n" + strings.Repeat("[", 20<<20) + "\nstartxref\n9\n%%EOF\n"
	for name, content := range map[string]string{"no PDF": "text", "a bomb": deep} {
		var unreadable *cell.UnreadableError
		if text, err := read([]byte(content)); !errors.As(err, &unreadable) || unreadable.Why == "" ||
			strings.Contains(unreadable.Why, "\n") {
			t.Errorf("%s: %.100s, %.300v", name, text, err)
		}
	}
}
