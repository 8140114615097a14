package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"docent/api"
	"docent/persistence/catalog"
)

const (
	opKeyCreate = "key.create"
	opKeyList   = "key.list"
	opKeyRevoke = "key.revoke"
	opKeyRotate = "key.rotate"
)

type (
	keyParams struct {
		ID        api.KeyID     `json:"id,omitempty"`
		Project   api.ProjectID `json:"project"`
		Kind      api.KeyKind   `json:"kind"`
		Name      string        `json:"name"`
		ExpiresAt *time.Time    `json:"expiresAt"`
		AllowIP   []string      `json:"allowIp"`
		Scopes    []string      `json:"scopes"`
		Origins   []string      `json:"origins"`
	}
	rotateParams struct {
		ID      api.KeyID     `json:"id"`
		Overlap time.Duration `json:"overlap"`
	}
	keyMade struct {
		ID   api.KeyID   `json:"id"`
		Key  string      `json:"key"`
		Kind api.KeyKind `json:"kind"`
		Name string      `json:"name,omitempty"`
		// ReplacedEndsAt is when the key ends that this one follows.
		ReplacedEndsAt *time.Time `json:"replacedEndsAt,omitempty"`
	}
)

func (o *operations) createKey(ctx context.Context, p keyParams, _ Progress) (keyMade, error) {
	project, err := o.stores.catalog.Project(ctx, p.Project)
	if err != nil {
		return keyMade{}, err
	}
	now := time.Now().UTC()
	key := api.Key{
		ID: api.KeyID(api.NewID(api.KeyPrefix, now)), Kind: p.Kind, Org: project.Org, Project: project.ID, Name: p.Name,
		Scopes: p.Scopes, AllowIP: p.AllowIP, Origins: p.Origins, CreatedAt: now, ExpiresAt: p.ExpiresAt,
	}
	if err := key.Validate(now); err != nil {
		return keyMade{}, err
	}
	secret := api.NewSecret(p.Kind)
	key.Hint = api.SecretHint(secret)
	if _, err := o.stores.catalog.AddKey(ctx, key, api.HashSecret(secret)); err != nil {
		return keyMade{}, err
	}
	return keyMade{ID: key.ID, Key: secret, Kind: key.Kind, Name: key.Name}, nil
}

func (o *operations) listKeys(ctx context.Context, p projectParams, _ Progress) ([]api.Key, error) {
	return o.stores.catalog.Keys(ctx, catalog.KeyQuery{Project: p.ID})
}

func (o *operations) revokeKey(ctx context.Context, p keyParams, _ Progress) (struct{}, error) {
	return struct{}{}, o.stores.catalog.RevokeKey(ctx, p.ID, time.Now())
}

// rotateKey makes the successor of a key, with what the key may do and for as long, and lets the key end after the
// overlap.
func (o *operations) rotateKey(ctx context.Context, p rotateParams, _ Progress) (keyMade, error) {
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
	key, err := o.stores.catalog.RotateKey(ctx, p.ID, follow, until)
	if err != nil {
		return keyMade{}, err
	}
	return keyMade{ID: key.ID, Key: secret, Kind: key.Kind, Name: key.Name, ReplacedEndsAt: &until}, nil
}

