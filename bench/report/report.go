// Package report shows what package bench has measured: as tables, as a page with plots that needs no network, beside
// the objectives that were set.
package report

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"docent/bench"
)

// A Report is everything that one run of the bench has measured.
type Report struct {
	Name    string         `json:"name,omitempty"`  // of a part of a suite
	About   string         `json:"about,omitempty"` // what the part shows, in a sentence
	Made    time.Time      `json:"made"`
	Commit  string         `json:"commit"`           // of the bench, and of the server that it started
	Binary  int64          `json:"binary,omitempty"` // bytes of that program
	Command string         `json:"command"`
	Machine Machine        `json:"machine"`
	Results []bench.Result `json:"results"`
	Goals   []Verdict      `json:"goals,omitempty"`
}

// A Machine is what the figures depend on; nothing in it says whose it is.
type Machine struct {
	System     string `json:"system"` // "linux/amd64"
	Kernel     string `json:"kernel,omitempty"`
	Processor  string `json:"processor,omitempty"`
	Processors int    `json:"processors"`
	Used       int    `json:"used"`             // processors that the server may use (GOMAXPROCS)
	Memory     int64  `json:"memory,omitempty"` // bytes
	Go         string `json:"go"`
	Shared     bool   `json:"shared"` // the client ran on the same machine
}

func (m Machine) String() string {
	parts := []string{m.System}
	if m.Processor != "" {
		parts = append(parts, m.Processor)
	}
	parts = append(parts, fmt.Sprintf("%d processors (%d used)", m.Processors, m.Used))
	if m.Memory > 0 {
		parts = append(parts, fmt.Sprintf("%.0f GB of memory", float64(m.Memory)/(1<<30)))
	}
	if m.Kernel != "" {
		parts = append(parts, "Linux "+m.Kernel)
	}
	parts = append(parts, m.Go)
	if m.Shared {
		parts = append(parts, "client on the same machine")
	}
	return strings.Join(parts, ", ")
}

// ReadReport reads what WriteJSON wrote.
func ReadReport(r io.Reader) (Report, error) {
	var report Report
	if err := json.NewDecoder(r).Decode(&report); err != nil {
		return report, fmt.Errorf("read a report: %w", err)
	}
	return report, nil
}

// WriteJSON writes the report for other programs, and for ReadReport.
func (r Report) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", " ")
	return e.Encode(r)
}

// A Group is what was measured of one scenario under one load, by target, a result for each round.
type Group struct {
	Scenario, Load string
	Size           float64
	Targets        []string // in the order of the first round
	Rounds         map[string][]bench.Result
}

// Groups sorts the results by scenario and load, in the order in which they were measured.
func (r Report) Groups() []Group {
	var groups []Group
	for _, result := range r.Results {
		i := slices.IndexFunc(groups, func(g Group) bool { return g.Scenario == result.Scenario && g.Load == result.Load })
		if i < 0 {
			i = len(groups)
			groups = append(groups,
				Group{Scenario: result.Scenario, Load: result.Load, Size: result.Size, Rounds: make(map[string][]bench.Result)})
		}
		g := &groups[i]
		if !slices.Contains(g.Targets, result.Target) {
			g.Targets = append(g.Targets, result.Target)
		}
		g.Rounds[result.Target] = append(g.Rounds[result.Target], result)
	}
	return groups
}

// Median is the median of a figure over a target's rounds.
func (g Group) Median(target string, figure func(*bench.Result) float64) float64 {
	rounds := g.Rounds[target]
	values := make([]float64, len(rounds))
	for i := range rounds {
		values[i] = figure(&rounds[i])
	}
	return bench.Median(values)
}

// A row of a report's tables.
type row struct {
	name   string
	unit   string
	digits int
	figure func(*bench.Result) float64
	total  bool // the sum over all rounds in place of their median
	ratio  bool // the ratio to the limit says something
}

func latencyRows(key, name string, ratio bool) []row {
	at := func(pick func(bench.Latency) float64) func(*bench.Result) float64 {
		return func(r *bench.Result) float64 { return pick(r.Latencies[key]) }
	}
	return []row{
		{name: name + ", p50", unit: "ms", digits: 1, figure: at(func(l bench.Latency) float64 { return l.P50 }),
			ratio: ratio},
		{name: name + ", p99", unit: "ms", digits: 1, figure: at(func(l bench.Latency) float64 { return l.P99 }),
			ratio: ratio},
		{name: name + ", longest", unit: "ms", digits: 1, figure: at(func(l bench.Latency) float64 { return l.Max })},
	}
}

