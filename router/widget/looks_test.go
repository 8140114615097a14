package widget_test

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"docent/api"
	"docent/router/widget"
)

func TestContrastIsAsWCAGHasIt(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b string
		want float64
	}{{"#000000", "#ffffff", 21}, {"#777777", "#ffffff", 4.48}, {"#0000ff", "#ffffff", 8.59}, {"#ff0000", "#ffffff", 4},
		{"#ffffff", "#ffffff", 1}} {
		if got := widget.Contrast(c.a, c.b); math.Abs(got-c.want) > 0.01 {
			t.Errorf("%s on %s: %.2f, want %.2f", c.a, c.b, got, c.want)
		}
	}
}

func TestAnAccentCanBeReadInTheDark(t *testing.T) {
	t.Parallel()
	for _, accent := range []string{"#000000", "#1f6f5c", "#0b57d0", "#7a0000", "#ffcc00", "#ffffff"} {
		dark := widget.Settings(api.Project{Widget: api.Widget{Accent: accent}})["accentDark"]
		if got := widget.Least(dark, widget.DarkPaper, widget.DarkSoft); got < widget.TextContrast {
			t.Errorf("%s becomes %s with %.2f", accent, dark, got)
		}
		light := widget.Readable(accent, widget.LightPaper, widget.LightSoft)
		if got := widget.Least(light, widget.LightPaper, widget.LightSoft); got < widget.TextContrast {
			t.Errorf("%s becomes %s with %.2f", accent, light, got)
		}
	}
	if got := widget.Readable("#1f6f5c", widget.LightPaper, widget.LightSoft); got != "#1f6f5c" {
		t.Errorf("what can be read becomes %s", got)
	}
	if got := widget.DarkAccent(api.Widget{Accent: "#1f6f5c", AccentDark: "#abcdef"}); got != "#abcdef" {
		t.Errorf("what was chosen becomes %s", got)
	}
}

// What is computed with are the widget's own colors.
func TestThePapersAreThoseOfTheStyles(t *testing.T) {
	t.Parallel()
	styles, err := os.ReadFile(filepath.Join("src", "styles.ts"))
	if err != nil {
		t.Fatal(err)
	}
	light, dark, _ := strings.Cut(string(styles), "[data-shown=dark]")
	for _, c := range []struct{ in, name, color string }{{light, "paper", widget.LightPaper}, {light, "soft", widget.LightSoft},
		{dark, "paper", widget.DarkPaper}, {dark, "soft", widget.DarkSoft}} {
		short := strings.Replace(c.color, "#ffffff", "#fff", 1)
		if !strings.Contains(c.in, "var(--docent-"+c.name+", "+short+")") {
			t.Errorf("the styles have no %s %s", c.name, c.color)
		}
	}
}
