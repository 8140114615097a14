package people_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"docent/api"
	"docent/persistence/catalog"
	"docent/persistence/catalog/catalogtest"
)

func TestProjectIsStoredInFull(t *testing.T) {
	catalogtest.EachPlace(t, func(t *testing.T, p catalogtest.Place) {
		var want api.Project
		n := 0
		catalogtest.Fill(reflect.ValueOf(&want).Elem(), &n)
		want.ID, want.Org, want.Domain = "docs", api.DefaultOrg, "docs.example.com"
		want.Name, want.Source = "Dök's ? ?0 {{x}} \\ \"", "git@github.com:acme/docs.git"
		want.Branch, want.DocsDir = "release/1.x", "docs/en"
		want.SiteURL, want.Repository = "https://docs.example.com", "acme/docs"
		want.Host, want.HostURL = api.HostGitHub, "https://github.example.com"
		want.AppID, want.Labels = 17, "docs, by Docent"
		want.TokenFile, want.WebhookFile = "docs.abcdefgh", "docs.12345678"
		for i := range want.ReaderSecrets {
			want.ReaderSecrets[i].File = fmt.Sprintf("docs.reader%02d", i)
		}
		chats := &want.Chats
		chats.Slack.AppTokenFile, chats.Slack.BotTokenFile, chats.Discord.TokenFile = "docs.chat0001", "docs.chat0002", "docs.chat0003"
		want.ReaderJWKS = "https://id.example.com/.well-known/jwks.json"
		want.ReaderSignIn = "https://docs.example.com/docent"
		want.TokenEnv, want.WebhookEnv, want.Model = "GITHUB_TOKEN", "HOOK_SECRET", "m'1"
		want.AgentModel = "m-2"
		want.Deflection, want.Site, want.AnswersFrom = "help@example.com", "hugo", api.FromSite
		want.Options.PublicOrigins = "https://app.example.com,*"
		want.Options.ProofOfWork, want.Widget = 200_000, api.Widget{Accent: "#1f6f5c", AccentDark: "#abcdef", Theme: "dark",
			Button: "start", Label: "Ask 'us'", Language: "pt", Greeting: "Hej?", Contact: "form", ContactIssues: true, Logo: "/l.svg", OpenIn: []string{"claude"}, Suggestions: []string{"{{x}}?", `"y"`}}
		want.TimeZone = "Europe/Berlin"
		want.Collect.Web.Prefix, want.Collect.Web.Sitemap = "/docs/", "none"
		want.Review, want.Handle = api.ReviewLines, "scribe-x"
		want.Pulls.Most = 7
		want.Pulls.Author, want.Pulls.Title = "D'oc <docs@example.com>", `docs({scope}): {title} "?"`
		want.Pulls.Body, want.Pulls.Reviewers = "{report}\n{{x}}", "codeowners, octo-cat"
		want.Label, want.Kind, want.Every = "docs", "", "6h"
		for i, label := range []string{"api", "a-site"} {
			s := &want.Sources[i]
			s.Label, s.Kind, s.Every, s.Weight = label, "", "90m", 0.25
			s.Name, s.Groups = "Dök's {{x}}", []string{"st'aff", `b"`}
			s.Address, s.Branch, s.DocsDir, s.Site = "https://github.example.com/acme/api.git", "main", "docs", "hugo"
			s.SiteURL, s.Include, s.Exclude = "https://api.example.com", []string{"a/**"}, []string{"b'\"?"}
			s.Host, s.HostURL, s.Repository = api.HostGitHub, "https://github.example.com", "acme/api"
			s.TokenEnv, s.TokenFile, s.AppID = "GITHUB_TOKEN", "docs.abcdefgh", 17
			s.Collect.Web.Prefix, s.Collect.Web.Sitemap = "/docs/", "none"
		}
		want.Include, want.Exclude = []string{"docs/**", `a\ b`}, []string{"*.draft.md", "!k'p \"?\" {{x}}.md"}

		c := p.Open(catalog.Options{})
		added := catalogtest.Must(c.AddProject(t.Context(), want))(t)
		if !reflect.DeepEqual(added, want) {
			t.Errorf("AddProject answered\n%+v, want\n%+v", added, want)
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		c = p.Open(catalog.Options{})
		byID := catalogtest.Must(c.Project(t.Context(), "docs"))(t)
		byDomain := catalogtest.Must(c.ProjectByDomain(t.Context(), "Docs.Example.COM"))(t)
		all := catalogtest.Must(c.Projects(t.Context()))(t)
		for what, got := range map[string]api.Project{"Project": byID, "ProjectByDomain": byDomain, "Projects": all[0]} {
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%s answered\n%+v, want\n%+v", what, got, want)
			}
		}
	})
}