// latencyNames are the latencies that there may be, in the order of a report.
var latencyNames = []struct{ key, name, about string }{
	{"firstEvent", "first event", "From the moment at which a question was due until its answer began."},
	{"firstText", "first text", "From the moment at which a question was due until the first words."},
	{"late", "part behind its schedule", "How long after its time each piece of text arrived, counted from the first."},
	{"whole", "whole answer", "From the moment at which a question was due until its answer was whole and stored."},
	{"search", "search", "From the moment at which a search was due until its results were there."},
	{"accepted", "job accepted", "From the moment at which a job was due until it was acknowledged, and on disk."},
	{"ended", "job ended", "From the moment at which a job was due until its pull request was open."},
	{"ready", "ready again", "From the kill until the server took requests again."},
	{"resumed", "answer complete after the restart", "From the kill until a reader who came back had the whole answer."},
	{"refusal", "refusal", "From the moment at which a question was due until it was turned away."},
	{"steady", "whole answer once the load has lasted a second",
		"The same for those asked later than that: the server knows by then that it is past saturation."},
	{"unloaded", "whole answer, unloaded", "The same before the load came."},
	{"unloadedFirst", "first text, unloaded",
		"From the moment at which a question was due until the first words, before the load came."},
	{"after", "whole answer after the load dropped",
		"The same once the load had gone: back to where it was before, or not."},
	{"sent", "sent after it was due",
		"How late the bench itself was: what it could not send in time is not the server's doing."},
}

// figureNames are the figures of a scenario's own that there may be, in the order of a report. Times are in
// milliseconds.
var figureNames = []struct {
	key, name, shown string
	digits           int
	unit             unit
	scale            float64 // from the figure to what is shown
	ratio            bool
}{
	{"overload.carried", "carried a second", "", 0, plainUnit, 1, false},
	{"overload.offered", "offered a second", "", 0, plainUnit, 1, false},
	{"overload.accepted", "completed a second past saturation", "", 0, plainUnit, 1, false},
	{"overload.throughput", "completed past saturation to carried", "", 3, plainUnit, 1, false},
	{"overload.p50", "whole answer past saturation to unloaded, p50", "", 2, plainUnit, 1, false},
	{"overload.p99", "whole answer past saturation to unloaded, p99", "", 2, plainUnit, 1, false},
	{"overload.steady", "completed past saturation to carried, after the first second", "", 3, plainUnit, 1, false},
	{"overload.steady.p50", "whole answer past saturation to unloaded, p50, after the first second", "", 2, plainUnit,
		1, false},
	{"overload.steady.p99", "whole answer past saturation to unloaded, p99, after the first second", "", 2, plainUnit,
		1, false},
	{"overload.recovery", "back to normal after the load dropped", "ms", 0, timeUnit, 1, false},
	{"overload.client", "CPUs that the client keeps busy past saturation", "", 2, plainUnit, 1, false},
	{"growth", "CPU time per request, to that with the fewest conversations stored", "", 3, plainUnit, 1, false},
	{"cpu.marginal", "CPU time per further part", "µs", 2, timeUnit, 1000, true},
	{"cpu.turn", "CPU time per turn without its parts", "µs", 0, timeUnit, 1000, true},
	{"cpu.postgres", "PostgreSQL's CPU time per turn", "µs", 0, timeUnit, 1000, false},
}

// rows are those that a group has something to say in.
func (g Group) rows() []row {
	all := []row{
		{name: "completed", figure: func(r *bench.Result) float64 { return float64(r.Completed) }, total: true},
		{name: "refused", figure: func(r *bench.Result) float64 { return float64(r.Refused) }, total: true},
		{name: "lost", figure: func(r *bench.Result) float64 { return float64(r.Lost) }, total: true},
		{name: "most open at once", figure: func(r *bench.Result) float64 { return float64(r.MostOpen) }},
		{name: "run time", unit: "s", digits: 2, figure: func(r *bench.Result) float64 { return r.Elapsed }},
		{name: "run time to schedule", digits: 3, figure: (*bench.Result).Stretch, ratio: true},
		{name: "completed a second", digits: 1, figure: (*bench.Result).Throughput, ratio: true},
		{name: "parts a second", digits: 0,
			figure: func(r *bench.Result) float64 { return bench.Ratio(float64(r.Parts), r.Elapsed) }},
	}
	for _, l := range latencyNames {
		all = append(all, latencyRows(l.key, l.name, l.key != "refusal")...)
	}
	for _, f := range figureNames {
		all = append(all, row{name: f.name, unit: f.shown, digits: f.digits,
			figure: func(r *bench.Result) float64 { return f.scale * r.Figures[f.key] }, ratio: f.ratio})
	}
	if g.Scenario == "overload" {
		all = append(all, memoryAtMost)
	}
	if !slices.Contains([]string{"streams", "search", "jobs", "nodes"}, g.Scenario) {
		// Several loads at once, or several processes one after another: what it cost is not one of them's.
		return g.known(all)
	}
	all = append(all,
		row{name: "CPU time per part", unit: "µs", digits: 1, figure: (*bench.Result).CPUPerPart, ratio: true},
		row{name: "CPU time per flush", unit: "µs", digits: 1,
			figure: func(r *bench.Result) float64 { return bench.Ratio(r.Server.CPU*1e6, float64(r.Server.Flushes)) },
			ratio:  true},
		row{name: "parts per flush", digits: 2,
			figure: func(r *bench.Result) float64 { return bench.Ratio(float64(r.Parts), float64(r.Server.Flushes)) }},
		row{name: "CPU time per request", unit: "µs", digits: 0, figure: (*bench.Result).CPUPerRequest, ratio: true},
		row{name: "allocations per part", digits: 2, figure: (*bench.Result).AllocationsPerPart, ratio: true},
		row{name: "allocations per request", digits: 0, figure: (*bench.Result).AllocationsPerRequest, ratio: true},
		row{name: "memory per open stream", unit: "KB", digits: 1,
			figure: func(r *bench.Result) float64 { return r.MemoryPerStream() / 1024 }, ratio: true},
		row{name: "of it stacks", unit: "KB", digits: 1, figure: func(r *bench.Result) float64 {
			return bench.Ratio(float64(r.Server.Stacks-r.Before.Stacks)/1024, float64(r.MostOpen))
		}, ratio: true},
		row{name: "memory before", unit: "MB", digits: 1,
			figure: func(r *bench.Result) float64 { return float64(r.Before.Resident) / (1 << 20) }},
		memoryAtMost,
		row{name: "garbage collections", digits: 0,
			figure: func(r *bench.Result) float64 { return float64(r.Server.Collections) }},
	)
	return g.known(all)
}

