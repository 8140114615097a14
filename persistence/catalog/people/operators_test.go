package people_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"docent/api"
	"docent/persistence/catalog"
	"docent/persistence/catalog/catalogtest"
)

// Until this migration each owner of the default organization ran the server: those that there are keep that, once.
func TestOwnersOfTheDefaultOrganizationBecomeOperatorsOnce(t *testing.T) {
	catalogtest.EachPlace(t, func(t *testing.T, p catalogtest.Place) {
		c := p.Open(catalog.Options{})
		catalogtest.AddOrganization(t, c, "acme")
		person := func(name string, roles map[api.OrgID]api.Role) api.PersonID {
			t.Helper()
			return catalogtest.Must(c.AddPerson(t.Context(), api.Person{Email: name + "@example.com", Name: name, Roles: roles}, ""))(t).ID
		}
		owner := person("owner", map[api.OrgID]api.Role{api.DefaultOrg: api.RoleOwner, "acme": api.RoleViewer})
		others := map[string]api.PersonID{
			"an editor":                        person("editor", map[api.OrgID]api.Role{api.DefaultOrg: api.RoleEditor}),
			"an owner of another organization": person("elsewhere", map[api.OrgID]api.Role{"acme": api.RoleOwner}),
			"who is disabled":                  person("disabled", map[api.OrgID]api.Role{api.DefaultOrg: api.RoleOwner}),
			"whose row is damaged":             person("damaged", map[api.OrgID]api.Role{api.DefaultOrg: api.RoleOwner}),
		}
		if err := c.DisablePerson(t.Context(), others["who is disabled"], true); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Write.Exec("UPDATE people SET email = 'eve@example.com' WHERE email = 'damaged@example.com'"); err != nil {
			t.Fatal(err)
		}
		c = p.BackTo(t, c, "20261124000004") // as 13a2cae left it
		if !catalogtest.Must(c.Person(t.Context(), owner))(t).Operator {
			t.Error("an owner of before is locked out of the server")
		}
		for what, id := range others {
			if p, err := c.Person(t.Context(), id); err == nil && p.Operator {
				t.Errorf("%s became an operator", what)
			}
		}
		// It happens once: who becomes an owner afterwards is none, and who is taken back stays so.
		if err := errors.Join(c.SetRole(t.Context(), others["an editor"], api.DefaultOrg, api.RoleOwner),
			c.SetOperator(t.Context(), owner, false), c.Close()); err != nil {
			t.Fatal(err)
		}
		c = p.Open(catalog.Options{})
		for _, id := range []api.PersonID{owner, others["an editor"]} {
			if p := catalogtest.Must(c.Person(t.Context(), id))(t); p.Operator || p.Roles[api.DefaultOrg] != api.RoleOwner {
				t.Errorf("%s is %+v", p.Name, p)
			}
		}
	})
}

func TestAnOperatorStaysOneUntilItIsTakenAway(t *testing.T) {
	catalogtest.EachPlace(t, func(t *testing.T, p catalogtest.Place) {
		c := p.Open(catalog.Options{})
		m := catalogtest.AddPerson(t, c, "maria", api.RoleViewer)
		now := func() bool { return catalogtest.Must(c.Person(t.Context(), m.ID))(t).Operator }
		if now() {
			t.Fatal("a viewer is an operator")
		}
		if err := errors.Join(c.SetOperator(t.Context(), m.ID, true), c.RenamePerson(t.Context(), m.ID, "Maria M."),
			c.SetRole(t.Context(), m.ID, api.DefaultOrg, api.RoleEditor)); err != nil {
			t.Fatal(err)
		}
		if got := catalogtest.Must(c.Person(t.Context(), m.ID))(t); !got.Operator || got.Name != "Maria M." {
			t.Errorf("it is %+v", got)
		}
		if err := c.SetOperator(t.Context(), m.ID, false); err != nil || now() {
			t.Errorf("it is not taken away: %v", err)
		}
		if err := c.SetOperator(t.Context(), "usr_none", true); !errors.Is(err, api.ErrNotFound) {
			t.Errorf("nobody becomes an operator: %v", err)
		}
	})
}

