package evalcmd

import (
	"context"
	"crypto/rand"
	"fmt"

	"docent/bench/evaluation"
	"docent/cmd/docent/cli"
	"docent/cmd/docent/config"
	"docent/internal/background"
	"docent/model"
	"docent/model/registry"
)

// judgeTokens is how much a judge may write.
const judgeTokens = 400

// An answersJudge asks a language model what it thinks of answers.
type answersJudge struct {
	models *registry.Registry
	name   string
}

// openJudge is nil where no model is asked.
func (a *answersCommand) openJudge() (*answersJudge, error) {
	if a.judge == "" {
		return nil, nil
	}
	models, err := registry.New(config.Registry(a.config))
	if err != nil {
		return nil, fmt.Errorf("set up the models: %w", err)
	}
	window, err := models.Window(a.judge)
	if err != nil {
		return nil, fmt.Errorf("--judge: %w", err)
	}
	if window == 0 {
		return nil, cli.Usagef("--judge: %q holds no conversations: name a language model of the configuration ([models.NAME])",
			a.judge)
	}
	return &answersJudge{models, a.judge}, nil
}

// consider asks about every answer of a question that is judged.
func (j *answersJudge) consider(ctx context.Context, results []evaluation.Result, atOnce int) error {
	group, ctx := background.WithContext(ctx)
	group.SetLimit(atOnce)
	for i := range results {
		r := &results[i]
		if r.Verdict.Open || r.Verdict.Outcome == evaluation.Failed {
			continue
		}
		group.Go(func() error {
			opinion, err := j.opinion(ctx, r)
			r.Opinion = &opinion
			return err
		})
	}
	return group.Wait()
}

func (j *answersJudge) opinion(ctx context.Context, r *evaluation.Result) (evaluation.Opinion, error) {
	q, nonce := r.Question(), rand.Text()
	brief, err := evaluation.NewBrief(&q, &r.Answer, nonce)
	if err != nil {
		return evaluation.Opinion{}, err
	}
	reply, err := j.models.Chat(ctx, j.name, model.Chat{System: brief.System, MaxTokens: judgeTokens, Key: "judge/" + nonce,
		Turns: []model.Turn{{Role: "user", Text: brief.Data}}})
	switch {
	case ctx.Err() != nil:
		return evaluation.Opinion{}, ctx.Err()
	case err != nil: // one answer without an opinion is no reason to lose the others
		return evaluation.Opinion{Verdict: evaluation.Unclear, Why: err.Error(), Model: j.name}, nil
	}
	return evaluation.ReadOpinion(reply.Text, nonce, j.name), nil
}
