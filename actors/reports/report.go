package reports

import (
	"context"
	"net/url"
	"slices"
	"time"

	"docent/api"
	"docent/persistence/catalog/insights"
)

// mostLines is how many lines each list of a report has.
const mostLines = 10

// Figures count a week. The JSON of a report is part of what receivers rely on: fields are only added.
type Figures struct {
	Conversations int     `json:"conversations"`
	Questions     int     `json:"questions"`
	Answered      int     `json:"answered"`
	Unanswered    int     `json:"unanswered"`
	Failed        int     `json:"failed"`
	AnsweredShare float64 `json:"answeredShare"` // of the questions, 0 to 1
	RatedUp       int     `json:"ratedUp"`
	RatedDown     int     `json:"ratedDown"`
}

func figures(t insights.QuestionTotals) Figures {
	f := Figures{Conversations: t.Threads, Questions: t.Questions, Answered: t.Answered, Unanswered: t.Unanswered,
		Failed: t.Failed, RatedUp: t.Up, RatedDown: t.Down}
	if t.Questions > 0 {
		f.AnsweredShare = float64(t.Answered) / float64(t.Questions)
	}
	return f
}

// A GapLine is a topic that the documentation lacks.
type GapLine struct {
	ID        string       `json:"id"`
	Question  string       `json:"question"`
	Words     []string     `json:"words"`
	Questions int          `json:"questions"`
	Readers   int          `json:"readers"`
	State     api.GapState `json:"state"`
	URL       string       `json:"url,omitempty"`
}

// A ClosedLine is a topic whose change was merged, and how such questions have been answered since.
type ClosedLine struct {
	ID          string    `json:"id"`
	Question    string    `json:"question"`
	MergedAt    time.Time `json:"mergedAt"`
	Answered    int       `json:"answeredSince"`
	NotAnswered int       `json:"notAnsweredSince"`
	URL         string    `json:"url,omitempty"`
}

// A SearchLine is a text that was searched for and not found.
type SearchLine struct {
	Query string `json:"query"`
	Count int    `json:"count"`
}

// A PageLine is a page that answers cite.
type PageLine struct {
	Page    string `json:"page"`
	Answers int    `json:"answers"`
}

// A Report is a project's week.
type Report struct {
	Project  api.ProjectID `json:"project"`
	Domain   string        `json:"domain"`
	Week     string        `json:"week"`
	From     time.Time     `json:"from"`
	To       time.Time     `json:"to"`
	TimeZone string        `json:"timeZone"`
	URL      string        `json:"url,omitempty"`
	Figures  Figures       `json:"figures"`
	Before   Figures       `json:"figuresBefore"` // of the week before
	Gaps     []GapLine     `json:"gaps"`
	Closed   []ClosedLine  `json:"closedGaps"`
	Missed   []SearchLine  `json:"searchesWithoutResult"`
	Pages    []PageLine    `json:"citedPages"`
	// The week had more questions that were not answered than topics are made of.
	GapsOfNewest int `json:"gapsOfNewest,omitempty"`
}

// Reports makes reports, those of each week at its end.
type Reports struct {
	Deps
	followed time.Time                // when code hosts were last asked what was merged
	made     map[api.ProjectID]string // the last week whose report is known to be made
}

// Make makes the report of a week.
func (r *Reports) Make(ctx context.Context, p api.Project, w Week) (Report, error) {
	q := insights.AnalyticsQuery{Project: p.ID, From: w.Start(), To: w.End(), Limit: mostLines}
	out := Report{Project: p.ID, Domain: p.Domain, Week: w.String(), From: w.Start().UTC(), To: w.End().UTC(),
		TimeZone: w.zone.String(), URL: r.page(p, "report?week="+w.String()), Gaps: []GapLine{}, Closed: []ClosedLine{},
		Missed: []SearchLine{}, Pages: []PageLine{}}
	totals, err := r.Catalog.Totals(ctx, q)
	if err != nil {
		return out, err
	}
	before, err := r.Catalog.Totals(ctx, insights.AnalyticsQuery{Project: p.ID, From: w.Add(-1).Start(), To: w.Start()})
	if err != nil {
		return out, err
	}
	out.Figures, out.Before = figures(totals), figures(before)
	list, err := r.Topics.Topics(ctx, p.ID, q.From, q.To)
	if err != nil {
		return out, err
	}
	if list.More {
		out.GapsOfNewest = list.Questions
	}
	for i := range list.Topics {
		if t := &list.Topics[i]; len(t.Questions) > 0 && t.State() != api.GapDismissed && !t.Answered && len(out.Gaps) < mostLines {
			out.Gaps = append(out.Gaps, GapLine{ID: t.ID, Question: t.Question, Words: t.Words,
				Questions: len(t.Questions), Readers: t.Askers, State: t.State(), URL: r.page(p, "gaps/"+t.ID)})
		}
	}
	if err := r.closed(ctx, p, &out); err != nil {
		return out, err
	}
	searches, _, err := r.Catalog.SearchesWithoutResult(ctx, q)
	if err != nil {
		return out, err
	}
	for _, s := range searches {
		out.Missed = append(out.Missed, SearchLine{s.Query, s.Count})
	}
	pages, _, err := r.Catalog.CitedPages(ctx, q)
	if err != nil {
		return out, err
	}
	for _, c := range pages {
		out.Pages = append(out.Pages, PageLine{c.Page, c.Answers})
	}
	return out, nil
}

// closed adds the topics whose change was merged in the week or in the eight before, the newest first.
func (r *Reports) closed(ctx context.Context, p api.Project, out *Report) error {
	merged, err := r.Catalog.Gaps(ctx, p.ID, api.GapMerged)
	if err != nil {
		return err
	}
	slices.SortFunc(merged, func(a, b api.Gap) int { return b.MergedAt.Compare(*a.MergedAt) })
	for _, g := range merged {
		if g.MergedAt.After(out.To) || g.MergedAt.Before(out.From.AddDate(0, 0, -8*7)) || len(out.Closed) == mostLines {
			continue
		}
		since, err := r.Topics.SinceMerge(ctx, g)
		if err != nil {
			return err
		}
		out.Closed = append(out.Closed, ClosedLine{ID: string(g.ID), Question: g.Question, MergedAt: *g.MergedAt,
			Answered: since.Answered, NotAnswered: since.Bad, URL: r.page(p, "gaps/"+string(g.ID))})
	}
	return nil
}

// page is the address of a page of the project; empty if people's way to the server is not known.
func (r *Reports) page(p api.Project, rest string) string {
	if r.PublicURL == "" {
		return ""
	}
	return r.PublicURL + "/console/" + url.PathEscape(string(p.Org)) + "/" + url.PathEscape(p.Domain) + "/" + rest
}
