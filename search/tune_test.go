package search

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"docent/api"
)

func evalWith(l *Library, queries []Judged, t Tuning) []Outcome {
	snaps := map[string]*snapshot{}
	for _, c := range corpora {
		s, err := l.acquire(api.ProjectID(c))
		if err != nil {
			panic(err)
		}
		snaps[c] = retuned(s, t)
		s.release()
	}
	out, err := Evaluate(context.Background(), queries, func(ctx context.Context, q Judged) ([]Found, error) {
		hits, err := snaps[q.Corpus].search(ctx, Query{Text: q.Query, Limit: 10, Box: true})
		f := make([]Found, len(hits))
		for i, h := range hits {
			f[i] = Found{h.Path, h.Anchor}
		}
		return f, err
	})
	if err != nil {
		panic(err)
	}
	return out
}

func line(name string, out []Outcome) string {
	dev := func(o Outcome) string {
		half := "dev"
		if hashTerm(o.Judged.Query)&64 != 0 {
			half = "held"
		}
		return half + o.Judged.Kind
	}
	all := Summarize(out, func(o Outcome) string { return o.Judged.Kind })
	h := Summarize(out, dev)
	var b strings.Builder
	fmt.Fprintf(&b, "%-22s", name)
	var mean, mrr float64
	for _, k := range []string{"desc", "head", "prefix", "typo", "question"} {
		mean += all[k].HitAt5 / 5
		mrr += all[k].MRR / 5
	}
	fmt.Fprintf(&b, " %.4f %.4f |", mean, mrr)
	for _, k := range []string{"desc", "head", "prefix", "typo", "question"} {
		s := all[k]
		fmt.Fprintf(&b, " %s -%d %.3f (d%.3f h%.3f)", k[:1], s.Queries-int(s.HitAt5*float64(s.Queries)+.5), s.MRR, h["dev"+k].MRR, h["held"+k].MRR)
	}
	fmt.Fprintf(&b, " | s1 %.3f s5 %.3f q1 %.2f q5 %.2f", all["head"].Section1, all["head"].Section5, all["question"].Section1, all["question"].Section5)
	return b.String()
}

func TestTune(t *testing.T) {
	if os.Getenv("TUNE") == "" {
		t.Skip()
	}
	l := openTest(t, Options{})
	queries := judgedQueries(t)
	indexCorpora(t, l)
	base := DefaultTuning
	fmt.Println(line("base", evalWith(l, queries, base)))
	try := func(name string, set func(t *Tuning, v float64), vs ...float64) {
		for _, v := range vs {
			x := base
			set(&x, v)
			fmt.Println(line(fmt.Sprint(name, " ", v), evalWith(l, queries, x)))
		}
	}
	switch os.Getenv("TUNE") {
	case "x":
		base.Proximity, base.TitleStartBase, base.SectionTitle, base.PageK = 0.3, 0.3, 4, 1.5
		fmt.Println(line("base2", evalWith(l, queries, base)))
		try("Until", func(t *Tuning, v float64) { t.PrefixUntil = int(v) }, 2, 3, 4)
		try("NameRest", func(t *Tuning, v float64) { t.NameRest = v }, 2, 1, 0.5)
	case "climb":
		climb(l, queries, base)
	}
}

func objective(out []Outcome, held bool) float64 {
	var dev []Outcome
	for _, o := range out {
		if (hashTerm(o.Judged.Query)&64 != 0) == held {
			dev = append(dev, o)
		}
	}
	h := Summarize(dev, func(o Outcome) string { return o.Judged.Kind })
	var sum float64
	for _, k := range []string{"desc", "head", "prefix", "typo", "question"} {
		w := 1.0
		if k == "question" {
			w = 0.4
		}
		if k == "desc" {
			w = 1.5
		}
		sum += w * (h[k].HitAt5 + 0.7*h[k].MRR)
	}
	return sum + 0.5*h["head"].Section5 + 0.3*h["head"].Section1
}

func climb(l *Library, queries []Judged, base Tuning) {
	params := []struct {
		name string
		at   func(*Tuning) *float64
	}{
		{"SectionTitle", func(t *Tuning) *float64 { return &t.SectionTitle }},
		{"Heading", func(t *Tuning) *float64 { return &t.Section[0] }},
		{"Trail", func(t *Tuning) *float64 { return &t.Section[1] }},
		{"Code", func(t *Tuning) *float64 { return &t.Section[3] }},
		{"PCode", func(t *Tuning) *float64 { return &t.PageCode }},
		{"bbody", func(t *Tuning) *float64 { return &t.B[2] }},
		{"K", func(t *Tuning) *float64 { return &t.K }},
		{"PageK", func(t *Tuning) *float64 { return &t.PageK }},
		{"PTitle", func(t *Tuning) *float64 { return &t.Page[0] }},
		{"PHead", func(t *Tuning) *float64 { return &t.PageHeading }},
		{"PBody", func(t *Tuning) *float64 { return &t.PageBody }},
		{"Share", func(t *Tuning) *float64 { return &t.PageShare }},
		{"IDF", func(t *Tuning) *float64 { return &t.IDFPower }},
		{"TitleCover", func(t *Tuning) *float64 { return &t.TitleCover }},
		{"HeadingCover", func(t *Tuning) *float64 { return &t.HeadingCover }},
		{"Unknown", func(t *Tuning) *float64 { return &t.UnknownCount }},
		{"NameRest", func(t *Tuning) *float64 { return &t.NameRest }},
		{"Prox", func(t *Tuning) *float64 { return &t.Proximity }},
		{"ProxK", func(t *Tuning) *float64 { return &t.ProximityK }},
		{"TStart", func(t *Tuning) *float64 { return &t.TitleStart }},
		{"TStartBase", func(t *Tuning) *float64 { return &t.TitleStartBase }},
	}
	out := evalWith(l, queries, base)
	best := objective(out, false)
	fmt.Printf("start dev %.4f held %.4f\n", best, objective(out, true))
	for round := 0; round < 1; round++ {
		for _, p := range params {
			for _, f := range []float64{0.67, 0.85, 1.2, 1.5} {
				x := base
				*p.at(&x) *= f
				out := evalWith(l, queries, x)
				if v := objective(out, false); v > best+0.001 {
					best, base = v, x
					fmt.Printf("%s %.3f dev %.4f held %.4f\n", p.name, *p.at(&x), best, objective(out, true))
				}
			}
		}
		fmt.Println(line("round", evalWith(l, queries, base)))
		fmt.Printf("%+v\n", base)
	}
}
