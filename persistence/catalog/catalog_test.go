package catalog

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"docent/api"
	"docent/persistence/catalog/catalogtest"
)

// A place is a database of its own for one test, which may be opened several times.
type place struct {
	t   *testing.T
	dsn string
}

// eachPlace runs a test on SQLite, and on PostgreSQL where there is a server.
func eachPlace(t *testing.T, test func(*testing.T, place)) {
	catalogtest.Each(t, func(t *testing.T, dsn string) { test(t, place{t, dsn}) })
}

func (p place) open(o Options) *Catalog {
	p.t.Helper()
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	c, err := Open(p.t.Context(), p.dsn, o)
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() {
		if err := c.Close(); err != nil {
			p.t.Error(err)
		}
	})
	return c
}

// A testClock stands still until it is moved.
type testClock struct {
	mu sync.Mutex
	at time.Time
}

func newTestClock() *testClock {
	return &testClock{at: time.Date(2026, 11, 21, 10, 0, 0, 123456789, time.UTC)}
}

func (c *testClock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *testClock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

func testProject(id string) api.Project {
	return api.Project{ID: api.ProjectID(id), Domain: id + ".example.com", Source: "/srv/docs"}
}

func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func addProject(t *testing.T, c *Catalog, id string) api.Project {
	t.Helper()
	return must(c.AddProject(t.Context(), testProject(id)))(t)
}

func addOrganization(t *testing.T, c *Catalog, id api.OrgID) {
	t.Helper()
	row := &organizationRow{ID: id, Name: string(id), CreatedAt: stamp(c.now())}
	setChecksum(row)
	if _, err := c.write.NewInsert().Model(row).Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// fill sets every field of a struct to something that is not its zero value, so that a field that is not stored shows.
func fill(v reflect.Value, n *int) {
	*n++
	switch v.Kind() {
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Date(2026, 1, 2, 3, 4, 5, *n*int(time.Millisecond), time.UTC)))
			return
		}
		for i := range v.NumField() {
			fill(v.Field(i), n)
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), n)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(v.Index(0), n)
		fill(v.Index(1), n)
	case reflect.String:
		v.SetString(fmt.Sprintf("väl'ue \"%d\" \\ ? ?0 \x00 {{x}}", *n))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(*n))
	case reflect.Uint64:
		v.SetUint(uint64(*n))
	case reflect.Float64:
		v.SetFloat(float64(*n) / 4)
	default:
		panic("fill does not know " + v.Type().String())
	}
}

func TestProjectIsStoredInFull(t *testing.T) {
	eachPlace(t, func(t *testing.T, p place) {
		var want api.Project
		n := 0
		fill(reflect.ValueOf(&want).Elem(), &n)
		want.ID, want.Org, want.Domain = "docs", DefaultOrg, "docs.example.com"
		want.Name, want.Source = "Dök's ? ?0 {{x}} \\ \"", "git@github.com:acme/docs.git"
		want.Branch, want.DocsDir = "release/1.x", "docs/en"
		want.SiteURL, want.Repository = "https://docs.example.com", "acme/docs"
		want.Host, want.HostURL = api.HostGitHub, "https://github.example.com"
		want.AppID, want.Labels = 17, "docs, by Docent"
		want.TokenFile, want.WebhookFile = "docs.abcdefgh", "docs.12345678"
		want.TokenEnv, want.WebhookEnv, want.Model = "GITHUB_TOKEN", "HOOK_SECRET", "m'1"
		want.Deflection, want.Site = "help@example.com", "hugo"
		want.Options.ProofOfWork, want.Widget = 200_000, api.Widget{Accent: "#1f6f5c", AccentDark: "#abcdef", Theme: "dark",
			Button: "start", Label: "Ask 'us'", Language: "pt", Greeting: "Hej?", Suggestions: []string{"{{x}}?", `"y"`}}
		want.Review, want.Handle = api.ReviewLines, "scribe-x"
		want.Label, want.Kind, want.Every = "docs", "", "6h"
		for i, label := range []string{"api", "a-site"} {
			s := &want.Sources[i]
			s.Label, s.Kind, s.Every, s.Weight = label, "", "90m", 0.25
			s.Name, s.Groups = "Dök's {{x}}", []string{"st'aff", `b"`}
			s.Address, s.Branch, s.DocsDir, s.Site = "https://github.example.com/acme/api.git", "main", "docs", "hugo"
			s.SiteURL, s.Include, s.Exclude = "https://api.example.com", []string{"a/**"}, []string{"b'\"?"}
			s.Host, s.HostURL, s.Repository = api.HostGitHub, "https://github.example.com", "acme/api"
			s.TokenEnv, s.TokenFile, s.AppID = "GITHUB_TOKEN", "docs.abcdefgh", 17
		}
		want.Include, want.Exclude = []string{"docs/**", `a\ b`}, []string{"*.draft.md", "!k'p \"?\" {{x}}.md"}

		c := p.open(Options{})
		added := must(c.AddProject(t.Context(), want))(t)
		if !reflect.DeepEqual(added, want) {
			t.Errorf("AddProject answered\n%+v, want\n%+v", added, want)
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		c = p.open(Options{})
		byID := must(c.Project(t.Context(), "docs"))(t)
		byDomain := must(c.ProjectByDomain(t.Context(), "Docs.Example.COM"))(t)
		all := must(c.Projects(t.Context()))(t)
		for what, got := range map[string]api.Project{"Project": byID, "ProjectByDomain": byDomain, "Projects": all[0]} {
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%s answered\n%+v, want\n%+v", what, got, want)
			}
		}
	})
}

