package operator

import (
	"context"
	"errors"
	"fmt"

	"docent/api"
)

// PullParams name pull requests of the built-in host.
type PullParams struct {
	ID      string        `json:"id,omitempty"`
	Project api.ProjectID `json:"project,omitempty"`
	State   api.PullState `json:"state,omitempty"`
}

func (o *Service) listPulls(ctx context.Context, p PullParams) ([]api.PullRequest, error) {
	return o.stores.Catalog.Pulls(ctx, p.Project, p.State)
}

func (o *Service) diffPull(ctx context.Context, p PullParams) (string, error) {
	diff, err := o.stores.Hub.Diff(ctx, p.ID)
	return diff.String(), noPull(p.ID, err)
}

func (o *Service) mergePull(ctx context.Context, p PullParams) (api.PullRequest, error) {
	merged, err := o.stores.Hub.Merge(ctx, p.ID)
	return merged, noPull(p.ID, err)
}

func (o *Service) closePull(ctx context.Context, p PullParams) (api.PullRequest, error) {
	closed, err := o.stores.Hub.Close(ctx, p.ID)
	return closed, noPull(p.ID, err)
}

// noPull says which pull request there is not, and where their ids are.
func noPull(id string, err error) error {
	if errors.Is(err, api.ErrNotFound) {
		return fmt.Errorf("pull request %q: %w; `docent pull list` lists them", id, api.ErrNotFound)
	}
	return err
}
