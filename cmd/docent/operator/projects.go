package operator

import (
	"context"
	"errors"
	"fmt"

	"docent/api"
	"docent/internal/idn"
	"docent/router/readertoken"
	"docent/search"
	"docent/search/sources"
)

func (o *Service) index(ctx context.Context, p ProjectParams, progress Progress) (search.Report, error) {
	project, err := o.stores.Catalog.Project(ctx, p.ID)
	if err != nil {
		return search.Report{}, err
	}
	for _, part := range project.Parts() {
		o.stores.Source.Forget(part.ID)
	}
	report, err := o.stores.Source.Refresh(ctx, project, progress)
	for label, failed := range o.stores.Source.RefreshAll(ctx, project, progress) {
		if label == api.SiteLabel { // readers are answered from what was read before, or from the repository
			progress("the published site could not be read: "+failed.Error(), 0, 0)
			continue
		}
		err = errors.Join(err, fmt.Errorf("the source %s: %w", label, failed))
	}
	return report, err
}

// ProjectParams name a project.
type ProjectParams struct {
	ID api.ProjectID `json:"id"`
}

// AddProject reads the documentation of a project and adds the project. It adds none whose documentation cannot be read.
func (o *Service) AddProject(ctx context.Context, p api.Project, progress Progress) (sources.Project, error) {
	if err := o.checkSettings(ctx, p); err != nil {
		return sources.Project{}, err
	}
	return o.add(ctx, p, progress)
}

// add is AddProject with settings that were checked.
func (o *Service) add(ctx context.Context, p api.Project, progress Progress) (sources.Project, error) {
	if err := o.checkReaders(ctx, api.Project{}, p); err != nil {
		return sources.Project{}, err
	}
	added, err := o.stores.Source.Add(ctx, p, progress)
	if err == nil {
		err = o.followIssues(ctx, added.Project)
	}
	return added, err
}

// setProject changes the settings of a project, and reads its documentation again where that takes it.
func (o *Service) setProject(ctx context.Context, p api.Project, progress Progress) (sources.Project, error) {
	if err := o.checkSettings(ctx, p); err != nil {
		return sources.Project{}, err
	}
	return o.set(ctx, p, progress)
}

// checkSettings says what is wrong with a project's settings, for commands and pages alike, before anything is read or
// stored. Problems name their fields.
func (o *Service) checkSettings(ctx context.Context, p api.Project) error {
	if err := o.checkModel(ctx, "model", p.Model); err != nil {
		return err
	}
	if err := o.checkModel(ctx, "agentModel", p.AgentModel); err != nil {
		return err
	}
	p.Domain = idn.ASCII(p.Domain)
	return sources.CheckSettings(p.WithDefaults())
}

// set is setProject with settings that were checked.
func (o *Service) set(ctx context.Context, p api.Project, progress Progress) (sources.Project, error) {
	old, err := o.stores.Catalog.Project(ctx, p.ID)
	if err != nil {
		return sources.Project{}, err
	}
	if err := o.checkReaders(ctx, old, p); err != nil {
		return sources.Project{}, err
	}
	// What was set last counts: a variable takes the place of what was entered, which is not kept then.
	if p.TokenEnv != "" && p.TokenEnv != old.TokenEnv {
		p.TokenFile = ""
	}
	if p.WebhookEnv != "" && p.WebhookEnv != old.WebhookEnv {
		p.WebhookFile = ""
	}
	if p.TokenFile != "" && p.TokenFile == old.TokenFile && !p.TokenKept(old) {
		field := "source"
		if p.Host != old.Host || p.HostURL != old.HostURL {
			field = "hostUrl"
		}
		return sources.Project{}, invalid(field, "the stored token was not entered for this host: name a variable with the host's own token (tokenEnv) as well")
	}
	set, err := o.stores.Source.Set(ctx, p, progress)
	if err == nil {
		err = o.followIssues(ctx, set.Project)
	}
	return set, errors.Join(err, o.dropUnused(ctx, old))
}

func (o *Service) checkProject(ctx context.Context, p ProjectParams, progress Progress) (search.Check, error) {
	project, err := o.stores.Source.Part(ctx, p.ID)
	if err != nil {
		return search.Check{}, err
	}
	return o.stores.Source.Check(ctx, project, progress)
}

func (o *Service) listProjects(ctx context.Context, _ struct{}) ([]api.Project, error) {
	return o.stores.Catalog.Projects(ctx)
}

func (o *Service) removeProject(ctx context.Context, p ProjectParams) error {
	old, err := o.stores.Catalog.Project(ctx, p.ID)
	if err != nil {
		return err
	}
	if err := o.stores.Source.Remove(ctx, p.ID); err != nil {
		return err
	}
	return o.dropUnused(ctx, old)
}

// checkReaders fetches the keys at a project's JWKS address, where that is new.
func (o *Service) checkReaders(ctx context.Context, old, p api.Project) error {
	if p.ReaderJWKS == "" || p.ReaderJWKS == old.ReaderJWKS {
		return nil
	}
	return readertoken.Check(ctx, o.stores.Config.Targets(), p.ReaderJWKS)
}
