package operator

import (
	"context"
	"encoding/json"
	"errors"

	"docent/api"
	"docent/cmd/docent/build"
	"docent/cmd/docent/config"
	"docent/cmd/docent/doctor"
	"docent/internal/health"
	"docent/persistence/datadir"
)

// RetryParams name actors in quarantine.
type RetryParams struct {
	IDs []string `json:"ids"` // all that are in quarantine if empty
}

// A Retried actor is one whose quarantine was lifted.
type Retried struct {
	ID    string `json:"id"`
	Error string `json:"error,omitempty"` // why it is in quarantine again
}

// retryActors recovers actors in quarantine again. One that fails again does not keep the others from it.
func (o *Service) retryActors(ctx context.Context, p RetryParams) ([]Retried, error) {
	if o.server == nil {
		return nil, errNoServer
	}
	ids := p.IDs
	if len(ids) == 0 {
		for _, q := range o.server.System.Stats().Quarantined {
			ids = append(ids, q.ID)
		}
	}
	out := []Retried{}
	for _, id := range ids {
		err := o.server.System.Retry(ctx, id)
		switch {
		case errors.Is(err, api.ErrNotFound) && len(p.IDs) == 0:
			continue // somebody else has just retried it
		case errors.Is(err, api.ErrNotFound), errors.Is(err, api.ErrInvalid):
			return out, err
		case err != nil:
			out = append(out, Retried{ID: id, Error: err.Error()})
		default:
			out = append(out, Retried{ID: id})
		}
	}
	return out, nil
}

// OwnAddressed says where a server is reached from its own machine.
type OwnAddressed struct {
	URL string `json:"url"`
}

func (o *Service) address(context.Context, struct{}) (OwnAddressed, error) {
	if o.server == nil {
		return OwnAddressed{}, errNoServer
	}
	return OwnAddressed{URL: o.server.Address}, nil
}

func (o *Service) status(context.Context, struct{}) (health.Status, error) {
	if o.server == nil {
		return health.Status{}, errNoServer
	}
	return o.server.Status()
}

// NoServerHere refuses operations that only a server can do.
func NoServerHere(_ context.Context, c config.Config, _ string, _ []byte, _ Progress) (json.RawMessage, error) {
	if ok, err := datadir.Used(c.Data); err == nil && !ok {
		return nil, datadir.Missing(c.Data)
	}
	return nil, errNoServer
}

// probe makes an address at which the serving process answers for a minute.
func (o *Service) probe(context.Context, struct{}) (doctor.Probed, error) {
	if o.server == nil {
		return doctor.Probed{}, errNoServer
	}
	v, c := build.Get(), o.stores.Config
	return doctor.Probed{Nonce: o.server.Probes.New(), URL: c.PublicURL, Trusted: c.TrustedProxies, Version: v.Version, Commit: v.Commit}, nil
}

// examine is what the process that has the stores finds: the serving one, with its environment and its limits, or the
// command's own.
func (o *Service) examine(ctx context.Context, p doctor.DoctorParams) ([]doctor.Finding, error) {
	in := doctor.Inside{Stores: o.stores, Offline: p.Offline}
	if o.server != nil {
		if c := o.server.Cluster(); c != nil {
			in.Nodes = c.Nodes
		}
		in.System, in.Journal, in.Backups = o.server.System, o.server.Journal, o.server.Backups
	}
	return in.Examine(ctx), nil
}
