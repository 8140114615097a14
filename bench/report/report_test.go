package report

import (
	"bytes"
	"encoding/xml"
	"io"
	"math"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"docent/bench"
)

func sampleReport() Report {
	var r Report
	r.Made, r.Commit, r.Command = time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC), "v1.2.3", "docent bench <streams>"
	r.Machine = Machine{System: "linux/amd64", Processors: 4, Used: 2, Go: "go1.26", Memory: 8 << 30, Shared: true}
	for _, size := range []float64{10, 100} {
		for round := range 3 {
			for _, target := range []string{"docent", "limit"} {
				curve := make([]float64, len(bench.Quantiles))
				for i := range curve {
					curve[i] = float64(i+round) + 1
				}
				r.Results = append(r.Results,
					bench.Result{Scenario: "streams", Target: target, Load: short(size) + " streams", Size: size, Round: round + 1,
						Completed: 10, Parts: 2000, MostOpen: 10, Elapsed: 4, Planned: 4, Metered: true,
						Latencies: map[string]bench.Latency{"firstEvent": {Count: 10, P50: 1, P99: float64(round + 1), Curve: curve},
							"whole": {Count: 10, P50: 9, P99: 10, Curve: curve}},
						Server: bench.Usage{CPU: 0.1 * float64(round+1), Resident: 20 << 20, Flushes: 2000, Allocations: 100},
						Before: bench.Usage{Resident: 10 << 20},
						Series: []bench.Sample{{At: 0.5, Open: 5, Parts: 100, CPU: 0.2, Resident: 1 << 20},
							{At: 1, Open: 10, Parts: 200, CPU: 0.3, Resident: 2 << 20}},
						Failures: []string{"<script>alert(1)</script>"}})
			}
		}
	}
	goals, _ := ParseGoals("lost=0,ttfe.p99<1ms")
	r.Goals = r.Judge(goals)
	return r
}

func TestThePageStandsAlone(t *testing.T) {
	var page bytes.Buffer
	if err := sampleReport().WriteHTML(&page); err != nil {
		t.Fatal(err)
	}
	text := page.String()
	for _, outside := range []string{"src=", "url(", "@import", "<script", "<link"} {
		if strings.Contains(text, outside) {
			t.Errorf("the page has %s", outside)
		}
	}
	for _, m := range regexp.MustCompile(`href="([^"]*)"`).FindAllStringSubmatch(text, -1) {
		if id, inside := strings.CutPrefix(m[1], "#"); !inside || strings.Count(text, `id="`+id+`"`) != 1 {
			t.Errorf("a link leads to %q, which is not one place of the page", m[1])
		}
	}
	for _, want := range []string{"docent bench &lt;streams&gt;", "ttfe.p99&lt;1ms", "not held",
		"First event by percentile", "Processors over time",
		"How it grows with the load", "2 of 4 held", "prefers-color-scheme: dark", "@media print", "width=device-width"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	drawings := regexp.MustCompile(`(?s)<svg.*?</svg>`).FindAllString(text, -1)
	if len(drawings) < 10 {
		t.Errorf("%d drawings", len(drawings))
	}
	for _, svg := range drawings {
		d := xml.NewDecoder(strings.NewReader(svg))
		for {
			if _, err := d.Token(); err == io.EOF {
				break
			} else if err != nil {
				t.Fatalf("%v in %s", err, svg)
			}
		}
		if strings.Contains(svg, "NaN") || strings.Contains(svg, "Inf") {
			t.Errorf("a place that is none: %s", svg)
		}
	}
}

func TestAPageHoldsThePartsOfASuite(t *testing.T) {
	one, other := sampleReport(), sampleReport()
	one.Name, one.About = "Many at once", "What a piece of text costs."
	other.Name, other.Command, other.Commit = "The same again", "docent bench search", "v1.2.4"
	var page bytes.Buffer
	if err := WriteHTML(&page, one, other); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`<a href="#part1">Many at once</a>`, `<a href="#part2">The same again</a>`,
		"What a piece of text costs.", "4 of 8 held", "Of another version: v1.2.4", "docent bench search"} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if err := WriteHTML(&page); err == nil {
		t.Error("a page of nothing")
	}
}