func TestProjectGetsDefaults(t *testing.T) {
	eachPlace(t, func(t *testing.T, p place) {
		clock := newTestClock()
		c := p.open(Options{Now: clock.now})
		got := addProject(t, c, "docs")
		if got.Org != DefaultOrg || got.Host != api.HostBuiltin ||
			!got.CreatedAt.Equal(clock.now().Truncate(time.Millisecond)) {
			t.Errorf("the project became %+v", got)
		}
		var orgs []string
		if err := c.read.NewRaw("SELECT id FROM organizations").Scan(t.Context(), &orgs); err != nil ||
			!slices.Equal(orgs, []string{string(DefaultOrg)}) {
			t.Errorf("organizations %q, %v", orgs, err)
		}
	})
}

func TestProjectNamesAreTakenOnce(t *testing.T) {
	eachPlace(t, func(t *testing.T, p place) {
		c := p.open(Options{})
		addProject(t, c, "docs")
		addProject(t, c, "blog")
		refused := func(what string, err error, names string) {
			t.Helper()
			var state *api.StateError
			if !errors.Is(err, api.ErrConflict) || !errors.As(err, &state) || !strings.Contains(state.Reason, names) {
				t.Errorf("%s: error %v, want a conflict that names %s", what, err, names)
			}
		}
		same := testProject("docs")
		same.Domain = "other.example.com"
		_, err := c.AddProject(t.Context(), same)
		refused("the same id", err, `id "docs"`)
		same.ID = "Docs"
		_, err = c.AddProject(t.Context(), same)
		refused("the same id in capitals", err, `id "Docs"`)
		domain := testProject("third")
		domain.Domain = "DOCS.example.com"
		_, err = c.AddProject(t.Context(), domain)
		refused("the same domain", err, `domain "docs.example.com" belongs to the project "docs"`)
		moved := testProject("blog")
		moved.Domain = "docs.example.com"
		_, err = c.UpdateProject(t.Context(), moved)
		refused("an update to a taken domain", err, `domain "docs.example.com"`)
		if got := must(c.Projects(t.Context()))(t); len(got) != 2 {
			t.Errorf("there are %d projects, want 2", len(got))
		}
	})
}

