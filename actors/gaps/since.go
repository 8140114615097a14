package gaps

import (
	"context"
	"time"

	"docent/actors/gaps/topics"
	"docent/api"
	"docent/persistence/catalog/insights"
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
