package insights

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"time"

	"docent/actors/thread"
	"docent/api"
	"docent/internal/brief"
	"docent/model"
	"docent/search"
	"docent/web/console"
)

// How an answer came about: shown in the playground and with each answer of a conversation (templates/thread_why.html).

// A whyView is what is known of how an answer came about.
type whyView struct {
	Of       string // which answer, in words
	Timings  *timingsView
	Passages []retrievedView
	Found    int    // of passages, if not all are known
	Again    string // address in the playground that tries the same now
	Degraded []string
	Read     string // the question as a model has rewritten it; empty if none did
	Steps    string // as JSON, if an explanation was asked for
}

// A timingsView shows where an answer's time went.
type timingsView struct {
	Of    string // which answer, in words
	Known bool   // for answers that were journaled with it
	Steps []timingView
	Total string
	Use   []string // what the model used
}

type timingView struct {
	Name, Took  string
	From, Width string // in 100 parts of the whole
}

type retrievedView struct {
	Title, Heading, URL, Path, Anchor string
	Score, Bar                        string
	Cited                             bool
}

// threadWhy says how an answer of a conversation came about, from what its journal holds.
func (s *handler) threadWhy(ctx context.Context, v *console.Visit, e *thread.Exchange) (*whyView, error) {
	again := url.Values{"q": {brief.Bytes(e.Question, longestTry-8, " …")}, "as": {tryAnswer}}
	if e.Page != "" {
		again.Set("page", e.Page)
	}
	w := &whyView{Of: "turn " + string(e.Turn), Timings: answerTimings(e), Again: v.Base() + "/playground?" + again.Encode()}
	w.Degraded, w.Steps = e.Degraded, explanationText(e)
	w.Read = e.Trace.Read()
	list, found := e.Trace.Retrieved()
	if len(list) == 0 {
		return w, nil
	}
	if found > len(list) {
		w.Found = found
	}
	places := make([]search.Place, len(list))
	for i, r := range list {
		places[i] = search.Place{Path: r.Path, Anchor: r.Anchor}
	}
	names, err := s.Finder.Names(ctx, v.Project.ID, places)
	if err != nil && !errors.Is(err, search.ErrNotIndexed) {
		return nil, err
	}
	cited := map[string]bool{}
	for _, source := range e.Cited() {
		cited[api.PageRef{URL: source.URL}.Page()] = true
	}
	for i, r := range list {
		x := retrievedView{Path: r.Path, Anchor: r.Anchor, Score: scoreText(r.Score), Bar: barWidth(r.Score)}
		if i < len(names) {
			x.Title, x.Heading, x.URL = names[i].Title, names[i].Heading, safeURL(names[i].URL)
			x.Cited = cited[api.PageRef{URL: names[i].URL}.Page()]
		}
		w.Passages = append(w.Passages, x)
	}
	return w, nil
}

// explanationText is how an answer came about, as it was kept with it; empty if nobody asked for that.
func explanationText(e *thread.Exchange) string {
	x, ok := e.Trace.Explanation()
	if !ok {
		return ""
	}
	text, err := json.MarshalIndent(x, "", "  ")
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// answerTimings shows where an answer's time went. It is nil while it is being written.
func answerTimings(e *thread.Exchange) *timingsView {
	if !e.Done {
		return nil
	}
	whole := e.Ended.Sub(e.Asked)
	v := &timingsView{Of: "turn " + string(e.Turn), Total: tookText(whole)}
	if u := e.Usage; u.Prompt+u.Completion > 0 && e.Model != model.Builtin {
		v.Use = append(v.Use, fmt.Sprintf("%d tokens read, %d written", u.Prompt, u.Completion))
		if u.Cached > 0 {
			v.Use = append(v.Use, fmt.Sprintf("%d of them from the provider's cache", u.Cached))
		}
		if u.Cost > 0 {
			v.Use = append(v.Use, fmt.Sprintf("%.4f US dollars", float64(u.Cost)/1e6))
		}
	}
	t := e.Trace
	if t == nil {
		return v
	}
	v.Known = true
	at := time.Duration(0)
	add := func(name string, took time.Duration) {
		x := timingView{Name: name, Took: tookText(took), From: "0.0", Width: "100.0"}
		if whole > 0 {
			x.From = barWidth(float64(at) / float64(whole))
			x.Width = barWidth(max(0.004, float64(took)/float64(whole)))
		}
		v.Steps = append(v.Steps, x)
		at += took
	}
	add("Waited in the queue", t.Waited.Duration())
	add("Searched the documentation", t.Searched.Duration())
	if t.First > 0 {
		add("Model, to its first words", max(0, t.First.Duration()-at))
		add("Model, to its last words", max(0, whole-at))
	} else {
		add("Model, no text", max(0, whole-at))
	}
	return v
}