func TestInvalidProjectIsRefused(t *testing.T) {
	eachPlace(t, func(t *testing.T, p place) {
		c := p.open(Options{})
		var invalid *api.InvalidError
		if _, err := c.AddProject(t.Context(), api.Project{ID: "a/b"}); !errors.As(err, &invalid) ||
			len(invalid.Problems) != 3 {
			t.Errorf("error %v, want one that lists id, domain and source", err)
		}
		addProject(t, c, "docs")
		bad := testProject("docs")
		bad.DocsDir = "../.."
		if _, err := c.UpdateProject(t.Context(), bad); !errors.As(err, &invalid) {
			t.Errorf("error %v, want an InvalidError", err)
		}
		other := testProject("other")
		other.Org = "nobody"
		if _, err := c.AddProject(t.Context(), other); !errors.Is(err, api.ErrNotFound) {
			t.Errorf("a project of an unknown organization: error %v", err)
		}
	})
}

// Two processes, as nodes are, change what the other one does not; neither takes back what the other has done.
func TestChangesOfAProjectAtTheSameTimeKeepEachOther(t *testing.T) {
	eachPlace(t, func(t *testing.T, p place) {
		const each = 20
		c := p.open(Options{})
		addProject(t, c, "docs")
		var all sync.WaitGroup
		for _, name := range []string{"a", "b"} {
			all.Go(func() {
				for i := range each {
					_, err := c.ChangeProject(t.Context(), "docs", func(p api.Project) (api.Project, error) {
						p.Labels = strings.TrimPrefix(p.Labels+","+fmt.Sprint(name, i), ",")
						return p, nil
					})
					if err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		all.Wait()
		if got := must(c.Project(t.Context(), "docs"))(t); strings.Count(got.Labels, ",") != 2*each-1 {
			t.Errorf("of %d changes there are %s", 2*each, got.Labels)
		}
		stop := errors.New("not now")
		if _, err := c.ChangeProject(t.Context(), "docs", func(p api.Project) (api.Project, error) { return p, stop }); !errors.Is(err, stop) {
			t.Errorf("a change that was called off: %v", err)
		}
	})
}

func TestChangesToAProjectShowAtOnce(t *testing.T) {
	eachPlace(t, func(t *testing.T, p place) {
		clock := newTestClock() // stands still: nothing is read anew because time went by
		c := p.open(Options{Now: clock.now})
		missing := func() {
			t.Helper()
			if _, err := c.Project(t.Context(), "docs"); !errors.Is(err, api.ErrNotFound) {
				t.Errorf("Project: error %v, want not found", err)
			}
			if _, err := c.ProjectByDomain(t.Context(), "docs.example.com"); !errors.Is(err, api.ErrNotFound) {
				t.Errorf("ProjectByDomain: error %v, want not found", err)
			}
		}
		missing()
		added := addProject(t, c, "docs")
		must(c.Project(t.Context(), "docs"))(t)
		must(c.ProjectByDomain(t.Context(), "docs.example.com"))(t)

		change := added
		change.Domain, change.Model, change.Org, change.CreatedAt = "new.example.com", "big", "nobody", time.Time{}
		updated := must(c.UpdateProject(t.Context(), change))(t)
		want := added
		want.Domain, want.Model = "new.example.com", "big"
		if !reflect.DeepEqual(updated, want) {
			t.Errorf("UpdateProject answered\n%+v, want\n%+v", updated, want)
		}
		if got := must(c.Project(t.Context(), "docs"))(t); !reflect.DeepEqual(got, want) {
			t.Errorf("after the update\n%+v, want\n%+v", got, want)
		}
		if _, err := c.ProjectByDomain(t.Context(), "docs.example.com"); !errors.Is(err, api.ErrNotFound) {
			t.Errorf("the former domain is still answered: %v", err)
		}
		if err := c.RemoveProject(t.Context(), "docs"); err != nil {
			t.Fatal(err)
		}
		missing()
		if err := c.RemoveProject(t.Context(), "docs"); !errors.Is(err, api.ErrNotFound) {
			t.Errorf("removing it again: error %v", err)
		}
		if _, err := c.UpdateProject(t.Context(), change); !errors.Is(err, api.ErrNotFound) {
			t.Errorf("updating it: error %v", err)
		}
	})
}

func TestAnotherProcessChangesShowSoon(t *testing.T) {
	eachPlace(t, func(t *testing.T, p place) {
		clock := newTestClock()
		here := p.open(Options{Now: clock.now, Stale: 2 * time.Second})
		there := p.open(Options{})
		if _, err := here.Project(t.Context(), "docs"); !errors.Is(err, api.ErrNotFound) {
			t.Fatal(err)
		}
		added := addProject(t, there, "docs")
		clock.add(2 * time.Second)
		must(here.Project(t.Context(), "docs"))(t)
		added.Model = "big"
		must(there.UpdateProject(t.Context(), added))(t)
		clock.add(time.Second)
		if got := must(here.Project(t.Context(), "docs"))(t); got.Model != "" {
			t.Error("a look-up within the time was not answered from memory")
		}
		clock.add(time.Second)
		if got := must(here.Project(t.Context(), "docs"))(t); got.Model != "big" {
			t.Error("the other process's change does not show after the time")
		}
	})
}

func TestLookupsCostNoQuery(t *testing.T) {
	eachPlace(t, func(t *testing.T, p place) {
		clock := newTestClock()
		c := p.open(Options{Now: clock.now})
		addProject(t, c, "docs")
		secret := api.NewSecret(api.AdminKey)
		must(c.AddKey(t.Context(), api.Key{Kind: api.AdminKey}, api.HashSecret(secret)))(t)
		ask := func() (errs []error) {
			_, err := c.Project(t.Context(), "docs")
			errs = append(errs, err)
			_, err = c.ProjectByDomain(t.Context(), "docs.example.com")
			errs = append(errs, err)
			_, err = c.KeyByHash(t.Context(), api.HashSecret(secret))
			errs = append(errs, err)
			_, err = c.Project(t.Context(), "none")
			errs = append(errs, err)
			_, err = c.KeyByHash(t.Context(), api.HashSecret("none"))
			return append(errs, err)
		}
		before := ask()
		// With the database closed, only memory can answer.
		c.read.Close()
		for i, err := range ask() {
			if (err == nil) != (before[i] == nil) || errors.Is(err, api.ErrNotFound) != errors.Is(before[i], api.ErrNotFound) {
				t.Errorf("look-up %d: error %v from memory, %v before", i, err, before[i])
			}
		}
		clock.add(time.Minute)
		if _, err := c.Project(t.Context(), "docs"); err == nil || errors.Is(err, api.ErrNotFound) {
			t.Errorf("an old look-up without the database: error %v", err)
		}
		// The write pool is the read pool on PostgreSQL; Close finds both closed.
	})
}

func TestLookupsStayBounded(t *testing.T) {
	const mostFound, mostMissing = 512, 64
	loads := 0
	l := newLookup(Options{Now: newTestClock().now, Stale: time.Second}, strconv.Itoa,
		func(_ context.Context, n int) (int, error) {
			loads++
			if n < 0 {
				return 0, api.ErrNotFound
			}
			return n, nil
		})
	l.mostFound, l.mostMissing = mostFound, mostMissing
	l.forget()
	for n := range mostFound + mostFound/2 {
		l.get(t.Context(), n)
		l.get(t.Context(), -1-n)
	}
	a := l.current.Load()
	if a.found.Len() != mostFound || a.missing.Len() != mostMissing {
		t.Errorf("%d found and %d missing are remembered", a.found.Len(), a.missing.Len())
	}
	if want := 2 * (mostFound + mostFound/2); loads != want {
		t.Errorf("%d loads, want %d", loads, want)
	}
	missed := l.misses.Load()
	for _, n := range a.found.Keys() {
		l.get(t.Context(), n)
	}
	if hits := l.hits.Load(); missed != uint64(loads) || hits != mostFound || l.misses.Load() != missed {
		t.Errorf("counted %d misses and %d hits, of %d loads", l.misses.Load(), hits, loads)
	}
}

func TestLookupThatBeganBeforeAChangeIsNotRemembered(t *testing.T) {
	loads := make(chan chan string)
	l := newLookup(Options{Now: newTestClock().now, Stale: time.Hour}, strings.Clone,
		func(_ context.Context, key string) (string, error) {
			answer := make(chan string)
			loads <- answer
			return <-answer, nil
		})
	ask := func() chan string {
		got := make(chan string, 1)
		go func() {
			v, _ := l.get(t.Context(), "key")
			got <- v
		}()
		return got
	}
	before := ask()
	old := <-loads
	l.forget() // a change is acknowledged here
	after := ask()
	fresh := <-loads // the second caller does not share the first one's query
	fresh <- "new"
	if got := <-after; got != "new" {
		t.Errorf("who asks after the change is answered %q", got)
	}
	old <- "old"
	<-before
	if got := <-ask(); got != "new" {
		t.Errorf("what was read before the change is remembered: %q", got)
	}
}

func TestCallersAtOnceShareOneQuery(t *testing.T) {
	const keys, callers = 2000, 8
	var loads atomic.Int64
	l := newLookup(Options{Now: newTestClock().now, Stale: time.Hour}, strconv.Itoa,
		func(_ context.Context, n int) (int, error) {
			loads.Add(1)
			if n%2 == 1 {
				return 0, api.ErrNotFound
			}
			return n, nil
		})
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for n := range keys {
				if v, err := l.get(t.Context(), n); (n%2 == 1) != errors.Is(err, api.ErrNotFound) || err == nil && v != n {
					t.Errorf("%d: got %d, error %v", n, v, err)
				}
			}
		})
	}
	wg.Wait()
	if got := loads.Load(); got != keys {
		t.Errorf("%d queries for %d keys", got, keys)
	}
	if got := l.hits.Load() + l.misses.Load(); got != keys*callers {
		t.Errorf("%d look-ups are counted, of %d", got, keys*callers)
	}
}

func TestLookupOutlivesItsFirstCaller(t *testing.T) {
	started, proceed := make(chan struct{}), make(chan struct{})
	l := newLookup(Options{Now: newTestClock().now, Stale: time.Hour}, strings.Clone,
		func(ctx context.Context, key string) (string, error) {
			close(started)
			<-proceed
			return "value", ctx.Err()
		})
	leaving, leave := context.WithCancel(t.Context())
	left := make(chan error, 1)
	go func() {
		_, err := l.get(leaving, "key")
		left <- err
	}()
	<-started
	second := make(chan error, 1)
	go func() {
		_, err := l.get(t.Context(), "key")
		second <- err
	}()
	leave()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Errorf("the caller who left got %v", err)
	}
	close(proceed)
	if err := <-second; err != nil {
		t.Errorf("the other caller got %v", err)
	}
}