var memoryAtMost = row{name: "peak memory", unit: "MB", digits: 1, figure: largest}

func largest(r *bench.Result) float64 { return float64(r.Server.Resident) / (1 << 20) }

// known are the rows that say something; what became of the requests always does.
func (g Group) known(all []row) []row {
	keep := all[:0]
	for _, row := range all {
		if row.total || slices.ContainsFunc(g.Targets, func(t string) bool { return g.value(t, row) != 0 }) {
			keep = append(keep, row)
		}
	}
	return keep
}

func (g Group) value(target string, r row) float64 {
	if !r.total {
		return g.Median(target, r.figure)
	}
	sum := 0.0
	for i := range g.Rounds[target] {
		sum += r.figure(&g.Rounds[target][i])
	}
	return sum
}

// limitName is the target that others are compared with.
const limitName = "limit"

// table is a group as cells: a head, and a row for each figure.
func (g Group) table() (head []string, rows [][]string) {
	compared := len(g.Targets) > 1 && slices.Contains(g.Targets, limitName)
	head = append([]string{""}, g.Targets...)
	if compared {
		head = append(head, "× limit")
	}
	for _, r := range g.rows() {
		name := r.name
		if r.unit != "" {
			name += " (" + r.unit + ")"
		}
		cells := []string{name}
		for _, t := range g.Targets {
			cells = append(cells, fmt.Sprintf("%.*f", r.digits, g.value(t, r)))
		}
		if compared {
			cell := ""
			if limit := g.value(limitName, r); r.ratio && limit > 0 {
				other := g.Targets[slices.IndexFunc(g.Targets, func(t string) bool { return t != limitName })]
				cell = fmt.Sprintf("%.2f", g.value(other, r)/limit)
			}
			cells = append(cells, cell)
		}
		rows = append(rows, cells)
	}
	return head, rows
}

// WriteTable writes the report for a terminal: a table for each load, medians where there were several rounds.
func (r Report) WriteTable(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", r.Machine)
	for _, g := range r.Groups() {
		rounds := len(g.Rounds[g.Targets[0]])
		fmt.Fprintf(&b, "\n%s: %s", g.Scenario, g.Load)
		if rounds > 1 {
			fmt.Fprintf(&b, " (medians of %d rounds; counts are sums)", rounds)
		}
		b.WriteString("\n\n")
		head, rows := g.table()
		widths := make([]int, len(head))
		for _, cells := range append([][]string{head}, rows...) {
			for i, cell := range cells {
				widths[i] = max(widths[i], len([]rune(cell)))
			}
		}
		for _, cells := range append([][]string{head}, rows...) {
			fmt.Fprintf(&b, "%-*s", widths[0], cells[0])
			for i, cell := range cells[1:] {
				fmt.Fprintf(&b, "  %*s", max(widths[i+1], 10), cell)
			}
			b.WriteByte('\n')
		}
		seen := map[string]bool{}
		for _, t := range g.Targets {
			for _, result := range g.Rounds[t] {
				for _, f := range result.Failures {
					if line := t + ": " + f; !seen[line] {
						seen[line] = true
						fmt.Fprintf(&b, "failure: %s\n", line)
					}
				}
			}
		}
	}
	for i, v := range r.Goals {
		if i == 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "%s\n", v)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
