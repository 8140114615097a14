package insights

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"docent/actors/gaps"
	"docent/actors/gaps/topics"
	"docent/api"
	"docent/model"
	"docent/search"
	"docent/web/console"
)

const (
	gapsPage      = 50 // topics
	questionsMost = 30 // of a topic that its page shows
)

type gapsView struct {
	Range    dayRange
	State    string // which topics are shown
	States   []stateTab
	Topics   []gaps.Topic
	Listing  gaps.Listing
	Next     string // address of the next page
	Newest   string // of the first one
	MostOpen int
}

type stateTab struct {
	Name, Title string
	Count       int
}

// gapStates are the tabs of the list, and which topics each shows.
var gapStates = []struct {
	name, title string
	shows       func(t *gaps.Topic) bool
}{
	{"open", "Open", func(t *gaps.Topic) bool { return t.State() == api.GapOpen && len(t.Questions) > 0 && !t.Answered }},
	{"answered", "Answered now", func(t *gaps.Topic) bool { return t.State() == api.GapOpen && t.Answered }},
	{"job", "With a job", func(t *gaps.Topic) bool { return t.State() == api.GapOpening || t.State() == api.GapJob }},
	{"merged", "Merged", func(t *gaps.Topic) bool { return t.State() == api.GapMerged }},
	{"dismissed", "Dismissed", func(t *gaps.Topic) bool { return t.State() == api.GapDismissed }},
}

// showGaps lists what the documentation lacks.
func (s *handler) showGaps(v *console.Visit) error {
	r, err := days(v, 90)
	if err != nil {
		return err
	}
	view := gapsView{Range: r, State: cmp.Or(v.Query("state"), "open"), MostOpen: gaps.MostOpen}
	if view.Listing, err = s.Topics.Topics(v.Context(), v.Project.ID, r.Start, r.End); err != nil {
		return err
	}
	known := false
	var shown []gaps.Topic
	for _, tab := range gapStates {
		n := 0
		for i := range view.Listing.Topics {
			if t := &view.Listing.Topics[i]; tab.shows(t) {
				n++
				if tab.name == view.State {
					shown = append(shown, *t)
				}
			}
		}
		known = known || tab.name == view.State
		view.States = append(view.States, stateTab{tab.name, tab.title, n})
	}
	if !known {
		return console.Invalid("state", "must be open, answered, job, merged or dismissed")
	}
	at := v.Base() + "/gaps?" + r.Query + "&state=" + view.State
	if after := v.Query("after"); after != "" {
		view.Newest = at
		for i := range shown {
			if shown[i].ID == after {
				shown = shown[i+1:]
				break
			}
		}
	}
	if len(shown) > gapsPage {
		shown = shown[:gapsPage]
		view.Next = at + "&after=" + url.QueryEscape(shown[gapsPage-1].ID)
	}
	view.Topics = shown
	return s.Render(v, "gaps", "Gaps", view)
}

type gapView struct {
	gaps.Topic
	Shown      []topics.Question
	Said       []topics.Said
	Near       *topics.Near
	Since      *gaps.Since
	Again      []gaps.Verdict // nil if the documentation is not indexed
	AskedOf    int
	AnsweredOf int
	Job        *api.Job

	// The form for a job.
	MayOpen bool
	Attempt int
	BuiltIn bool
	Form    string // of the built-in agent's instruction: section or page
	Prompt  string
	Draft   bool
	Problem string
	// A job was being opened when the server stopped.
	Interrupted bool
}

// showGap is one topic: who asked what, and what becomes of it.
func (s *handler) showGap(v *console.Visit) error {
	id := v.Param("id")
	topic, err := s.Topics.Find(v.Context(), v.Project.ID, id, v.Now)
	if err != nil {
		return err
	}
	if topic.ID != id { // its address since somebody acted on it
		return v.SeeOther(v.Base() + "/gaps/" + url.PathEscape(topic.ID))
	}
	return s.gapPage(v, http.StatusOK, topic, nil)
}

// gapPage shows a topic. Sent is the order that was not accepted, and why.
func (s *handler) gapPage(v *console.Visit, status int, topic gaps.Topic, sent *gapView) error {
	ctx := v.Context()
	view := gapView{Topic: topic, Shown: topic.Questions[:min(questionsMost, len(topic.Questions))],
		Said: topic.Wordings(questionsMost), BuiltIn: model.WorksBuiltin(s.Models.Choices(), v.Project.JobModel()), Attempt: 1,
		Form: cmp.Or(v.Query("form"), "section")}
	var err error
	if view.Near, err = s.Topics.Nearest(ctx, v.Project.ID, &topic); err != nil {
		return err
	}
	state := topic.State()
	view.MayOpen = v.May(console.Editor) && state != api.GapJob
	if gap := topic.Gap; gap != nil {
		view.Attempt = gap.Attempt + 1
		if state == api.GapOpening {
			view.Interrupted, view.Attempt, view.Prompt = true, gap.Attempt, gap.Prompt
		}
		if state == api.GapMerged {
			since, err := s.Topics.SinceMerge(ctx, *gap)
			if err != nil {
				return err
			}
			view.Since = &since
		}
	}
	if err := s.askAgain(v, &view); err != nil {
		return err
	}
	if sent != nil {
		view.Problem, view.Prompt, view.Draft = sent.Problem, sent.Prompt, sent.Draft
	}
	if view.Prompt == "" {
		view.Prompt = s.draft(v, &view)
	}
	return s.RenderStatus(v, status, "gap", console.Shorten(60, topic.Question), view)
}

