package main

import (
	"context"
	"errors"
	"log/slog"

	"docent/agent"
	"docent/api"
	"docent/model"
	"docent/search"
)

// newEditor builds the agent that carries out the instructions of jobs.
func newEditor(c Config, models *model.Registry, library *search.Library, log *slog.Logger) *agent.Agent {
	return agent.New(agent.Options{
		Models: languageModels{models}, Searcher: agentSearch{library}, Log: log,
		Loop: agent.Limits{
			Steps: limitOf(c.AgentSteps), Tokens: limitOf(c.AgentTokens), Cost: limitOf(c.AgentCost) * 10_000,
			Bytes: limitOf(c.AgentChange), Time: c.JobTimeout.Duration,
		},
	})
}

// limitOf is a limit of the configuration, where zero stands for none, as the agent reads it.
func limitOf[N int | int64](n N) N {
	if n == 0 {
		return -1
	}
	return n
}

// agentSearch lets the agent search the documentation as it is indexed.
type agentSearch struct{ library *search.Library }

var _ agent.Searcher = agentSearch{}

func (s agentSearch) Search(ctx context.Context, project, query string, limit int) ([]agent.Found, error) {
	hits, err := s.library.Search(ctx, api.ProjectID(project), search.Query{Text: query, Limit: limit})
	if err != nil {
		if errors.Is(err, api.ErrNotFound) {
			return nil, errors.New("the documentation is not indexed yet")
		}
		return nil, err
	}
	var out []agent.Found
	for _, h := range hits {
		heading := h.Title
		if h.Heading != "" && h.Heading != h.Title {
			heading += " › " + h.Heading
		}
		out = append(out, agent.Found{Path: h.Path, Heading: heading, Text: h.Content})
	}
	return out, nil
}
