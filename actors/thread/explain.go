package thread

import (
	"encoding/json"
	"strings"
	"sync"
	"time"

	"docent/api"
	"docent/api/stream"
	"docent/internal/brief"
	"docent/model"
	"docent/model/rewrite"
	"docent/search"
)

// What an explanation has at most: it is journaled with its answer.
const (
	explainedHits   = 10 // of one search
	explainedTools  = 20
	explainedText   = 400 // bytes of what a tool gave
	explainedClaims = 50
	longestExplain  = 64 << 10
)

// An explaining is an explanation that is being made. Nothing is noted if it is nil.
type explaining struct {
	mu sync.Mutex
	api.Explanation
	given []int // the candidates that the prompt has, by their numbers
}

func newExplaining(question string) *explaining {
	return &explaining{Explanation: api.Explanation{Question: question, Read: question,
		Rewrite:  api.ExplainedRewrite{Outcome: "off", Queries: []string{}},
		Searches: []api.ExplainedSearch{}, Passages: []api.ExplainedPassage{}, Calls: []api.ExplainedCall{},
		Tools: []api.ExplainedTool{}, Claims: []api.ExplainedClaim{}, Degraded: []string{}}}
}

func used(u model.Usage) api.ExplainedUsage {
	return api.ExplainedUsage{PromptTokens: u.PromptTokens, CachedTokens: u.CachedTokens,
		CompletionTokens: u.CompletionTokens, Cost: u.Cost}
}

// now is the time, if somebody wants to know it.
func (x *explaining) now() (t time.Time) {
	if x != nil {
		t = time.Now()
	}
	return t
}

// searched notes a search that has begun then, and what it has found.
func (x *explaining) searched(by, query string, hits []search.Hit, began time.Time) {
	if x == nil {
		return
	}
	s := api.ExplainedSearch{By: by, Query: query, Hits: []api.ExplainedHit{}, Took: api.InMilliseconds(time.Since(began))}
	for i := range hits[:min(len(hits), explainedHits)] {
		h := &hits[i]
		s.Hits = append(s.Hits, api.ExplainedHit{Path: h.Path, Anchor: h.Anchor, URL: h.URL, Title: h.Title,
			Heading: h.Heading, Source: h.Source, Score: h.Score})
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.Searches = append(x.Searches, s)
}

// rewritten notes what became of rewriting the question.
func (x *explaining) rewritten(outcome, why string, read *rewrite.Reading, took time.Duration) {
	if x == nil {
		return
	}
	x.Rewrite = api.ExplainedRewrite{Outcome: outcome, Why: why, Model: read.Model, Queries: read.Queries,
		Usage: used(read.Usage), Took: api.InMilliseconds(took)}
	if x.Rewrite.Queries == nil {
		x.Rewrite.Queries = []string{}
	}
	if read.Question != "" {
		x.Read = read.Question
	}
}

// step notes what a language model did.
func (x *explaining) step(s model.Step) {
	x.mu.Lock()
	defer x.mu.Unlock()
	switch {
	case s.Called:
		c := api.ExplainedCall{Reason: s.Reason, Usage: used(s.Usage), Took: api.InMilliseconds(s.Took)}
		if s.Failed {
			c.Reason = "failed"
		}
		x.Calls = append(x.Calls, c)
	case s.Tool != "":
		if len(x.Tools) < explainedTools {
			x.Tools = append(x.Tools, api.ExplainedTool{Name: clipped(s.Tool), Arguments: clipped(s.Arguments),
				Gave: clipped(s.Gave), Failed: s.Failed})
		}
	default:
		x.given = append(x.given[:0], s.Given...)
	}
}

// end completes the explanation, as it is kept and sent; nil if there is none.
func (x *explaining) end(w *writer, result *model.Result, trace *Trace) []byte {
	if x == nil {
		return nil
	}
	for i := range w.candidates {
		c := &w.candidates[i]
		p := api.ExplainedPassage{ExplainedHit: api.ExplainedHit{Path: c.path, Anchor: c.anchor, URL: c.url, Title: c.title,
			Heading: c.heading, Score: c.score}, Cited: w.used[i]}
		for n, at := range x.given {
			if at == i {
				p.Number = n + 1
			}
		}
		x.Passages = append(x.Passages, p)
	}
	if result.Checked != nil {
		for _, c := range result.Checked.Changes[:min(len(result.Checked.Changes), explainedClaims)] {
			x.Claims = append(x.Claims, api.ExplainedClaim{Kind: c.Kind, Text: clipped(c.Text), Why: clipped(c.Why)})
		}
	}
	x.Degraded = append(x.Degraded, result.Degraded...)
	x.Model, x.FallbackFor, x.Answered = result.Model, result.FallbackFor, result.Answered
	x.Usage = api.ExplainedUsage{PromptTokens: result.PromptTokens, CachedTokens: result.CachedTokens,
		CompletionTokens: result.CompletionTokens, Cost: result.Cost}
	x.Times = api.ExplainedTimes{Waited: api.InMilliseconds(trace.Waited.Duration()),
		Retrieved: api.InMilliseconds((trace.Waited + trace.Searched).Duration()),
		FirstText: api.InMilliseconds(trace.First.Duration()),
		Ended:     api.InMilliseconds(w.effect.since().Duration())}
	for {
		text, err := json.Marshal(&x.Explanation)
		if err != nil || len(text) <= longestExplain || len(x.Passages)+len(x.Searches) == 0 {
			return text // texts and numbers: there is no error
		}
		x.Passages = x.Passages[:len(x.Passages)/2] // the paths of pages can be long
		x.Searches = x.Searches[:len(x.Searches)/2]
	}
}

// Explanation is how an answer came about, if that was asked for with the question.
func (t *Trace) Explanation() (x api.Explanation, ok bool) {
	if t == nil || len(t.Explained) == 0 {
		return x, false
	}
	return x, json.Unmarshal(t.Explained, &x) == nil
}

// explained writes the explanation of an answer to its log, if there is one.
func explained(log *stream.Log, t *Trace) {
	if t != nil && len(t.Explained) > 0 {
		log.Append(explainedPart(t.Explained))
	}
}

func explainedPart(explained []byte) stream.Part {
	return stream.Part{Kind: stream.Explained, Text: string(explained)}
}

func clipped(s string) string {
	return brief.Bytes(strings.ToValidUTF8(s, "\ufffd"), explainedText, " …")
}
