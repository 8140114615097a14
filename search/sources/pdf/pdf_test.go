package pdf_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"docent/search/sources/pdf"
)

// A page that a browser has printed: headings, paragraphs over several lines, code with its indentation.
func TestAPrintedPageIsRead(t *testing.T) {
	content, err := os.ReadFile("testdata/printed.pdf") // of printed.html
	if err != nil {
		t.Fatal(err)
	}
	text, err := pdf.Markdown(content)
	if err != nil {
		t.Fatal(err)
	}
	const want = `---
title: "Operating the Widget Server"
---

<!-- page 1 -->

## Operating the Widget Server

The widget server accepts connections on port 7443. It is configured by a file called widget.toml, which has to be readable for the user that runs the server and for nobody else in the world.

### Default limits

Each client may open at most 120 connections. The default timeout is 45 seconds.

` + "```\n[limits]\nconnections = 120\n  timeout = \"45s\"\n```" + `

### Signals and shut down

SIGTERM drains connections

SIGHUP reloads the configuration

`
	if !strings.HasPrefix(string(text), want) {
		t.Errorf("read\n%s\nnot\n%s", text, want)
	}
	if !strings.Contains(string(text), "<!-- page 2 -->\n\n### Upgrading\n\nStop the old server first — “always” — naïve file handling.\n") {
		t.Errorf("the second page is missing:\n%s", text)
	}
}

// made writes a PDF file, a page for each list of operators.
func made(pages ...string) []byte {
	var b bytes.Buffer
	var at []int
	object := func(text string) {
		at = append(at, b.Len())
		fmt.Fprintf(&b, "%d 0 obj\n%s\nendobj\n", len(at), text)
	}
	b.WriteString("%PDF-1.4\n")
	kids := ""
	for i := range pages {
		kids += fmt.Sprintf("%d 0 R ", 4+2*i)
	}
	object("<< /Type /Catalog /Pages 2 0 R >>")
	object(fmt.Sprintf("<< /Type /Pages /Count %d /Kids [%s] >>", len(pages), kids))
	widths := strings.Repeat("500 ", 224)
	object("<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding /FirstChar 32 /LastChar 255 /Widths [" +
		widths + "] >>")
	for i, text := range pages {
		object(fmt.Sprintf("<< /Type /Page /Parent 2 0 R /Resources << /Font << /F1 3 0 R >> >> /Contents %d 0 R >>", 5+2*i))
		object(fmt.Sprintf("<< /Length %d >>\nstream\n%s\nendstream", len(text), text))
	}
	start := b.Len()
	fmt.Fprintf(&b, "xref\n0 %d\n0000000000 65535 f \n", len(at)+1)
	for _, offset := range at {
		fmt.Fprintf(&b, "%010d 00000 n \n", offset)
	}
	fmt.Fprintf(&b, "trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n", len(at)+1, start)
	return b.Bytes()
}

// show writes a line at a height.
func show(size, y int, text string) string {
	return fmt.Sprintf("BT /F1 %d Tf 1 0 0 1 72 %d Tm (%s) Tj ET\n", size, y, text)
}

// What stands on every page is left out, words that were parted are joined, spaces that are gaps are seen, and what
// Markdown would take for a mark is none.
func TestLinesBecomeParagraphs(t *testing.T) {
	page := func(n int, text string) string {
		return show(9, 780, "The Manual, version 4") + text + show(9, 20, fmt.Sprintf("Page %d", n))
	}
	text, err := pdf.Markdown(made(
		page(1, show(18, 740, "Limits")+show(10, 700, "A connec-")+show(10, 688, "tion stays open for *two* minutes.")+
			show(10, 660, "1. Stop it")+show(10, 648, "2. Start it")+show(10, 636, "3. Look at it once more, please")),
		page(2, show(18, 740, "Words")+"BT /F1 10 Tf 1 0 0 1 72 700 Tm [(as)-300(TeX)-280(writes)] TJ ET\n"+show(10, 640, "Another one.")),
		page(3, show(10, 700, "The end.")),
	))
	if err != nil {
		t.Fatal(err)
	}
	const want = `---
title: "Limits"
---

<!-- page 1 -->

## Limits

A connection stays open for \*two\* minutes.

1. Stop it

2. Start it

3. Look at it once more, please

<!-- page 2 -->

## Words

as TeX writes

Another one.

<!-- page 3 -->

The end.

`
	if string(text) != want {
		t.Errorf("read\n%s\nnot\n%s", text, want)
	}
}

// Files that cannot be read are told with a reason, whatever they hold.
func TestFilesWithoutTextAreTold(t *testing.T) {
	if _, err := pdf.Markdown(made("0 0 m 10 10 l S")); !errors.Is(err, pdf.ErrNoText) {
		t.Errorf("a picture: %v", err)
	}
	whole := made(show(10, 700, "Some text."))
	for _, content := range [][]byte{nil, []byte("%PDF-1.4\n"), []byte("no PDF at all"), whole[:len(whole)/2], whole[10:],
		bytes.Replace(whole, []byte("/Root 1 0 R"), []byte("/Root 9 0 R"), 1)} {
		if text, err := pdf.Markdown(content); err == nil {
			t.Errorf("%.40q is read as %q", content, text)
		}
	}
	broken := made(show(10, 700, "Whole."), "BT /F1 Tf (x) ET Q Q Q", show(10, 700, "Also whole."))
	if text, err := pdf.Markdown(broken); err != nil || !strings.Contains(string(text), "Whole.") ||
		!strings.Contains(string(text), "Also whole.") {
		t.Errorf("a damaged page costs the others: %s, %v", text, err)
	}
}
