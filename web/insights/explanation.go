package insights

import (
	"fmt"
	"time"

	"docent/actors/thread"
	"docent/api"
)

// An explanationView is how an answer came about, as it was kept with it: the api.Explanation that the API and the
// command line show too (templates/explanation.html).
type explanationView struct {
	api.Explanation
	Of          string // which answer, in words
	RewriteTook string
	Use, Times  string
	Searches    []explainedSearchView
	Passages    []explainedHitView
	Calls       []string
}

type explainedSearchView struct {
	Who, Query, Took string
	Hits             []explainedHitView
}

type explainedHitView struct {
	Title, Heading, Path, URL, Score string
	Number                           int
	Cited                            bool
}

// newExplanationView is nil if no explanation was asked for.
func newExplanationView(e *thread.Exchange) *explanationView {
	x, ok := e.Trace.Explanation()
	if !ok {
		return nil
	}
	v := &explanationView{Explanation: x, Of: "turn " + string(e.Turn), Use: explainedUse(x.Usage)}
	if x.Rewrite.Outcome == "used" || x.Rewrite.Outcome == "failed" {
		v.RewriteTook = explainedTook(x.Rewrite.Took) + ", " + explainedUse(x.Rewrite.Usage)
	}
	v.Times = fmt.Sprintf("retrieved after %s, first text after %s, ended after %s", explainedTook(x.Times.Retrieved),
		explainedTook(x.Times.FirstText), explainedTook(x.Times.Ended))
	who := map[string]string{"question": "Searched for as it stands", "rewrite": "Searched for as rewritten",
		"model": "Searched for by the model"}
	for _, s := range x.Searches {
		view := explainedSearchView{Who: who[s.By], Query: s.Query, Took: explainedTook(s.Took)}
		for i := range s.Hits {
			view.Hits = append(view.Hits, newExplainedHitView(&s.Hits[i]))
		}
		v.Searches = append(v.Searches, view)
	}
	for i := range x.Passages {
		p := newExplainedHitView(&x.Passages[i].ExplainedHit)
		p.Number, p.Cited = x.Passages[i].Number, x.Passages[i].Cited
		v.Passages = append(v.Passages, p)
	}
	for i, c := range x.Calls {
		v.Calls = append(v.Calls, fmt.Sprintf("Call %d of the model: %s, %s, ended with %s", i+1, explainedTook(c.Took),
			explainedUse(c.Usage), c.Reason))
	}
	return v
}

func newExplainedHitView(h *api.ExplainedHit) explainedHitView {
	return explainedHitView{Title: h.Title, Heading: h.Heading, Path: h.Path, URL: safeURL(h.URL), Score: scoreText(h.Score)}
}

func explainedTook(m api.Milliseconds) string {
	return tookText(time.Duration(float64(m) * float64(time.Millisecond)))
}

func explainedUse(u api.ExplainedUsage) string {
	text := fmt.Sprintf("%d tokens read, %d written", u.PromptTokens, u.CompletionTokens)
	if u.Cost > 0 {
		text += fmt.Sprintf(", $%.6f", float64(u.Cost)/1e6)
	}
	return text
}
