package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"

	"docent/agent"
	"docent/agent/check"
	"docent/api"
	"docent/cmd/docent/config"
	"docent/model/registry"
	"docent/persistence/datadir"
	"docent/search"
)

// newEditor builds the agent that carries out the instructions of jobs.
func newEditor(c config.Config, dir *datadir.Dir, models *registry.Registry, library *search.Library,
	code agent.Code, files func(api.Project) map[string]string, log *slog.Logger) (*agent.Agent, error) {
	checks, err := projectChecks(c, dir)
	if err != nil {
		return nil, err
	}
	return agent.New(agent.Options{
		Models: languageModels{models}, Searcher: agentSearch{library}, Code: code, Published: files, Checks: checks, Log: log,
		Loop: agent.Limits{
			Steps: limitOf(c.AgentSteps), Tokens: limitOf(c.AgentTokens), Cost: limitOf(c.AgentCost) * 10_000,
			Bytes: limitOf(c.AgentChange), Time: c.JobTimeout.Duration, Patience: c.JobPatience.Duration,
		},
	}), nil
}

// projectChecks are the commands that the operator has set for projects; nil if there are none.
func projectChecks(c config.Config, dir *datadir.Dir) (check.Checks, error) {
	if len(c.Checks) == 0 {
		return nil, nil
	}
	commands := c.CheckCommands(dir.File(datadir.Checks))
	if commands.User == 0 {
		if err := os.RemoveAll(commands.Folder); err != nil { // what a server that was killed has left
			return nil, fmt.Errorf("empty the folder of checks: %w", err)
		}
		// A command runs as the same user: it shall not read the server's memory or environment through the kernel.
		if err := concealProcess(); err != nil {
			return nil, fmt.Errorf("conceal the process from the commands of checks: %w", err)
		}
	}
	return commands, nil
}

// limitOf is a limit of the configuration as the agent reads it: in the configuration, zero stands for none.
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
	// who edits a page wants its translations and versions too
	hits, err := s.library.Search(ctx, api.ProjectID(project), search.Query{Text: query, Limit: limit, Everywhere: true})
	if err != nil {
		if errors.Is(err, search.ErrNotIndexed) {
			return nil, search.ErrNotIndexed // the agent need not know which file is damaged
		}
		return nil, err
	}
	var out []agent.Found
	for _, h := range hits {
		heading := h.Title
		if h.Heading != "" && h.Heading != h.Title {
			heading += " › " + h.Heading
		}
		out = append(out, agent.Found{Path: h.File, Heading: heading, Text: h.Content})
	}
	return out, nil
}