// Each step to the right is a tenth of the requests; where fewer than one is left there is nothing between the last
// step and the longest.
func TestPercentilesEndWhereThereAreNoMoreRequests(t *testing.T) {
	curve := make([]float64, len(bench.Quantiles))
	for i := range curve {
		curve[i] = float64(i + 1)
	}
	group := func(counts ...int64) plot {
		g := Group{Rounds: map[string][]bench.Result{}}
		for i, n := range counts {
			target := string(rune('a' + i))
			g.Targets = append(g.Targets, target)
			g.Rounds[target] = []bench.Result{{Latencies: map[string]bench.Latency{"firstEvent": {Count: n, Curve: curve}}}}
		}
		return g.percentiles("firstEvent", "first event", "")
	}
	names := func(p plot) (out []string) {
		for _, at := range p.XTicks {
			out = append(out, p.XNames[at])
		}
		return out
	}
	if got := names(group(100)); !reflect.DeepEqual(got, []string{"0", "50", "90", "99", "max"}) {
		t.Errorf("of 100 requests %v", got)
	}
	p := group(10, 100000)
	if got := names(p); !reflect.DeepEqual(got, []string{"0", "50", "90", "99", "99.9", "99.99", "max"}) {
		t.Errorf("of 100000 requests %v", got)
	}
	few, many := p.Lines[0], p.Lines[1]
	if len(few.X) >= len(many.X) || few.X[len(few.X)-1] != many.X[len(many.X)-1] ||
		few.Y[len(few.Y)-1] != many.Y[len(many.Y)-1] {
		t.Errorf("%+v\n%+v", few, many)
	}
	if step := many.X[5] - many.X[0]; math.Abs(step-1) > 1e-9 { // from 0 to 90
		t.Errorf("a tenth of the requests is a step of %v", step)
	}
}

func TestAReportIsReadBack(t *testing.T) {
	want := sampleReport()
	var file bytes.Buffer
	if err := want.WriteJSON(&file); err != nil {
		t.Fatal(err)
	}
	got, err := ReadReport(&file)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v\n%+v", got, want)
	}
}

func TestTablesShowMediansAndTheRatioToTheLimit(t *testing.T) {
	var text strings.Builder
	if err := sampleReport().WriteTable(&text); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`completed +30 +30\b`, `first event, p99 \(ms\) +2\.0 +2\.0 +1\.00`,
		`CPU time per part \(µs\) +100\.0 +100\.0 +1\.00`, `memory per open stream \(KB\) +1024\.0`} {
		if !regexp.MustCompile(want).MatchString(text.String()) {
			t.Errorf("no %s in\n%s", want, text.String())
		}
	}
}

func TestPlotsDrawWhateverThereIs(t *testing.T) {
	for name, p := range map[string]plot{
		"nothing":      {},
		"one point":    {Lines: []line{{"a", []float64{5}, []float64{7}}}},
		"all the same": {Lines: []line{{"a", []float64{1, 2}, []float64{3, 3}}}},
		"zeroes":       {LogX: true, LogY: true, Lines: []line{{"a", []float64{0, 1, 10}, []float64{0, 0.001, 1e7}}}},
		"many lines": {Lines: []line{{"first of them", []float64{1, 2}, []float64{1, 2}}, {"second of them", nil, nil},
			{"third of them", nil, nil}, {"fourth of them", nil, nil}}},
	} {
		svg := p.SVG()
		for _, m := range regexp.MustCompile(`[ML](-?[0-9.]+) (-?[0-9.]+)`).FindAllStringSubmatch(svg, -1) {
			if len(m[1]) > 8 || len(m[2]) > 8 {
				t.Errorf("%s: a point far away: %s", name, m[0])
			}
		}
		if strings.Contains(svg, "NaN") || strings.Contains(svg, "Inf") {
			t.Errorf("%s: %s", name, svg)
		}
	}
	if math.Abs(niceStep(0.3)-0.5) > 1e-9 || niceStep(17) != 20 || niceStep(100) != 100 {
		t.Error("steps are not 1, 2 and 5")
	}
}

func TestLabelsThatHaveNoRoomGiveWay(t *testing.T) {
	svg := plot{LogX: true, XTicks: []float64{1, 100.5, 101.5, 102.5, 10000},
		Lines: []line{{"a", []float64{1, 100.5, 101.5, 102.5, 10000}, []float64{1, 1, 1, 1, 1}}}}.SVG()
	var got []string
	for _, m := range regexp.MustCompile(`text-anchor="middle">([^<]*)<`).FindAllStringSubmatch(svg, -1) {
		got = append(got, m[1])
	}
	if want := []string{"1", "100.5", "10 k"}; !reflect.DeepEqual(got, want) {
		t.Errorf("labels %q, want %q", got, want)
	}
	if marks := strings.Count(svg, "v4\""); marks != 5 {
		t.Errorf("%d of 5 values have a mark on the axis", marks)
	}
}

func TestAReportSaysWhatHasMoved(t *testing.T) {
	before, now := sampleReport(), sampleReport()
	if lines := now.Moved(before); len(lines) > 0 {
		t.Errorf("the same report has moved: %q", lines)
	}
	for i := range now.Results {
		now.Results[i].Server.CPU *= 2
	}
	lines := strings.Join(now.Moved(before), "\n")
	if !strings.Contains(lines, "CPU time per part was") || !strings.Contains(lines, "(+100 %)") || strings.Contains(lines, "memory") {
		t.Errorf("twice the CPU time: %q", lines)
	}
	if strings.Contains(lines, "two commands") {
		t.Errorf("one command: %q", lines)
	}
	now.Command += " --source another"
	if lines := now.Moved(before); !strings.Contains(lines[0], "two commands") {
		t.Errorf("another command: %q", lines)
	}
}
