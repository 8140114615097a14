package search

import (
	"context"
	"flag"
	"fmt"
	"strings"
	"testing"

	"docent/api"
)

var ablate = flag.Bool("ablate", false, "print how the judged queries fare without each part of the ranking")

// evaluateWith asks the judged queries under other weights.
func evaluateWith(t *testing.T, l *Library, queries []Judged, tuning Tuning, box bool) []Outcome {
	snaps := make(map[string]*snapshot)
	for _, c := range corpora {
		s, err := l.acquire(api.ProjectID(c))
		if err != nil {
			t.Fatal(err)
		}
		defer s.release()
		snaps[c] = retuned(s, tuning)
	}
	out, err := Evaluate(t.Context(), queries, func(ctx context.Context, q Judged) ([]Found, error) {
		return found(snaps[q.Corpus].search(ctx, Query{Text: q.Query, Limit: 10, Box: box}))
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// half splits the judged queries by their text: weights were chosen on "dev" and looked at on "held".
func half(o Outcome) string {
	if hashTerm(o.Judged.Query)&64 != 0 {
		return "held"
	}
	return "dev"
}

// TestAblation prints the table of docs/decisions/0003-ranking.md.
func TestAblation(t *testing.T) {
	if !*ablate {
		t.Skip("only with -ablate")
	}
	l := openTest(t, Options{})
	queries := judgedQueries(t)
	indexCorpora(t, l)
	var table strings.Builder
	table.WriteString("| without | mean | desc | head | prefix | typo | question | section@1 | dev / held mrr |\n|---|---|---|---|---|---|---|---|---|\n")
	row := func(name string, tuning Tuning, box bool) {
		out := evaluateWith(t, l, queries, tuning, box)
		byKind := Summarize(out, func(o Outcome) string { return o.Judged.Kind })
		halves := Summarize(out, half)
		var mean float64
		fmt.Fprintf(&table, "| %s |", name)
		var cells strings.Builder
		for _, k := range kinds {
			mean += byKind[k].HitAt5 / float64(len(kinds))
			fmt.Fprintf(&cells, " %.3f/%.3f |", byKind[k].HitAt5, byKind[k].MRR)
		}
		fmt.Fprintf(&table, " %.3f |%s %.3f | %.3f / %.3f |\n", mean, cells.String(), byKind["head"].Section1, halves["dev"].MRR, halves["held"].MRR)
	}
	row("–", DefaultTuning, true)
	for _, a := range []struct {
		name string
		set  func(*Tuning)
	}{
		{"title coverage", func(t *Tuning) { t.TitleCover = 0 }},
		{"heading coverage", func(t *Tuning) { t.HeadingCover, t.HeadingExact = 0, 0 }},
		{"the query as a heading", func(t *Tuning) { t.HeadingExact = 0 }},
		{"proximity", func(t *Tuning) { t.Proximity = 0 }},
		{"any closer look", func(t *Tuning) {
			t.TitleCover, t.HeadingCover, t.HeadingExact, t.Proximity, t.TitleStart, t.TitleStartBase = 0, 0, 0, 0, 0, 0
		}},
		{"title start", func(t *Tuning) { t.TitleStart, t.TitleStartBase = 0, 0 }},
		{"page score (sections only)", func(t *Tuning) { t.PageShare = 0 }},
		{"section score (pages only)", func(t *Tuning) { t.PageShare = 1 }},
		{"page fields in sections (but the title)", func(t *Tuning) { clear(t.Inherit[1:]) }},
		{"keywords", func(t *Tuning) { t.Page[fieldKeywords], t.Inherit[fieldKeywords] = 0, 0 }},
		{"text of incoming links", func(t *Tuning) { t.Page[fieldLinks], t.Inherit[fieldLinks] = 0, 0 }},
		{"votes of linking candidates", func(t *Tuning) { t.Vote = 0 }},
		{"path", func(t *Tuning) { t.Page[fieldPath], t.Inherit[fieldPath] = 0, 0 }},
		{"code", func(t *Tuning) { t.Section[fieldCode], t.PageCode = 0, 0 }},
		{"mercy for the rest of a name", func(t *Tuning) { t.NameRest = t.UnknownCount }},
	} {
		x := DefaultTuning
		a.set(&x)
		row(a.name, x, true)
	}
	row("slips and prefixes (as the assistant asks)", DefaultTuning, false)
	fmt.Print(table.String())
}
