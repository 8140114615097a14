package operator

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"docent/actors/thread"
	"docent/api"
	"docent/api/client"
	"docent/bench/evaluation"
	"docent/bench/retrieval"
	"docent/internal/background"
	"docent/persistence/catalog"
	"docent/persistence/journal"
	"docent/router"
	"docent/router/reqbody"
	"docent/search"
)

// EvaluateParams are judged queries of a project.
type EvaluateParams struct {
	Project api.ProjectID     `json:"project"`
	Queries []retrieval.Query `json:"queries"`
}

// SearchScores are how a configuration did on judged queries.
type SearchScores struct {
	Kinds    map[string]retrieval.Score `json:"kinds"`
	All      retrieval.Score            `json:"all"`
	Mean     retrieval.Score            `json:"meanOfKinds"` // each kind counted once
	Outcomes []retrieval.Outcome        `json:"-"`
}

// evaluate asks a project's index.
func (o *Service) evaluate(ctx context.Context, p EvaluateParams) ([]retrieval.Outcome, error) {
	return EvaluateTwice(ctx, p.Queries, func(ctx context.Context, q retrieval.Query) ([]retrieval.Found, error) {
		hits, err := o.stores.Library.Search(ctx, p.Project, search.Query{Text: q.Query, Limit: 10, Box: true})
		if err != nil {
			return nil, fmt.Errorf("evaluate the search of %q: %w", p.Project, err)
		}
		found := make([]retrieval.Found, len(hits))
		for i, h := range hits {
			found[i] = retrieval.Found{Path: h.Path, Anchor: h.Anchor}
		}
		return found, nil
	})
}

// EvaluateTwice asks every query twice and judges the second answer: the latency is that of an index in use.
func EvaluateTwice(ctx context.Context, queries []retrieval.Query, ask func(context.Context, retrieval.Query) ([]retrieval.Found,
	error)) ([]retrieval.Outcome, error) {
	if _, err := retrieval.Run(ctx, queries, ask); err != nil {
		return nil, err
	}
	return retrieval.Run(ctx, queries, ask)
}

// Summarize gives the scores of outcomes, altogether and for each kind of query.
func Summarize(outcomes []retrieval.Outcome) SearchScores {
	e := SearchScores{Outcomes: outcomes, Kinds: retrieval.Summarize(outcomes,
		func(o retrieval.Outcome) string { return cmp.Or(o.Judged.Kind, "query") })}
	e.All = retrieval.Summarize(outcomes, func(retrieval.Outcome) string { return "" })[""]
	e.Mean = e.All
	e.Mean.HitAt1, e.Mean.HitAt5, e.Mean.MRR, e.Mean.NDCG, e.Mean.Recall = 0, 0, 0, 0, 0
	n := float64(len(e.Kinds))
	for _, s := range e.Kinds {
		e.Mean.HitAt1 += s.HitAt1 / n
		e.Mean.HitAt5 += s.HitAt5 / n
		e.Mean.MRR += s.MRR / n
		e.Mean.NDCG += s.NDCG / n
		e.Mean.Recall += s.Recall / n
	}
	return e
}

// AnswersParams are conversations to ask in the serving process.
type AnswersParams struct {
	Project       api.ProjectID     `json:"project"`
	AtOnce        int               `json:"atOnce"`
	Conversations []client.Evaluate `json:"conversations"`
}

// evaluateAnswers asks conversations in the serving process.
func (o *Service) evaluateAnswers(ctx context.Context, p AnswersParams, progress Progress) (
	[][]router.EvaluatedAnswer, error) {
	if o.server == nil {
		return nil, fmt.Errorf("%w, or name a folder with --source, for which none is needed", errNoServer)
	}
	project, err := o.stores.Catalog.Project(ctx, p.Project)
	if err != nil {
		return nil, fmt.Errorf("project %q: %w", p.Project, err)
	}
	answers := make([][]router.EvaluatedAnswer, len(p.Conversations))
	done := make(chan struct{}, len(p.Conversations))
	group, ctx := background.WithContext(ctx)
	group.SetLimit(max(1, p.AtOnce))
	background.Go("cmd/docent/operator.evaluateAnswers", func() {
		for i, c := range p.Conversations {
			group.Go(func() error {
				defer func() { done <- struct{}{} }()
				raw, err := json.Marshal(c)
				if err != nil {
					return err
				}
				body, err := reqbody.DecodeEvaluation(raw)
				if err == nil {
					answers[i], err = o.server.Evaluate(ctx, project, body)
				}
				return err
			})
		}
	})
	for n := range p.Conversations {
		<-done
		progress("asking", n+1, len(p.Conversations))
	}
	return answers, group.Wait()
}

type (
	// RatedParams say which rated answers are listed.
	RatedParams struct {
		Project  api.ProjectID `json:"project"`
		From     time.Time     `json:"from,omitzero"`
		Most     int           `json:"most"`
		Comments bool          `json:"comments"`
	}
	// RatedList is rated answers, and how long questions are kept.
	RatedList struct {
		Rated []evaluation.Rated `json:"rated"`
		// Retention is how long the project's conversations are kept; 0 for ever.
		Retention time.Duration `json:"retention"`
	}
)

// ratedAnswers lists a project's rated questions, newest first and each once, without who asked.
func (o *Service) ratedAnswers(ctx context.Context, p RatedParams, progress Progress) (list RatedList, err error) {
	if _, err := o.stores.Catalog.Project(ctx, p.Project); err != nil {
		return list, fmt.Errorf("project %q: %w", p.Project, err)
	}
	list.Retention = o.stores.Config.ThreadRetention.Duration
	if p.Comments && list.Retention > 0 {
		return list, fmt.Errorf("thread_retention is %v: what readers wrote is removed then, and a file keeps it. Leave --comments out",
			list.Retention)
	}
	seen := map[string]bool{}
	err = o.withJournal(ctx, func(j journal.Store) error {
		q := catalog.AnalyticsQuery{Project: p.Project, From: p.From, Limit: 100}
		for len(list.Rated) < p.Most {
			rows, next, err := o.stores.Catalog.Feedback(ctx, q)
			if err != nil {
				return err
			}
			for _, row := range rows {
				if seen[row.Question] || row.Error != "" || len(list.Rated) == p.Most {
					continue
				}
				seen[row.Question] = true
				list.Rated = append(list.Rated, o.rated(ctx, j, &row, p.Comments))
				progress("reading rated answers", len(list.Rated), p.Most)
			}
			if q.After = next; next == "" {
				return nil
			}
		}
		return nil
	})
	return list, err
}

func (o *Service) rated(ctx context.Context, j journal.Store, row *api.QuestionRow, comments bool) evaluation.Rated {
	r := evaluation.Rated{Question: row.Question, Answer: row.Answer, Up: row.Rating == api.RatedUp}
	if comments {
		r.Comment = row.Comment
	}
	for _, s := range row.Sources {
		at := s.Page()
		if p, err := o.stores.Library.Page(ctx, row.Project, at, nil); err == nil {
			at = p.Path
		}
		if !slices.Contains(r.Sources, at) {
			r.Sources = append(r.Sources, at)
		}
	}
	rec, err := j.Load(thread.Stream(row.Thread))
	if err != nil {
		return r // the thread is gone, and its row will be
	}
	if c, ok, err := thread.History(row.Thread, rec); ok && err == nil {
		for _, e := range c.Turns {
			if e.Turn == row.ID {
				return r
			}
			r.Before = append(r.Before, e.Question)
		}
		r.Before = nil // replaced since: nobody knows what was before it
	}
	return r
}
