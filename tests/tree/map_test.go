package tree

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var quoted = regexp.MustCompile("`([^`]+)`")

// The map in CONTRIBUTING.md leads to files that are there and to names that they declare.
func TestTheMapForContributorsLeadsToWhatIsThere(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..")
	text, err := os.ReadFile(filepath.Join(root, "CONTRIBUTING.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "| I want to add …")
	table, _, _ = strings.Cut(table, "\n\n")
	rows := 0
	for line := range strings.Lines(table) {
		cells := strings.Split(line, " | ")
		if len(cells) != 3 || strings.HasPrefix(line, "| --- ") || !strings.HasPrefix(line, "| ") {
			continue
		}
		rows++
		start := quoted.FindAllStringSubmatch(cells[1], -1)
		file, name := start[len(start)-2][1], start[len(start)-1][1]
		src, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Errorf("%s: %v", cells[0], err)
			continue
		}
		declared := regexp.MustCompile(`(?m)^(?:func (?:\([^)]*\) )?|type |var |const |\t)` + regexp.QuoteMeta(name) + `\b`)
		if !declared.Match(src) {
			t.Errorf("%s: %s declares no %s", cells[0], file, name)
		}
		for _, path := range quoted.FindAllStringSubmatch(cells[2], -1) {
			if !strings.Contains(path[1], "/") || strings.Contains(path[1], " ") {
				continue
			}
			if _, err := os.Stat(filepath.Join(root, path[1])); err != nil {
				t.Errorf("%s: %v", cells[0], err)
			}
		}
	}
	if rows != 14 {
		t.Errorf("the map has %d rows", rows)
	}
}

// A decision is one page, tables aside, whose title has its number, and stands in the index. What was measured stands in
// docs/measurements.
func TestADecisionIsOnePage(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob(filepath.Join("..", "..", "docs", "decisions", "[0-9]*.md"))
	if err != nil || len(pages) < 14 {
		t.Fatalf("%d decisions: %v", len(pages), err)
	}
	index, err := os.ReadFile(filepath.Join("..", "..", "docs", "decisions", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(index), "("+filepath.Base(page)+")") {
			t.Errorf("docs/decisions/README.md does not list %s", page)
		}
		text = regexp.MustCompile(`(?m)^\|.*\n`).ReplaceAll(text, nil)
		number, _, _ := strings.Cut(filepath.Base(page), "-")
		if !strings.HasPrefix(string(text), "# "+number+": ") {
			t.Errorf("%s does not begin with # %s: TITLE", page, number)
		}
		if n := len(strings.Fields(string(text))); n > 600 {
			t.Errorf("%s has %d words, 600 are a page", page, n)
		}
	}
}

// The architecture is read by somebody on their first day.
func TestTheArchitectureIsShort(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "ARCHITECTURE.md"))
	if err != nil {
		t.Fatal(err)
	}
	if n := len(strings.Fields(string(text))); n > 900 {
		t.Errorf("docs/ARCHITECTURE.md has %d words; 900 are the bound", n)
	}
}
