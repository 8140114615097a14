package bench

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"
	"time"
)

//go:embed report.html
var pageText string

var pageTemplate = template.Must(template.New("report").Parse(pageText))

// WriteHTML writes the report as one page that needs nothing else: it opens from a disk without a network, and prints.
func (r Report) WriteHTML(w io.Writer) error {
	type verdict struct {
		Held bool
		Text string
	}
	type section struct {
		Title    string
		Note     string
		Head     []string
		Rows     [][]string
		Figures  []template.HTML
		Failures []string
	}
	data := struct {
		Title, Made, Machine, Commit, Command string
		Goals                                 []verdict
		Sections                              []section
	}{
		Title: "Load report", Made: r.Made.UTC().Format(time.RFC1123), Machine: r.Machine.String(), Commit: r.Commit, Command: r.Command,
	}
	for _, g := range r.Goals {
		data.Goals = append(data.Goals, verdict{g.Held, strings.TrimPrefix(g.String(), "objective ")})
	}
	draw := func(plots []plot) (figures []template.HTML) {
		for _, p := range plots {
			if !p.empty() {
				figures = append(figures, template.HTML(`<figure><figcaption>`+template.HTMLEscapeString(p.Title)+`</figcaption>`+p.SVG()+`</figure>`))
			}
		}
		return figures
	}
	groups := r.Groups()
	var kinds []string
	for _, g := range groups {
		if !slices.Contains(kinds, g.kind()) {
			kinds = append(kinds, g.kind())
		}
	}
	for _, kind := range kinds {
		if curves := sizeCurves(sortedSizes(groups, kind)); len(curves) > 0 {
			data.Sections = append(data.Sections, section{Title: kind + ": how it grows with the load", Figures: draw(curves)})
		}
	}
	for _, g := range groups {
		s := section{Title: g.Scenario + ": " + g.Load}
		if n := len(g.Rounds[g.Targets[0]]); n > 1 {
			s.Note = fmt.Sprintf("Medians of %d rounds; counts are sums. Curves over time are those of the last round.", n)
		}
		s.Head, s.Rows = g.table()
		s.Figures = draw(g.plots())
		for _, t := range g.Targets {
			for _, result := range g.Rounds[t] {
				for _, f := range result.Failures {
					if text := t + ": " + f; !slices.Contains(s.Failures, text) {
						s.Failures = append(s.Failures, text)
					}
				}
			}
		}
		data.Sections = append(data.Sections, s)
	}
	return pageTemplate.Execute(w, data)
}

// plots are the diagrams of one load.
func (g Group) plots() []plot {
	names := make([]string, len(Quantiles))
	at := make([]float64, len(Quantiles))
	for i, q := range Quantiles {
		names[i], at[i] = short(q), float64(i)
	}
	percentiles := plot{Title: "Latency by percentile", XLabel: "percentile", YLabel: "milliseconds", LogY: true, XNames: names}
	for _, t := range g.Targets {
		for _, l := range latencyNames {
			rounds := g.Rounds[t]
			if len(rounds) == 0 || rounds[0].Latencies[l.key].Count == 0 || l.key == "firstText" || len(g.Targets) > 1 && l.key == "late" {
				continue
			}
			curve := make([]float64, len(Quantiles))
			for i := range curve {
				curve[i] = g.Median(t, func(r *Result) float64 {
					if c := r.Latencies[l.key].Curve; i < len(c) {
						return c[i]
					}
					return 0
				})
			}
			percentiles.Lines = append(percentiles.Lines, line{g.lineName(t, l.name), at, curve})
		}
	}
	series := func(title, label string, value func(Sample) float64) plot {
		p := plot{Title: title, XLabel: "seconds", YLabel: label}
		for _, t := range g.Targets {
			rounds := g.Rounds[t]
			last := rounds[len(rounds)-1]
			var l line
			l.Name = t
			for _, s := range last.Series {
				l.X, l.Y = append(l.X, s.At), append(l.Y, value(s))
			}
			p.Lines = append(p.Lines, l)
		}
		return p
	}
	turns := plot{Title: "Median of a turn by its number in the thread", XLabel: "turn", YLabel: "milliseconds"}
	for _, t := range g.Targets {
		var l line
		l.Name = t
		for i, ms := range g.Rounds[t][len(g.Rounds[t])-1].Turns {
			l.X, l.Y = append(l.X, float64(i+1)), append(l.Y, ms)
		}
		turns.Lines = append(turns.Lines, l)
	}
	return append(g.ownPlots(), []plot{
		percentiles, turns,
		series("Text parts a second", "parts/s", func(s Sample) float64 { return s.Parts }),
		series("Completed a second", "requests/s", func(s Sample) float64 { return s.Completed }),
		series("Refused a second", "requests/s", func(s Sample) float64 { return s.Refused }),
		series("Open at once", "streams", func(s Sample) float64 { return float64(s.Open) }),
		series("Memory of the server", "MB", func(s Sample) float64 { return float64(s.Resident) / (1 << 20) }),
		series("Processors busy with the server", "processors", func(s Sample) float64 { return s.CPU }),
		series("Pauses for garbage collection", "ms/s", func(s Sample) float64 { return s.Pauses }),
		series("Garbage collections", "collections/s", func(s Sample) float64 { return s.GC }),
	}...)
}

