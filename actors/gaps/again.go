package gaps

import (
	"cmp"
	"context"
	"strings"
	"time"

	"docent/actors/gaps/topics"
	"docent/actors/thread"
	"docent/api"
	"docent/internal/brief"
	"docent/model"
	"docent/search"
)

// What the documentation answers is no gap. So the questions of topics are asked again before they are shown: of search
// and the built-in model, which cost no more than a reader's question, once for a commit of the documentation.

const (
	maxAgain    = 8    // questions of a topic whose verdicts its page shows
	maxDeciding = 3    // of them, those that tell whether it is a gap: the most asked
	maxVerdicts = 2000 // of a project that are remembered
	longestSaid = 400  // bytes of an answer that are remembered

	// A verdict is looked for again after that time even if the commit is the same: further sources and settings have
	// their say too.
	verdictLasts = time.Hour
	// A list is not held up for longer than that by questions that are asked again; the next one goes on with them.
	askFor = 400 * time.Millisecond
)

// A Verdict is what the built-in model says of one question now.
type Verdict struct {
	Question string
	Answered bool
	Doubt    bool
	Title    string // of the page that answers, or that is closest
	URL      string
	Text     string // how the answer begins
}

// asked is a question as it is put.
type asked struct{ text, before string }

// A verdict is remembered.
type verdict struct {
	Verdict
	commit string
	at     time.Time
}

// AskAgain puts the questions of a topic to the documentation as it is now: search and the built-in model, without a
// conversation. Nobody's question is counted.
func (t *Tracker) AskAgain(ctx context.Context, p api.Project, topic *Topic) ([]Verdict, error) {
	said := topic.Wordings(maxAgain)
	if len(said) == 0 {
		said = []topics.Said{{Text: topic.Question}}
	}
	var out []Verdict
	for i := range said {
		v, err := t.verdict(ctx, &p, &said[i])
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}

// askAll finds out which open topics of a list are answered now, the first ones first. Without an index nothing is.
func (t *Tracker) askAll(ctx context.Context, project api.ProjectID, list *Listing) error {
	p, err := t.Catalog.Project(ctx, project)
	if err != nil {
		return err
	}
	began := time.Now()
	for i := range list.Topics {
		topic := &list.Topics[i]
		if topic.State() != api.GapOpen || len(topic.Questions) == 0 || topic.RatedDown > 0 {
			continue // what a reader did not find good is not made good by being said again
		}
		if time.Since(began) > askFor {
			list.Unasked++
			continue
		}
		topic.Answered, err = t.answered(ctx, &p, topic)
		switch {
		case unindexed(err):
			return nil
		case err != nil:
			return err
		}
	}
	return nil
}

// answered reports whether the most asked questions of a topic are all answered now.
func (t *Tracker) answered(ctx context.Context, p *api.Project, topic *Topic) (bool, error) {
	said := topic.Wordings(maxDeciding)
	for i := range said {
		if v, err := t.verdict(ctx, p, &said[i]); err != nil || !v.Answered {
			return false, err
		}
	}
	return true, nil
}

// verdict is what the documentation says to a question now, from memory if it has been asked that already.
func (t *Tracker) verdict(ctx context.Context, p *api.Project, said *topics.Said) (Verdict, error) {
	m, commit, now := t.memory(p.ID), t.Documents.Commit(p.ID), t.Now()
	put := asked{said.Text, ""}
	if said.Before != "" {
		put = asked{said.Own, said.Before}
	}
	m.asking.Lock()
	defer m.asking.Unlock()
	if known, ok := m.verdicts.Get(put); ok && known.commit == commit && now.Sub(known.at) < verdictLasts {
		return known.Verdict, nil
	}
	v, err := t.ask(ctx, p, put)
	if err == nil {
		v.Question = said.Text
		m.verdicts.Add(put, verdict{v, commit, now})
	}
	return v, err
}

// ask puts a question as a conversation puts it, with what was said before.
func (t *Tracker) ask(ctx context.Context, p *api.Project, put asked) (Verdict, error) {
	var v Verdict
	told, err := thread.Preview(ctx, t.Documents, *p, put.text, thread.Wanted{}, said(put.before))
	if err != nil {
		return v, err
	}
	cited := -1
	var text strings.Builder
	result, err := t.Model.Answer(ctx, model.Builtin, told.Request, func(d model.Delta) error {
		if cited < 0 && len(d.Cite) > 0 {
			cited = d.Cite[0]
		}
		if text.Len() < longestSaid {
			text.WriteString(d.Text)
		}
		return nil
	})
	if err != nil {
		return v, err
	}
	v.Answered, v.Doubt = result.Answered, !result.Answered && cited >= 0
	if cited >= 0 {
		v.Text = brief.Bytes(text.String(), longestSaid, "…")
	}
	if cited = max(cited, 0); cited < len(told.Hits) {
		v.Title, v.URL = told.Hits[cited].Title, told.Hits[cited].URL
	}
	return v, nil
}

// Nearest is the section of the documentation that is closest to a topic; nil if none is.
func (t *Tracker) Nearest(ctx context.Context, project api.ProjectID, topic *Topic) (*topics.Near, error) {
	hits, err := t.Documents.Search(ctx, project, search.Query{Text: topic.Question, Asked: []string{topic.Question}})
	if unindexed(err) {
		return nil, nil
	}
	if err != nil || len(hits) == 0 {
		return nil, err
	}
	h := hits[0]
	return &topics.Near{Path: cmp.Or(h.File, h.Path), Title: h.Title, Heading: h.Heading, URL: h.URL}, nil
}
