package web

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"docent/api"
	"docent/gaps"
	"docent/gaps/tracker"
	"docent/search"
)

const (
	gapsPage      = 50 // topics
	questionsMost = 30 // of a topic that its page shows
)

type gapsView struct {
	Range    dayRange
	State    string // which topics are shown
	States   []stateTab
	Topics   []tracker.Topic
	Listing  tracker.Listing
	Next     string // address of the next page
	Newest   string // of the first one
	MostOpen int
}

type stateTab struct {
	Name, Title string
	Count       int
}

// gapStates are the tabs of the list, and which states each shows.
var gapStates = []struct {
	name, title string
	shows       []api.GapState
}{
	{"open", "Open", []api.GapState{api.GapOpen}},
	{"job", "With a job", []api.GapState{api.GapOpening, api.GapJob}},
	{"merged", "Merged", []api.GapState{api.GapMerged}},
	{"dismissed", "Dismissed", []api.GapState{api.GapDismissed}},
}

// showGaps lists what the documentation lacks.
func (s *Server) showGaps(v *visit) error {
	r, err := v.days(90)
	if err != nil {
		return err
	}
	view := gapsView{Range: r, State: cmp.Or(v.query("state"), "open"), MostOpen: tracker.MostOpen}
	if view.Listing, err = s.Topics.Topics(v.Context(), v.project.ID, r.Start, r.End); err != nil {
		return err
	}
	known := false
	var shown []tracker.Topic
	for _, tab := range gapStates {
		n := 0
		for _, t := range view.Listing.Topics {
			for _, state := range tab.shows {
				if t.State() != state || state == api.GapOpen && len(t.Questions) == 0 {
					continue
				}
				n++
				if tab.name == view.State {
					shown = append(shown, t)
				}
			}
		}
		known = known || tab.name == view.State
		view.States = append(view.States, stateTab{tab.name, tab.title, n})
	}
	if !known {
		return invalid("state", "must be open, job, merged or dismissed")
	}
	at := v.base() + "/gaps?" + r.Query + "&state=" + view.State
	if after := v.query("after"); after != "" {
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
	return s.render(v, "gaps", "Gaps", view)
}

type gapView struct {
	tracker.Topic
	Shown      []gaps.Question
	Said       []gaps.Said
	Near       *gaps.Near
	Since      *tracker.Since
	Again      []tracker.Verdict // nil where nobody has asked again
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
func (s *Server) showGap(v *visit) error {
	id := v.param("id")
	topic, err := s.Topics.Find(v.Context(), v.project.ID, id, v.now)
	if err != nil {
		return err
	}
	if topic.ID != id { // its address since somebody acted on it
		return v.seeOther(v.base() + "/gaps/" + url.PathEscape(topic.ID))
	}
	return s.gapPage(v, http.StatusOK, topic, nil)
}

// gapPage shows a topic. Sent is the order that was not accepted, and why.
func (s *Server) gapPage(v *visit, status int, topic tracker.Topic, sent *gapView) error {
	ctx := v.Context()
	view := gapView{Topic: topic, Shown: topic.Questions[:min(questionsMost, len(topic.Questions))],
		Said: topic.Wordings(questionsMost), BuiltIn: s.Kinds.Local(v.project.Model), Attempt: 1,
		Form: cmp.Or(v.query("form"), "section")}
	var err error
	if view.Near, err = s.Topics.Nearest(ctx, v.project.ID, &topic); err != nil {
		return err
	}
	state := topic.State()
	view.MayOpen = v.may(editor) && state != api.GapJob
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
	if v.query("again") != "" {
		if err := s.askAgain(v, &view); err != nil {
			return err
		}
	}
	if sent != nil {
		view.Problem, view.Prompt, view.Draft = sent.Problem, sent.Prompt, sent.Draft
	}
	if view.Prompt == "" {
		view.Prompt = s.draft(v, &view)
	}
	return s.renderStatus(v, status, "gap", cutText(60, topic.Question), view)
}

// askAgain puts the topic's questions to the documentation as it is now.
func (s *Server) askAgain(v *visit, view *gapView) error {
	again, err := s.Topics.AskAgain(v.Context(), v.project, &view.Topic)
	if errors.Is(err, search.ErrNotIndexed) {
		return &api.StateError{Kind: api.ErrConflict, Reason: "the documentation is being read: ask again in a moment"}
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
func (s *Server) draft(v *visit, view *gapView) string {
	if view.BuiltIn {
		return gaps.DraftForms(&view.Topic.Topic, view.Near, view.Form == "page")
	}
	if len(view.Questions) == 0 {
		return ""
	}
	link := ""
	if s.PublicURL != "" {
		link = s.PublicURL + v.base() + "/gaps/" + url.PathEscape(view.ID)
	}
	return gaps.Draft(&view.Topic.Topic, view.Near, link)
}

// openGap opens a job for a topic.
func (s *Server) openGap(v *visit) error {
	attempt, err := strconv.Atoi(v.form().Get("attempt"))
	if err != nil {
		return invalid("attempt", "is what the page's form sends")
	}
	by := api.KeyID(cmp.Or(v.who.id, string(v.who.key.ID)))
	order := tracker.Order{Attempt: attempt, Prompt: v.form().Get("prompt"), Draft: v.form().Get("draft") != "",
		By: by, Name: v.who.name}
	gap, err := s.Topics.Open(v.Context(), v.project, v.param("id"), order)
	if err != nil {
		return s.notOpened(v, order, err)
	}
	v.about(gap.Job, "")
	v.audit("gap.open", string(gap.ID), string(gap.Job))
	return v.done(v.base()+"/gaps/"+url.PathEscape(string(gap.ID)), "The job is open. It is on its way.")
}

// notOpened shows the form again with what was written, and why no job was opened.
func (s *Server) notOpened(v *visit, o tracker.Order, refused error) error {
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
	topic, err := s.Topics.Find(v.Context(), v.project.ID, v.param("id"), v.now)
	if err != nil {
		return err
	}
	return s.gapPage(v, status, topic, sent)
}

// dismissGap says that nothing is to be done about a topic.
func (s *Server) dismissGap(v *visit) error {
	gap, err := s.Topics.Dismiss(v.Context(), v.project.ID, v.param("id"), v.who.name, v.form().Get("reason"))
	if err != nil {
		return err
	}
	v.audit("gap.dismiss", string(gap.ID), gap.Reason)
	return v.done(v.base()+"/gaps", "The topic is dismissed. It is kept under “Dismissed”.")
}

// restoreGap takes a dismissal back.
func (s *Server) restoreGap(v *visit) error {
	gap, err := s.Topics.Restore(v.Context(), v.project.ID, v.param("id"))
	if err != nil {
		return err
	}
	v.audit("gap.restore", string(gap.ID), "")
	return v.done(v.base()+"/gaps/"+url.PathEscape(string(gap.ID)), "The topic is back.")
}

// cutText is the beginning of a text, on one line.
func cutText(most int, text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return text
}

// partOf is a part of a whole in words; empty where there is no whole.
func partOf(part, whole int) string {
	if whole == 0 {
		return "–"
	}
	return percentOf(part, whole) + " %"
}

func percentOf(part, whole int) string {
	if whole == 0 {
		return ""
	}
	return strconv.FormatFloat(100*float64(part)/float64(whole), 'f', 0, 64)
}

// gapWords says a topic's state in words.
func gapWords(state api.GapState) string {
	return map[api.GapState]string{api.GapOpen: "open", api.GapOpening: "job being opened", api.GapJob: "job open",
		api.GapMerged: "merged", api.GapDismissed: "dismissed"}[state]
}

// gapBadge is the class of its badge.
func gapBadge(state api.GapState) string {
	return map[api.GapState]string{api.GapOpen: "warn", api.GapOpening: "info", api.GapJob: "info",
		api.GapMerged: "ok"}[state]
}

// outside reports whether an address leads to a site, and not to a page of this server.
func outside(address string) bool {
	return strings.HasPrefix(address, "https://") || strings.HasPrefix(address, "http://")
}
