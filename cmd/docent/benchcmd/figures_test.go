package benchcmd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"docent/bench/report"
)

const checkout = "../../.."

// What README and the documentation say of speed is what bench/results holds.
func TestPagesShowTheFiguresOfTheResults(t *testing.T) {
	t.Parallel()
	suite, err := readSuite(checkout + "/bench/results")
	if err != nil {
		t.Fatal(err)
	}
	made, err := figuresIn(checkout, suite)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range made {
		if got, err := os.ReadFile(filepath.Join(checkout, name)); err != nil || string(got) != want {
			t.Errorf("%s does not show the figures of bench/results (%v): run docent bench figures bench/results", name, err)
		}
	}
	if curves := len(made) - len(figurePages); curves != 6 {
		t.Errorf("%d curves, not 6", curves)
	}
	for name, want := range map[string]string{"README.md": "| 1,000 | Docent |", "docs/operate/load.mdx": "A worked example",
		curvesFolder + "/load-suite.md": "| 1000 streams, 200 parts 20ms apart | docent |"} {
		if !strings.Contains(made[name], want) {
			t.Errorf("%s lacks %q", name, want)
		}
	}
}

func TestAPageWithoutMarksIsRefused(t *testing.T) {
	t.Parallel()
	for _, page := range []string{"no marks", "{/* figures: load (x) */}\n\nno end"} {
		if _, err := (report.Suite{}).Rewrite(page); err == nil || !strings.Contains(err.Error(), "marks") {
			t.Errorf("%q: %v", page, err)
		}
	}
	if _, err := (report.Suite{}).Rewrite("<!-- figures: other x -->\n<!-- end of figures -->"); err == nil {
		t.Error("figures that nobody knows are taken")
	}
}