func TestSessionsByLinksAreListedAndEnd(t *testing.T) {
	catalogtest.EachPlace(t, func(t *testing.T, p catalogtest.Place) {
		clock := catalogtest.NewClock()
		c := p.Open(catalog.Options{Now: clock.Now})
		m := catalogtest.AddPerson(t, c, "maria", api.RoleOwner)
		add := func(n byte, in api.SignIn) api.SessionID {
			t.Helper()
			clock.Add(time.Millisecond)
			in.ExpiresAt, in.Idle = clock.Now().Add(time.Hour), time.Hour
			return catalogtest.Must(c.AddSession(t.Context(), in, [32]byte{n}))(t).ID
		}
		one := add(1, api.SignIn{Kind: api.SessionOfLink, Link: "lnk_1"})
		two := add(2, api.SignIn{Kind: api.SessionOfLink, Link: "lnk_2"})
		add(3, api.SignIn{Kind: api.SessionOfPerson, Person: m.ID})
		add(4, api.SignIn{Kind: api.SessionOfKey, Key: make([]byte, 32)})
		all := catalogtest.Must(c.Sessions(t.Context(), api.SessionQuery{Links: true}))(t)
		if len(all) != 2 || all[0].ID != two || all[0].Link != "lnk_2" || all[1].ID != one {
			t.Errorf("they are %+v", all)
		}
		if err := c.EndSessionsOf(t.Context(), api.SessionQuery{Links: true, Except: two}); err != nil {
			t.Fatal(err)
		}
		if all := catalogtest.Must(c.Sessions(t.Context(), api.SessionQuery{Links: true}))(t); len(all) != 1 || all[0].ID != two {
			t.Errorf("after the others were ended they are %+v", all)
		}
		for n := range byte(2) {
			if in := catalogtest.Must(c.SessionByHash(t.Context(), [32]byte{3 + n}))(t); !in.Live(clock.Now()) {
				t.Errorf("the session of a %s ended too", in.Kind)
			}
		}
	})
}

func TestAnUnusedLinkIsListedAndTakenBack(t *testing.T) {
	catalogtest.EachPlace(t, func(t *testing.T, p catalogtest.Place) {
		clock := catalogtest.NewClock()
		c := p.Open(catalog.Options{Now: clock.Now})
		m := catalogtest.AddPerson(t, c, "maria", api.RoleOwner)
		add := func(n byte, person api.PersonID, life time.Duration) api.Link {
			t.Helper()
			clock.Add(time.Millisecond)
			return catalogtest.Must(c.AddLink(t.Context(), api.Link{Person: person, ExpiresAt: clock.Now().Add(life)}, [32]byte{n}))(t)
		}
		used := add(1, "", time.Hour)
		add(2, "", time.Minute) // is over
		operators, hers := add(3, "", time.Hour), add(4, m.ID, time.Hour)
		catalogtest.Must(c.UseLink(t.Context(), [32]byte{1}))(t)
		clock.Add(2 * time.Minute)
		if all := catalogtest.Must(c.Links(t.Context()))(t); len(all) != 2 || all[0].ID != hers.ID || all[0].Person != m.ID ||
			all[1].ID != operators.ID {
			t.Errorf("they are %+v", all)
		}
		if err := c.RevokeLink(t.Context(), operators.ID); err != nil {
			t.Fatal(err)
		}
		if _, err := c.UseLink(t.Context(), [32]byte{3}); !errors.Is(err, api.ErrNotFound) {
			t.Errorf("a link that was taken back lets in: %v", err)
		}
		for _, id := range []api.LinkID{used.ID, operators.ID, "lnk_none"} {
			if err := c.RevokeLink(t.Context(), id); !errors.Is(err, api.ErrNotFound) {
				t.Errorf("taking back %s: %v", id, err)
			}
		}
		catalogtest.Must(c.UseLink(t.Context(), [32]byte{4}))(t)
	})
}

