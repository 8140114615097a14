package server

import (
	"context"
	"errors"

	"docent/agent"
	"docent/model"
	"docent/model/registry"
)

// languageModels lets the agent speak to the configured models. One that holds no conversations, as the built-in one,
// is no language model: the agent then follows instructions of fixed forms.
type languageModels struct{ registry *registry.Registry }

var _ agent.Models = languageModels{}

func (l languageModels) LanguageModel(name string) (agent.LanguageModel, error) {
	name = l.registry.ForJobs(name)
	window, err := l.registry.Window(name)
	if err != nil || window == 0 {
		return nil, err
	}
	return languageModel{l.registry, name, window}, nil
}

type languageModel struct {
	registry *registry.Registry
	name     string
	window   int
}

func (l languageModel) Name() string { return l.name }

func (l languageModel) Window() int { return l.window }

func (l languageModel) Priced() bool { return l.registry.Priced(l.name) }

func (l languageModel) Sees() bool { return l.registry.Sees(l.name) }

func (l languageModel) Chat(ctx context.Context, c agent.Chat) (agent.Reply, error) {
	q := model.Chat{System: c.System, MaxTokens: c.MaxTokens, Key: c.Key}
	for _, t := range c.Turns {
		turn := model.Turn{Role: t.Role, Text: t.Text, CallID: t.CallID, Failed: t.Failed, Kept: t.Kept}
		if t.Picture != nil {
			turn.Picture = &model.Picture{Media: t.Picture.Media, Data: t.Picture.Data}
		}
		for _, call := range t.Calls {
			turn.Calls = append(turn.Calls, model.Call(call))
		}
		q.Turns = append(q.Turns, turn)
	}
	for _, t := range c.Tools {
		q.Tools = append(q.Tools, model.Tool(t))
	}
	r, err := l.registry.Chat(ctx, l.name, q)
	reply := agent.Reply{Model: r.Model, Text: r.Text, Reason: r.Reason, Usage: agent.Usage(r.Usage), Kept: r.Kept}
	for _, call := range r.Calls {
		reply.Calls = append(reply.Calls, agent.Call(call))
	}
	var later *model.Unavailable
	switch {
	case err == nil:
		return reply, nil
	case errors.Is(err, model.ErrTooLong):
		return reply, translated{err, agent.ErrTooLong}
	case errors.Is(err, model.ErrRefused):
		return reply, translated{err, agent.ErrRefused}
	case errors.As(err, &later):
		return reply, &agent.Unavailable{After: later.After, Err: later.Err}
	}
	return reply, err
}

// translated is an error in the words of the model that is one of the agent's.
type translated struct {
	error
	as error
}

func (t translated) Unwrap() error { return t.as }