func newKeyCommand(prog program) *cobra.Command {
	o := &operator{prog: prog}
	cmd := &cobra.Command{Use: "key", Short: "Create, list, rotate and revoke API keys"}
	operatorFlags(cmd, o)
	var params keyParams
	var expires string
	create := &cobra.Command{
		Use: "create", Short: "Create a key; its secret is shown once", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := required(cmd, "project", "kind"); err != nil {
				return err
			}
			if expires != "" {
				at, err := parseExpiry(expires)
				if err != nil {
					return err
				}
				params.ExpiresAt = &at
			}
			return show(o, cmd, opKeyCreate, params, func(w io.Writer, made keyMade) error {
				fmt.Fprintln(cmd.ErrOrStderr(), "The key is shown once; keep it safe:")
				_, err := fmt.Fprintln(w, made.Key)
				return err
			})
		},
	}
	flags := create.Flags()
	flags.StringVar((*string)(&params.Project), "project", "", "project that the key is for")
	flags.StringVar((*string)(&params.Kind), "kind", "",
		"admin (agent and management) or assistant (may be used in browsers)")
	flags.StringVar(&params.Name, "name", "", "name to recognise it by")
	flags.StringVar(&expires, "expires", "",
		"when it ends: a time such as 2027-01-31T00:00:00Z, or a duration such as 720h")
	flags.StringArrayVar(&params.AllowIP, "allow-ip", nil, "address or CIDR range that may use it (repeatable)")
	flags.StringArrayVar(&params.Scopes, "scope", nil,
		"read or write, for admin keys (repeatable; both where none is given)")
	flags.StringArrayVar(&params.Origins, "origin", nil, "browser origin that may use it, for assistant keys (repeatable)")

	var project string
	list := &cobra.Command{
		Use: "list", Short: "List the keys, without their secrets", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			const head = "ID\tKIND\tPROJECT\tNAME\tSECRET\tSTATE\tLAST USED"
			return showRows(o, cmd, opKeyList, projectParams{ID: api.ProjectID(project)}, head, func(k api.Key) string {
				last := "never"
				if k.LastUsed != nil {
					last = shownTime(*k.LastUsed)
				}
				return fmt.Sprintf("%s\t%s\t%s\t%s\t%s\t%s\t%s", k.ID, k.Kind, k.Project, k.Name, k.Hint, keyState(k, time.Now()),
					last)
			})
		},
	}
	list.Flags().StringVar(&project, "project", "", "only keys of this project")
	cmd.AddCommand(create, list, &cobra.Command{
		Use: "revoke ID", Short: "Revoke a key; the next request with it is refused", Args: cobra.ExactArgs(1),
		SuggestFor: []string{"remove", "delete"},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.run(cmd, opKeyRevoke, keyParams{ID: api.KeyID(args[0])}, nil); err != nil {
				return err
			}
			return o.did(cmd, map[string]string{"revoked": args[0]}, "key %s is revoked", args[0])
		},
	})
	cmd.AddCommand(newKeyRotateCommand(o))
	return cmd
}

func newKeyRotateCommand(o *operator) *cobra.Command {
	var p rotateParams
	cmd := &cobra.Command{
		Use: "rotate ID", Short: "Make the successor of a key; the key itself ends after a while", Args: cobra.ExactArgs(1),
		Long: "Make a key that may do what another one may, for as long, and let the other one end after --overlap, so that clients can\n" +
			"change over meanwhile. The server need not be restarted.",
		RunE: func(cmd *cobra.Command, args []string) error {
			if p.Overlap < 0 {
				return usagef("--overlap %s is negative", p.Overlap)
			}
			p.ID = api.KeyID(args[0])
			return show(o, cmd, opKeyRotate, p, func(w io.Writer, made keyMade) error {
				fmt.Fprintf(cmd.ErrOrStderr(), "The new key %s is shown once; keep it safe. %s ends %s:\n", made.ID, args[0],
					shownTime(*made.ReplacedEndsAt))
				_, err := fmt.Fprintln(w, made.Key)
				return err
			})
		},
	}
	cmd.Flags().DurationVar(&p.Overlap, "overlap", 24*time.Hour, "how long the key that is replaced goes on to work")
	return cmd
}

func parseExpiry(text string) (time.Time, error) {
	if d, err := time.ParseDuration(text); err == nil {
		return time.Now().Add(d), nil
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if at, err := time.Parse(layout, text); err == nil {
			return at, nil
		}
	}
	return time.Time{}, usagef("--expires %q is neither a time such as 2027-01-31T00:00:00Z nor a duration such as 720h",
		text)
}

func keyState(k api.Key, now time.Time) string {
	switch {
	case k.RevokedAt != nil:
		return "revoked"
	case k.ExpiresAt != nil && !now.Before(*k.ExpiresAt):
		return "expired"
	default:
		return "active"
	}
}
