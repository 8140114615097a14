package evalcmd

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"docent/bench/evaluation"
	"docent/internal/brief"
)

// An answersReport is what `docent eval answers` shows.
type answersReport struct {
	evaluation.Run
	All     evaluation.Score            `json:"all"`
	Kinds   map[string]evaluation.Score `json:"kinds"`
	Against *evaluation.Comparison      `json:"against,omitempty"`

	file string
}

func newAnswersReport(file string, run evaluation.Run, before *evaluation.Run) *answersReport {
	r := &answersReport{Run: run, file: file}
	r.All, r.Kinds = evaluation.Summarize(run.Results, func(r *evaluation.Result) string { return r.Kind })
	if before != nil {
		c := evaluation.Compare(before.Results, run.Results)
		r.Against = &c
	}
	return r
}

func (r *answersReport) print(w io.Writer, all bool) error {
	if err := r.table(w); err != nil {
		return err
	}
	for i := range r.Results {
		x := &r.Results[i]
		if !all && (x.Verdict.Passed || x.Verdict.Open) {
			continue
		}
		q := x.Question()
		fmt.Fprintf(w, "\n%s:%d: %s\n", r.file, q.Line, x.Ask)
		printAnswer(w, "  ", x)
	}
	if r.Against != nil {
		r.compared(w)
	}
	return nil
}

func (r *answersReport) table(w io.Writer) error {
	const head = "KIND\tQUESTIONS\tPASSED\tFIRST SOURCE\tFACTS\tIN DOUBT\tDENIED\tFAILED\tP50\tP95\t"
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tab, head)
	row := func(name string, s evaluation.Score) {
		fmt.Fprintf(tab, "%s\t%d\t%s\t%s\t%s\t%d\t%d\t%d\t%v\t%v\t\n", name, s.Questions,
			share(evaluation.Share{N: s.Passed, Of: s.Judged}), share(s.First), share(s.Held), s.InDoubt, s.Denied, s.Failed,
			s.P50.Round(time.Millisecond), s.P95.Round(time.Millisecond))
	}
	for _, kind := range slices.Sorted(maps.Keys(r.Kinds)) {
		row(kind, r.Kinds[kind])
	}
	row("all", r.All)
	return tab.Flush()
}

func share(s evaluation.Share) string {
	if s.Of == 0 {
		return "-"
	}
	return fmt.Sprintf("%d/%d %3.0f%%", s.N, s.Of, 100*float64(s.N)/float64(s.Of))
}

// shownText is how much of an answer is shown.
const shownText = 300

func printAnswer(w io.Writer, indent string, r *evaluation.Result) {
	state := string(r.Verdict.Outcome)
	switch {
	case r.Verdict.Open:
		state += ", not judged"
	case r.Verdict.Passed:
		state += ", passed"
	}
	fmt.Fprintf(w, "%s%s", indent, state)
	if len(r.Answer.Sources) > 0 {
		s := r.Answer.Sources[0]
		fmt.Fprintf(w, "; first source %s", shownWord(cmp.Or(s.Path, s.URL)))
		if s.Anchor != "" {
			fmt.Fprintf(w, "#%s", shownWord(s.Anchor))
		}
	}
	fmt.Fprintln(w)
	for _, why := range r.Verdict.Why {
		fmt.Fprintf(w, "%s- %s\n", indent, shownWord(why))
	}
	if from := r.Answer.FallbackFor; from != "" {
		fmt.Fprintf(w, "%s- %s answered instead of %s\n", indent, shownWord(r.Answer.Model), shownWord(from))
	}
	if d := r.Answer.Degraded; len(d) > 0 {
		fmt.Fprintf(w, "%s- degraded: %s\n", indent, shownWord(strings.Join(d, "; ")))
	}
	if text := shownWord(r.Answer.Text); text != "" {
		fmt.Fprintf(w, "%s| %s\n", indent, text)
	}
}

// shownWord is a text of others on one line of a terminal, without what would move its cursor.
func shownWord(text string) string {
	return brief.Runes(brief.Line(strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 {
			return ' '
		}
		return r
	}, text)), shownText, " …")
}

func (r *answersReport) compared(w io.Writer) {
	c := r.Against
	fmt.Fprintf(w, "\nAgainst the other run: %d better, %d worse, %d moved, %d the same, %d new.\n", len(c.Better), len(c.Worse),
		len(c.Moved), c.Same, c.New)
	if n := len(c.Better) + len(c.Worse); n > 0 {
		word := "this is more than chance"
		if c.Chance >= 0.05 {
			word = "chance alone may do this"
		}
		fmt.Fprintf(w, "So uneven a split comes by chance with a probability of %.3f (sign test): %s.\n", c.Chance, word)
	}
	for _, part := range []struct {
		name  string
		pairs []evaluation.Pair
	}{{"better", c.Better}, {"WORSE", c.Worse}, {"moved", c.Moved}} {
		for _, p := range part.pairs {
			fmt.Fprintf(w, "\n%s: %s\n  before:\n", part.name, shownWord(p.Ask))
			printAnswer(w, "    ", &p.Before)
			fmt.Fprintln(w, "  now:")
			printAnswer(w, "    ", &p.After)
		}
	}
}
