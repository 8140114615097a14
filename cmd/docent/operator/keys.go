package operator

import (
	"context"
	"time"

	"docent/api"
	"docent/persistence/catalog"
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
	follow := func(old api.Key) (api.Key, [32]byte) {
		next := old
		secret = api.NewSecret(old.Kind)
		next.ID, next.Hint = api.KeyID(api.NewID(api.KeyPrefix, now)), api.SecretHint(secret)
		next.CreatedAt, next.LastUsed = now, nil
		if old.ExpiresAt != nil {
			ends := now.Add(old.ExpiresAt.Sub(old.CreatedAt))
			next.ExpiresAt = &ends
			if old.ExpiresAt.Before(until) {
				until = *old.ExpiresAt
			}
		}
		return next, api.HashSecret(secret)
	}
	key, err := o.stores.Catalog.RotateKey(ctx, p.ID, follow, until)
	if err != nil {
		return KeyMade{}, err
	}
	return KeyMade{ID: key.ID, Key: secret, Kind: key.Kind, Name: key.Name, ReplacedEndsAt: &until}, nil
}
