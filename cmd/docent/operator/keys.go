package operator

import (
	"context"
	"fmt"
	"slices"
	"time"

	"docent/api"
	"docent/persistence/catalog"
	"docent/router/ownkey"
)

type (
	// KeyParams describe a new key, or name one.
	KeyParams struct {
		ID        api.KeyID     `json:"id,omitempty"`
		Project   api.ProjectID `json:"project"`
		Kind      api.KeyKind   `json:"kind"`
		Name      string        `json:"name"`
		ExpiresAt *time.Time    `json:"expiresAt"`
		AllowIP   []string      `json:"allowIp"`
		Scopes    []string      `json:"scopes"`
		Origins   []string      `json:"origins"`
		Groups    []string      `json:"groups,omitempty"`
	}
	// LocalParams say for which project, by its name or domain, a command of the operator asks or works without a key.
	LocalParams struct {
		Project api.ProjectID `json:"project,omitempty"`
		Domain  string        `json:"domain,omitempty"`
		Kind    api.KeyKind   `json:"kind"`
	}
	// LocalKey is a key for such a command, which ends by itself, and where it is good.
	LocalKey struct {
		URL     string        `json:"url"`
		Project api.ProjectID `json:"project"`
		Domain  string        `json:"domain"`
		Key     string        `json:"key"`
	}
	// RotateParams name a key, and how long it goes on beside its successor.
	RotateParams struct {
		ID      api.KeyID     `json:"id"`
		Overlap time.Duration `json:"overlap"`
	}
	// KeyMade is a new key with its secret, which is shown once.
	KeyMade struct {
		ID   api.KeyID   `json:"id"`
		Key  string      `json:"key"`
		Kind api.KeyKind `json:"kind"`
		Name string      `json:"name,omitempty"`
		// ReplacedEndsAt is when the key ends that this one follows.
		ReplacedEndsAt *time.Time `json:"replacedEndsAt,omitempty"`
	}
)

// CreateKey makes a key.
func (o *Service) CreateKey(ctx context.Context, p KeyParams) (KeyMade, error) {
	project, err := o.stores.Catalog.Project(ctx, p.Project)
	if err != nil {
		return KeyMade{}, err
	}
	now := time.Now().UTC()
	key := api.Key{
		ID: api.KeyID(api.NewID(api.KeyPrefix, now)), Kind: p.Kind, Org: project.Org, Project: project.ID, Name: p.Name,
		Scopes: p.Scopes, AllowIP: p.AllowIP, Origins: p.Origins, Groups: p.Groups, CreatedAt: now, ExpiresAt: p.ExpiresAt,
	}
	if err := key.Validate(now); err != nil {
		return KeyMade{}, err
	}
	secret := api.NewSecret(p.Kind)
	key.Hint = api.SecretHint(secret)
	if _, err := o.stores.Catalog.AddKey(ctx, key, api.HashSecret(secret)); err != nil {
		return KeyMade{}, err
	}
	return KeyMade{ID: key.ID, Key: secret, Kind: key.Kind, Name: key.Name}, nil
}

// localKey signs a key for a command on this machine: who may run the operator's commands needs none of their own.
func (o *Service) localKey(ctx context.Context, p LocalParams) (LocalKey, error) {
	if o.server == nil {
		return LocalKey{}, errNoServer
	}
	projects, err := o.stores.Catalog.Projects(ctx)
	if err != nil {
		return LocalKey{}, err
	}
	if p.Project != "" || p.Domain != "" {
		projects = slices.DeleteFunc(projects, func(q api.Project) bool {
			return p.Project != "" && q.ID != p.Project || p.Domain != "" && q.Domain != p.Domain
		})
	}
	switch len(projects) {
	case 0:
		return LocalKey{}, &api.StateError{Kind: api.ErrNotFound, Reason: "there is no such project: `docent project list` lists them"}
	case 1:
	default:
		return LocalKey{}, &api.StateError{Kind: api.ErrConflict,
			Reason: fmt.Sprintf("there are %d projects: name one with --project, as `docent project list` shows it", len(projects))}
	}
	secret, err := o.stores.Catalog.Secret(ctx, SessionSecret)
	if err != nil {
		return LocalKey{}, err
	}
	only := projects[0]
	return LocalKey{URL: o.server.Address, Project: only.ID, Domain: only.Domain,
		Key: ownkey.Operator(secret, p.Kind, only, o.stores.Config.Now())}, nil
}

// SessionSecret is the name of the secret that signs what browsers and the operator's commands bring back.
const SessionSecret = "session-cookies"

// ListKeys lists the keys of a project, or all.
func (o *Service) ListKeys(ctx context.Context, p ProjectParams) ([]api.Key, error) {
	return o.stores.Catalog.Keys(ctx, catalog.KeyQuery{Project: p.ID})
}

func (o *Service) revokeKey(ctx context.Context, p KeyParams) error {
	return o.stores.Catalog.RevokeKey(ctx, p.ID, time.Now())
}

// rotateKey makes the successor of a key, with what the key may do and for as long, and lets the key end after the
// overlap.
func (o *Service) rotateKey(ctx context.Context, p RotateParams) (KeyMade, error) {
	now := time.Now().UTC()
	until := now.Add(p.Overlap)
	var secret string
	follow := func(old api.Key) (next api.Key, _ [32]byte) {
		if old.ExpiresAt != nil && old.ExpiresAt.Before(until) {
			until = *old.ExpiresAt
		}
		next, secret = old.Successor(now)
		return next, api.HashSecret(secret)
	}
	key, err := o.stores.Catalog.RotateKey(ctx, p.ID, follow, until)
	if err != nil {
		return KeyMade{}, err
	}
	return KeyMade{ID: key.ID, Key: secret, Kind: key.Kind, Name: key.Name, ReplacedEndsAt: &until}, nil
}