func TestProjectsAddedAtOnceAreAddedOnce(t *testing.T) {
	eachPlace(t, func(t *testing.T, p place) {
		catalogs := []*Catalog{p.open(Options{}), p.open(Options{})} // as two processes
		const writers, ids = 16, 5
		results := make([][]error, writers)
		var wg sync.WaitGroup
		for w := range writers {
			wg.Go(func() {
				for i := range ids {
					_, err := catalogs[w%2].AddProject(t.Context(), testProject(fmt.Sprintf("docs%d", i)))
					results[w] = append(results[w], err)
				}
			})
		}
		wg.Wait()
		for i := range ids {
			added := 0
			for w := range writers {
				switch err := results[w][i]; {
				case err == nil:
					added++
				case !errors.Is(err, api.ErrConflict):
					t.Errorf("writer %d: %v", w, err)
				}
			}
			if added != 1 {
				t.Errorf("docs%d was added %d times", i, added)
			}
		}
	})
}

func TestCatalogOpenedAtOnceIsMigratedOnce(t *testing.T) {
	eachPlace(t, func(t *testing.T, p place) {
		const openers = 8
		errs := make([]error, openers)
		var wg sync.WaitGroup
		for i := range openers {
			wg.Go(func() {
				c, err := Open(t.Context(), p.dsn, Options{Log: slog.New(slog.DiscardHandler), LockWait: time.Minute})
				if err == nil {
					_, err = c.AddProject(t.Context(), testProject(fmt.Sprintf("docs%d", i)))
					err = errors.Join(err, c.Close())
				}
				errs[i] = err
			})
		}
		wg.Wait()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		c := p.open(Options{})
		var migrations int
		if err := c.read.NewRaw("SELECT count(*) FROM bun_migrations").Scan(t.Context(), &migrations); err != nil {
			t.Fatal(err)
		}
		files, err := migrationFiles.ReadDir("migrations")
		if err != nil {
			t.Fatal(err)
		}
		if migrations != len(files) {
			t.Errorf("%d migrations are recorded, want %d", migrations, len(files))
		}
		if got := must(c.Projects(t.Context()))(t); len(got) != openers {
			t.Errorf("%d projects, want %d", len(got), openers)
		}
	})
}