// askAgain puts the topic's questions to the documentation as it is now.
func (s *handler) askAgain(v *console.Visit, view *gapView) error {
	again, err := s.Topics.AskAgain(v.Context(), v.Project, &view.Topic)
	if errors.Is(err, search.ErrNotIndexed) {
		return nil
	}
	view.Again, view.AskedOf = again, len(again)
	for _, a := range again {
		if a.Answered {
			view.AnsweredOf++
		}
	}
	return err
}

// draft is the instruction that the form begins with.
func (s *handler) draft(v *console.Visit, view *gapView) string {
	if view.BuiltIn {
		return topics.DraftForms(&view.Topic.Topic, view.Near, view.Form == "page")
	}
	if len(view.Questions) == 0 {
		return ""
	}
	link := ""
	if s.PublicURL != "" {
		link = s.PublicURL + v.Base() + "/gaps/" + url.PathEscape(view.ID)
	}
	return topics.Draft(&view.Topic.Topic, view.Near, link)
}

// openGap opens a job for a topic.
func (s *handler) openGap(v *console.Visit) error {
	attempt, err := strconv.Atoi(v.Form.Get("attempt"))
	if err != nil {
		return console.Invalid("attempt", "is what the page's form sends")
	}
	by := api.KeyID(cmp.Or(v.Who.ID, string(v.Who.Key.ID)))
	order := gaps.Order{Attempt: attempt, Prompt: v.Form.Get("prompt"), Draft: v.Form.Get("draft") != "",
		By: by, Name: v.Who.Name}
	gap, err := s.Topics.Open(v.Context(), v.Project, v.Param("id"), order)
	if err != nil {
		return s.notOpened(v, order, err)
	}
	v.About(gap.Job, "")
	v.Audit("gap.open", string(gap.ID), string(gap.Job))
	return v.Done(v.Base()+"/gaps/"+url.PathEscape(string(gap.ID)), "Job created.")
}

// notOpened shows the form again with what was written, and why no job was opened.
func (s *handler) notOpened(v *console.Visit, o gaps.Order, refused error) error {
	var invalid *api.InvalidError
	var limit *api.LimitError
	var state *api.StateError
	sent := &gapView{Prompt: o.Prompt, Draft: o.Draft}
	status := http.StatusBadRequest
	switch {
	case errors.As(refused, &invalid):
		for _, p := range invalid.Problems {
			sent.Problem += "The instruction " + p.Message + ". "
		}
	case errors.As(refused, &limit):
		status = http.StatusTooManyRequests
		sent.Problem = fmt.Sprintf("The project has used its %d instructions an hour. Send it again in %s.", limit.Limit,
			limit.RetryAfter.Round(time.Minute)+time.Minute)
	case errors.As(refused, &state) && errors.Is(refused, api.ErrConflict):
		status, sent.Problem = http.StatusConflict, state.Reason
	default:
		return refused
	}
	topic, err := s.Topics.Find(v.Context(), v.Project.ID, v.Param("id"), v.Now)
	if err != nil {
		return err
	}
	return s.gapPage(v, status, topic, sent)
}

// dismissGap says that nothing is to be done about a topic.
func (s *handler) dismissGap(v *console.Visit) error {
	gap, err := s.Topics.Dismiss(v.Context(), v.Project.ID, v.Param("id"), v.Who.Name, v.Form.Get("reason"))
	if err != nil {
		return err
	}
	v.Audit("gap.dismiss", string(gap.ID), gap.Reason)
	return v.Done(v.Base()+"/gaps", "Topic dismissed. You find it under “Dismissed”.")
}

// restoreGap takes a dismissal back.
func (s *handler) restoreGap(v *console.Visit) error {
	gap, err := s.Topics.Restore(v.Context(), v.Project.ID, v.Param("id"))
	if err != nil {
		return err
	}
	v.Audit("gap.restore", string(gap.ID), "")
	return v.Done(v.Base()+"/gaps/"+url.PathEscape(string(gap.ID)), "Topic restored.")
}
