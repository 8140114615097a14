package report

import (
	"fmt"
	"slices"
	"strings"

	"docent/bench"
)

// A Figure is a plot as a file of its own.
type Figure struct {
	Name  string // of the file, without a folder
	Title string
	About string // what it shows, in a sentence
	SVG   string
}

// Sizing is what a page on sizing shows of the parts of a suite: tables of its streams, curves, and what follows from
// them for a site. The figures are embedded as files in folder.
func Sizing(folder string, parts ...Report) (text string, figures []Figure) {
	var b strings.Builder
	fmt.Fprintf(&b, "Measured on %s. The bare server is called limit; it refuses nobody. Where a server refuses, the other figures are those of the questions that it accepted.\n", parts[0].Machine)
	var all []Group
	for _, part := range parts {
		groups := part.Groups()
		all = append(all, groups...)
		sizingTables(&b, part, groups)
	}
	figures = sizingFigures(all)
	b.WriteString("\n### The curves\n")
	for _, f := range figures {
		fmt.Fprintf(&b, "\n**%s.** %s\n\n![%s](%s/%s)\n", f.Title, f.About, f.Title, folder, f.Name)
	}
	b.WriteString(sizingExample(all))
	return b.String(), figures
}

func sizingTables(b *strings.Builder, part Report, groups []Group) {
	var kinds []string
	for _, g := range groups {
		if g.Scenario == "streams" && len(g.Rounds[g.Targets[0]][0].Turns) == 0 && !slices.Contains(kinds, g.kind()) {
			kinds = append(kinds, g.kind())
		}
	}
	for i, kind := range kinds {
		if i == 0 && part.Name != "" {
			fmt.Fprintf(b, "\n**%s.** %s\n", part.Name, part.About)
		}
		fmt.Fprintf(b, "\n| Load | Server | First event, p50 / p99 | Run time to schedule | Processor time a request | Processor time a part | Processors busy | Memory an open stream | Memory at most | Refused | Lost |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n")
		for _, g := range sortedSizes(groups, kind) {
			for _, t := range g.Targets {
				at := func(pick func(bench.Latency) float64) float64 {
					return g.Median(t, func(r *bench.Result) float64 { return pick(r.Latencies["firstEvent"]) })
				}
				stream := fmt.Sprintf("%.0f KB", g.Median(t, (*bench.Result).MemoryPerStream)/1024)
				if g.unit() == "a second" {
					stream = "" // they are gone at once; what grew is not theirs
				}
				schedule := ""
				if stretch := g.Median(t, (*bench.Result).Stretch); stretch > 0 { // questions at a rate have none
					schedule = fmt.Sprintf("%.2f", stretch)
				}
				total := func(figure func(*bench.Result) float64) float64 { return g.value(t, row{figure: figure, total: true}) }
				refused := bench.Ratio(total(func(r *bench.Result) float64 { return float64(r.Refused) }),
					total(func(r *bench.Result) float64 { return float64(r.Asked) }))
				fmt.Fprintf(b, "| %s | %s | %.1f / %.1f ms | %s | %.0f µs | %.1f µs | %.2f | %s | %.0f MB | %.3g %% | %.0f |\n",
					g.Load, t,
					at(func(l bench.Latency) float64 { return l.P50 }), at(func(l bench.Latency) float64 { return l.P99 }), schedule,
					g.Median(t, (*bench.Result).CPUPerRequest), g.Median(t, (*bench.Result).CPUPerPart), g.Median(t, busy),
					stream, g.Median(t, largest), 100*refused, total(func(r *bench.Result) float64 { return float64(r.Lost) }))
			}
		}
	}
}

func busy(r *bench.Result) float64    { return bench.Ratio(r.Server.CPU, r.Elapsed) }
func largest(r *bench.Result) float64 { return float64(r.Server.Resident) / (1 << 20) }

// Kinds of streams in a suite.
const (
	fastKind = iota // a part every few milliseconds, as it is by default
	slowKind        // a part now and then: what is open counts
	turnKind        // whole turns of the built-in model
)

// curveOf are the groups of that kind with the most loads.
func curveOf(all []Group, kind int) []Group {
	var best []Group
	for _, g := range all {
		if g.Scenario != "streams" || g.Size == 0 || strings.Contains(g.Load, "flushed every") ||
			len(g.Rounds[docentName]) == 0 {
			continue
		}
		r := g.Rounds[docentName][0]
		parts := bench.Ratio(float64(r.Parts), float64(r.Completed))
		var is int
		switch seconds := r.Latencies["whole"].P50 / 1000; {
		case g.unit() == "a second":
			is = turnKind
		case len(r.Turns) > 0:
			continue
		case bench.Ratio(seconds, parts) > 0.5:
			is = slowKind
		default:
			is = fastKind
		}
		if is != kind {
			continue
		}
		if curve := sortedSizes(all, g.kind()); len(curve) > len(best) {
			best = curve
		}
	}
	return best
}

// docentName is the target that is sized.
const docentName = "docent"

