package search

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"docent/api"
	"docent/internal/cell"
	"docent/search/page"
)

// PDF files are found by their headings and text, cite the page of the file, and are read once.
func TestPDFFilesAreFound(t *testing.T) {
	t.Parallel()
	printed, err := os.ReadFile("sources/pdf/testdata/printed.pdf")
	if err != nil {
		t.Fatal(err)
	}
	reads := 0
	apart := cell.InProcess(page.Kinds()...)
	l := openTest(t, Options{Workers: 1, Cell: func(ctx context.Context, kind string, content []byte) ([]byte, error) {
		reads++
		return apart(ctx, kind, content)
	}})
	files := map[string]string{"index.md": "# Home\n\nWelcome.", "manuals/server.pdf": string(printed), "scan.pdf": "%PDF-1.4\n"}
	p := api.Project{ID: "p", SiteURL: "https://x.com"}
	for range 2 {
		report, err := l.Update(t.Context(), p, &memTree{commit: files["index.md"], files: files}, nil)
		if err != nil || report.Pages != 2 {
			t.Fatalf("%d pages, %v", report.Pages, err)
		}
		for text, want := range map[string]string{
			"how many connections may a client open": "https://x.com/manuals/server.pdf#page=1",
			"upgrading the old server":               "https://x.com/manuals/server.pdf#page=2",
		} {
			hits, err := l.Search(t.Context(), "p", Query{Text: text})
			if err != nil || len(hits) == 0 || hits[0].URL != want || hits[0].Title != "Operating the Widget Server" ||
				strings.Contains(hits[0].Content, "<!--") {
				t.Errorf("%q finds %+v, %v", text, hits, err)
			}
		}
		files["index.md"] += " Again."
	}
	if reads != 2 {
		t.Errorf("files were read %d times", reads)
	}
	check, err := l.Check(t.Context(), p, &memTree{commit: "x", files: files}, func(int, int) {})
	if err != nil || len(check.LeftOut) != 1 || !strings.Contains(check.LeftOut[0].Why, "no whole PDF file") {
		t.Errorf("%+v, %v", check.LeftOut, err)
	}
}

// A reader that cannot be started fails the update: the file is not taken for empty.
func TestAPDFReaderThatFailsIsNotTheFilesFault(t *testing.T) {
	t.Parallel()
	broken := errors.New("no process can be started")
	l := openTest(t, Options{Cell: func(context.Context, string, []byte) ([]byte, error) { return nil, broken }})
	_, err := l.Update(t.Context(), api.Project{ID: "p"}, &memTree{commit: "1", files: map[string]string{"a.pdf": "%PDF"}}, nil)
	if !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
}

// Files that break their parser are left out with a warning, and after some the others like them are not tried.
func TestFilesThatBreakTheirParserAreNotReadWithoutEnd(t *testing.T) {
	t.Parallel()
	tried := 0
	l := openTest(t, Options{Workers: 1, Cell: func(context.Context, string, []byte) ([]byte, error) {
		tried++
		return nil, &cell.UnreadableError{Why: "it takes too long to be read", Broke: true}
	}})
	files := map[string]string{"index.md": "# Home\n\nWelcome."}
	for i := range 50 {
		files[fmt.Sprintf("api%d.json", i)] = `{"openapi": "3.1.0"}`
	}
	report, err := l.Update(t.Context(), api.Project{ID: "p"}, &memTree{commit: "1", files: files}, nil)
	if err != nil || report.Pages != 1 || tried != 20 || len(report.Warnings) != 20 ||
		report.Warnings[0].Text != "is left out: it takes too long to be read" {
		t.Errorf("%d pages, %d tried, %+v, %v", report.Pages, tried, report.Warnings, err)
	}
}
