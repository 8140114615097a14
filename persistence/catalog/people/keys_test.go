package people_test

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"docent/api"
	"docent/persistence/catalog"
	"docent/persistence/catalog/catalogtest"
	"docent/persistence/catalog/database"
	"docent/persistence/catalog/people"
)

func TestKeyIsStoredInFull(t *testing.T) {
	catalogtest.EachPlace(t, func(t *testing.T, p catalogtest.Place) {
		clock := catalogtest.NewClock()
		c := p.Open(catalog.Options{Now: clock.Now})
		catalogtest.AddProject(t, c, "docs")
		expires := clock.Now().Add(time.Hour)
		for _, k := range []api.Key{
			{Kind: api.AdminKey, Name: "CI's", Scopes: []string{"read"}, AllowIP: []string{"203.0.113.0/24", "2001:db8::1"},
				Hint: "dct_adm_…abcd"},
			{Kind: api.AssistantKey, Project: "docs", Origins: []string{"https://docs.example.com"}, ExpiresAt: &expires},
		} {
			hash := api.HashSecret(api.NewSecret(k.Kind))
			want := catalogtest.Must(c.AddKey(t.Context(), k, hash))(t)
			if !api.ValidID(api.KeyPrefix, string(want.ID)) || want.Org != api.DefaultOrg || want.CreatedAt.IsZero() {
				t.Errorf("the key became %+v", want)
			}
			if want.Name != k.Name || !reflect.DeepEqual(want.Scopes, k.Scopes) ||
				!reflect.DeepEqual(want.AllowIP, k.AllowIP) || !reflect.DeepEqual(want.Origins, k.Origins) {
				t.Errorf("the key became %+v, of %+v", want, k)
			}
			other := p.Open(catalog.Options{})
			if got := catalogtest.Must(other.KeyByHash(t.Context(), hash))(t); !reflect.DeepEqual(got, want) {
				t.Errorf("KeyByHash answered\n%+v, want\n%+v", got, want)
			}
		}
		if got := catalogtest.Must(c.Keys(t.Context(), people.KeyQuery{}))(t); len(got) != 2 {
			t.Errorf("%d keys are listed, want 2", len(got))
		}
		if got := catalogtest.Must(c.Keys(t.Context(), people.KeyQuery{Project: "docs"}))(t); len(got) != 1 || got[0].Kind != api.AssistantKey {
			t.Errorf("the project's keys are %+v", got)
		}
		if got := catalogtest.Must(c.Keys(t.Context(), people.KeyQuery{Org: "nobody"}))(t); len(got) != 0 {
			t.Errorf("nobody's keys are %+v", got)
		}
	})
}

func TestKeyNeedsWhatItIsFor(t *testing.T) {
	catalogtest.EachPlace(t, func(t *testing.T, p catalogtest.Place) {
		c := p.Open(catalog.Options{})
		var invalid *api.InvalidError
		if _, err := c.AddKey(t.Context(), api.Key{Kind: api.AssistantKey, AllowIP: []string{"0.0.0.0/0"}},
			[32]byte{1}); !errors.As(err, &invalid) || len(invalid.Problems) != 2 {
			t.Errorf("error %v, want one that lists project and allowIp", err)
		}
		if _, err := c.AddKey(t.Context(), api.Key{Kind: api.AssistantKey, Project: "docs"}, [32]byte{1}); !errors.Is(err,
			api.ErrNotFound) {
			t.Errorf("a key of an unknown project: error %v", err)
		}
		if _, err := c.AddKey(t.Context(), api.Key{Kind: api.AdminKey, Org: "nobody"}, [32]byte{1}); !errors.Is(err,
			api.ErrNotFound) {
			t.Errorf("a key of an unknown organization: error %v", err)
		}
		catalogtest.Must(c.AddKey(t.Context(), api.Key{Kind: api.AdminKey}, [32]byte{1}))(t)
		if _, err := c.AddKey(t.Context(), api.Key{Kind: api.AdminKey}, [32]byte{1}); !errors.Is(err, api.ErrConflict) {
			t.Errorf("the same secret again: error %v", err)
		}
	})
}

