package bench

import (
	"fmt"
	"strings"
)

// Markdown is the report's streams as tables for a page on sizing, one for each kind of load.
func (r Report) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Measured on %s.\n", r.Machine)
	var kinds []string
	groups := r.Groups()
	byKind := make(map[string][]Group)
	for _, g := range groups {
		if g.Scenario != "streams" {
			continue
		}
		if byKind[g.kind()] == nil {
			kinds = append(kinds, g.kind())
		}
		byKind[g.kind()] = append(byKind[g.kind()], g)
	}
	for _, kind := range kinds {
		fmt.Fprintf(&b, "\n| Load | Server | First event, p50 / p99 | Processor time a request | Processor time a part | Processors busy | Memory an open stream | Memory at most | Lost |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n")
		for _, g := range sortedSizes(byKind[kind], kind) {
			for _, t := range g.Targets {
				at := func(pick func(Latency) float64) float64 {
					return g.Median(t, func(r *Result) float64 { return pick(r.Latencies["firstEvent"]) })
				}
				fmt.Fprintf(&b, "| %s | %s | %.1f / %.1f ms | %.0f µs | %.1f µs | %.2f | %.0f KB | %.0f MB | %.0f |\n", g.Load, t,
					at(func(l Latency) float64 { return l.P50 }), at(func(l Latency) float64 { return l.P99 }),
					g.Median(t, (*Result).CPUPerRequest), g.Median(t, (*Result).CPUPerPart),
					g.Median(t, func(r *Result) float64 { return ratio(r.Server.CPU, r.Elapsed) }),
					g.Median(t, (*Result).MemoryPerStream)/1024, g.Median(t, func(r *Result) float64 { return float64(r.Server.Resident) / (1 << 20) }),
					g.value(t, row{figure: func(r *Result) float64 { return float64(r.Lost) }, total: true}))
			}
		}
	}
	return b.String()
}
