package report

import (
	"fmt"
	"math"
	"slices"
)

// compared are the figures by which a commit is held against one before it.
var compared = []string{"CPU time per request", "CPU time per part", "allocations per request", "allocations per part",
	"memory per open stream", "peak memory", "first event, p99", "whole answer, p99"}

// moves is from which share on a figure counts as another one.
const moves = 0.1

// Moved says which figures of Docent are others than in an earlier report, a line each, and first whether that was measured
// by another command.
func (r Report) Moved(before Report) (lines []string) {
	earlier := before.Groups()
	for _, g := range r.Groups() {
		i := slices.IndexFunc(earlier, func(e Group) bool { return e.Scenario == g.Scenario && e.Load == g.Load })
		if i < 0 {
			continue
		}
		for _, target := range g.Targets {
			if target == limitName || !slices.Contains(earlier[i].Targets, target) {
				continue
			}
			for _, row := range g.rows() {
				was, is := earlier[i].value(target, row), g.value(target, row)
				if !slices.Contains(compared, row.name) || was <= 0 || is <= 0 || math.Abs(is/was-1) < moves {
					continue
				}
				lines = append(lines, fmt.Sprintf("moved %s, %s: %s was %.*f and is %.*f %s (%+.0f %%)", g.Scenario, g.Load, row.name, row.digits,
					was, row.digits, is, row.unit, 100*(is/was-1)))
			}
		}
	}
	if len(lines) > 0 && r.Command != before.Command {
		lines = slices.Insert(lines, 0, fmt.Sprintf("moved (the figures below come from two commands): %s; now: %s", before.Command, r.Command))
	}
	return lines
}
