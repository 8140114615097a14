package insights

import (
	"cmp"
	"context"
	"html/template"
	"net/url"

	"docent/actors/thread"
	"docent/api"
	"docent/api/stream"
	"docent/internal/brief"
	"docent/web/console"
)

type threadView struct {
	ID       api.ThreadID
	Caller   string
	Path     string
	Live     string
	Others   string // address of the caller's conversations
	Person   string // address where everything of the caller is deleted; empty if nobody may
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

type sourceView struct{ Title, URL, Excerpt string }

func (s *handler) threadOf(ctx context.Context, v *console.Visit, id api.ThreadID) (*threadView, error) {
	c, err := s.Threads.Read(ctx, id, thread.Read{Project: v.Project.ID})
	if err != nil {
		return nil, api.Named(err, "conversation")
	}
	list := conversationsPath(v)
	view := &threadView{ID: id, Caller: c.Caller, Path: list + "/" + url.PathEscape(string(id)),
		Others: list + "?caller=" + url.QueryEscape(c.Caller)}
	view.Live = view.Path + "/live"
	if c.Caller != anonymous && v.May(console.Owner) {
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
func (s *handler) turn(ctx context.Context, v *console.Visit, e *thread.Exchange) (t turnView, err error) {
	t = turnView{Exchange: *e}
	text, suggested := stream.Suggested(cmp.Or(e.Answer, e.Text))
	t.HTML = s.Markdown(ctx, v.Project.ID, text)
	for _, g := range suggested {
		t.Suggested = append(t.Suggested, g.Text)
	}
	row := api.QuestionRow{Answered: e.Answered, Error: e.Error}
	for _, source := range e.Sources {
		row.Sources = append(row.Sources, api.PageRef{URL: source.URL})
		t.Cited = append(t.Cited, sourceView{cmp.Or(source.Title, source.URL), safeURL(source.URL), source.Excerpt})
	}
	if e.Done {
		t.Outcome = outcomeOf(row)
		if t.Why, err = s.threadWhy(ctx, v, e); err != nil {
			return t, err
		}
	}
	if e.Page != "" {
		t.OnPage = conversationsPath(v) + "?page=" + url.QueryEscape(e.Page)
	}
	return t, nil
}

func (s *handler) showThread(v *console.Visit) error {
	view, err := s.threadOf(v.Context(), v, api.ThreadID(v.Param("thread")))
	if err != nil {
		return err
	}
	v.About("", view.ID)
	title := "Conversation"
	if len(view.Turns) > 0 {
		title = brief.Bytes(view.Turns[0].Question, 60, " …")
	}
	return s.Render(v, "thread", title, view)
}

// liveThread sends the conversation as it goes on.
func (s *handler) liveThread(v *console.Visit) error {
	id := api.ThreadID(v.Param("thread"))
	if _, err := s.threadOf(v.Context(), v, id); err != nil {
		return err
	}
	return s.Watch(v, "thread.turns", string(id),
		func() (<-chan struct{}, func()) { return s.Catalog.Watch(v.Project.ID) },
		func(ctx context.Context) (any, error) { return s.threadOf(ctx, v, id) })
}

// deleteThread removes a conversation with all that belongs to it.
func (s *handler) deleteThread(v *console.Visit) error {
	id := api.ThreadID(v.Param("thread"))
	if err := s.Threads.Forget(v.Context(), id, thread.Forget{Project: v.Project.ID}); err != nil {
		return api.Named(err, "conversation")
	}
	v.Audit("conversation.delete", string(id), "")
	return v.Done(conversationsPath(v), "Conversation deleted.")
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

func (s *handler) forgetOf(ctx context.Context, v *console.Visit, caller string) (*forgetView, error) {
	path, query := conversationsPath(v), "?caller="+url.QueryEscape(caller)
	view := &forgetView{Caller: caller, Here: path + "/forget" + query, Live: path + "/forget/live" + query,
		List: path + query}
	if caller == "" || caller == anonymous {
		return view, nil
	}
	view.Erasure, view.Begun = s.Eraser.Erasure(v.Project.ID, caller)
	if view.Begun && !view.Erasure.Ended {
		return view, nil
	}
	var err error
	view.Threads, view.Questions, err = s.Catalog.CallerTotals(ctx, v.Project.ID, caller)
	return view, err
}

// showForget says what deleting everything of one person would delete, and how far it is.
func (s *handler) showForget(v *console.Visit) error {
	view, err := s.forgetOf(v.Context(), v, v.Query("caller"))
	if err != nil {
		return err
	}
	return s.Render(v, "forget", "Delete one person's data", view)
}

// liveForget sends how far the deletion is.
func (s *handler) liveForget(v *console.Visit) error {
	caller := v.Query("caller")
	if _, err := s.forgetOf(v.Context(), v, caller); err != nil {
		return err
	}
	return s.Live(v, "forget.state", s.Eraser.Watch(v.Project.ID, caller),
		func(ctx context.Context) (any, error) { return s.forgetOf(ctx, v, caller) })
}

// forget deletes everything of one person, in the background.
func (s *handler) forget(v *console.Visit) error {
	caller := v.Form.Get("caller")
	switch caller {
	case "":
		return console.Invalid("caller", "name the person: the fp that the client sends")
	case anonymous:
		return console.Invalid("caller", "anonymous is everybody who gave no name, not one person: delete single conversations, "+
			"or set thread_retention")
	}
	view, err := s.forgetOf(v.Context(), v, caller)
	if err != nil {
		return err
	}
	if v.Form.Get("again") != caller {
		return console.Invalid("again", "must be the same as the person's id: "+caller)
	}
	began, err := s.Eraser.Erase(v.Project.ID, caller, func(removed int, failed error) {
		if failed != nil {
			v.Audit("person-data.delete-failed", caller, brief.Count(removed, "conversation")+" deleted before: "+failed.Error())
			return
		}
		v.Audit("person-data.deleted", caller, brief.Count(removed, "conversation"))
	})
	if err != nil {
		return err
	}
	if began {
		v.Audit("person-data.delete", caller, "")
	}
	return v.SeeOther(view.Here)
}