func TestRevocationTakesEffectOnTheNextLookup(t *testing.T) {
	catalogtest.EachPlace(t, func(t *testing.T, p catalogtest.Place) {
		clock := catalogtest.NewClock() // stands still: nothing is read again because time went by
		c := p.Open(catalog.Options{Now: clock.Now})
		hash := [32]byte{1}
		if _, err := c.KeyByHash(t.Context(), hash); !errors.Is(err, api.ErrNotFound) {
			t.Fatalf("an unknown key: error %v", err)
		}
		k := catalogtest.Must(c.AddKey(t.Context(), api.Key{Kind: api.AdminKey}, hash))(t)
		if got := catalogtest.Must(c.KeyByHash(t.Context(), hash))(t); got.RevokedAt != nil {
			t.Fatal("a new key is revoked")
		}
		first := clock.Now().Add(time.Minute)
		if err := c.RevokeKey(t.Context(), k.ID, first); err != nil {
			t.Fatal(err)
		}
		if err := c.RevokeKey(t.Context(), k.ID, first.Add(time.Hour)); err != nil {
			t.Errorf("revoking it again: %v", err)
		}
		got := catalogtest.Must(c.KeyByHash(t.Context(), hash))(t)
		if got.RevokedAt == nil || !got.RevokedAt.Equal(first.Truncate(time.Millisecond)) {
			t.Errorf("revoked at %v, want %v", got.RevokedAt, first)
		}
		if err := c.RevokeKey(t.Context(), "key_none", first); !errors.Is(err, api.ErrNotFound) {
			t.Errorf("revoking an unknown key: error %v", err)
		}
	})
}

func TestKeysGoWithTheirProject(t *testing.T) {
	catalogtest.EachPlace(t, func(t *testing.T, p catalogtest.Place) {
		c := p.Open(catalog.Options{})
		catalogtest.AddProject(t, c, "docs")
		hash := [32]byte{1}
		catalogtest.Must(c.AddKey(t.Context(), api.Key{Kind: api.AssistantKey, Project: "docs"}, hash))(t)
		catalogtest.Must(c.KeyByHash(t.Context(), hash))(t)
		if err := c.RemoveProject(t.Context(), "docs"); err != nil {
			t.Fatal(err)
		}
		if _, err := c.KeyByHash(t.Context(), hash); !errors.Is(err, api.ErrNotFound) {
			t.Errorf("the removed project's key: error %v", err)
		}
	})
}

