package commands

import (
	"cmp"
	"fmt"
	"io"
	"text/tabwriter"

	"docent/api"
	"docent/internal/brief"
)

// printExplanation prints how an answer came about, a step after the other.
func printExplanation(w io.Writer, x *api.Explanation) {
	fmt.Fprintln(w, "\nHow it came about")
	if x.Read != x.Question {
		fmt.Fprintf(w, "\nRead as: %s\n", x.Read)
	}
	fmt.Fprintf(w, "\nRewriting: %s", x.Rewrite.Outcome)
	if x.Rewrite.Model != "" {
		fmt.Fprintf(w, ", by %s", x.Rewrite.Model)
	}
	if x.Rewrite.Why != "" {
		fmt.Fprintf(w, " (%s)", x.Rewrite.Why)
	}
	if x.Rewrite.Outcome == "used" || x.Rewrite.Outcome == "failed" {
		fmt.Fprintf(w, ", %s, %s", milliseconds(x.Rewrite.Took), usageText(x.Rewrite.Usage))
	}
	fmt.Fprintln(w)
	for _, s := range x.Searches {
		fmt.Fprintf(w, "\nSearched (%s) in %s: %s\n", s.By, milliseconds(s.Took), s.Query)
		for _, h := range s.Hits {
			fmt.Fprintf(w, "  %.3f  %s\n", h.Score, hitText(&h))
		}
		if len(s.Hits) == 0 {
			fmt.Fprintln(w, "  nothing was found")
		}
	}
	fmt.Fprintln(w, "\nPassages:")
	for i := range x.Passages {
		p := &x.Passages[i]
		number, cited := "  -", ""
		if p.Number > 0 {
			number = fmt.Sprintf("[%d]", p.Number)
		}
		if p.Cited {
			cited = "  (cited)"
		}
		fmt.Fprintf(w, "  %s %.3f  %s%s\n", number, p.Score, hitText(&p.ExplainedHit), cited)
	}
	for _, t := range x.Tools {
		failed := ""
		if t.Failed {
			failed = " (refused)"
		}
		fmt.Fprintf(w, "\nTool %s%s: %s\n  %s\n", t.Name, failed, t.Arguments, brief.Line(t.Gave))
	}
	for _, c := range x.Claims {
		fmt.Fprintf(w, "\nClaim %s: %s (%s)\n", c.Kind, c.Text, c.Why)
	}
	for _, d := range x.Degraded {
		fmt.Fprintf(w, "\nDegraded: %s\n", d)
	}
	fmt.Fprintln(w)
	table := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	answered := "answered"
	if !x.Answered {
		answered = "not in the documentation"
	}
	by := x.Model
	if x.FallbackFor != "" {
		by += " in place of " + x.FallbackFor
	}
	fmt.Fprintf(table, "Result:\t%s, by %s\n", answered, cmp.Or(by, "nobody"))
	for i, c := range x.Calls {
		fmt.Fprintf(table, "Call %d:\t%s, %s, ended with %s\n", i+1, milliseconds(c.Took), usageText(c.Usage), c.Reason)
	}
	fmt.Fprintf(table, "Tokens:\t%s\n", usageText(x.Usage))
	fmt.Fprintf(table, "Times:\twaited %s, retrieved after %s, first text after %s, ended after %s\n",
		milliseconds(x.Times.Waited), milliseconds(x.Times.Retrieved), milliseconds(x.Times.FirstText),
		milliseconds(x.Times.Ended))
	_ = table.Flush() // what cannot be written is noticed at the next line
}

func hitText(h *api.ExplainedHit) string {
	text := cmp.Or(h.Title, h.Path)
	if h.Heading != "" && h.Heading != h.Title {
		text += " › " + h.Heading
	}
	if h.Source != "" {
		text += " (" + h.Source + ")"
	}
	return text + "  " + cmp.Or(h.URL, h.Path)
}

func milliseconds(m api.Milliseconds) string { return fmt.Sprintf("%.1f ms", float64(m)) }

func usageText(u api.ExplainedUsage) string {
	text := fmt.Sprintf("%d tokens of prompts (%d cached) and %d of replies", u.PromptTokens, u.CachedTokens,
		u.CompletionTokens)
	if u.Cost > 0 {
		text += fmt.Sprintf(", $%.6f", float64(u.Cost)/1e6)
	}
	return text
}
