package report

import (
	_ "embed"
	"errors"
	"fmt"
	"html/template"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"docent/bench"
	"docent/internal/brief"
)

//go:embed report.html
var pageText string

var pageTemplate = template.Must(template.New("report").Parse(pageText))

// WriteHTML writes the report as one page that needs nothing else: it opens from a disk without a network, and prints.
func (r Report) WriteHTML(w io.Writer) error { return WriteHTML(w, r) }

// What report.html shows.
type (
	pageData struct {
		Title, Made, Machine, Commit string
		Held, Judged                 int
		Parts                        []pagePart
		LightStyle, DarkStyle        template.CSS
	}
	pagePart struct {
		ID, Name, About, Command string
		Made, Machine, Commit    string // where they are others than the page's
		Goals                    []pageGoal
		Growth, Loads            []pageSection
	}
	pageGoal struct {
		Held                     bool
		Goal, Load, Target, Text string
	}
	pageSection struct {
		ID, Title, Note string
		Head            []string
		Rows            [][]string
		Figures         []template.HTML
		Failures        []string
	}
)

// WriteHTML writes several reports, the parts of a suite, as one page with a table of contents.
func WriteHTML(w io.Writer, reports ...Report) error {
	if len(reports) == 0 {
		return errors.New("there is no report to show")
	}
	made := func(r Report) string { return r.Made.UTC().Format(time.RFC1123) }
	first := reports[0]
	data := pageData{Title: "Load report", Made: made(first), Machine: first.Machine.String(), Commit: first.Commit,
		LightStyle: template.CSS(onPaper.style()), DarkStyle: template.CSS(onDark.style())}
	for i, r := range reports {
		part := r.page(fmt.Sprintf("part%d", i+1))
		if len(reports) > 1 {
			part.Made = made(r)
			if m := r.Machine.String(); m != data.Machine {
				part.Machine = m
			}
			if r.Commit != first.Commit {
				part.Commit = r.Commit
			}
		}
		for _, g := range part.Goals {
			data.Judged++
			if g.Held {
				data.Held++
			}
		}
		data.Parts = append(data.Parts, part)
	}
	if n := len(reports); n > 1 {
		data.Made = fmt.Sprintf("%s to %s", data.Made, made(reports[n-1]))
	}
	return pageTemplate.Execute(w, data)
}

// page is the report as a part of a page.
func (r Report) page(id string) pagePart {
	groups := r.Groups()
	part := pagePart{ID: id, Name: r.Name, About: r.About, Command: r.Command}
	if part.Name == "" && len(groups) > 0 {
		part.Name = brief.Capital(groups[0].Scenario)
	}
	for _, g := range r.Goals {
		part.Goals = append(part.Goals, pageGoal{Held: g.Held, Goal: g.Goal, Load: g.Load, Target: g.Target, Text: g.value()})
	}
	draw := func(plots []plot) (figures []template.HTML) {
		for _, p := range plots {
			if !p.empty() {
				figures = append(figures,
					template.HTML(`<figure><figcaption><b>`+template.HTMLEscapeString(p.Title)+`</b> `+
						template.HTMLEscapeString(p.About)+`</figcaption>`+p.SVG()+`</figure>`))
			}
		}
		return figures
	}
	var kinds []string
	for _, g := range groups {
		if !slices.Contains(kinds, g.kind()) {
			kinds = append(kinds, g.kind())
		}
	}
	for n, kind := range kinds {
		if figures := draw(sizeCurves(sortedSizes(groups, kind))); len(figures) > 0 {
			part.Growth = append(part.Growth,
				pageSection{ID: fmt.Sprintf("%s-growth%d", id, n+1), Title: "How it grows with the load: " + kind,
					Figures: figures})
		}
	}
	for n, g := range groups {
		s := pageSection{ID: fmt.Sprintf("%s-load%d", id, n+1), Title: g.Scenario + ": " + g.Load}
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
		part.Loads = append(part.Loads, s)
	}
	return part
}

