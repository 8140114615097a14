package main

import (
	"errors"
	"os"
	"strings"
	"testing"

	"docent/search"
)

// A PDF file is read in a process of its own: what it does there costs nobody else anything.
func TestPDFFilesAreReadApart(t *testing.T) {
	t.Setenv(runAsDocent, "1")
	read := newPDFReader()
	printed, err := os.ReadFile("../../formats/pdf/testdata/printed.pdf")
	if err != nil {
		t.Fatal(err)
	}
	if text, err := read(t.Context(), printed); err != nil || !strings.Contains(string(text), "### Default limits") {
		t.Errorf("%s, %v", text, err)
	}
	// nested so deep that reading it takes all memory that there is
	deep := "%PDF-1.4\ntrailer\n" + strings.Repeat("[", 20<<20) + "\nstartxref\n9\n%%EOF\n"
	for name, content := range map[string]string{"no PDF": "text", "a bomb": deep} {
		var unreadable *search.UnreadableError
		if text, err := read(t.Context(), []byte(content)); !errors.As(err, &unreadable) || unreadable.Why == "" ||
			strings.Contains(unreadable.Why, "\n") {
			t.Errorf("%s: %.100s, %.300v", name, text, err)
		}
	}
}
