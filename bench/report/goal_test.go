package report

import (
	"strings"
	"testing"

	"docent/bench"
)

func judged() Report {
	result := func(target string, p99, cpu float64, lost int) bench.Result {
		return bench.Result{Scenario: "streams", Target: target, Load: "10 streams", Size: 10, Lost: lost, Parts: 1000,
			MostOpen: 10, Elapsed: 2, Planned: 2,
			Latencies: map[string]bench.Latency{"firstEvent": {Count: 10, P50: 1, P99: p99, Max: p99}},
			Server:    bench.Usage{CPU: cpu, Resident: 1 << 20}, Before: bench.Usage{Resident: 1 << 19}}
	}
	return Report{Results: []bench.Result{
		result("docent", 10, 0.02, 0), result("limit", 5, 0.01, 0), result("docent", 30, 0.03, 1),
		result("limit", 5, 0.01, 0),
		result("docent", 20, 0.01, 0), result("limit", 5, 0.01, 0),
	}}
}

func TestGoalsAreJudgedOnMediansAndSums(t *testing.T) {
	for text, held := range map[string]bool{
		"ttfe.p99<20ms": false, "ttfe.p99<=20ms": true, "ttfe<=20ms": true, "ttfe.p50 < 2ms": true, "lost=0": false,
		"lost==1": true, "lost<=1": true,
		"stretch<=1.05": true, "cpu.part<=20us": true, "cpu.part<20µs": false, "mem.stream<52KB": true,
		"mem.stream<50KB":   false,
		"ratio.cpu.part<=2": true, "ratio.cpu.part<2": false, "ratio.ttfe.p99=4": true, "throughput>0": false,
		"late.p99<1s":       false,
		"ttfe.p99@10<=20ms": true, "ttfe.p99@10<20ms": false, "ratio.cpu.part@10<=2": true, "ttfe.p99@20<=20ms": false,
	} {
		goals, err := ParseGoals(text)
		if err != nil {
			t.Fatal(err)
		}
		verdicts := judged().Judge(goals)
		if len(verdicts) != 1 || verdicts[0].Held != held {
			t.Errorf("%s: %v", text, verdicts)
		}
	}
}

func TestAnObjectiveThatCannotBeReadSaysWhatCan(t *testing.T) {
	for text, want := range map[string]string{
		"":                    "condition is missing",
		"lost=0,":             "condition is missing",
		"lost":                "compares nothing",
		"=0":                  "names no figure",
		"speed<3":             `no figure "speed"`,
		"ttfe.p98<3ms":        `no "p98"`,
		"ttfe.p99<200":        "no time",
		"ttfe.p99<fast":       "no time",
		"mem.stream<64":       "amount of memory",
		"lost<few":            "no number",
		"ratio.ttfe.p99<20ms": "no number",
		"ttfe@many<20ms":      "no size of a load",
	} {
		if _, err := ParseGoals(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, not %q", text, err, want)
		}
	}
}
