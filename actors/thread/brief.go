package thread

import (
	"cmp"
	"context"
	"errors"

	"docent/api"
	"docent/model"
	"docent/model/builtin"
	"docent/search"
)

// A Brief is the prompt of a question, and what was found for it.
type Brief struct {
	Model   string   // that is asked; empty for the default
	Queries []string // that the documentation was searched with
	Hits    []search.Hit
	Request model.Request
}

// Before is what a model saw of the conversation for one of its turns; for a turn that is not there, what it would
// see for the next one.
func (c Conversation) Before(turn api.TurnID) []model.Message {
	s := state{done: c.Turns}
	if i, ok := index(c.Turns, turn); ok {
		s.done = c.Turns[:i]
	}
	return s.history()
}

// Preview makes the brief that a model would get if the question were put now, with what it comes with, and with the
// searches that a model has made of the question, if any. No model is called and nothing is kept. The request's Search
// says that the model may search by itself, and finds nothing.
func Preview(ctx context.Context, searcher Finder, project api.Project, question string, with Wanted,
	history []model.Message, rewritten ...string) (Brief, error) {
	f := finder{searcher: searcher, project: project.ID, asked: questions(question, history)}
	b, err := briefOf(ctx, f, &project, &with, question, history)
	if err == nil && len(rewritten) > 0 {
		f.again(ctx, &with, &b, rewritten, len(history) > 0)
	}
	b.Request.Search = func(context.Context, string) ([]model.Found, error) {
		return nil, errors.New("a preview searches for nobody")
	}
	b.Request.ReadPage = func(context.Context, int) ([]model.Found, error) {
		return nil, errors.New("a preview reads no page")
	}
	return b, err
}

// briefOf finds what a model is told.
func briefOf(ctx context.Context, f finder, project *api.Project, wanted *Wanted, question string,
	history []model.Message) (Brief, error) {
	b := Brief{Model: cmp.Or(wanted.Model, project.Model),
		Queries: builtin.Queries(question, history, wanted.Context)}
	var err error
	query := wanted.placed()
	query.Opening = builtin.OpeningOf(question, history, cmp.Or(project.Name, string(project.ID)))
	if b.Hits, err = f.search(ctx, query, b.Queries); err != nil {
		return Brief{}, err
	}
	b.Request = model.Request{
		Question: question, History: history, Passages: passages(b.Hits), Context: wanted.Context, Setting: wanted.Setting,
		Deflection: project.Deflection, Project: cmp.Or(project.Name, string(project.ID)), Page: query.CurrentPath,
	}
	b.Request.Around = func(path, anchor string) []model.Passage {
		around, err := f.searcher.Around(ctx, f.project, search.Place{Path: path, Anchor: anchor}, query.Filter.Groups)
		if err != nil { // the answer goes without
			return nil
		}
		return passages(around)
	}
	return b, nil
}
