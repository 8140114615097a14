package search

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"docent/api"
	"docent/bench/retrieval"
	"docent/search/analysis"
	"docent/search/page"
)

// evaluateWith asks the judged queries under other weights.
func evaluateWith(t testing.TB, l *Library, queries []retrieval.Query, tuning Tuning, box bool) []retrieval.Outcome {
	snaps := make(map[string]*snapshot)
	for _, c := range corpora {
		s, err := l.acquire(api.ProjectID(c))
		if err != nil {
			t.Fatal(err)
		}
		defer s.release()
		snaps[c] = retuned(s, tuning)
	}
	out, err := retrieval.Run(t.Context(), queries, func(ctx context.Context, q retrieval.Query) ([]retrieval.Found, error) {
		return found(snaps[q.Corpus].search(ctx, Query{Text: q.Query, Limit: 10, Box: box}))
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// halfOf splits the judged queries by their text: weights were chosen on "dev" and looked at on "held".
func halfOf(o retrieval.Outcome) string {
	if analysis.Hash(o.Judged.Query)&64 != 0 {
		return "held"
	}
	return "dev"
}

// judgedLibrary is a library of the judged sites, and their queries.
func judgedLibrary(b *testing.B) (*Library, []retrieval.Query) {
	l := openTest(b, Options{})
	queries := judgedQueries(b)
	indexCorpora(b, l)
	return l, queries
}

// BenchmarkAblation prints the results of the judged queries without each part of the ranking: the table of
// docs/measurements/2026-11-search.md.
func BenchmarkAblation(b *testing.B) {
	l, queries := judgedLibrary(b)
	for b.Loop() {
		fmt.Print(ablation(b, l, queries))
	}
}

func ablation(b *testing.B, l *Library, queries []retrieval.Query) string {
	var table strings.Builder
	table.WriteString("| without | mean | desc | head | prefix | typo | question | section@1 | dev / held mrr |\n|---|---|---|---|---|---|---|---|---|\n")
	row := func(name string, tuning Tuning, box bool) {
		out := evaluateWith(b, l, queries, tuning, box)
		byKind := retrieval.Summarize(out, func(o retrieval.Outcome) string { return o.Judged.Kind })
		halves := retrieval.Summarize(out, halfOf)
		var mean float64
		fmt.Fprintf(&table, "| %s |", name)
		var cells strings.Builder
		for _, k := range kinds {
			mean += byKind[k].HitAt5 / float64(len(kinds))
			fmt.Fprintf(&cells, " %.3f/%.3f |", byKind[k].HitAt5, byKind[k].MRR)
		}
		fmt.Fprintf(&table, " %.3f |%s %.3f | %.3f / %.3f |\n", mean, cells.String(), byKind["head"].Section1,
			halves["dev"].MRR, halves["held"].MRR)
	}
	row("–", DefaultTuning, true)
	for _, a := range []struct {
		name string
		set  func(*Tuning)
	}{
		{"title coverage", func(t *Tuning) { t.TitleCover = 0 }},
		{"heading coverage", func(t *Tuning) { t.HeadingCover, t.HeadingExact = 0, 0 }},
		{"the query as a heading", func(t *Tuning) { t.HeadingExact = 0 }},
		{"the query's end as a heading, word for word", func(t *Tuning) { t.HeadingNamed = 0 }},
		{"proximity", func(t *Tuning) { t.Proximity = 0 }},
		{"any closer look", func(t *Tuning) {
			t.TitleCover, t.HeadingCover, t.HeadingExact, t.Proximity, t.TitleStart, t.TitleStartBase = 0, 0, 0, 0, 0, 0
		}},
		{"title start", func(t *Tuning) { t.TitleStart, t.TitleStartBase = 0, 0 }},
		{"page score (sections only)", func(t *Tuning) { t.PageShare = 0 }},
		{"section score (pages only)", func(t *Tuning) { t.PageShare = 1 }},
		{"page fields in sections (but the title)", func(t *Tuning) { clear(t.Inherit[1:]) }},
		{"keywords", func(t *Tuning) { t.Page[page.FieldKeywords], t.Inherit[page.FieldKeywords] = 0, 0 }},
		{"text of incoming links", func(t *Tuning) { t.Page[page.FieldLinks], t.Inherit[page.FieldLinks] = 0, 0 }},
		{"votes of linking candidates", func(t *Tuning) { t.Vote = 0 }},
		{"path", func(t *Tuning) { t.Page[page.FieldPath], t.Inherit[page.FieldPath] = 0, 0 }},
		{"code", func(t *Tuning) { t.Section[page.FieldCode], t.PageCode = 0, 0 }},
		{"mercy for the rest of a name", func(t *Tuning) { t.NameRest = t.UnknownCount }},
	} {
		x := DefaultTuning
		a.set(&x)
		row(a.name, x, true)
	}
	row("slips and prefixes (as the assistant asks)", DefaultTuning, false)
	return table.String()
}

// BenchmarkLeaveOneOut prints what the weights would be if each site had not been looked at: they are chosen among the
// setting itself and every one with one weight halved, lessened, raised or doubled by what the other six sites gain,
// and tried on the seventh.
func BenchmarkLeaveOneOut(b *testing.B) {
	l, queries := judgedLibrary(b)
	for b.Loop() {
		fmt.Print(leaveOneOut(b, l, queries))
	}
}

func leaveOneOut(b *testing.B, l *Library, queries []retrieval.Query) string {
	type setting struct {
		name   string
		tuning Tuning
	}
	settings := []setting{{"as it is", DefaultTuning}}
	for _, w := range []struct {
		name string
		of   func(*Tuning) *float64
	}{
		{"section heading", func(t *Tuning) *float64 { return &t.Section[page.FieldHeading] }},
		{"trail", func(t *Tuning) *float64 { return &t.Section[page.FieldTrail] }},
		{"code", func(t *Tuning) *float64 { return &t.Section[page.FieldCode] }},
		{"inherited title", func(t *Tuning) *float64 { return &t.Inherit[page.FieldTitle] }},
		{"inherited path", func(t *Tuning) *float64 { return &t.Inherit[page.FieldPath] }},
		{"k", func(t *Tuning) *float64 { return &t.K }},
		{"page k", func(t *Tuning) *float64 { return &t.PageK }},
		{"page share", func(t *Tuning) *float64 { return &t.PageShare }},
		{"power of idf", func(t *Tuning) *float64 { return &t.IDFPower }},
		{"page title", func(t *Tuning) *float64 { return &t.Page[page.FieldTitle] }},
		{"page headings", func(t *Tuning) *float64 { return &t.PageHeading }},
		{"page body", func(t *Tuning) *float64 { return &t.PageBody }},
		{"title coverage", func(t *Tuning) *float64 { return &t.TitleCover }},
		{"heading coverage", func(t *Tuning) *float64 { return &t.HeadingCover }},
		{"query as heading", func(t *Tuning) *float64 { return &t.HeadingExact }},
		{"unknown words of a title", func(t *Tuning) *float64 { return &t.UnknownCount }},
		{"proximity", func(t *Tuning) *float64 { return &t.Proximity }},
		{"title start", func(t *Tuning) *float64 { return &t.TitleStart }},
		{"votes", func(t *Tuning) *float64 { return &t.Vote }},
		{"b of bodies", func(t *Tuning) *float64 { return &t.B[page.FieldBody] }},
	} {
		for _, by := range []float64{0.5, 0.75, 1.33, 2} {
			x := DefaultTuning
			*w.of(&x) *= by
			settings = append(settings, setting{fmt.Sprintf("%s × %v", w.name, by), x})
		}
	}
	// worth is the mean over the kinds of hit@5 and MRR@10 of one site, and hit@5 alone.
	type worth struct{ both, hit float64 }
	worths := make([]map[string]worth, len(settings))
	for i, s := range settings {
		out := evaluateWith(b, l, queries, s.tuning, true)
		worths[i] = map[string]worth{}
		for _, c := range corpora {
			var own []retrieval.Outcome
			for _, o := range out {
				if o.Judged.Corpus == c {
					own = append(own, o)
				}
			}
			var v worth
			by := retrieval.Summarize(own, func(o retrieval.Outcome) string { return o.Judged.Kind })
			for _, k := range by {
				v.both += (k.HitAt5 + k.MRR) / 2 / float64(len(by))
				v.hit += k.HitAt5 / float64(len(by))
			}
			worths[i][c] = v
		}
	}
	var table strings.Builder
	fmt.Fprintln(&table,
		"| left out | chosen on the others | hit@5 there with it | as it is | both with it | as it is |\n|---|---|---|---|---|---|")
	for _, c := range corpora {
		best, most := 0, 0.0
		for i := range settings {
			sum := 0.0
			for _, other := range corpora {
				if other != c {
					sum += worths[i][other].both
				}
			}
			if sum > most+1e-9 {
				best, most = i, sum
			}
		}
		fmt.Fprintf(&table, "| %s | %s | %.3f | %.3f | %.3f | %.3f |\n", c, settings[best].name, worths[best][c].hit,
			worths[0][c].hit, worths[best][c].both, worths[0][c].both)
	}
	return table.String()
}
