package web

import (
	"cmp"
	"context"
	"html/template"
	"net/url"

	"docent/actors/thread"
	"docent/api"
	"docent/stream"
)

type threadView struct {
	ID       api.ThreadID
	Caller   string
	Path     string
	Live     string
	Others   string // address of the caller's conversations
	Person   string // address where everything of the caller is deleted; empty where nobody may
	Turns    []turnView
	Replaced []turnView
}

// A turnView is a question and its answer as the reader saw them.
type turnView struct {
	thread.Exchange
	Outcome   string
	HTML      template.HTML
	Suggested []string
	Cited     []sourceView
	Why       *whyView
	OnPage    string // address of the conversations that were begun on the same page
}

type sourceView struct{ Title, URL string }

func (s *Server) threadOf(ctx context.Context, v *visit, id api.ThreadID) (*threadView, error) {
	c, err := s.Threads.Read(ctx, id, thread.Read{Project: v.project.ID})
	if err != nil {
		return nil, api.Named(err, "conversation")
	}
	list := v.conversationsPath()
	view := &threadView{ID: id, Caller: c.Caller, Path: list + "/" + url.PathEscape(string(id)),
		Others: list + "?caller=" + url.QueryEscape(c.Caller)}
	view.Live = view.Path + "/live"
	if c.Caller != anonymous && v.may(owner) {
		view.Person = list + "/forget?caller=" + url.QueryEscape(c.Caller)
	}
	for _, of := range []struct {
		from []thread.Exchange
		to   *[]turnView
	}{{c.Turns, &view.Turns}, {c.Replaced, &view.Replaced}} {
		for i := range of.from {
			t, err := s.turn(ctx, v, &of.from[i])
			if err != nil {
				return nil, err
			}
			*of.to = append(*of.to, t)
		}
	}
	return view, nil
}

// turn is one question with its answer.
func (s *Server) turn(ctx context.Context, v *visit, e *thread.Exchange) (t turnView, err error) {
	t = turnView{Exchange: *e}
	text, suggested := stream.Suggested(cmp.Or(e.Answer, e.Text))
	if t.HTML, err = markdown(text); err != nil {
		return t, err
	}
	for _, g := range suggested {
		t.Suggested = append(t.Suggested, g.Text)
	}
	row := api.QuestionRow{Answered: e.Answered, Error: e.Error}
	for _, source := range e.Sources {
		row.Sources = append(row.Sources, api.PageRef{URL: source.URL})
		t.Cited = append(t.Cited, sourceView{cmp.Or(source.Title, source.URL), safeURL(source.URL)})
	}
	if e.Done {
		t.Outcome = outcomeOf(row)
		if t.Why, err = s.threadWhy(ctx, v, e); err != nil {
			return t, err
		}
	}
	if e.Page != "" {
		t.OnPage = v.conversationsPath() + "?page=" + url.QueryEscape(e.Page)
	}
	return t, nil
}

func (s *Server) showThread(v *visit) error {
	view, err := s.threadOf(v.Context(), v, api.ThreadID(v.param("thread")))
	if err != nil {
		return err
	}
	v.about("", view.ID)
	title := "Conversation"
	if len(view.Turns) > 0 {
		title = beginningOf(view.Turns[0].Question, 60)
	}
	return s.render(v, "thread", title, view)
}

// liveThread sends the conversation as it goes on.
func (s *Server) liveThread(v *visit) error {
	id := api.ThreadID(v.param("thread"))
	if _, err := s.threadOf(v.Context(), v, id); err != nil {
		return err
	}
	return s.watch(v, "thread.turns", string(id),
		func() (<-chan struct{}, func()) { return s.Conversations.Watch(v.project.ID) },
		func(ctx context.Context) (any, error) { return s.threadOf(ctx, v, id) })
}

// deleteThread removes a conversation with all that belongs to it.
func (s *Server) deleteThread(v *visit) error {
	id := api.ThreadID(v.param("thread"))
	if err := s.Threads.Forget(v.Context(), id, thread.Forget{Project: v.project.ID}); err != nil {
		return api.Named(err, "conversation")
	}
	v.audit("conversation.delete", string(id), "")
	return v.done(v.conversationsPath(), "The conversation is deleted, with all that belongs to it.")
}

type forgetView struct {
	Caller    string
	Here      string // address of the page
	Live      string
	List      string // address of the caller's conversations
	Threads   int
	Questions int
	Erasure   Erasure
	Begun     bool
}

func (s *Server) forgetOf(ctx context.Context, v *visit, caller string) (*forgetView, error) {
	path, query := v.conversationsPath(), "?caller="+url.QueryEscape(caller)
	view := &forgetView{Caller: caller, Here: path + "/forget" + query, Live: path + "/forget/live" + query,
		List: path + query}
	if caller == "" || caller == anonymous {
		return view, nil
	}
	view.Erasure, view.Begun = s.Eraser.Erasure(v.project.ID, caller)
	if view.Begun && !view.Erasure.Ended {
		return view, nil
	}
	var err error
	view.Threads, view.Questions, err = s.Conversations.CallerTotals(ctx, v.project.ID, caller)
	return view, err
}

// showForget says what deleting everything of one person would delete, and how far it is.
func (s *Server) showForget(v *visit) error {
	view, err := s.forgetOf(v.Context(), v, v.query("caller"))
	if err != nil {
		return err
	}
	return s.render(v, "forget", "Delete one person's data", view)
}

// liveForget sends how far the deletion is.
func (s *Server) liveForget(v *visit) error {
	caller := v.query("caller")
	if _, err := s.forgetOf(v.Context(), v, caller); err != nil {
		return err
	}
	return s.live(v, "forget.state", s.Eraser.Watch(v.project.ID, caller),
		func(ctx context.Context) (any, error) { return s.forgetOf(ctx, v, caller) })
}

// forget deletes everything of one person, in the background.
func (s *Server) forget(v *visit) error {
	caller := v.form().Get("caller")
	switch caller {
	case "":
		return invalid("caller", "name the person: the fp that the client sends")
	case anonymous:
		return invalid("caller", "anonymous is everybody who gave no name, not one person: delete single conversations, "+
			"or set thread_retention")
	}
	view, err := s.forgetOf(v.Context(), v, caller)
	if err != nil {
		return err
	}
	if v.form().Get("again") != caller {
		return invalid("again", "must be the same as the person's id: "+caller)
	}
	began, err := s.Eraser.Erase(v.project.ID, caller, func(removed int, failed error) {
		if failed != nil {
			v.audit("person-data.delete-failed", caller, count(removed, "conversation")+" deleted before: "+failed.Error())
			return
		}
		v.audit("person-data.deleted", caller, count(removed, "conversation"))
	})
	if err != nil {
		return err
	}
	if began {
		v.audit("person-data.delete", caller, "")
	}
	return v.seeOther(view.Here)
}
