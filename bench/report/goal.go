package report

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"docent/bench"
)

// A Goal is one condition of an objective, such as ttfe.p99<200ms, or ttfe.p99@1000<200ms for the load of that size
// alone.
type Goal struct {
	text   string
	size   float64 // of the load that it is about; 0 for every one
	ratio  bool    // of the figure to that of the limit server
	metric string
	stat   string // of a latency
	op     string
	bound  float64 // milliseconds, bytes or a plain number

	measured unit
}

func (g Goal) String() string { return g.text }

// goalLatencies are the short names of latencies in a goal.
var goalLatencies = map[string]string{
	"ttfe": "firstEvent", "ttft": "firstText", "whole": "whole", "late": "late", "search": "search",
	"accepted": "accepted", "ended": "ended",
	"ready": "ready", "resumed": "resumed", "refusal": "refusal", "unloaded": "unloaded", "steady": "steady",
	"after": "after", "sent": "sent",
}

var goalStats = map[string]func(bench.Latency) float64{
	"mean": func(l bench.Latency) float64 { return l.Mean }, "p50": func(l bench.Latency) float64 { return l.P50 },
	"p90": func(l bench.Latency) float64 { return l.P90 },
	"p99": func(l bench.Latency) float64 { return l.P99 }, "p999": func(l bench.Latency) float64 { return l.P999 },
	"max": func(l bench.Latency) float64 { return l.Max },
}

// unit is what a goal's bound is measured in.
type unit uint8

const (
	plainUnit unit = iota
	timeUnit       // milliseconds in a Goal
	byteUnit
)

type goalFigure struct {
	unit   unit
	total  bool
	figure func(*bench.Result) float64
}

var goalFigures = map[string]goalFigure{
	"lost":        {total: true, figure: func(r *bench.Result) float64 { return float64(r.Lost) }},
	"refused":     {total: true, figure: func(r *bench.Result) float64 { return float64(r.Refused) }},
	"completed":   {total: true, figure: func(r *bench.Result) float64 { return float64(r.Completed) }},
	"stretch":     {figure: (*bench.Result).Stretch},
	"throughput":  {figure: (*bench.Result).Throughput},
	"cpu.part":    {unit: timeUnit, figure: func(r *bench.Result) float64 { return r.CPUPerPart() / 1000 }},
	"cpu.request": {unit: timeUnit, figure: func(r *bench.Result) float64 { return r.CPUPerRequest() / 1000 }},
	"allocs.part": {figure: (*bench.Result).AllocationsPerPart},
	"mem.stream":  {unit: byteUnit, figure: (*bench.Result).MemoryPerStream},
	"mem.max":     {unit: byteUnit, figure: func(r *bench.Result) float64 { return float64(r.Server.Resident) }},
}

func init() {
	for _, f := range figureNames {
		goalFigures[f.key] = goalFigure{unit: f.unit, figure: func(r *bench.Result) float64 { return r.Figures[f.key] }}
	}
}

const goalExample = `such as ttfe.p99<200ms, lost=0, mem.stream<64KB, ratio.cpu.part<=1.25 or ttfe.p99@1000<200ms`

// ParseGoals reads an objective: conditions with commas between them.
func ParseGoals(text string) ([]Goal, error) {
	var goals []Goal
	for part := range strings.SplitSeq(text, ",") {
		part = strings.TrimSpace(part)
		if part == "" {
			return nil, fmt.Errorf("objective %q: between its commas a condition is missing; write one %s", text, goalExample)
		}
		g, err := parseGoal(part)
		if err != nil {
			return nil, fmt.Errorf("objective %q: %w", part, err)
		}
		goals = append(goals, g)
	}
	return goals, nil
}

func parseGoal(text string) (Goal, error) {
	g := Goal{text: text}
	at := strings.IndexAny(text, "<>=")
	if at < 0 {
		return g, fmt.Errorf("it compares nothing; use one of < <= = >= >, %s", goalExample)
	}
	name, rest := strings.TrimSpace(text[:at]), text[at:]
	for _, op := range []string{"<=", ">=", "==", "<", ">", "="} {
		if value, ok := strings.CutPrefix(rest, op); ok {
			g.op, rest = strings.Replace(op, "==", "=", 1), strings.TrimSpace(value)
			break
		}
	}
	name, size, sized := strings.Cut(name, "@")
	if sized {
		var err error
		if g.size, err = strconv.ParseFloat(size, 64); err != nil || g.size <= 0 {
			return g, fmt.Errorf("%q is no size of a load; write a number of streams, or of requests a second", size)
		}
	}
	if name, g.ratio = strings.CutPrefix(name, "ratio."); name == "" {
		return g, fmt.Errorf("it names no figure; there are %s", GoalFigures())
	}
	measured := plainUnit
	if f, ok := goalFigures[name]; ok {
		g.metric, measured = name, f.unit
	} else {
		latency, stat, ok := strings.Cut(name, ".")
		key := goalLatencies[latency]
		if key == "" {
			return g, fmt.Errorf("there is no figure %q; there are %s", name, GoalFigures())
		}
		if !ok {
			stat = "p99"
		}
		if goalStats[stat] == nil {
			return g, fmt.Errorf("a latency has no %q; it has %s", stat, strings.Join(slices.Sorted(maps.Keys(goalStats)), ", "))
		}
		g.metric, g.stat, measured = key, stat, timeUnit
	}
	if g.ratio {
		measured = plainUnit
	}
	var err error
	g.measured = measured
	g.bound, err = parseBound(rest, measured)
	return g, err
}

