package gaps

import (
	"context"
	"time"

	"docent/actors/gaps/topics"
	"docent/api"
	"docent/model"
	"docent/persistence/catalog/insights"
	"docent/search"
)

// Since is what was asked of a topic after a time.
type Since struct {
	From      time.Time
	Questions []topics.Question // newest first
	Answered  int
	Bad       int  // not answered well
	More      bool // the project had more questions since than were looked at
}

// SinceMerge looks which questions of a topic have come since its change was merged, and whether they were answered.
func (t *Tracker) SinceMerge(ctx context.Context, gap api.Gap) (Since, error) {
	s := Since{From: *gap.MergedAt}
	marks, more, err := t.Catalog.QuestionMarks(ctx, insights.AnalyticsQuery{Project: gap.Project, From: s.From,
		Limit: MostAll})
	if err != nil {
		return s, err
	}
	s.More = more
	m := t.memory(gap.Project)
	m.mu.Lock()
	defer m.mu.Unlock()
	questions, err := t.read(ctx, m, true, gap.Project, marks)
	if err != nil {
		return s, err
	}
	rarity, err := t.rarity(ctx, m, gap.Project, questions, []topics.Seed{gap.Terms})
	if err != nil {
		return s, err
	}
	points := make([]topics.Point, len(questions))
	for i, q := range questions {
		points[i] = topics.Point{Key: q.ID, Words: q.Words}
	}
	is := map[int]bool{}
	for _, i := range topics.Matches(points, gap.Terms, rarity) {
		is[i] = true
	}
	for i, q := range questions { // newest first
		if !is[i] {
			continue
		}
		s.Questions = append(s.Questions, q)
		if q.Kind == 0 {
			s.Answered++
		} else {
			s.Bad++
		}
	}
	return s, nil
}

// A Verdict is what the built-in model says of one question now.
type Verdict struct {
	Question string
	Answered bool
	Doubt    bool
	Title    string // of the page that answers, or that is closest
	URL      string
}

// maxAgain is how many questions of a topic are asked again.
const maxAgain = 8

// AskAgain puts the questions of a topic to the documentation as it is now: search and the built-in model, without a
// conversation. Nobody's question is counted.
func (t *Tracker) AskAgain(ctx context.Context, p api.Project, topic *Topic) ([]Verdict, error) {
	said := topic.Wordings(maxAgain)
	if len(said) == 0 {
		said = []topics.Said{{Text: topic.Question}}
	}
	var out []Verdict
	for _, w := range said {
		v, err := t.ask(ctx, p, w.Text)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}

// sectionsOfPage is how many sections of one page an answer may be made from, as in a conversation.
const sectionsOfPage = 4

func (t *Tracker) ask(ctx context.Context, p api.Project, question string) (Verdict, error) {
	v := Verdict{Question: question}
	hits, err := t.Documents.Search(ctx, p.ID, search.Query{Text: question, Sections: sectionsOfPage,
		Asked: []string{question}})
	if err != nil {
		return v, err
	}
	passages := make([]model.Passage, 0, len(hits))
	for _, h := range hits {
		passages = append(passages, model.Passage{Path: h.Path, Anchor: h.Anchor, URL: h.URL, Title: h.Title,
			Heading: h.Heading, Trail: h.Trail, Text: h.Content, Score: h.Score})
	}
	name := p.Name
	if name == "" {
		name = string(p.ID)
	}
	cited := -1
	result, err := t.Model.Answer(ctx, model.Builtin, model.Request{Question: question, Passages: passages, Project: name},
		func(d model.Delta) error {
			if cited < 0 && len(d.Cite) > 0 {
				cited = d.Cite[0]
			}
			return nil
		})
	if err != nil {
		return v, err
	}
	v.Answered, v.Doubt = result.Answered, !result.Answered && cited >= 0
	if cited < 0 {
		cited = 0
	}
	if cited < len(hits) {
		v.Title, v.URL = hits[cited].Title, hits[cited].URL
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
	return &topics.Near{Path: h.Path, Title: h.Title, Heading: h.Heading, URL: h.URL}, nil
}
