package report

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"docent/bench"
)

// A Suite is what make bench measures: the reports of its parts by the names of their files, without extension.
type Suite map[string]Report

// marked is a place of a page whose text is made from figures, with the marks around it: comments of MDX or Markdown.
var marked = regexp.MustCompile(`(?s)((?:\{/\*|<!--) figures: (\w+) [^\n]*\n).*?((?:\{/\*|<!--) end of figures)`)

// Rewrite puts what the suite has measured between a page's marks. A page without any is an error, and so is a mark that
// nothing is known of.
func (s Suite) Rewrite(page string) (string, error) {
	var err error
	found := false
	out := marked.ReplaceAllStringFunc(page, func(all string) string {
		found = true
		m := marked.FindStringSubmatch(all)
		text := ""
		switch m[2] {
		case "summary":
			text = s.summary()
		case "load":
			text = s.load()
		case "example":
			text = s.example()
		case "nodes":
			text = s.nodes()
		default:
			err = fmt.Errorf("there are no figures named %q; there are summary, load, example and nodes", m[2])
		}
		return m[1] + "\n" + text + "\n" + m[3]
	})
	if !found {
		err = fmt.Errorf("the marks around its figures are gone: %q and %q", "{/* figures: NAME … */}", "{/* end of figures */}")
	}
	return out, err
}

// from says where figures come from: the commit and the machine.
func (r Report) from() string { return fmt.Sprintf("commit %s, %s", r.Commit, r.Machine) }

// mid is the median of a figure of Docent's.
func (g Group) mid(figure func(*bench.Result) float64) float64 { return g.Median(docentName, figure) }

// docentName is the target that is measured beside the limit.
const docentName = "docent"

func at(key string, pick func(bench.Latency) float64) func(*bench.Result) float64 {
	return func(r *bench.Result) float64 { return pick(r.Latencies[key]) }
}

func p50(l bench.Latency) float64 { return l.P50 }
func p99(l bench.Latency) float64 { return l.P99 }

func busy(r *bench.Result) float64 { return bench.Ratio(r.Server.CPU, r.Elapsed) }

// summary is what README shows.
func (s Suite) summary() string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(s)) {
		if part := s[name]; part.Binary > 0 {
			fmt.Fprintf(&b, "The binary is static (`CGO_ENABLED=0`) and %.1f MB in size (`make build && ls -l bin/docent`, %s).\n\n",
				float64(part.Binary)/1e6, part.Machine.System)
			break
		}
	}
	streams := s["streams"]
	groups := streams.Groups()
	if len(groups) == 0 {
		return b.String()
	}
	fmt.Fprintf(&b, "Concurrent assistant streams: whole turns (key, quotas, thread actor, journal with fsync, retrieval) with a scripted model that\n"+
		"writes 200 parts, one every 20 ms. %d processors, shared with the client; medians of rounds (%d), in turn with a bare `net/http`\n"+
		"handler that writes the same bytes at the same times:\n\n", streams.Machine.Processors, len(groups[0].Rounds[docentName]))
	b.WriteString("| Streams at once | | lost | first text p50 / p99 | CPU time per part | allocations per part | memory per open stream |\n" +
		"| --- | --- | --- | --- | --- | --- | --- |\n")
	for _, g := range groups {
		for _, t := range g.Targets {
			name, size := "bare", ""
			if t == docentName {
				name, size = "Docent", thousands(g.Size)
			}
			fmt.Fprintf(&b, "| %s | %s | %.0f | %.1f / %.1f ms | %.1f µs | %.1f | %.0f KB |\n", size, name,
				g.value(t, row{figure: func(r *bench.Result) float64 { return float64(r.Lost) }, total: true}),
				g.Median(t, at("firstText", p50)), g.Median(t, at("firstText", p99)), g.Median(t, (*bench.Result).CPUPerPart),
				g.Median(t, (*bench.Result).AllocationsPerPart), g.Median(t, (*bench.Result).MemoryPerStream)/1024)
		}
	}
	if turns := s["turns"].Groups(); len(turns) > 0 {
		top := turns[len(turns)-1]
		fmt.Fprintf(&b, "\nA whole turn of the built-in model costs %s µs of CPU time and %s allocations at %s a second.\n",
			thousands(top.mid((*bench.Result).CPUPerRequest)), thousands(top.mid((*bench.Result).AllocationsPerRequest)), thousands(top.Size))
	}
	fmt.Fprintf(&b, "\n```bash\nmake bench # bench/results/report.html shows this run, of commit %s\n```\n", streams.Commit)
	return b.String()
}

