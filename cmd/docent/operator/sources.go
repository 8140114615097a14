package operator

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"docent/api"
	"docent/search"
	"docent/search/sources"
	"docent/search/sources/uploads"
)

func (o *Service) uploadOnPage(ctx context.Context, project api.ProjectID, f api.Source, isNew bool, incoming uploads.Incoming,
	progress Progress) error {
	defer incoming.Drop()
	if isNew {
		if _, err := o.stores.Source.AddSource(ctx, project, f, progress); err != nil {
			return err
		}
	}
	part, err := o.uploadTo(ctx, project, f.Label)
	if err == nil {
		_, err = o.uploaded(ctx, part, incoming, progress)
	}
	if err != nil && isNew {
		err = errors.Join(err, o.stores.Source.RemoveSource(context.WithoutCancel(ctx), project, f.Label))
	}
	return err
}

// SourceParams name a source, describe it, or bring a piece of an upload.
type SourceParams struct {
	ID     api.ProjectID `json:"id"`
	Name   string        `json:"name,omitempty"` // the label, as the audit log names it
	Source api.Source    `json:"source,omitzero"`
	Upload string        `json:"upload,omitempty"` // one upload, which comes in pieces
	Data   []byte        `json:"data,omitempty"`
	Last   bool          `json:"last,omitempty"`
}

// AddSource adds a source to a project and reads it.
func (o *Service) AddSource(ctx context.Context, p SourceParams, progress Progress) (sources.Source, error) {
	return o.stores.Source.AddSource(ctx, p.ID, p.Source, progress)
}

func (o *Service) setSource(ctx context.Context, p SourceParams, progress Progress) (sources.Source, error) {
	return o.stores.Source.SetSource(ctx, p.ID, p.Source, progress)
}

func (o *Service) listSources(ctx context.Context, p SourceParams) ([]sources.Source, error) {
	return o.stores.Source.Sources(ctx, p.ID)
}

func (o *Service) removeSource(ctx context.Context, p SourceParams) error {
	return o.stores.Source.RemoveSource(ctx, p.ID, p.Name)
}

func (o *Service) readSource(ctx context.Context, p SourceParams, progress Progress) (search.Report, error) {
	part, err := o.stores.Source.Part(ctx, SourceID(p.ID, p.Name))
	if err != nil {
		return search.Report{}, err
	}
	o.stores.Source.Forget(part.ID)
	return o.stores.Source.Refresh(ctx, part, progress)
}

// SourceID is how a source is read: by the project's own id where no label is given.
func SourceID(project api.ProjectID, label string) api.ProjectID {
	if label == "" {
		return project
	}
	return api.SourceID(project, label)
}

// uploadSource takes the next piece of an upload; with the last one it is checked, kept and indexed.
func (o *Service) uploadSource(ctx context.Context, p SourceParams, progress Progress) (sources.Source, error) {
	part, err := o.uploadTo(ctx, p.ID, p.Name)
	if err != nil {
		return sources.Source{}, err
	}
	incoming, err := o.stores.Uploads.Take(p.Upload, p.Data)
	if err != nil || !p.Last {
		return sources.Source{}, err
	}
	return o.uploaded(ctx, part, incoming, progress)
}

// uploadTo is a source that zips are uploaded to, as it is read.
func (o *Service) uploadTo(ctx context.Context, project api.ProjectID, label string) (api.Project, error) {
	p, err := o.stores.Catalog.Project(ctx, project)
	if err != nil {
		return api.Project{}, err
	}
	part := p.Of(label)
	switch {
	case part.ID == "":
		return part, &api.StateError{Kind: api.ErrNotFound, Reason: fmt.Sprintf(
			"project %s has no source %.40q: add it with `docent source add %s %s --kind zip`", project, label, project,
			cmp.Or(label, "LABEL"))}
	case part.Kind != api.SourceZip:
		return part, &api.StateError{Kind: api.ErrConflict, Reason: fmt.Sprintf(
			"the source %s of project %s is %s: zips are uploaded to a source of the kind zip", part.FirstLabel(), project,
			part.Kind.Said())}
	}
	return part, nil
}

// uploaded keeps an upload that has come whole, and reads it. What is kept is read again after a crash.
func (o *Service) uploaded(ctx context.Context, part api.Project, incoming uploads.Incoming, progress Progress) (
	sources.Source, error) {
	if _, err := incoming.Keep(ctx, o.stores.Source.CollectedDir(part.ID)); err != nil {
		return sources.Source{}, err
	}
	o.stores.Source.Forget(part.ID)
	if _, err := o.stores.Source.Refresh(ctx, part, progress); err != nil {
		return sources.Source{}, err
	}
	project, label := api.SplitSource(part.ID)
	list, err := o.stores.Source.Sources(ctx, project)
	if err != nil {
		return sources.Source{}, err
	}
	for _, one := range list {
		if one.First == (label == "") && (label == "" || one.Label == label) {
			return one, nil
		}
	}
	return sources.Source{}, api.Missing("source")
}

// UploadPiece is how much of a zip goes to the server at once.
const UploadPiece = 512 << 10
