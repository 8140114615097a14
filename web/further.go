package web

import (
	"errors"
	"strconv"
	"strings"

	"docent/api"
	"docent/ingest"
)

// sourceLine is one of a project's sources as the page shows it.
type sourceLine struct {
	ingest.Source
	Path     string // below which its forms lie
	Said     string // its kind
	Audience string
	Zip      bool
}

func viewSource(base string, s ingest.Source) sourceLine {
	return sourceLine{Source: s, Path: base + "/sources/further/" + s.Label, Said: s.Kind.Said(),
		Audience: strings.Join(s.Groups, ", "), Zip: s.Kind == api.SourceZip}
}

// addFurther reads a further source and adds it. Its address may name anything that the server reaches, so that whoever
// runs the server adds it.
func (s *Server) addFurther(v *visit) error {
	f := v.form()
	weight, _ := strconv.ParseFloat(f.Get("weight"), 64)
	source := api.Source{Label: f.Get("label"), Kind: api.SourceKind(f.Get("kind")), Address: strings.TrimSpace(f.Get("address")),
		SiteURL: strings.TrimSpace(f.Get("siteUrl")), TokenEnv: strings.TrimSpace(f.Get("tokenEnv")), Weight: weight,
		Groups: strings.Split(f.Get("groups"), ",")}
	return s.furtherTask(v, "source.add", source.Label, func() (ingest.Task, error) {
		return s.Setup.AddSource(v.project.ID, source)
	})
}

// setFurther changes how much a source counts, for whom it is and how often it is read.
func (s *Server) setFurther(v *visit) error {
	f := v.form()
	source, ok := v.project.Further(v.param("label"))
	if !ok {
		return api.Missing("source")
	}
	weight, err := strconv.ParseFloat(f.Get("weight"), 64)
	if err != nil {
		return s.sourcesPage(v, 400, "The weight of "+source.Label+" must be a number, such as 0.5.")
	}
	source.Weight, source.Groups, source.Every = weight, strings.Split(f.Get("groups"), ","), strings.TrimSpace(f.Get("every"))
	return s.furtherTask(v, "source.set", source.Label, func() (ingest.Task, error) {
		return s.Setup.SetSource(v.project.ID, source)
	})
}

func (s *Server) readFurther(v *visit) error {
	label := v.param("label")
	return s.furtherTask(v, "source.read", label, func() (ingest.Task, error) {
		return s.Setup.ReadSource(v.project.ID, label)
	})
}

func (s *Server) removeFurther(v *visit) error {
	label := v.param("label")
	if err := s.Setup.RemoveSource(v.Context(), v.project.ID, label); err != nil {
		return err
	}
	v.audit("source.remove", label, "")
	return v.done(v.base()+"/sources", "The source "+label+" is removed, with its index.")
}

// furtherTask does something with a source in the background and shows how it goes.
func (s *Server) furtherTask(v *visit, action, label string, begin func() (ingest.Task, error)) error {
	task, err := begin()
	switch {
	case errors.Is(err, api.ErrConflict):
		return s.sourcesPage(v, 409, Failure(err))
	case errors.Is(err, api.ErrInvalid):
		return s.sourcesPage(v, 400, Failure(err))
	}
	if err != nil {
		return err
	}
	v.audit(action, label, "")
	switch task = s.settled(v.Context(), task); {
	case task.Running():
		return v.seeOther(v.base() + "/sources/task/" + task.ID)
	case task.Failed():
		return s.sourcesPage(v, 400, Failure(task.Err))
	}
	return v.done(v.base()+"/sources", "The source "+label+" was read.")
}