func TestLastUseIsKept(t *testing.T) {
	catalogtest.EachPlace(t, func(t *testing.T, p catalogtest.Place) {
		clock := catalogtest.NewClock()
		c := p.Open(catalog.Options{Now: clock.Now, TouchEvery: time.Hour})
		k := catalogtest.Must(c.AddKey(t.Context(), api.Key{Kind: api.AdminKey}, [32]byte{1}))(t)
		last := clock.Now().Add(time.Hour).Truncate(time.Millisecond)
		var wg sync.WaitGroup
		for i := range 32 {
			wg.Go(func() { c.TouchKey(k.ID, last.Add(-time.Duration(i)*time.Second)) })
		}
		wg.Wait()
		lastUse := func(c *catalog.Catalog) string {
			keys := catalogtest.Must(c.Keys(t.Context(), people.KeyQuery{}))(t)
			return fmt.Sprint(keys[0].LastUsed)
		}
		if got := lastUse(c); got != fmt.Sprint(&last) {
			t.Errorf("before it is written, last use is %v, want %v", got, last)
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		again := p.Open(catalog.Options{TouchEvery: time.Hour})
		if got := lastUse(again); got != fmt.Sprint(&last) {
			t.Errorf("after closing, last use is %v, want %v", got, last)
		}
		again.TouchKey(k.ID, last.Add(-time.Hour)) // a clock that went back
		if err := again.Close(); err != nil {
			t.Fatal(err)
		}
		if got := lastUse(p.Open(catalog.Options{})); got != fmt.Sprint(&last) {
			t.Errorf("an earlier use replaced the last one: %v", got)
		}
	})
}

func TestLastUseIsWrittenInTheBackground(t *testing.T) {
	catalogtest.EachPlace(t, func(t *testing.T, p catalogtest.Place) {
		c := p.Open(catalog.Options{TouchEvery: time.Millisecond})
		other := p.Open(catalog.Options{})
		k := catalogtest.Must(c.AddKey(t.Context(), api.Key{Kind: api.AdminKey}, [32]byte{1}))(t)
		c.TouchKey(k.ID, time.Now())
		// ends with the test's deadline if it never shows
		for catalogtest.Must(other.Keys(t.Context(), people.KeyQuery{}))(t)[0].LastUsed == nil {
		}
	})
}

func TestLastUseSurvivesAFailedWrite(t *testing.T) {
	catalogtest.EachPlace(t, func(t *testing.T, p catalogtest.Place) {
		c := p.Open(catalog.Options{TouchEvery: time.Hour})
		k := catalogtest.Must(c.AddKey(t.Context(), api.Key{Kind: api.AdminKey}, [32]byte{1}))(t)
		if _, err := c.Write.Exec("ALTER TABLE keys RENAME TO keys_away"); err != nil {
			t.Fatal(err)
		}
		at := time.Now()
		c.TouchKey(k.ID, at)
		if err := c.WriteTouches(t.Context()); err == nil {
			t.Fatal("the write did not fail")
		}
		if _, err := c.Write.Exec("ALTER TABLE keys_away RENAME TO keys"); err != nil {
			t.Fatal(err)
		}
		if err := c.WriteTouches(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := catalogtest.Must(c.Keys(t.Context(), people.KeyQuery{}))(t)[0].LastUsed; got == nil || !got.Equal(database.Stamp(at)) {
			t.Errorf("last use is %v, want %v", got, at)
		}
	})
}

// TestARotatedKeyIsFollowedByItsLike rotates a key: its successor may do the same, the key ends after the overlap, one
// that ends earlier keeps its end, and one that has ended has no successor.
func TestARotatedKeyIsFollowedByItsLike(t *testing.T) {
	catalogtest.EachPlace(t, func(t *testing.T, p catalogtest.Place) {
		clock := catalogtest.NewClock()
		c := p.Open(catalog.Options{Now: clock.Now})
		k := catalogtest.Must(c.AddKey(t.Context(), api.Key{Kind: api.AdminKey, Name: "ci", Scopes: []string{"read"}}, [32]byte{1}))(t)
		follow := func(id api.KeyID) func(api.Key) (api.Key, [32]byte) {
			return func(old api.Key) (api.Key, [32]byte) {
				old.ID = id
				return old, [32]byte{byte(len(id))}
			}
		}
		until := clock.Now().Add(time.Hour)
		next := catalogtest.Must(c.RotateKey(t.Context(), k.ID, follow("key_second"), until))(t)
		if next.ID != "key_second" || next.Name != "ci" || len(next.Scopes) != 1 || next.ExpiresAt != nil {
			t.Errorf("the successor is %+v", next)
		}
		old := catalogtest.Must(c.KeyByHash(t.Context(), [32]byte{1}))(t)
		if old.ExpiresAt == nil || !old.ExpiresAt.Equal(until.Truncate(time.Millisecond)) {
			t.Errorf("the key ends at %v, wanted %v", old.ExpiresAt, until)
		}
		if got := catalogtest.Must(c.KeyByHash(t.Context(), [32]byte{byte(len("key_second"))}))(t); got.ID != "key_second" {
			t.Errorf("the successor's secret finds %q", got.ID)
		}
		_, err := c.RotateKey(t.Context(), k.ID, follow("key_the_third"), until.Add(time.Hour))
		if !errors.Is(err, api.ErrConflict) || !strings.Contains(err.Error(), "key_second") ||
			!strings.Contains(err.Error(), until.UTC().Format(time.RFC3339)) {
			t.Errorf("rotated again: %v", err)
		}
		brief := until.Add(-time.Minute)
		soon := catalogtest.Must(c.AddKey(t.Context(), api.Key{Kind: api.AdminKey, ExpiresAt: &brief}, [32]byte{2}))(t)
		catalogtest.Must(c.RotateKey(t.Context(), soon.ID, follow("key_the_third"), until))(t)
		if old := catalogtest.Must(c.KeyByHash(t.Context(), [32]byte{2}))(t); !old.ExpiresAt.Equal(brief.Truncate(time.Millisecond)) ||
			old.RotatedTo != "key_the_third" {
			t.Errorf("rotated, a key that ends earlier is %+v", old)
		}
		if old = catalogtest.Must(c.KeyByHash(t.Context(), [32]byte{1}))(t); !old.ExpiresAt.Equal(until.Truncate(time.Millisecond)) {
			t.Errorf("rotated again, it ends at %v: later than before", old.ExpiresAt)
		}
		clock.Add(2 * time.Hour)
		if _, err := c.RotateKey(t.Context(), k.ID, follow("key_of_nobody"), until); !errors.Is(err, api.ErrConflict) {
			t.Errorf("a key that has ended: %v", err)
		}
		if _, err := c.RotateKey(t.Context(), "key_none", follow("key_of_nobody"), until); !errors.Is(err, api.ErrNotFound) {
			t.Errorf("an unknown key: %v", err)
		}
		if keys := catalogtest.Must(c.Keys(t.Context(), people.KeyQuery{}))(t); len(keys) != 4 {
			t.Errorf("there are %d keys", len(keys))
		}
	})
}
