package web

import (
	"errors"
	"net/http"
	"strings"
	"time"

	"docent/api"
)

// attemptsShown is how many deliveries the page of a webhook lists.
const attemptsShown = 50

// A hookView is one webhook as pages show it.
type hookView struct {
	api.WebhookStatus
	Path       string
	Deliveries []api.WebhookDelivery
	Waiting    int    // events
	Secret     string // a new one, shown once
	Spans      []span // since when events may be sent again
}

// A span is how long ago something may have happened.
type span struct{ Value, Text string }

var replaySpans = []span{{"1h", "the last hour"}, {"24h", "the last day"}, {"168h", "the last week"}, {"719h", "the last 30 days"}}

// Badge is how the webhook fares.
func (w hookView) Badge() badge {
	c := w.Condition()
	return badge{c, map[string]string{"ok": "ok", "retrying": "warn", "failing": "bad"}[c]}
}

// Host is where it leads, without the rest of the address, which may hold a token.
func (w hookView) Host() string { return HostOf(w.URL) }

// A hooksView is the list, with the form for another one.
type hooksView struct {
	Hooks    []hookView
	Kinds    []api.EventKind
	URL      string // as it was sent, where it was refused
	Chosen   map[api.EventKind]bool
	Problems map[string]string
}

func (v *visit) hookView(w api.WebhookStatus) hookView {
	return hookView{WebhookStatus: w, Path: v.base() + "/webhooks/" + w.ID, Spans: replaySpans}
}

func (s *Server) showHooks(v *visit) error { return s.hooksPage(v, http.StatusOK, hooksView{}) }

func (s *Server) hooksPage(v *visit, status int, view hooksView) error {
	list, err := s.Webhooks.Webhooks(v.Context(), v.project.ID)
	if err != nil {
		return err
	}
	for _, w := range list {
		view.Hooks = append(view.Hooks, v.hookView(w))
	}
	view.Kinds = api.EventKinds
	return s.renderStatus(v, status, "hooks", "Webhooks", view)
}

// addHook adds one, and shows its secret once.
func (s *Server) addHook(v *visit) error {
	view := hooksView{URL: strings.TrimSpace(v.form().Get("url")), Chosen: map[api.EventKind]bool{}}
	var kinds []api.EventKind
	for _, k := range v.form()["event"] {
		kinds = append(kinds, api.EventKind(k))
		view.Chosen[api.EventKind(k)] = true
	}
	w, secret, err := s.Webhooks.Add(v.Context(), v.project.ID, view.URL, kinds)
	view.Problems = problemsOf(err)
	var refused *api.StateError
	if errors.As(err, &refused) && errors.Is(err, api.ErrConflict) {
		view.Problems["url"] = refused.Reason
	}
	if len(view.Problems) > 0 {
		return s.hooksPage(v, http.StatusBadRequest, view)
	}
	if err != nil {
		return err
	}
	v.audit("webhook.add", w.ID, HostOf(w.URL))
	return s.hookPage(v, w.ID, secret)
}

// webhook is the one that the address names, of the address's project.
func (s *Server) hook(v *visit, id string) (api.WebhookStatus, error) {
	if !api.ValidID(api.WebhookPrefix, id) {
		return api.WebhookStatus{}, api.Missing("webhook")
	}
	w, err := s.Webhooks.Webhook(v.Context(), id)
	if err == nil && w.Project != v.project.ID {
		err = api.Missing("webhook")
	}
	return w, api.Named(err, "webhook")
}

func (s *Server) showHook(v *visit) error { return s.hookPage(v, v.param("id"), "") }

func (s *Server) hookPage(v *visit, id, secret string) error {
	w, err := s.hook(v, id)
	if err != nil {
		return err
	}
	view := v.hookView(w)
	view.Secret = secret
	if view.Deliveries, err = s.Webhooks.Deliveries(v.Context(), w.ID, attemptsShown); err != nil {
		return err
	}
	if view.Waiting, err = s.Webhooks.Waiting(v.Context(), w.Project, w.Kinds(), w.State.Position); err != nil {
		return err
	}
	return s.render(v, "hooks.one", "Webhook to "+view.Host(), view)
}

func (s *Server) pauseHook(v *visit) error {
	resume := v.form().Get("resume") != ""
	action, said := "webhook.pause", "It is paused. What happens meanwhile waits."
	if resume {
		action, said = "webhook.resume", "What waits is sent now."
	}
	return s.changeHook(v, action, func(w api.WebhookStatus) (string, error) {
		return said, s.Webhooks.Pause(v.Context(), w.ID, !resume)
	})
}

func (s *Server) testHook(v *visit) error {
	return s.changeHook(v, "webhook.test", func(w api.WebhookStatus) (string, error) {
		d, err := s.Webhooks.Test(v.Context(), w.ID)
		return tookIt(d, "The test"), err
	})
}

// replayHook sends one event again now, or all since a time.
func (s *Server) replayHook(v *visit) error {
	return s.changeHook(v, "webhook.replay", func(w api.WebhookStatus) (string, error) {
		if event := v.form().Get("event"); event != "" {
			d, err := s.Webhooks.Replay(v.Context(), w.ID, event)
			return tookIt(d, "The event"), err
		}
		ago, err := time.ParseDuration(v.form().Get("ago"))
		if err != nil || ago < 0 {
			return "", invalid("ago", "must be a time such as 24h")
		}
		n, err := s.Webhooks.ReplaySince(v.Context(), w.ID, v.now.Add(-ago))
		if n == 0 {
			return "There is nothing to be sent again of then.", err
		}
		return count(n, "event") + " on the way again.", err
	})
}

// tookIt says what a receiver did with a delivery.
func tookIt(d api.WebhookDelivery, what string) string {
	if d.Error != "" {
		return what + " was not taken: " + d.Error
	}
	return what + " was taken."
}

func (s *Server) removeHook(v *visit) error {
	w, err := s.hook(v, v.param("id"))
	if err != nil {
		return err
	}
	if err := s.Webhooks.Remove(v.Context(), w.ID); err != nil {
		return api.Named(err, "webhook")
	}
	v.audit("webhook.remove", w.ID, HostOf(w.URL))
	return v.done(v.base()+"/webhooks", "The webhook is removed.")
}

// rotateHook makes a new secret and shows it once.
func (s *Server) rotateHook(v *visit) error {
	w, err := s.hook(v, v.param("id"))
	if err != nil {
		return err
	}
	secret, err := s.Webhooks.Rotate(v.Context(), w.ID, v.form().Get("now") != "")
	if err != nil {
		return api.Named(err, "webhook")
	}
	v.audit("webhook.rotate", w.ID, HostOf(w.URL))
	return s.hookPage(v, w.ID, secret)
}

// changeHook does something with the webhook that the address names, and leads to its page.
func (s *Server) changeHook(v *visit, action string, change func(api.WebhookStatus) (said string, err error)) error {
	w, err := s.hook(v, v.param("id"))
	if err != nil {
		return err
	}
	said, err := change(w)
	if err != nil {
		return api.Named(err, "webhook")
	}
	v.audit(action, w.ID, HostOf(w.URL))
	return v.done(v.base()+"/webhooks/"+w.ID, said)
}
