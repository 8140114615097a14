package harness

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A Fence is a fenced block of a page.
type Fence struct {
	Page     string
	line     int // of its first line
	Language string
	Text     string
}

// String is where it stands.
func (f Fence) String() string { return fmt.Sprintf("%s:%d", f.Page, f.line) }

var fenceStart = regexp.MustCompile("^( *)```([a-z]*)")

// ReadFences are the blocks of a page of the documentation.
func ReadFences(t testing.TB, page string) []Fence {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../..", filepath.FromSlash(page)))
	if err != nil {
		t.Fatal(err)
	}
	var list []Fence
	var open *Fence
	indent := ""
	for i, line := range strings.Split(string(text), "\n") {
		m := fenceStart.FindStringSubmatch(line)
		switch {
		case open == nil && m != nil:
			open, indent = &Fence{Page: page, line: i + 2, Language: m[2]}, m[1]
		case open != nil && strings.TrimSpace(line) == "```":
			list = append(list, *open)
			open = nil
		case open != nil:
			open.Text += strings.TrimPrefix(line, indent) + "\n"
		}
	}
	if open != nil {
		t.Fatalf("%s: a fence is not closed", open)
	}
	return list
}

// Tidepool is the documentation of somebody else's product.
func Tidepool(dir string) error { return os.CopyFS(dir, os.DirFS("../testdata/tidepool")) }

// CheckDocumented holds the metrics that a server shows against the page that documents them.
func CheckDocumented(t *testing.T, text string) (families int) {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "operate", "monitoring.mdx"))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`(?m)^# TYPE (docent_\S+) \S+$`).FindAllStringSubmatch(text, -1) {
		families++
		if !strings.Contains(string(page), "`"+m[1]+"`") {
			t.Errorf("docs/operate/monitoring.mdx does not name %s", m[1])
		}
	}
	return families
}
