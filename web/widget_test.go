package web_test

import (
	"net/http"
	"testing"
	"time"

	"docent/api"
	"docent/search/sources"
	"docent/web"
)

// changed takes the project that a form describes.
type changed struct {
	projectsOf
	project api.Project
}

func (c *changed) Change(p api.Project) (sources.Task, error) {
	c.project = p
	return sources.Task{Ended: time.Now()}, nil
}

func TestTheWidgetIsShownAsItIsFilledInAndSaved(t *testing.T) {
	t.Parallel()
	setup := &changed{}
	h := build(t, func(d *web.Deps) { d.Setup = setup })
	b := h.as(h.person("olga", api.RoleOwner))
	const at = "/console/org-a/docs.acme.example/widget"
	b.open(at)
	page := b.post(http.StatusOK, at+"/preview", "accent", "#ffcc00", "label", "Ahoy")
	contains(t, page, `data-accent="#ffcc00"`, `data-label="Ahoy"`, "It is hard to read")
	contains(t, page, `data-contact=""`, `data-logo=""`)
	contains(t, b.post(http.StatusBadRequest, at+"/change", "accent", "yellow"), "accent")
	b.post(http.StatusSeeOther, at+"/change", "accent", "#ffcc00", "label", "Ahoy")
	contains(t, b.post(http.StatusBadRequest, at+"/change", "contact", "form", "contactIssues", "on"), "needs the form")
	contains(t, b.post(http.StatusBadRequest, at+"/change", "openIn", "elsewhere"), "must be empty or one of chatgpt, claude")
	b.post(http.StatusSeeOther, at+"/change", "accent", "#ffcc00", "contact", "form", "logo", "/logo.svg", "openIn", "claude, chatgpt")
	if w := setup.project.Widget; w.Contact != api.ContactForm || w.ContactIssues || w.Logo != "/logo.svg" || len(w.OpenIn) != 2 {
		t.Errorf("what is saved is %+v", w)
	}
	if setup.project.Widget.Accent != "#ffcc00" {
		t.Errorf("what is saved is %+v", setup.project.Widget)
	}
}
