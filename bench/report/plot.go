package report

import (
	"fmt"
	"html"
	"math"
	"strconv"
	"strings"
)

// A plot is one diagram. Lines differ in dashes and markers as well as in color: a reader may have neither a color
// printer nor an eye for it.
type plot struct {
	Title      string
	About      string // what it shows, in a sentence
	XLabel     string
	YLabel     string
	LogX, LogY bool
	XNames     map[float64]string // the names of x values that are not named by their numbers
	XTicks     []float64          // the x values that are named, where they are known
	Lines      []line
}

type line struct {
	Name string
	X, Y []float64
}

// What a plot measures, in its own units; it is as wide as the page lets it be.
const (
	plotWidth, plotHeight           = 460.0, 280.0
	plotLeft, plotRight             = 58.0, 12.0
	plotTop, plotBottom             = 18.0, 44.0
	legendRow, charWidth, legendGap = 20.0, 7.6, 46.0 // wide enough for the larger letters of a phone
)

var lineDashes = []string{"", "7 4", "2 3", "9 3 2 3", "12 4", "4 2 1 2"}

// A palette is the colors of a plot: of paper, letters, grid and lines.
type palette struct {
	paper, ink, grid string
	lines            []string
}

var (
	onPaper = palette{"#ffffff", "#111111", "#d4d4d4",
		[]string{"#0b5394", "#b45309", "#3f6212", "#6b21a8", "#111827", "#9f1239"}}
	onDark = palette{"#14171a", "#e6e6e6", "#3c434a",
		[]string{"#7db8f0", "#f0a35e", "#a3d977", "#c79bf2", "#f2f2f2", "#ff8fa8"}}
)

// style is what a plot's classes look like.
func (p palette) style() string {
	var b strings.Builder
	fmt.Fprintf(&b, "svg text{font:12px system-ui,sans-serif;fill:%s}svg .grid{stroke:%s;stroke-width:1}svg .axis{stroke:%s;stroke-width:1;fill:none}", p.ink, p.grid, p.ink)
	for i, color := range p.lines {
		fmt.Fprintf(&b, "svg .l%d{stroke:%s;fill:none;stroke-width:1.8}svg .f%d{fill:%s}svg .h%d{fill:%s;stroke:%s;stroke-width:1.5}", i, color, i, color, i, p.paper, color)
	}
	return b.String()
}

// empty says that there is nothing to draw.
func (p plot) empty() bool {
	for _, l := range p.Lines {
		for _, y := range l.Y {
			if y > 0 {
				return false
			}
		}
	}
	return true
}

// SVG draws the plot for a page that has the style of a palette.
func (p plot) SVG() string { return p.draw("", 0) }

// Standalone draws the plot with its title as a file of its own, on white paper: what shows it may be light or dark.
func (p plot) Standalone() string {
	const head = 26.0
	style := "<style>" + onPaper.style() + "</style>"
	title := fmt.Sprintf(
		`<rect x="0" y="%g" width="100%%" height="100%%" fill="%s"/><text x="2" y="-9" style="font-weight:600;font-size:13px">%s</text>`,
		-head, onPaper.paper, html.EscapeString(p.Title))
	return p.draw(style+title, head) + "\n"
}