func sizingFigures(all []Group) []Figure {
	var figures []Figure
	add := func(name string, groups []Group, p plot, values ...sizingLine) {
		for _, g := range groups {
			p.XTicks = append(p.XTicks, g.Size)
		}
		p.LogX = true
		for _, t := range []string{docentName, limitName} {
			for _, v := range values {
				l := line{Name: strings.TrimSpace(t + " " + v.name)}
				for _, g := range groups {
					if len(g.Rounds[t]) > 0 {
						l.X, l.Y = append(l.X, g.Size), append(l.Y, g.Median(t, v.of))
					}
				}
				if len(l.X) > 0 {
					p.Lines = append(p.Lines, l)
				}
			}
		}
		if len(groups) > 1 && !p.empty() {
			figures = append(figures, Figure{Name: name, Title: p.Title, About: p.About, SVG: p.Standalone()})
		}
	}
	latency := func(key string, pick func(bench.Latency) float64) func(*bench.Result) float64 {
		return func(r *bench.Result) float64 { return pick(r.Latencies[key]) }
	}
	p50, p99 := func(l bench.Latency) float64 { return l.P50 }, func(l bench.Latency) float64 { return l.P99 }
	fast, slow, turns := curveOf(all, fastKind), curveOf(all, slowKind), curveOf(all, turnKind)
	add("load-processors.svg", fast,
		plot{Title: "Processors for streams", XLabel: "streams at a time", YLabel: "processors busy",
			About: "How many processors streams of a fast model keep busy, beside the bare server that writes the same bytes."},
		sizingLine{"", busy})
	add("load-part.svg", fast, plot{Title: "Processor time a part", XLabel: "streams at a time", YLabel: "µs",
		About: "What a piece of text costs, its share of the turn included: it falls as load rises, since more text goes out at a time."}, sizingLine{"", (*bench.Result).CPUPerPart})
	add("load-first-event.svg", fast,
		plot{Title: "Time to the first event", XLabel: "streams at a time", YLabel: "milliseconds", LogY: true,
			About: "How long half of the readers (p50) and all but one of a hundred (p99) wait until their answer begins."},
		sizingLine{"p50", latency("firstEvent", p50)}, sizingLine{"p99", latency("firstEvent", p99)})
	add("load-memory.svg", slow, plot{Title: "Memory for open streams", XLabel: "streams open", YLabel: "MB",
		About: "What the server's process holds at its largest with so many streams open."}, sizingLine{"", largest})
	add("load-turns.svg", turns, plot{Title: "Processors for turns", XLabel: "turns a second", YLabel: "processors busy",
		About: "How many processors whole turns of the built-in model keep busy: retrieval, journal and answer."},
		sizingLine{"", busy})
	add("load-turn-time.svg", turns,
		plot{Title: "Time of a turn", XLabel: "turns a second", YLabel: "milliseconds", LogY: true,
			About: "How long a whole turn of the built-in model takes: where the curve rises, the machine is full."},
		sizingLine{"p50", latency("whole", p50)}, sizingLine{"p99", latency("whole", p99)})
	return figures
}

type sizingLine struct {
	name string
	of   func(*bench.Result) float64
}

// sizingExample works out from the figures what one site needs.
func sizingExample(all []Group) string {
	fast, slow, turns := curveOf(all, fastKind), curveOf(all, slowKind), curveOf(all, turnKind)
	if len(fast) == 0 || len(slow) == 0 || len(turns) == 0 {
		return ""
	}
	const questions, seconds, parts = 600.0, 20.0, 500.0 // a minute; of an answer; of an answer
	median := func(g Group, figure func(*bench.Result) float64) float64 { return g.Median(docentName, figure) }
	open := slow[len(slow)-1]
	idle := median(open, func(r *bench.Result) float64 { return float64(r.Before.Resident) / (1 << 20) })
	stream := median(open, (*bench.Result).MemoryPerStream) / 1024
	// A part's cost is that of the load of the curve that is next to the example's; a turn's the highest that was
	// measured, at low load, where nothing is shared.
	at := questions / 60 * seconds
	near := fast[0]
	for _, g := range fast {
		if g.Size <= at {
			near = g
		}
	}
	part := median(near, (*bench.Result).CPUPerPart)
	turn := 0.0
	for _, g := range turns {
		turn = max(turn, median(g, (*bench.Result).CPUPerRequest))
	}
	rate := questions / 60
	processors := rate * (turn + parts*part) / 1e6
	memory := idle + at*stream/1024

	var b strings.Builder
	fmt.Fprintf(&b, "\n### A worked example\n\nA site has %.0f questions a minute at its busiest, and a model that writes answers of %.0f parts in %.0f seconds.\n\n", questions, parts, seconds)
	fmt.Fprintf(&b, "- Open at the same time: %.0f questions ÷ 60 × %.0f s = **%.0f streams**.\n", questions, seconds, at)
	fmt.Fprintf(&b, "- Memory: %.0f MB at rest + %.0f × %.0f KB = **%.0f MB**.\n", idle, at, stream, memory)
	fmt.Fprintf(&b, "- Processors: %.0f questions a second × (%.0f µs for the turn + %.0f parts × %.1f µs, as at %s) = **%.2f processors**; with a third kept free **%.2f**.\n",
		rate, turn, parts, part, strings.TrimSpace(short(near.Size)+" "+near.unit()), processors, processors*1.5)
	fmt.Fprintf(&b, "- Open files: **%.0f** and a few hundred.\n", at)
	b.WriteString("\nThat counts the turn twice, once in the part's cost: it errs on the side of a larger machine.\n")
	return b.String()
}
