package reports

import (
	"encoding/csv"
	"io"
	"strconv"
	"strings"
	"time"
)

// CSV writes a report as a table: what a line is, its name, and its figures.
func (r *Report) CSV(to io.Writer) error {
	w := csv.NewWriter(to)
	line := func(cells ...string) {
		for i := range cells {
			cells[i] = cell(cells[i])
		}
		w.Write(cells) // the first error is kept
	}
	n := strconv.Itoa
	line("kind", "name", "this week", "week before", "state", "readers", "link")
	for _, f := range []struct {
		name      string
		now, then int
	}{
		{"conversations", r.Figures.Conversations, r.Before.Conversations},
		{"questions", r.Figures.Questions, r.Before.Questions},
		{"answered", r.Figures.Answered, r.Before.Answered},
		{"unanswered", r.Figures.Unanswered, r.Before.Unanswered},
		{"failed", r.Figures.Failed, r.Before.Failed},
		{"rated up", r.Figures.RatedUp, r.Before.RatedUp},
		{"rated down", r.Figures.RatedDown, r.Before.RatedDown},
	} {
		line("figure", f.name, n(f.now), n(f.then), "", "", "")
	}
	for _, g := range r.Gaps {
		line("gap", g.Question, n(g.Questions), "", string(g.State), n(g.Readers), g.URL)
	}
	for _, c := range r.Closed {
		line("closed gap: answered since", c.Question, n(c.Answered), "", "merged "+c.MergedAt.UTC().Format(time.DateOnly), "", c.URL)
		line("closed gap: not answered since", c.Question, n(c.NotAnswered), "", "", "", c.URL)
	}
	for _, s := range r.Missed {
		line("search without result", s.Query, n(s.Count), "", "", "", "")
	}
	for _, p := range r.Pages {
		line("cited page", p.Page, n(p.Answers), "", "", "", "")
	}
	w.Flush()
	return w.Error()
}

// cell keeps spreadsheets from taking a text for a formula.
func cell(text string) string {
	if strings.IndexAny(text, "=+-@\t\r\n") == 0 || strings.HasPrefix(strings.TrimLeft(text, " "), "=") {
		return "'" + text
	}
	return text
}
