package secrets_test

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"docent/api"
	"docent/persistence/secrets"
)

// values stand in for the nodes' database.
type values struct {
	sealed map[string][]byte
	ages   map[string]time.Duration
}

func newValues() *values {
	return &values{map[string][]byte{}, map[string]time.Duration{}}
}

func (v *values) Put(_ context.Context, name string, sealed []byte) error {
	v.sealed[name], v.ages[name] = sealed, 0
	return nil
}

func (v *values) Get(_ context.Context, name string) ([]byte, error) {
	if sealed, ok := v.sealed[name]; ok {
		return sealed, nil
	}
	return nil, api.ErrNotFound
}

func (v *values) Remove(_ context.Context, name string) error {
	delete(v.sealed, name)
	delete(v.ages, name)
	return nil
}

func (v *values) Ages(context.Context) (map[string]time.Duration, error) {
	return maps.Clone(v.ages), nil
}

const nodeSecret = "a secret of the nodes, of thirty-two bytes"

func share(t *testing.T, v *values, nodeSecrets ...string) *secrets.Store {
	t.Helper()
	s := secrets.Open(filepath.Join(t.TempDir(), "secrets"))
	if err := s.Share(t.Context(), v, nodeSecrets, func(string) bool { return false }); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestASecretIsReadOnEveryNodeAndSealedWhereItLies(t *testing.T) {
	t.Parallel()
	v := newValues()
	one, other := share(t, v, nodeSecret), share(t, v, nodeSecret)
	name, err := one.Keep("docs", " ghp_abcdef \n")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := other.Read(name); got != "ghp_abcdef" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if sealed := v.sealed[name]; len(sealed) == 0 || bytes.Contains(sealed, []byte("ghp")) {
		t.Errorf("the database has %q", sealed)
	}
	again, err := one.Keep("docs", "ghp_abcdef")
	if err != nil || bytes.Equal(v.sealed[name][13:], v.sealed[again][13:]) {
		t.Errorf("the same secret looks the same twice: %v", err)
	}
	if _, err := share(t, v, nodeSecret+"!").Read(name); !errors.Is(err, secrets.ErrMissing) || !strings.Contains(err.Error(), "DOCENT_NODE_SECRET") {
		t.Errorf("with another key: %v", err)
	}
	v.sealed[again] = v.sealed[name] // another's in its place
	if got, err := one.Read(again); err == nil {
		t.Errorf("a secret is read under another's name: %q", got)
	}
	v.sealed[name][20] ^= 1
	if got, err := one.Read(name); err == nil {
		t.Errorf("a changed secret is read: %q", got)
	}
	if err := other.Drop(name); err != nil {
		t.Fatal(err)
	}
	if _, err := one.Read(name); !errors.Is(err, secrets.ErrMissing) {
		t.Errorf("a dropped secret: %v", err)
	}
}

// While the nodes' secret is replaced, one node after the other, each reads what any of them has stored.
func TestWhatWasStoredOutlivesTheNodesSecret(t *testing.T) {
	t.Parallel()
	const before, after = nodeSecret, "the next secret, which has thirty-two bytes"
	v := newValues()
	var names []string
	keep := func(s *secrets.Store) {
		t.Helper()
		name, err := s.Keep("docs", "ghp_abcdef")
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	readable := func(s *secrets.Store) {
		t.Helper()
		for i, name := range names {
			if got, err := s.Read(name); got != "ghp_abcdef" || err != nil {
				t.Errorf("secret %d: %q, %v", i, got, err)
			}
		}
	}
	step := func(from, to []string) {
		t.Helper()
		a, b := share(t, v, from...), share(t, v, from...)
		keep(a)
		a = share(t, v, to...) // is restarted
		keep(a)
		keep(b)
		readable(a)
		readable(b)
		readable(share(t, v, to...))
	}
	step([]string{before}, []string{before, after})
	step([]string{before, after}, []string{after, before})
	step([]string{after, before}, []string{after})
	if _, err := share(t, v, before).Read(names[0]); !errors.Is(err, secrets.ErrMissing) {
		t.Errorf("the secret that was replaced opens what was stored still: %v", err)
	}
}

// A secret whose name another node is about to store has to stay.
func TestNodesSweepWhatNobodyHasReferredToForLong(t *testing.T) {
	t.Parallel()
	v := newValues()
	s := share(t, v, nodeSecret)
	var names []string
	for range 3 {
		name, err := s.Keep("docs", "abc")
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	v.ages[names[0]], v.ages[names[1]] = 2*time.Hour, 2*time.Hour
	if err := s.Sweep(func(name string) bool { return name == names[0] }); err != nil {
		t.Fatal(err)
	}
	for i, there := range []bool{true, false, true} {
		if _, err := s.Read(names[i]); (err == nil) != there {
			t.Errorf("%d: %v", i, err)
		}
	}
}

func TestSecretsOfADataDirectoryAreTakenOver(t *testing.T) {
	t.Parallel()
	dir, v := filepath.Join(t.TempDir(), "secrets"), newValues()
	alone := secrets.Open(dir)
	used, err := alone.Keep("docs", "ghp_abc")
	if err != nil {
		t.Fatal(err)
	}
	unused, err := alone.Keep("docs", "ghp_old")
	if err != nil {
		t.Fatal(err)
	}
	s := secrets.Open(dir)
	if err := s.Share(t.Context(), v, []string{nodeSecret}, func(name string) bool { return name == used }); err != nil {
		t.Fatal(err)
	}
	if got, err := share(t, v, nodeSecret).Read(used); got != "ghp_abc" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := s.Read(unused); !errors.Is(err, secrets.ErrMissing) {
		t.Errorf("what nobody refers to is shared: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, used)); err != nil {
		t.Errorf("a node that goes back has no secrets: %v", err)
	}
	before := bytes.Clone(v.sealed[used])
	if err := secrets.Open(dir).Share(t.Context(), v, []string{nodeSecret}, func(string) bool { return true }); err != nil || !bytes.Equal(before, v.sealed[used]) {
		t.Errorf("a secret that is shared is resealed: %v", err)
	}
}