func TestCatalogOfANewerVersionIsRefused(t *testing.T) {
	eachPlace(t, func(t *testing.T, p place) {
		c := p.open(Options{})
		if _, err := c.write.Exec("INSERT INTO bun_migrations (name, group_id) VALUES ('29990101000000', 9)"); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(t.Context(), p.dsn, Options{}); err == nil || !strings.Contains(err.Error(), "newer version") {
			t.Errorf("error %v", err)
		}
	})
}

func TestSecretIsMadeOnce(t *testing.T) {
	eachPlace(t, func(t *testing.T, p place) {
		c := p.open(Options{})
		const askers = 8
		secrets := make([]string, askers)
		var wg sync.WaitGroup
		for i := range askers {
			wg.Go(func() {
				s, err := c.Secret(t.Context(), "cookie")
				if err != nil {
					t.Error(err)
				}
				secrets[i] = string(s)
			})
		}
		wg.Wait()
		for _, s := range secrets {
			if s != secrets[0] || len(s) != 32 {
				t.Errorf("secrets %x", secrets)
				break
			}
		}
		if other := must(c.Secret(t.Context(), "other"))(t); string(other) == secrets[0] {
			t.Error("two secrets are the same")
		}
		if again := must(p.open(Options{}).Secret(t.Context(), "cookie"))(t); string(again) != secrets[0] {
			t.Error("the secret is another one after the catalogue was opened again")
		}
	})
}

