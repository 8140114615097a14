package projects

import (
	"errors"
	"net/http"
	"strconv"
	"strings"

	"docent/api"
	"docent/search/sources"
	"docent/web/console"
)

// sourceLine is one of a project's sources as the page shows it.
type sourceLine struct {
	sources.Source
	Path     string // below which its forms lie
	Said     string // its kind
	Audience string
	Zip      bool
}

func viewSource(base string, s sources.Source) sourceLine {
	return sourceLine{Source: s, Path: base + "/sources/further/" + s.Label, Said: s.Kind.Said(),
		Audience: strings.Join(s.Groups, ", "), Zip: s.Kind == api.SourceZip}
}

// addFurther reads a further source and adds it. Its address may name anything that the server reaches, so only
// the server's operator adds it.
func (s *handler) addFurther(v *console.Visit) error {
	f := v.Form
	weight, _ := strconv.ParseFloat(f.Get("weight"), 64)
	source := api.Source{Label: f.Get("label"), Kind: api.SourceKind(f.Get("kind")), Address: strings.TrimSpace(f.Get("address")),
		SiteURL: strings.TrimSpace(f.Get("siteUrl")), TokenEnv: strings.TrimSpace(f.Get("tokenEnv")), Weight: weight,
		Groups: strings.Split(f.Get("groups"), ",")}
	return s.furtherTask(v, "source.add", source.Label, func() (sources.Task, error) {
		return s.Setup.AddSource(v.Project.ID, source)
	})
}

// setFurther changes how much a source counts, for whom it is and how often it is read.
func (s *handler) setFurther(v *console.Visit) error {
	f := v.Form
	source, ok := v.Project.Further(v.Param("label"))
	if !ok {
		return api.Missing("source")
	}
	weight, err := strconv.ParseFloat(f.Get("weight"), 64)
	if err != nil {
		return s.sourcesPage(v, http.StatusBadRequest, "The weight of "+source.Label+" must be a number, such as 0.5.")
	}
	source.Weight, source.Groups, source.Every = weight, strings.Split(f.Get("groups"), ","), strings.TrimSpace(f.Get("every"))
	return s.furtherTask(v, "source.set", source.Label, func() (sources.Task, error) {
		return s.Setup.SetSource(v.Project.ID, source)
	})
}

func (s *handler) readFurther(v *console.Visit) error {
	label := v.Param("label")
	return s.furtherTask(v, "source.read", label, func() (sources.Task, error) {
		return s.Setup.ReadSource(v.Project.ID, label)
	})
}

func (s *handler) removeFurther(v *console.Visit) error {
	label := v.Param("label")
	if err := s.Setup.RemoveSource(v.Context(), v.Project.ID, label); err != nil {
		return err
	}
	v.Audit("source.remove", label, "")
	return v.Done(v.Base()+"/sources", "The source "+label+" is removed, with its index.")
}

// furtherTask does something with a source in the background and shows how it goes.
func (s *handler) furtherTask(v *console.Visit, action, label string, begin func() (sources.Task, error)) error {
	task, err := begin()
	switch {
	case errors.Is(err, api.ErrConflict):
		return s.sourcesPage(v, http.StatusConflict, Failure(err))
	case errors.Is(err, api.ErrInvalid):
		return s.sourcesPage(v, http.StatusBadRequest, Failure(err))
	}
	if err != nil {
		return err
	}
	v.Audit(action, label, "")
	switch task = s.settled(v.Context(), task); {
	case task.Running():
		return v.SeeOther(v.Base() + "/sources/task/" + task.ID)
	case task.Failed():
		return s.sourcesPage(v, http.StatusBadRequest, Failure(task.Err))
	}
	return v.Done(v.Base()+"/sources", "The source "+label+" was read.")
}
