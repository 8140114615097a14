package forgetest

import (
	"context"
	"slices"
	"sync"

	"docent/api"
)

// Pulls keeps pull requests in memory, by the rules of forge.PullStore.
type Pulls struct {
	mu   sync.Mutex
	list []api.PullRequest // oldest first
	// Known are the projects.
	Known map[api.ProjectID]api.Project
	// Fault fails the call that it is asked about, before it has taken effect, if it returns an error.
	Fault func(call string) error
}

// Copy is another store with the same pull requests.
func (p *Pulls) Copy() *Pulls {
	p.mu.Lock()
	defer p.mu.Unlock()
	return &Pulls{list: slices.Clone(p.list), Known: p.Known}
}

func (p *Pulls) at(ctx context.Context, call string) error {
	if p.Fault != nil {
		if err := p.Fault(call); err != nil {
			return err
		}
	}
	return ctx.Err()
}

func (p *Pulls) find(ok func(api.PullRequest) bool) (api.PullRequest, error) {
	for _, pull := range slices.Backward(p.list) {
		if ok(pull) {
			return pull, nil
		}
	}
	return api.PullRequest{}, api.ErrNotFound
}

func (p *Pulls) FindPull(ctx context.Context, project api.ProjectID, head string) (api.PullRequest, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.at(ctx, "find"); err != nil {
		return api.PullRequest{}, err
	}
	return p.find(func(x api.PullRequest) bool {
		return x.Project == project && x.Head == head && x.State == api.PullOpen
	})
}

func (p *Pulls) LatestPull(ctx context.Context, project api.ProjectID, head string) (api.PullRequest, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.at(ctx, "latest"); err != nil {
		return api.PullRequest{}, err
	}
	return p.find(func(x api.PullRequest) bool { return x.Project == project && x.Head == head })
}

func (p *Pulls) AddPull(ctx context.Context, pull api.PullRequest) (api.PullRequest, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.at(ctx, "add"); err != nil {
		return api.PullRequest{}, err
	}
	number := 1
	for _, x := range p.list {
		if x.Project != pull.Project {
			continue
		}
		if x.Head == pull.Head && x.State == api.PullOpen {
			return x, nil
		}
		number = x.Number + 1
	}
	pull.Number = number
	p.list = append(p.list, pull)
	return pull, nil
}

func (p *Pulls) UpdatePull(ctx context.Context, pull api.PullRequest) (api.PullRequest, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.at(ctx, "update"); err != nil {
		return api.PullRequest{}, err
	}
	for i := range p.list {
		if p.list[i].ID == pull.ID {
			p.list[i] = pull
			return pull, nil
		}
	}
	return api.PullRequest{}, api.ErrNotFound
}

func (p *Pulls) Pull(ctx context.Context, id string) (api.PullRequest, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.at(ctx, "pull"); err != nil {
		return api.PullRequest{}, err
	}
	return p.find(func(x api.PullRequest) bool { return x.ID == id })
}

func (p *Pulls) Pulls(ctx context.Context, project api.ProjectID, state api.PullState) ([]api.PullRequest, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.at(ctx, "pulls"); err != nil {
		return nil, err
	}
	var out []api.PullRequest
	for _, x := range slices.Backward(p.list) {
		if x.Project == project && (state == "" || x.State == state) {
			out = append(out, x)
		}
	}
	return out, nil
}

func (p *Pulls) EqualPulls(
	ctx context.Context, project api.ProjectID, digest string, limit int,
) ([]api.PullRequest, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.at(ctx, "equal"); err != nil {
		return nil, err
	}
	var out []api.PullRequest
	for _, x := range slices.Backward(p.list) {
		if x.Project == project && x.State == api.PullOpen && (x.Change == digest || x.Change == "") && len(out) < limit {
			out = append(out, x)
		}
	}
	return out, nil
}

func (p *Pulls) Project(_ context.Context, id api.ProjectID) (api.Project, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if x, ok := p.Known[id]; ok {
		return x, nil
	}
	return api.Project{}, api.ErrNotFound
}