// thousands writes a whole number with commas.
func thousands(v float64) string {
	digits := fmt.Sprintf("%.0f", v)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// load is the whole of the suite: tables of streams, and curves.
func (s Suite) load() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Measured on %s. The bare server is called limit; it refuses nobody. Where a server refuses, the other figures are those of the questions that it accepted.\n",
		s["streams"].from())
	for _, name := range []string{"streams", "unpaced", "paced", "busy", "open", "turns"} {
		if part, ok := s[name]; ok {
			part.loadTable(&b)
		}
	}
	b.WriteString("\n### The curves\n")
	for _, c := range s.curves() {
		fmt.Fprintf(&b, "\n**%s.** %s\n\n![%s](%s)\n", c.plot.Title, c.plot.About, c.plot.Title, c.file)
	}
	return b.String()
}

func (r Report) loadTable(b *strings.Builder) {
	fmt.Fprintf(b, "\n**%s.** %s\n\n| Load | Server | First event, p50 / p99 | Run time to schedule | CPU time per request | CPU time per part | CPUs busy | Memory per open stream | Peak memory | Refused | Lost |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n",
		r.Name, r.About)
	for _, g := range r.Groups() {
		for _, t := range g.Targets {
			stream, schedule := fmt.Sprintf("%.0f KB", g.Median(t, (*bench.Result).MemoryPerStream)/1024), ""
			if g.unit() == "a second" {
				stream = "" // they are gone at once; what grew is not theirs
			}
			if stretch := g.Median(t, (*bench.Result).Stretch); stretch > 0 { // questions at a rate have none
				schedule = fmt.Sprintf("%.2f", stretch)
			}
			total := func(figure func(*bench.Result) float64) float64 { return g.value(t, row{figure: figure, total: true}) }
			refused := bench.Ratio(total(func(r *bench.Result) float64 { return float64(r.Refused) }),
				total(func(r *bench.Result) float64 { return float64(r.Asked) }))
			fmt.Fprintf(b, "| %s | %s | %.1f / %.1f ms | %s | %.0f µs | %.1f µs | %.2f | %s | %.0f MB | %.3g %% | %.0f |\n", g.Load, t,
				g.Median(t, at("firstEvent", p50)), g.Median(t, at("firstEvent", p99)), schedule,
				g.Median(t, (*bench.Result).CPUPerRequest), g.Median(t, (*bench.Result).CPUPerPart), g.Median(t, busy),
				stream, g.Median(t, largest), 100*refused, total(func(r *bench.Result) float64 { return float64(r.Lost) }))
		}
	}
}

// A curve is a plot that is a file of its own.
type curve struct {
	file string
	plot plot
}

// curves are those of the suite.
func (s Suite) curves() (out []curve) {
	for _, c := range []struct{ file, part, of, title string }{
		{"load-processors.svg", "streams", "CPUs busy on average", "Processors for streams"},
		{"load-part.svg", "streams", "CPU time per part", "CPU time per part"},
		{"load-first-event.svg", "streams", "99th percentile: first event", "Time to the first event, 99th percentile"},
		{"load-memory.svg", "open", "Peak memory of the server", "Memory for open streams"},
		{"load-turns.svg", "turns", "CPUs busy on average", "Processors for turns"},
		{"load-turn-time.svg", "turns", "99th percentile: whole answer", "Time of a turn, 99th percentile"},
	} {
		groups := s[c.part].Groups()
		if len(groups) == 0 {
			continue
		}
		for _, p := range sizeCurves(sortedSizes(groups, groups[0].kind())) {
			if p.Title == c.of && !p.empty() {
				p.Title = c.title
				out = append(out, curve{c.file, p})
			}
		}
	}
	return out
}