// ownPlots are the diagrams that a scenario has of its own: those of the last round.
func (g Group) ownPlots() []plot {
	var plots []plot
	for _, t := range g.Targets {
		for _, c := range g.Rounds[t][len(g.Rounds[t])-1].Curves {
			i := slices.IndexFunc(plots, func(p plot) bool { return p.Title == c.Title })
			if i < 0 {
				i = len(plots)
				plots = append(plots, plot{Title: c.Title, XLabel: c.XLabel, YLabel: c.YLabel, LogX: c.LogX})
				if c.LogX {
					plots[i].XTicks = c.X
				}
			}
			plots[i].Lines = append(plots[i].Lines, line{t, c.X, c.Y})
		}
	}
	return plots
}

func (g Group) lineName(target, what string) string {
	if len(g.Targets) == 1 {
		return what
	}
	return target + ", " + what
}

// kind is what a group has in common with those of another size: all but the size.
func (g Group) kind() string {
	_, rest, found := strings.Cut(g.Load, ", ")
	_, unit, _ := strings.Cut(g.Load, " ")
	unit, _, _ = strings.Cut(unit, ", ")
	if !found {
		return g.Scenario + " (" + unit + ")"
	}
	return g.Scenario + " (" + unit + "; " + rest + ")"
}

// sortedSizes are the groups of a kind in the order of their size.
func sortedSizes(groups []Group, kind string) []Group {
	var out []Group
	for _, g := range groups {
		if g.kind() == kind && g.Size > 0 {
			out = append(out, g)
		}
	}
	slices.SortStableFunc(out, func(a, b Group) int { return int(a.Size - b.Size) })
	return out
}

// sizeCurves show what grows with the load, where there were several.
func sizeCurves(groups []Group) []plot {
	if len(groups) < 2 {
		return nil
	}
	curve := func(title, label string, logY bool, value func(*Result) float64) plot {
		p := plot{Title: title, XLabel: "load", YLabel: label, LogX: true, LogY: logY}
		for _, g := range groups {
			p.XTicks = append(p.XTicks, g.Size)
		}
		for _, t := range groups[0].Targets {
			var l line
			l.Name = t
			for _, g := range groups {
				if len(g.Rounds[t]) > 0 {
					l.X, l.Y = append(l.X, g.Size), append(l.Y, g.Median(t, value))
				}
			}
			p.Lines = append(p.Lines, l)
		}
		return p
	}
	p99 := func(key string) func(*Result) float64 {
		return func(r *Result) float64 { return r.Latencies[key].P99 }
	}
	plots := []plot{
		curve("Processor time a part", "µs", false, (*Result).CPUPerPart),
		curve("Memory an open stream", "KB", false, func(r *Result) float64 { return r.MemoryPerStream() / 1024 }),
		curve("Memory of the server at most", "MB", true, func(r *Result) float64 { return float64(r.Server.Resident) / (1 << 20) }),
		curve("Processors busy on average", "processors", false, func(r *Result) float64 { return ratio(r.Server.CPU, r.Elapsed) }),
		curve("Completed a second", "requests/s", true, (*Result).Throughput),
	}
	for _, l := range latencyNames {
		plots = append(plots, curve("99th percentile: "+l.name, "ms", true, p99(l.key)))
	}
	return plots
}