// The network knows an international name in ASCII, and people write it as it is read.
func TestAnInternationalDomainIsFoundInEitherForm(t *testing.T) {
	catalogtest.EachPlace(t, func(t *testing.T, p catalogtest.Place) {
		c := p.Open(catalog.Options{})
		added := catalogtest.Must(c.AddProject(t.Context(), api.Project{ID: "books", Domain: "Bücher.example", Source: "/srv/docs"}))(t)
		if added.Domain != "xn--bcher-kva.example" {
			t.Errorf("the domain is stored as %q", added.Domain)
		}
		for _, domain := range []string{"bücher.example", "xn--bcher-kva.example"} {
			if got := catalogtest.Must(c.ProjectByDomain(t.Context(), domain))(t); got.ID != "books" {
				t.Errorf("%s is %q", domain, got.ID)
			}
		}
	})
}

func TestProjectGetsDefaults(t *testing.T) {
	catalogtest.EachPlace(t, func(t *testing.T, p catalogtest.Place) {
		clock := catalogtest.NewClock()
		c := p.Open(catalog.Options{Now: clock.Now})
		got := catalogtest.AddProject(t, c, "docs")
		if got.Org != api.DefaultOrg || got.Host != api.HostBuiltin ||
			!got.CreatedAt.Equal(clock.Now().Truncate(time.Millisecond)) {
			t.Errorf("the project became %+v", got)
		}
		var orgs []string
		if err := c.Read.NewRaw("SELECT id FROM organizations").Scan(t.Context(), &orgs); err != nil ||
			!slices.Equal(orgs, []string{string(api.DefaultOrg)}) {
			t.Errorf("organizations %q, %v", orgs, err)
		}
	})
}

func TestProjectNamesAreTakenOnce(t *testing.T) {
	catalogtest.EachPlace(t, func(t *testing.T, p catalogtest.Place) {
		c := p.Open(catalog.Options{})
		catalogtest.AddProject(t, c, "docs")
		catalogtest.AddProject(t, c, "blog")
		refused := func(what string, err error, names string) {
			t.Helper()
			var state *api.StateError
			if !errors.Is(err, api.ErrConflict) || !errors.As(err, &state) || !strings.Contains(state.Reason, names) {
				t.Errorf("%s: error %v, want a conflict that names %s", what, err, names)
			}
		}
		same := catalogtest.Project("docs")
		same.Domain = "other.example.com"
		_, err := c.AddProject(t.Context(), same)
		refused("the same id", err, `id "docs"`)
		same.ID = "Docs"
		_, err = c.AddProject(t.Context(), same)
		refused("the same id in capitals", err, `id "Docs"`)
		domain := catalogtest.Project("third")
		domain.Domain = "DOCS.example.com"
		_, err = c.AddProject(t.Context(), domain)
		refused("the same domain", err, `domain "docs.example.com" belongs to the project "docs"`)
		moved := catalogtest.Project("blog")
		moved.Domain = "docs.example.com"
		_, err = c.UpdateProject(t.Context(), moved)
		refused("an update to a taken domain", err, `domain "docs.example.com"`)
		if got := catalogtest.Must(c.Projects(t.Context()))(t); len(got) != 2 {
			t.Errorf("there are %d projects, want 2", len(got))
		}
	})
}

func TestInvalidProjectIsRefused(t *testing.T) {
	catalogtest.EachPlace(t, func(t *testing.T, p catalogtest.Place) {
		c := p.Open(catalog.Options{})
		var invalid *api.InvalidError
		if _, err := c.AddProject(t.Context(), api.Project{ID: "a/b"}); !errors.As(err, &invalid) ||
			len(invalid.Problems) != 3 {
			t.Errorf("error %v, want one that lists id, domain and source", err)
		}
		catalogtest.AddProject(t, c, "docs")
		bad := catalogtest.Project("docs")
		bad.DocsDir = "../.."
		if _, err := c.UpdateProject(t.Context(), bad); !errors.As(err, &invalid) {
			t.Errorf("error %v, want an InvalidError", err)
		}
		other := catalogtest.Project("other")
		other.Org = "nobody"
		if _, err := c.AddProject(t.Context(), other); !errors.Is(err, api.ErrNotFound) {
			t.Errorf("a project of an unknown organization: error %v", err)
		}
	})
}

// Two processes, as nodes are, change what the other one does not; neither takes back what the other has done.
func TestChangesOfAProjectAtTheSameTimeKeepEachOther(t *testing.T) {
	catalogtest.EachPlace(t, func(t *testing.T, p catalogtest.Place) {
		const each = 20
		c := p.Open(catalog.Options{})
		catalogtest.AddProject(t, c, "docs")
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
		if got := catalogtest.Must(c.Project(t.Context(), "docs"))(t); strings.Count(got.Labels, ",") != 2*each-1 {
			t.Errorf("of %d changes there are %s", 2*each, got.Labels)
		}
		stop := errors.New("not now")
		if _, err := c.ChangeProject(t.Context(), "docs", func(p api.Project) (api.Project, error) { return p, stop }); !errors.Is(err, stop) {
			t.Errorf("a change that was called off: %v", err)
		}
	})
}