// Curves are the drawings of the suite, by the names of their files.
func (s Suite) Curves() map[string]string {
	out := make(map[string]string)
	for _, c := range s.curves() {
		out[c.file] = c.plot.Standalone()
	}
	return out
}

// example works out from the figures what one site needs.
func (s Suite) example() string {
	fast, open, turns := s["streams"].Groups(), s["open"].Groups(), s["turns"].Groups()
	if len(fast) == 0 || len(open) == 0 || len(turns) == 0 {
		return ""
	}
	const questions, seconds, parts = 600.0, 20.0, 500.0 // a minute; of an answer; of an answer
	most := open[len(open)-1]
	idle := most.mid(func(r *bench.Result) float64 { return float64(r.Before.Resident) / (1 << 20) })
	stream := most.mid((*bench.Result).MemoryPerStream) / 1024
	// A part's cost is that of the load which is next to the example's; a turn's the highest that was measured, at low
	// load, where nothing is shared.
	rate := questions / 60
	at := rate * seconds
	near := fast[0]
	for _, g := range fast {
		if g.Size <= at {
			near = g
		}
	}
	part, turn := near.mid((*bench.Result).CPUPerPart), 0.0
	for _, g := range turns {
		turn = max(turn, g.mid((*bench.Result).CPUPerRequest))
	}
	processors := rate * (turn + parts*part) / 1e6
	return fmt.Sprintf("### A worked example\n\nA site has %.0f questions a minute at its busiest, and a model that writes answers of %.0f parts in %.0f seconds.\n\n",
		questions, parts, seconds) +
		fmt.Sprintf("- Open at the same time: %.0f questions ÷ 60 × %.0f s = **%.0f streams**.\n", questions, seconds, at) +
		fmt.Sprintf("- Memory: %.0f MB at rest + %.0f × %.0f KB = **%.0f MB**.\n", idle, at, stream, idle+at*stream/1024) +
		fmt.Sprintf("- Processors: %.0f questions a second × (%.0f µs for the turn + %.0f parts × %.1f µs, as at %.0f %s) = **%.2f processors**; with a third kept free **%.2f**.\n",
			rate, turn, parts, part, near.Size, near.unit(), processors, processors*1.5) +
		fmt.Sprintf("- Open files: **%.0f** and a few hundred.\n\nThat counts the turn twice, once in the part's cost: it errs on the side of a larger machine.\n", at)
}

// nodes compares one to three nodes with a single server.
func (s Suite) nodes() string {
	part, ok := s["nodes"]
	if !ok {
		return "`make bench` measures it where PostgreSQL is installed; it did not run there for this version.\n"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Whole turns of the built-in model, asked by 32 callers of all nodes. PostgreSQL and the callers were on the same machine. Measured: %s.\n\n", part.from())
	b.WriteString("| | turns a second | whole answer, p50 / p99 | CPU time per turn | of PostgreSQL besides |\n| --- | --- | --- | --- | --- |\n")
	for _, g := range part.Groups() {
		fmt.Fprintf(&b, "| %s | %s | %.1f / %.1f ms | %s µs | %s µs |\n", g.Load, thousands(g.mid((*bench.Result).Throughput)),
			g.mid(at("whole", p50)), g.mid(at("whole", p99)), thousands(g.mid((*bench.Result).CPUPerRequest)),
			thousands(1000*g.mid(func(r *bench.Result) float64 { return r.Figures["cpu.postgres"] })))
	}
	return b.String()
}

// Commits are those that the parts were measured at, in order.
func (s Suite) Commits() []string {
	var out []string
	for _, part := range s {
		out = append(out, part.Commit)
	}
	slices.Sort(out)
	return slices.Compact(out)
}
