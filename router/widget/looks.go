package widget

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"docent/api"
)

// What the widget is shown on, from its styles: in the light and in the dark, each with the tone behind code and chips.
const (
	LightPaper = "#ffffff"
	LightSoft  = "#f5f6f8"
	DarkPaper  = "#15191d"
	DarkSoft   = "#1e242a"
)

// TextContrast is what WCAG 2.2 asks for between text and what is behind it, at level AA.
const TextContrast = 4.5

// Settings are what a project says of its widget, as the data attributes that the page may have instead.
func Settings(p api.Project) map[string]string {
	w := p.Widget
	out := map[string]string{}
	for name, value := range map[string]string{"accent": w.Accent, "accentDark": DarkAccent(w), "theme": w.Theme,
		"button": w.Button, "label": w.Label, "greeting": w.Greeting, "contact": w.Contact, "logo": w.Logo, "openIn": strings.Join(w.OpenIn, " "), "language": w.Language,
		"suggestions": strings.Join(w.Suggestions, "\n")} {
		if value != "" {
			out[name] = value
		}
	}
	if w.ContactIssues {
		out["contactIssues"] = ""
	}
	if p.Options.ProofOfWork > 0 {
		out["proof"] = ""
	}
	return out
}

// DarkAccent is the accent in the dark: the one that was chosen for it, or a tone of the other that can be read there.
func DarkAccent(w api.Widget) string {
	if w.AccentDark != "" || w.Accent == "" {
		return w.AccentDark
	}
	return Readable(w.Accent, DarkPaper, DarkSoft)
}

// Contrast is the ratio of contrast of two colors such as #0b57d0, as WCAG defines it: from 1 to 21.
func Contrast(a, b string) float64 {
	x, y := luminance(a)+0.05, luminance(b)+0.05
	return max(x, y) / min(x, y)
}

// Least is the least contrast of a color with any of several.
func Least(color string, behind ...string) float64 {
	least := 21.0
	for _, b := range behind {
		least = min(least, Contrast(color, b))
	}
	return least
}

// Readable is the tone of a color, the nearest to it on the way to black or white, that can be read as text on all of
// several.
func Readable(color string, behind ...string) string {
	to := 0.0
	if luminance(behind[0]) < 0.18 {
		to = 255
	}
	rgb := channels(color)
	for step := range 101 {
		share := float64(step) / 100
		tone := "#"
		for _, c := range rgb {
			tone += fmt.Sprintf("%02x", int(math.Round(float64(c)+(to-float64(c))*share)))
		}
		if Least(tone, behind...) >= TextContrast {
			return tone
		}
	}
	return color
}

func channels(color string) [3]int {
	n, err := strconv.ParseUint(strings.TrimPrefix(color, "#"), 16, 24)
	if err != nil {
		return [3]int{} // a project's colors are checked before they are stored
	}
	return [3]int{int(n >> 16), int(n >> 8 & 255), int(n & 255)}
}

// luminance is the relative luminance of a color.
func luminance(color string) float64 {
	sum := 0.0
	for i, c := range channels(color) {
		v := float64(c) / 255
		if v <= 0.04045 {
			v /= 12.92
		} else {
			v = math.Pow((v+0.055)/1.055, 2.4)
		}
		sum += v * [3]float64{0.2126, 0.7152, 0.0722}[i]
	}
	return sum
}