func TestChangesToAProjectShowAtOnce(t *testing.T) {
	catalogtest.EachPlace(t, func(t *testing.T, p catalogtest.Place) {
		clock := catalogtest.NewClock() // stands still: nothing is read again because time went by
		c := p.Open(catalog.Options{Now: clock.Now})
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
		added := catalogtest.AddProject(t, c, "docs")
		catalogtest.Must(c.Project(t.Context(), "docs"))(t)
		catalogtest.Must(c.ProjectByDomain(t.Context(), "docs.example.com"))(t)

		change := added
		change.Domain, change.Model, change.Org, change.CreatedAt = "new.example.com", "big", "nobody", time.Time{}
		updated := catalogtest.Must(c.UpdateProject(t.Context(), change))(t)
		want := added
		want.Domain, want.Model = "new.example.com", "big"
		if !reflect.DeepEqual(updated, want) {
			t.Errorf("UpdateProject answered\n%+v, want\n%+v", updated, want)
		}
		if got := catalogtest.Must(c.Project(t.Context(), "docs"))(t); !reflect.DeepEqual(got, want) {
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
	catalogtest.EachPlace(t, func(t *testing.T, p catalogtest.Place) {
		clock := catalogtest.NewClock()
		here := p.Open(catalog.Options{Now: clock.Now, Stale: 2 * time.Second})
		there := p.Open(catalog.Options{})
		if _, err := here.Project(t.Context(), "docs"); !errors.Is(err, api.ErrNotFound) {
			t.Fatal(err)
		}
		added := catalogtest.AddProject(t, there, "docs")
		clock.Add(2 * time.Second)
		catalogtest.Must(here.Project(t.Context(), "docs"))(t)
		added.Model = "big"
		catalogtest.Must(there.UpdateProject(t.Context(), added))(t)
		clock.Add(time.Second)
		if got := catalogtest.Must(here.Project(t.Context(), "docs"))(t); got.Model != "" {
			t.Error("a look-up within the time was not answered from memory")
		}
		clock.Add(time.Second)
		if got := catalogtest.Must(here.Project(t.Context(), "docs"))(t); got.Model != "big" {
			t.Error("the other process's change does not show after the time")
		}
	})
}

func TestLookupsCostNoQuery(t *testing.T) {
	catalogtest.EachPlace(t, func(t *testing.T, p catalogtest.Place) {
		clock := catalogtest.NewClock()
		c := p.Open(catalog.Options{Now: clock.Now})
		catalogtest.AddProject(t, c, "docs")
		secret := api.NewSecret(api.AdminKey)
		catalogtest.Must(c.AddKey(t.Context(), api.Key{Kind: api.AdminKey}, api.HashSecret(secret)))(t)
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
		c.Read.Close()
		for i, err := range ask() {
			if (err == nil) != (before[i] == nil) || errors.Is(err, api.ErrNotFound) != errors.Is(before[i], api.ErrNotFound) {
				t.Errorf("look-up %d: error %v from memory, %v before", i, err, before[i])
			}
		}
		clock.Add(time.Minute)
		if _, err := c.Project(t.Context(), "docs"); err == nil || errors.Is(err, api.ErrNotFound) {
			t.Errorf("an old look-up without the database: error %v", err)
		}
		// The write pool is the read pool on PostgreSQL; Close finds both closed.
	})
}

func TestProjectsAddedAtOnceAreAddedOnce(t *testing.T) {
	catalogtest.EachPlace(t, func(t *testing.T, p catalogtest.Place) {
		catalogs := []*catalog.Catalog{p.Open(catalog.Options{}), p.Open(catalog.Options{})} // as two processes
		const writers, ids = 16, 5
		results := make([][]error, writers)
		var wg sync.WaitGroup
		for w := range writers {
			wg.Go(func() {
				for i := range ids {
					_, err := catalogs[w%2].AddProject(t.Context(), catalogtest.Project(fmt.Sprintf("docs%d", i)))
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

func TestOrganizationsKeepApart(t *testing.T) {
	catalogtest.EachPlace(t, func(t *testing.T, p catalogtest.Place) {
		c := p.Open(catalog.Options{})
		catalogtest.AddOrganization(t, c, "acme")
		project := catalogtest.Project("docs")
		project.Org = "acme"
		catalogtest.Must(c.AddProject(t.Context(), project))(t)
		_, err := c.AddKey(t.Context(), api.Key{Kind: api.AdminKey, Org: api.DefaultOrg, Project: "docs"}, [32]byte{1})
		if !errors.Is(err, api.ErrNotFound) {
			t.Errorf("a key for another organization's project: error %v", err)
		}
		if k := catalogtest.Must(c.AddKey(t.Context(), api.Key{Kind: api.AdminKey, Project: "docs"}, [32]byte{1}))(t); k.Org != "acme" {
			t.Errorf("the key belongs to %q", k.Org)
		}
	})
}