// plots are the diagrams of one load.
func (g Group) plots() []plot {
	var plots []plot
	for _, l := range latencyNames {
		if l.key == "firstText" || l.key == "whole" && g.scheduled() {
			continue // the first is nearly the first event's; the second is what the script makes it
		}
		if p := g.percentiles(l.key, l.name, l.about); len(p.Lines) > 0 {
			plots = append(plots, p)
		}
	}
	series := func(title, label, about string, values ...seriesValue) plot {
		p := plot{Title: title, About: about, XLabel: "seconds since the beginning", YLabel: label}
		for _, t := range g.Targets {
			rounds := g.Rounds[t]
			for _, value := range values {
				l := line{Name: strings.TrimSpace(t + " " + value.name)}
				for _, s := range rounds[len(rounds)-1].Series {
					l.X, l.Y = append(l.X, s.At), append(l.Y, value.of(s))
				}
				if len(l.X) > 0 {
					p.Lines = append(p.Lines, l)
				}
			}
		}
		return p
	}
	turns := plot{Title: "Median of a turn by its number in the thread", XLabel: "turn", YLabel: "milliseconds",
		About: "The time from a question to its whole answer: flat where a long conversation costs no more than a short one."}
	for _, t := range g.Targets {
		l := line{Name: t}
		for i, ms := range g.Rounds[t][len(g.Rounds[t])-1].Turns {
			l.X, l.Y = append(l.X, float64(i+1)), append(l.Y, ms)
		}
		if len(l.X) > 0 {
			turns.Lines = append(turns.Lines, l)
		}
	}
	return append(plots, turns,
		series("Text over time", "parts/s", "How many pieces of text all readers together received each second.",
			seriesValue{"", func(s bench.Sample) float64 { return s.Parts }}),
		series("Completed over time", "requests/s", "How many requests ended well each second.",
			seriesValue{"", func(s bench.Sample) float64 { return s.Completed }}),
		series("Refused over time", "requests/s",
			"How many requests were turned away each second, before any work was done for them.",
			seriesValue{"", func(s bench.Sample) float64 { return s.Refused }}),
		series("Open at once", "streams", "How many streams were open at the same time.",
			seriesValue{"", func(s bench.Sample) float64 { return float64(s.Open) }}),
		series("Memory over time", "MB",
			"What the server's process holds (resident), and what its objects take of it (heap, saw-toothed by the garbage collector).",
			seriesValue{"resident", func(s bench.Sample) float64 { return float64(s.Resident) / (1 << 20) }},
			seriesValue{"heap", func(s bench.Sample) float64 { return float64(s.Heap) / (1 << 20) }}),
		series("Processors over time", "processors",
			"How many processors the server kept busy; the client's own work is not in it.",
			seriesValue{"", func(s bench.Sample) float64 { return s.CPU }}),
		series("Garbage collections over time", "collections/s", "How often the garbage collector ran.",
			seriesValue{"", func(s bench.Sample) float64 { return s.GC }}),
		series("Pauses for garbage collection over time", "ms each second",
			"For how much of each second the garbage collector stopped everything.",
			seriesValue{"", func(s bench.Sample) float64 { return s.Pauses }}))
}

type seriesValue struct {
	name string
	of   func(bench.Sample) float64
}

// scheduled says that the answers' length was set by a script.
func (g Group) scheduled() bool {
	return slices.ContainsFunc(g.Targets,
		func(t string) bool { return len(g.Rounds[t]) > 0 && g.Rounds[t][0].Planned > 0 })
}