// An owner who made a link for a person of the own organization gets nowhere by it that the person is let into later.
func TestALinkReachesNothingThatWasGivenAfterIt(t *testing.T) {
	catalogtest.EachPlace(t, func(t *testing.T, p catalogtest.Place) {
		clock := catalogtest.NewClock()
		c := p.Open(catalog.Options{Now: clock.Now})
		catalogtest.AddOrganization(t, c, "acme")
		catalogtest.AddOrganization(t, c, "globex")
		m := catalogtest.AddPerson(t, c, "maria", api.RoleViewer)
		catalogtest.Must(c.AddInvitation(t.Context(), api.Invitation{Org: "acme", Role: api.RoleOwner, ExpiresAt: clock.Now().Add(time.Hour)},
			[32]byte{9}))(t)
		for n, given := range []struct {
			what string
			give func() error
			ends bool
		}{
			{"another role where the person is", func() error { return c.SetRole(t.Context(), m.ID, api.DefaultOrg, api.RoleEditor) }, false},
			{"another organization, by an invitation", func() error {
				_, _, err := c.AcceptInvitation(t.Context(), [32]byte{9}, m, "", "")
				return err
			}, true},
			{"another organization", func() error { return c.SetRole(t.Context(), m.ID, "globex", api.RoleViewer) }, true},
			{"operator", func() error { return c.SetOperator(t.Context(), m.ID, true) }, true},
			{"operator again", func() error { return c.SetOperator(t.Context(), m.ID, true) }, false},
			{"operator no more", func() error { return c.SetOperator(t.Context(), m.ID, false) }, false},
		} {
			link, session := [32]byte{1, byte(n)}, [32]byte{2, byte(n)}
			catalogtest.Must(c.AddLink(t.Context(), api.Link{Person: m.ID, ExpiresAt: clock.Now().Add(time.Hour)}, link))(t)
			catalogtest.Must(c.AddSession(t.Context(), api.SignIn{Kind: api.SessionOfPerson, Person: m.ID, ExpiresAt: clock.Now().Add(time.Hour),
				Idle: time.Hour}, session))(t)
			if err := given.give(); err != nil {
				t.Fatalf("%s: %v", given.what, err)
			}
			_, err := c.LinkByHash(t.Context(), link)
			if errors.Is(err, api.ErrNotFound) != given.ends {
				t.Errorf("%s: a link that was made before: %v", given.what, err)
			}
			if in := catalogtest.Must(c.SessionByHash(t.Context(), session))(t); in.Live(clock.Now()) == given.ends {
				t.Errorf("%s: a session that began before is %+v", given.what, in)
			}
		}
	})
}

// Who has lost the right to let others in does not come back by what they made while they had it.
func TestNobodyComesBackByWhatTheyMadeBefore(t *testing.T) {
	for name, end := range map[string]func(c *catalog.Catalog, id api.PersonID) error{
		"no owner any more": func(c *catalog.Catalog, id api.PersonID) error {
			return c.SetRole(context.Background(), id, "acme", api.RoleEditor)
		},
		"removed": func(c *catalog.Catalog, id api.PersonID) error {
			return c.RemoveMember(context.Background(), id, "acme")
		},
		"disabled": func(c *catalog.Catalog, id api.PersonID) error {
			return c.DisablePerson(context.Background(), id, true)
		},
		"no operator any more": func(c *catalog.Catalog, id api.PersonID) error {
			return c.SetOperator(context.Background(), id, false)
		},
	} {
		t.Run(name, func(t *testing.T) {
			catalogtest.EachPlace(t, func(t *testing.T, p catalogtest.Place) {
				clock := catalogtest.NewClock()
				c := p.Open(catalog.Options{Now: clock.Now})
				catalogtest.AddOrganization(t, c, "acme")
				add := func(name string, role api.Role) api.Person {
					return catalogtest.Must(c.AddPerson(t.Context(), api.Person{Name: name, Email: name + "@example.com",
						Roles: map[api.OrgID]api.Role{"acme": role}}, ""))(t)
				}
				olga, nora, maria := add("olga", api.RoleOwner), add("nora", api.RoleOwner), add("maria", api.RoleViewer)
				if name == "no operator any more" {
					if err := c.SetOperator(t.Context(), olga.ID, true); err != nil {
						t.Fatal(err)
					}
				}
				until := clock.Now().Add(24 * time.Hour)
				for n, by := range []api.PersonID{olga.ID, nora.ID, ""} {
					catalogtest.Must(c.AddInvitation(t.Context(), api.Invitation{Org: "acme", Role: api.RoleOwner, ByID: by, ExpiresAt: until},
						[32]byte{1, byte(n)}))(t)
				}
				catalogtest.Must(c.AddLink(t.Context(), api.Link{Person: maria.ID, ExpiresAt: until}, [32]byte{2}))(t)
				catalogtest.Must(c.AddLink(t.Context(), api.Link{ExpiresAt: until}, [32]byte{3}))(t)
				if err := end(c, olga.ID); err != nil {
					t.Fatal(err)
				}
				for n, lets := range []bool{false, true, true} {
					_, _, err := c.AcceptInvitation(t.Context(), [32]byte{1, byte(n)},
						api.Person{Name: "X", Email: fmt.Sprintf("x%d@example.com", n)}, "", "")
					if (err == nil) != lets || err != nil && !errors.Is(err, api.ErrNotFound) {
						t.Errorf("invitation %d: %v", n, err)
					}
				}
				if _, err := c.UseLink(t.Context(), [32]byte{2}); !errors.Is(err, api.ErrNotFound) {
					t.Errorf("a link that leads in as somebody else: %v", err)
				}
				catalogtest.Must(c.UseLink(t.Context(), [32]byte{3}))(t)
			})
		})
	}
}
