package projects

import (
	"errors"
	"net/http"
	"strings"
	"time"

	"docent/api"
	"docent/internal/brief"
	"docent/web/console"
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

// Badge is the webhook's condition.
func (w hookView) Badge() console.Badge {
	c := w.Condition()
	return console.Badge{Text: c, Class: map[string]string{"ok": "ok", "retrying": "warn", "failing": "bad"}[c]}
}

// Host is where it leads, without the rest of the address, which may hold a token.
func (w hookView) Host() string { return console.HostOf(w.URL) }

// A hooksView is the list, with the form for another one.
type hooksView struct {
	Hooks    []hookView
	Kinds    []api.EventKind
	URL      string // as it was sent, if it was refused
	Chosen   map[api.EventKind]bool
	Problems map[string]string
}

func viewHook(v *console.Visit, w api.WebhookStatus) hookView {
	return hookView{WebhookStatus: w, Path: v.Base() + "/webhooks/" + w.ID, Spans: replaySpans}
}

func (s *handler) showHooks(v *console.Visit) error {
	return s.hooksPage(v, http.StatusOK, hooksView{})
}

func (s *handler) hooksPage(v *console.Visit, status int, view hooksView) error {
	list, err := s.Webhooks.Webhooks(v.Context(), v.Project.ID)
	if err != nil {
		return err
	}
	for _, w := range list {
		view.Hooks = append(view.Hooks, viewHook(v, w))
	}
	view.Kinds = api.EventKinds
	return s.RenderStatus(v, status, "hooks", "Webhooks", view)
}

// addHook adds one, and shows its secret once.
func (s *handler) addHook(v *console.Visit) error {
	view := hooksView{URL: strings.TrimSpace(v.Form.Get("url")), Chosen: map[api.EventKind]bool{}}
	var kinds []api.EventKind
	for _, k := range v.Form["event"] {
		kinds = append(kinds, api.EventKind(k))
		view.Chosen[api.EventKind(k)] = true
	}
	w, secret, err := s.Webhooks.Add(v.Context(), v.Project.ID, view.URL, kinds)
	view.Problems = console.Faults(err)
	if refused, ok := errors.AsType[*api.StateError](err); ok && errors.Is(err, api.ErrConflict) {
		view.Problems["url"] = refused.Reason
	}
	if len(view.Problems) > 0 {
		return s.hooksPage(v, http.StatusBadRequest, view)
	}
	if err != nil {
		return err
	}
	v.Audit("webhook.add", w.ID, console.HostOf(w.URL))
	return v.Once(v.Base()+"/webhooks/"+w.ID, secret)
}

// webhook is the one that the address names, of the address's project.
func (s *handler) hook(v *console.Visit, id string) (api.WebhookStatus, error) {
	if !api.ValidID(api.WebhookPrefix, id) {
		return api.WebhookStatus{}, api.Missing("webhook")
	}
	w, err := s.Webhooks.Webhook(v.Context(), id)
	if err == nil && w.Project != v.Project.ID {
		err = api.Missing("webhook")
	}
	return w, api.Named(err, "webhook")
}

func (s *handler) showHook(v *console.Visit) error {
	w, err := s.hook(v, v.Param("id"))
	if err != nil {
		return err
	}
	view := viewHook(v, w)
	v.TakeOnce(&view.Secret)
	if view.Deliveries, err = s.Webhooks.Deliveries(v.Context(), w.ID, attemptsShown); err != nil {
		return err
	}
	if view.Waiting, err = s.Webhooks.Waiting(v.Context(), w.Project, w.Kinds(), w.State.Position); err != nil {
		return err
	}
	return s.Render(v, "hooks.one", "Webhook to "+view.Host(), view)
}

func (s *handler) pauseHook(v *console.Visit) error {
	resume := v.Form.Get("resume") != ""
	action, said := "webhook.pause", "Webhook paused. Events wait until you resume it."
	if resume {
		action, said = "webhook.resume", "Webhook resumed. Waiting events are being sent."
	}
	return s.changeHook(v, action, func(w api.WebhookStatus) (string, error) {
		return said, s.Webhooks.Pause(v.Context(), w.ID, !resume)
	})
}

func (s *handler) testHook(v *console.Visit) error {
	return s.changeHook(v, "webhook.test", func(w api.WebhookStatus) (string, error) {
		d, err := s.Webhooks.Test(v.Context(), w.ID)
		return tookIt(d, "The test"), err
	})
}

// replayHook sends one event again now, or all since a time.
func (s *handler) replayHook(v *console.Visit) error {
	return s.changeHook(v, "webhook.replay", func(w api.WebhookStatus) (string, error) {
		if event := v.Form.Get("event"); event != "" {
			d, err := s.Webhooks.Replay(v.Context(), w.ID, event)
			return tookIt(d, "The event"), err
		}
		ago, err := time.ParseDuration(v.Form.Get("ago"))
		if err != nil || ago < 0 {
			return "", console.Invalid("ago", "must be a time such as 24h")
		}
		n, err := s.Webhooks.ReplaySince(v.Context(), w.ID, v.Now.Add(-ago))
		if n == 0 {
			return "No events to resend.", err
		}
		return brief.Count(n, "event") + " on the way again.", err
	})
}

// tookIt says what a receiver did with a delivery.
func tookIt(d api.WebhookDelivery, what string) string {
	if d.Error != "" {
		return what + " was not taken: " + d.Error
	}
	return what + " was taken."
}

func (s *handler) removeHook(v *console.Visit) error {
	w, err := s.hook(v, v.Param("id"))
	if err != nil {
		return err
	}
	if err := s.Webhooks.Remove(v.Context(), w.ID); err != nil {
		return api.Named(err, "webhook")
	}
	v.Audit("webhook.remove", w.ID, console.HostOf(w.URL))
	return v.Done(v.Base()+"/webhooks", "Webhook removed.")
}

// rotateHook makes a new secret and shows it once.
func (s *handler) rotateHook(v *console.Visit) error {
	w, err := s.hook(v, v.Param("id"))
	if err != nil {
		return err
	}
	secret, err := s.Webhooks.Rotate(v.Context(), w.ID, v.Form.Get("now") != "")
	if err != nil {
		return api.Named(err, "webhook")
	}
	v.Audit("webhook.rotate", w.ID, console.HostOf(w.URL))
	return v.Once(v.Base()+"/webhooks/"+w.ID, secret)
}

// changeHook does something with the webhook that the address names, and leads to its page.
func (s *handler) changeHook(v *console.Visit, action string, change func(api.WebhookStatus) (said string, err error)) error {
	w, err := s.hook(v, v.Param("id"))
	if err != nil {
		return err
	}
	said, err := change(w)
	if err != nil {
		return api.Named(err, "webhook")
	}
	v.Audit(action, w.ID, console.HostOf(w.URL))
	return v.Done(v.Base()+"/webhooks/"+w.ID, said)
}