// percentiles draws a latency against the share of requests that took longer: each step to the right is a tenth of
// them, so that the few that waited long are as wide as the many that did not. It ends where fewer than one request is
// left.
func (g Group) percentiles(key, name, about string) plot {
	p := plot{Title: brief.Capital(name) + " by percentile", XLabel: "percentile", YLabel: "milliseconds", LogY: true,
		XNames: make(map[float64]string),
		About:  about + " The 99th percentile is what 99 of 100 stay under."}
	last := 0.0
	for _, t := range g.Targets {
		rounds := g.Rounds[t]
		if len(rounds) == 0 || rounds[0].Latencies[key].Count == 0 {
			continue
		}
		l := line{Name: t}
		for i, q := range bench.Quantiles {
			rest := 1 - q/100
			if q < 100 && rest*float64(rounds[0].Latencies[key].Count) < 1 {
				continue
			}
			at := -math.Log10(rest)
			if q == 100 {
				at = l.X[len(l.X)-1] + 0.6
				last = max(last, at)
			} else if q == 0 || q == 50 || q == 90 || q == 99 || q > 99.5 {
				p.XNames[at] = short(q)
			}
			l.X = append(l.X, at)
			l.Y = append(l.Y, g.Median(t, func(r *bench.Result) float64 {
				if c := r.Latencies[key].Curve; i < len(c) {
					return c[i]
				}
				return 0
			}))
		}
		p.Lines = append(p.Lines, l)
	}
	for i := range p.Lines { // the longest of all ends every line
		if n := len(p.Lines[i].X); n > 0 {
			p.Lines[i].X[n-1] = last
		}
	}
	p.XNames[last] = "max"
	p.XTicks = slices.Sorted(maps.Keys(p.XNames))
	return p
}

// unit is what a load's size counts: "streams", "a second".
func (g Group) unit() string {
	_, unit, _ := strings.Cut(g.Load, " ")
	unit, _, _ = strings.Cut(unit, ", ")
	return unit
}

// kind is what a group has in common with those of another size: all but the size.
func (g Group) kind() string {
	kind := g.Scenario
	if u := g.unit(); u != kind {
		kind += " " + u
	}
	if _, rest, found := strings.Cut(g.Load, ", "); found {
		kind += ", " + rest
	}
	return kind
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
	unit := groups[0].unit()
	if unit == "a second" {
		unit = "begun a second"
	}
	curve := func(title, label, about string, logY bool, value func(*bench.Result) float64) plot {
		p := plot{Title: title, About: about, XLabel: unit, YLabel: label, LogX: true, LogY: logY}
		for _, g := range groups {
			p.XTicks = append(p.XTicks, g.Size)
		}
		for _, t := range groups[0].Targets {
			l := line{Name: t}
			for _, g := range groups {
				if len(g.Rounds[t]) > 0 {
					l.X, l.Y = append(l.X, g.Size), append(l.Y, g.Median(t, value))
				}
			}
			p.Lines = append(p.Lines, l)
		}
		return p
	}
	plots := []plot{
		curve("CPU time per part",
			"µs", "What a piece of text costs the server, its share of the turn included: it falls as load rises, since more text goes out at a time.", false, (*bench.Result).CPUPerPart),
		curve("CPU time per request", "µs", "What a whole request costs the server.", false,
			(*bench.Result).CPUPerRequest),
		curve("Memory per open stream", "KB", "By how much the server grew, for each stream that was open.", false,
			func(r *bench.Result) float64 { return r.MemoryPerStream() / 1024 }),
		curve("Peak memory of the server", "MB", "What the server's process held at its largest.", false,
			func(r *bench.Result) float64 { return float64(r.Server.Resident) / (1 << 20) }),
		curve("CPUs busy on average", "processors", "How many processors the server kept busy over the whole run.",
			false, func(r *bench.Result) float64 { return bench.Ratio(r.Server.CPU, r.Elapsed) }),
	}
	if !groups[0].scheduled() {
		plots = append(plots,
			curve("Completed a second", "requests/s",
				"How many requests ended well each second: where the line bends, the server is full.", false,
				(*bench.Result).Throughput))
	}
	for _, l := range latencyNames {
		if l.key == "firstText" || l.key == "whole" && groups[0].scheduled() {
			continue
		}
		plots = append(plots,
			curve("99th percentile: "+l.name, "ms", l.about+" 99 of 100 were quicker.", true,
				func(r *bench.Result) float64 { return r.Latencies[l.key].P99 }))
	}
	return plots
}
