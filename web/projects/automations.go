package projects

import (
	"cmp"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"docent/api"
	"docent/web/console"
)

const (
	automationRuns = 100 // shown of one automation
	dailyCap       = 5
)

// An automationView is one automation as pages show it.
type automationView struct {
	api.Automation
	When []string
	Path string
	Runs []runView
	Hook string // where the code host sends its webhook; empty if none is needed
}

// A runView is one run of an automation.
type runView struct {
	api.AutomationRun
	JobPath string
}

// Badge is how the run went.
func (r runView) Badge() console.Badge {
	switch r.Status {
	case api.RunAccepted:
		return console.Badge{Text: "accepted", Class: "info"}
	case api.RunChecked:
		return console.Badge{Text: "checked", Class: "ok"}
	case api.RunStarted:
		return console.Badge{Text: "started", Class: "ok"}
	case api.RunSkipped:
		return console.Badge{Text: "skipped", Class: "warn"}
	}
	return console.Badge{Text: "failed", Class: "bad"}
}

// Last is the newest run; nil if there was none.
func (a automationView) LastRun() *runView {
	if a.Automation.Last == nil {
		return nil
	}
	r := a.run(*a.Automation.Last)
	return &r
}

func (a automationView) run(r api.AutomationRun) runView {
	v := runView{AutomationRun: r}
	if r.Job != "" {
		base, _, _ := strings.Cut(a.Path, "/automations/")
		v.JobPath = base + "/jobs/" + string(r.Job)
	}
	return v
}

func viewAutomation(v *console.Visit, a api.Automation) automationView {
	view := automationView{Automation: a, Path: v.Base() + "/automations/" + string(a.ID)}
	if a.Cron != "" {
		view.When = append(view.When, "at "+a.Cron+", "+cmp.Or(a.TimeZone, "UTC"))
	}
	if a.OnPush {
		view.When = append(view.When, "when the documentation has a new commit")
	}
	if a.Check {
		view.When = append(view.When, "names pages on pull requests of "+a.Repository)
		view.Hook = v.Absolute("/v1/webhook/" + string(a.Project) + "/push")
	} else if a.Repository != "" {
		view.When = append(view.When, "on a push to "+a.Repository+strings.TrimSuffix("@"+a.Branch, "@"))
		view.Hook = v.Absolute("/v1/webhook/" + string(a.Project) + "/push")
	}
	return view
}

func (s *handler) showAutomations(v *console.Visit) error {
	list, err := s.Automations.Automations(v.Context(), v.Project.ID)
	if err != nil {
		return err
	}
	views := make([]automationView, len(list))
	for i, a := range list {
		views[i] = viewAutomation(v, a)
	}
	return s.Render(v, "automations", "Automations", views)
}

// automation is the one that the address names, of the address's project.
func (s *handler) automation(v *console.Visit) (api.Automation, error) {
	id := v.Param("id")
	if !api.ValidID(api.AutomationPrefix, id) {
		return api.Automation{}, api.Missing("automation")
	}
	a, err := s.Automations.Automation(v.Context(), api.AutomationID(id))
	if err == nil && a.Project != v.Project.ID {
		err = api.Missing("automation")
	}
	return a, api.Named(err, "automation")
}

func (s *handler) showAutomation(v *console.Visit) error {
	a, err := s.automation(v)
	if err != nil {
		return err
	}
	view := viewAutomation(v, a)
	runs, err := s.Automations.Runs(v.Context(), a.ID, automationRuns)
	if err != nil {
		return err
	}
	for _, r := range runs {
		view.Runs = append(view.Runs, view.run(r))
	}
	return s.Render(v, "automation", a.Name, view)
}

// A newAutomationView is the form for an automation.
type newAutomationView struct {
	api.Automation
	Problems map[string]string
}

func (s *handler) showNewAutomation(v *console.Visit) error {
	return s.Render(v, "automations.new", "New automation",
		newAutomationView{Automation: api.Automation{DailyCap: dailyCap, Cron: v.Query("cron"), Prompt: v.Query("prompt")}})
}

func (s *handler) createAutomation(v *console.Visit) error {
	f := v.Form
	field := func(name string) string { return strings.TrimSpace(f.Get(name)) }
	a := api.Automation{Project: v.Project.ID, Name: field("name"), Prompt: field("prompt"), Cron: field("cron"),
		TimeZone: field("timeZone"), OnPush: field("onPush") == "yes", Repository: field("repository"), Branch: field("branch"),
		Draft: field("draft") == "yes"}
	a.DailyCap, _ = strconv.Atoi(field("dailyCap"))
	added, err := s.Automations.AddAutomation(v.Context(), a)
	view := newAutomationView{Automation: a, Problems: console.Faults(err)}
	if refused, ok := errors.AsType[*api.StateError](err); ok && errors.Is(err, api.ErrConflict) {
		view.Problems["name"] = refused.Reason
	}
	if len(view.Problems) > 0 {
		return s.RenderStatus(v, http.StatusBadRequest, "automations.new", "New automation", view)
	}
	if err != nil {
		return err
	}
	v.Audit("automation.create", string(added.ID), added.Name)
	return v.Done(v.Base()+"/automations/"+string(added.ID), "Automation created.")
}

func (s *handler) runAutomation(v *console.Visit) error {
	return s.changeAutomation(v, "automation.run", "Automation started. Its job appears here in a moment.", "",
		func(a api.Automation) error { return s.Automations.RunAutomation(v.Context(), a.ID) })
}

func (s *handler) pauseAutomation(v *console.Visit) error {
	paused := v.Form.Get("resume") == ""
	action, said := "automation.pause", "Automation paused. You can still run it by hand."
	if !paused {
		action, said = "automation.resume", "Automation resumed. Runs that were due meanwhile are skipped."
	}
	return s.changeAutomation(v, action, said, "",
		func(a api.Automation) error { return s.Automations.PauseAutomation(v.Context(), a.ID, paused) })
}

func (s *handler) removeAutomation(v *console.Visit) error {
	return s.changeAutomation(v, "automation.remove", "Automation removed. Its jobs and pull requests stay.",
		v.Base()+"/automations", func(a api.Automation) error { return s.Automations.RemoveAutomation(v.Context(), a.ID) })
}

// changeAutomation does something with the automation that the address names, and leads to its page or to another one.
func (s *handler) changeAutomation(v *console.Visit, action, said, to string, change func(api.Automation) error) error {
	a, err := s.automation(v)
	if err != nil {
		return err
	}
	if err := change(a); err != nil {
		return api.Named(err, "automation")
	}
	v.Audit(action, string(a.ID), a.Name)
	return v.Done(cmp.Or(to, v.Base()+"/automations/"+string(a.ID)), said)
}