func TestOrganizationsKeepApart(t *testing.T) {
	eachPlace(t, func(t *testing.T, p place) {
		c := p.open(Options{})
		addOrganization(t, c, "acme")
		project := testProject("docs")
		project.Org = "acme"
		must(c.AddProject(t.Context(), project))(t)
		_, err := c.AddKey(t.Context(), api.Key{Kind: api.AdminKey, Org: DefaultOrg, Project: "docs"}, [32]byte{1})
		if !errors.Is(err, api.ErrNotFound) {
			t.Errorf("a key for another organization's project: error %v", err)
		}
		if k := must(c.AddKey(t.Context(), api.Key{Kind: api.AdminKey, Project: "docs"}, [32]byte{1}))(t); k.Org != "acme" {
			t.Errorf("the key belongs to %q", k.Org)
		}
	})
}

func TestErrorsNeverShowThePassword(t *testing.T) {
	t.Parallel()
	for _, dsn := range []string{
		"postgres://docent:hunter2@127.0.0.1:1/docent?connect_timeout=1",
		"postgres://docent@127.0.0.1:1/docent?connect_timeout=1&password=hunter2",
		"postgres://docent:hunter2@127.0.0.1:notaport/docent",
		"postgres://docent:hunter2@[::1/docent",
		"postgres://docent:hunter2%zz@127.0.0.1/docent",
		"postgresql://docent:hunter2@127.0.0.1/docent?sslmode=perhaps",
		"mysql://docent:hunter2@127.0.0.1/docent",
		"host=127.0.0.1 password=hunter2",
		"docent:hunter2@tcp(127.0.0.1)/docent",
	} {
		_, err := Open(t.Context(), dsn, Options{})
		if err == nil {
			t.Errorf("a catalogue was opened")
			continue
		}
		for e := err; e != nil; e = errors.Unwrap(e) {
			if strings.Contains(fmt.Sprintf("%v %+v %#v", e, e, e), "hunter2") {
				t.Errorf("the error shows the password: %#v", e)
			}
		}
	}
	_, err := Open(t.Context(), "postgres://docent:hunter2@127.0.0.1:1/docent?connect_timeout=1", Options{})
	if !errors.Is(err, api.ErrUnavailable) || !strings.Contains(err.Error(), "127.0.0.1:1") {
		t.Errorf("a server that does not answer: error %v", err)
	}
}