// draw draws the plot, with something before it and room for that above it.
func (p plot) draw(before string, above float64) string {
	var b strings.Builder
	x, y := p.axis(true), p.axis(false)
	legendWidth, rows := 0.0, 1.0
	type place struct{ x, row float64 }
	places := make([]place, len(p.Lines))
	for i, l := range p.Lines {
		width := legendGap + textWidth(l.Name)
		if legendWidth > 0 && legendWidth+width > plotWidth-plotLeft {
			legendWidth, rows = 0, rows+1
		}
		places[i] = place{plotLeft + legendWidth, rows - 1}
		legendWidth += width
	}
	height := plotHeight + rows*legendRow
	bottom := plotHeight - plotBottom
	fmt.Fprintf(&b, `<svg viewBox="0 %g %g %g" role="img" aria-label="%s" xmlns="http://www.w3.org/2000/svg">`, -above, plotWidth,
		height+above, html.EscapeString(strings.TrimSpace(p.Title+". "+p.About)))
	b.WriteString(before)
	for _, t := range y.ticks {
		at := y.at(t)
		fmt.Fprintf(&b, `<path class="grid" d="M%g %.1fH%g"/>`, plotLeft, at, plotWidth-plotRight)
		fmt.Fprintf(&b, `<text x="%g" y="%.1f" text-anchor="end">%s</text>`, plotLeft-5, at+4, short(t))
	}
	taken := math.Inf(-1) // where the last label ends
	for _, t := range x.ticks {
		at := x.at(t)
		fmt.Fprintf(&b, `<path class="axis" d="M%.1f %gv4"/>`, at, bottom)
		name, ok := p.XNames[t]
		if !ok {
			name = short(t)
		}
		half := textWidth(name) / 2
		if at-half < taken {
			continue // its mark is still there
		}
		taken = at + half
		fmt.Fprintf(&b, `<text x="%.1f" y="%g" text-anchor="middle">%s</text>`, at, bottom+17, html.EscapeString(name))
	}
	fmt.Fprintf(&b, `<path class="axis" d="M%g %gV%gH%g"/>`, plotLeft, plotTop, bottom, plotWidth-plotRight)
	fmt.Fprintf(&b, `<text x="%g" y="%g" text-anchor="end">%s</text>`, plotWidth-plotRight, bottom+35,
		html.EscapeString(p.XLabel))
	fmt.Fprintf(&b, `<text x="%g" y="%g">%s</text>`, 2.0, plotTop-6, html.EscapeString(p.YLabel))
	for i, l := range p.Lines {
		class, dash := fmt.Sprintf("l%d", i%len(onPaper.lines)), lineDashes[i%len(lineDashes)]
		if dash != "" {
			dash = fmt.Sprintf(` stroke-dasharray="%s"`, dash)
		}
		var path strings.Builder
		var marks strings.Builder
		last := math.Inf(-1)
		pen := "M"
		for n := range l.X {
			if p.LogY && l.Y[n] <= 0 || p.LogX && l.X[n] <= 0 {
				pen = "M"
				continue
			}
			px, py := x.at(l.X[n]), y.at(l.Y[n])
			fmt.Fprintf(&path, "%s%.1f %.1f", pen, px, py)
			pen = "L"
			if px-last >= 26 {
				last = px
				marks.WriteString(marker(i, px, py))
			}
		}
		fmt.Fprintf(&b, `<path class="%s" d="%s"%s/>%s`, class, path.String(), dash, marks.String())
		lx, ly := places[i].x, plotHeight+places[i].row*legendRow+4
		fmt.Fprintf(&b, `<path class="%s" d="M%g %gh28"%s/>%s`, class, lx, ly, dash, marker(i, lx+14, ly))
		fmt.Fprintf(&b, `<text x="%g" y="%g">%s</text>`, lx+33, ly+4, html.EscapeString(l.Name))
	}
	b.WriteString(`</svg>`)
	return b.String()
}

// textWidth is at most what a text takes.
func textWidth(text string) float64 { return charWidth * float64(len([]rune(text))) }

// marker is the mark of a line's points: a circle, a square, a triangle, a diamond, a cross, a hollow circle.
func marker(n int, x, y float64) string {
	n %= len(onPaper.lines)
	switch n {
	case 0:
		return fmt.Sprintf(`<circle class="f0" cx="%.1f" cy="%.1f" r="3"/>`, x, y)
	case 1:
		return fmt.Sprintf(`<path class="h1" d="M%.1f %.1fh6v6h-6z"/>`, x-3, y-3)
	case 2:
		return fmt.Sprintf(`<path class="f2" d="M%.1f %.1fl4 7h-8z"/>`, x, y-4)
	case 3:
		return fmt.Sprintf(`<path class="h3" d="M%.1f %.1fl4 4l-4 4l-4 -4z"/>`, x, y-4)
	case 4:
		return fmt.Sprintf(`<path class="h4" d="M%.1f %.1fl6 6m0 -6l-6 6"/>`, x-3, y-3)
	}
	return fmt.Sprintf(`<circle class="h5" cx="%.1f" cy="%.1f" r="3"/>`, x, y)
}

// A scale brings values to places.
type scale struct {
	low, high float64
	from, to  float64
	log       bool
	ticks     []float64
}