func parseBound(text string, measured unit) (float64, error) {
	switch measured {
	case timeUnit:
		d, err := time.ParseDuration(text)
		if err != nil {
			return 0, fmt.Errorf("%q is no time; write one such as 200ms or 1.5s", text)
		}
		return float64(d) / float64(time.Millisecond), nil
	case byteUnit:
		for _, u := range []struct {
			suffix string
			bytes  float64
		}{{"KB", 1 << 10}, {"MB", 1 << 20}, {"GB", 1 << 30}, {"B", 1}} {
			if number, ok := strings.CutSuffix(text, u.suffix); ok {
				if n, err := strconv.ParseFloat(strings.TrimSpace(number), 64); err == nil {
					return n * u.bytes, nil
				}
			}
		}
		return 0, fmt.Errorf("%q is no amount of memory; write one such as 64KB or 1GB", text)
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is no number", text)
	}
	return n, nil
}

// GoalFigures lists what a goal may be about.
func GoalFigures() string {
	names := slices.Collect(maps.Keys(goalFigures))
	for latency := range goalLatencies {
		names = append(names, latency+".STAT")
	}
	slices.Sort(names)
	return strings.Join(names, ", ") + " (STAT: " + strings.Join(slices.Sorted(maps.Keys(goalStats)), ", ") +
		"), each also as ratio.…, to the limit server, and as …@SIZE for the load of that size alone"
}

// A Verdict is whether a goal was reached under one load.
type Verdict struct {
	Goal   string  `json:"goal"`
	Load   string  `json:"load"`
	Target string  `json:"target"`
	Value  float64 `json:"value"`
	Unit   string  `json:"unit,omitempty"` // of the value: " ms", " KB" or none
	Held   bool    `json:"held"`
	Why    string  `json:"why,omitempty"` // it could not be judged
}

func (v Verdict) String() string {
	held := "held"
	if !v.Held {
		held = "NOT HELD"
	}
	if v.Why != "" {
		return fmt.Sprintf("objective %s: %s (%s)", v.Goal, held, strings.TrimPrefix(v.Load+"; "+v.Why, "; "))
	}
	return fmt.Sprintf("objective %s: %s (%s, %s: %.4g%s)", v.Goal, held, v.Target, v.Load, v.Value, v.Unit)
}

// value is what was measured, with its unit, or why nothing was.
func (v Verdict) value() string {
	if v.Why != "" {
		return v.Why
	}
	return fmt.Sprintf("%.4g%s", v.Value, v.Unit)
}

// Judge holds every load of every target but the limit server against the goals: medians over the rounds; of losses,
// refusals and completions the sum. What was not measured does not hold.
func (r Report) Judge(goals []Goal) []Verdict {
	var verdicts []Verdict
	for _, goal := range goals {
		met := false
		for _, g := range r.Groups() {
			if goal.size > 0 && goal.size != g.Size {
				continue
			}
			for _, target := range g.Targets {
				if target == limitName {
					continue
				}
				met = true
				v := Verdict{Goal: goal.text, Load: g.Scenario + ", " + g.Load, Target: target}
				v.Value, v.Why = g.measure(goal, target)
				if v.Why == "" {
					v.Held = goal.holds(v.Value)
				}
				switch goal.measured {
				case timeUnit:
					v.Unit = " ms"
				case byteUnit:
					v.Value, v.Unit = v.Value/1024, " KB"
				}
				verdicts = append(verdicts, v)
			}
		}
		if !met && goal.size > 0 {
			verdicts = append(verdicts,
				Verdict{Goal: goal.text, Why: fmt.Sprintf("no load of the size %g was measured", goal.size)})
		}
	}
	return verdicts
}

func (g Group) measure(goal Goal, target string) (value float64, why string) {
	value, known := g.figure(goal, target)
	if !known {
		return 0, "it was not measured"
	}
	if !goal.ratio {
		return value, ""
	}
	limit, known := g.figure(goal, limitName)
	if !known || limit == 0 {
		return 0, "the limit server was not measured"
	}
	return value / limit, ""
}

func (g Group) figure(goal Goal, target string) (float64, bool) {
	rounds := g.Rounds[target]
	if len(rounds) == 0 {
		return 0, false
	}
	if f, ok := goalFigures[goal.metric]; ok {
		v := g.value(target, row{figure: f.figure, total: f.total})
		return v, f.total || v != 0
	}
	if rounds[0].Latencies[goal.metric].Count == 0 {
		return 0, false
	}
	return g.Median(target, func(r *bench.Result) float64 { return goalStats[goal.stat](r.Latencies[goal.metric]) }), true
}

func (g Goal) holds(v float64) bool {
	switch g.op {
	case "<":
		return v < g.bound
	case "<=":
		return v <= g.bound
	case ">":
		return v > g.bound
	case ">=":
		return v >= g.bound
	}
	return v == g.bound
}