func (s scale) at(v float64) float64 {
	low, high := s.low, s.high
	if s.log {
		v, low, high = math.Log10(v), math.Log10(low), math.Log10(high)
	}
	if high == low {
		return (s.from + s.to) / 2
	}
	return s.from + (v-low)/(high-low)*(s.to-s.from)
}

// axis chooses the range and the ticks that the plot's values ask for.
func (p plot) axis(horizontal bool) scale {
	s := scale{from: plotHeight - plotBottom, to: plotTop + 6, log: p.LogY}
	if horizontal {
		s = scale{from: plotLeft, to: plotWidth - plotRight - 14, log: p.LogX}
	}
	s.low, s.high = p.bounds(horizontal, s.log)
	switch {
	case math.IsInf(s.low, 1): // no value at all
		s.low, s.high, s.log = 0, 1, false
		s.linear(horizontal)
	case horizontal && len(p.XNames) > 0:
		s.ticks, s.high, s.from = p.XTicks, max(s.high, s.low+1), s.from+12
	case s.log && horizontal:
		s.from += 16
		s.high *= 1.05
		if s.decades(); len(p.XTicks) > 0 {
			s.ticks = p.XTicks
		}
	case s.log:
		s.low, s.high = math.Pow(10, math.Floor(math.Log10(s.low)+1e-9)), s.high*1.05
		if steps := s.decades(); steps > 1 {
			s.topTick()
		}
	default:
		s.linear(horizontal)
	}
	return s
}

// bounds are the least and the largest value along an axis; infinite where there is none. A logarithmic axis has no
// place for what is not above zero.
func (p plot) bounds(horizontal, log bool) (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, l := range p.Lines {
		values := l.Y
		if horizontal {
			values = l.X
		}
		for _, v := range values {
			if log && v <= 0 || math.IsNaN(v) {
				continue
			}
			low, high = min(low, v), max(high, v)
		}
	}
	return low, high
}

// decades puts ticks at 1, 2 and 5 of each power of ten, over more than four of them at the powers alone. It returns
// how many ticks a decade has.
func (s *scale) decades() int {
	steps := []float64{1, 2, 5}
	if s.high/s.low > 1e4 {
		steps = steps[:1]
	}
	for decade := math.Pow(10, math.Floor(math.Log10(s.low))); decade <= s.high; decade *= 10 {
		for _, m := range steps {
			if v := decade * m; v >= s.low*0.999 && v <= s.high*1.001 {
				s.ticks = append(s.ticks, v)
			}
		}
	}
	return len(steps)
}

// topTick raises a logarithmic axis to the next line of its grid.
func (s *scale) topTick() {
	for _, m := range []float64{1, 2, 5, 10} {
		if v := math.Pow(10, math.Floor(math.Log10(s.high))) * m; v >= s.high*0.999 {
			s.high = v
			break
		}
	}
	if len(s.ticks) == 0 || s.ticks[len(s.ticks)-1] < s.high*0.999 {
		s.ticks = append(s.ticks, s.high)
	}
}

// linear begins a linear axis at zero if that is near, and puts some five ticks on it.
func (s *scale) linear(horizontal bool) {
	if !horizontal || s.low > 0 && s.low < s.high/2 {
		s.low = 0
	}
	if s.high <= s.low {
		s.high = s.low + 1
	}
	step := niceStep((s.high - s.low) / 5)
	if !horizontal {
		s.high = math.Ceil(s.high/step) * step
	}
	for v := math.Ceil(s.low/step) * step; v <= s.high+step/1e6; v += step {
		s.ticks = append(s.ticks, v)
	}
}

// niceStep is 1, 2 or 5 times a power of ten, at least v.
func niceStep(v float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{1, 2, 5} {
		if m*power >= v {
			return m * power
		}
	}
	return 10 * power
}

// short writes a number for an axis.
func short(v float64) string {
	switch {
	case v >= 1e6:
		return strconv.FormatFloat(v/1e6, 'g', 4, 64) + " M"
	case v >= 1e4:
		return strconv.FormatFloat(v/1e3, 'g', 4, 64) + " k"
	}
	return strconv.FormatFloat(v, 'g', 4, 64)
}
