package people_test

import (
	"errors"
	"fmt"
	"reflect"
	"sync"
	"testing"
	"time"

	"docent/api"
	"docent/persistence/catalog"
	"docent/persistence/catalog/catalogtest"
	"docent/persistence/catalog/database"
	"docent/persistence/catalog/people"
)

func TestAPersonIsFoundByEachName(t *testing.T) {
	catalogtest.EachPlace(t, func(t *testing.T, p catalogtest.Place) {
		clock := catalogtest.NewClock()
		c := p.Open(catalog.Options{Now: clock.Now})
		catalogtest.AddOrganization(t, c, "acme")
		want := catalogtest.Must(c.AddPerson(t.Context(), api.Person{Email: " Maria@Example.COM", Name: "Märia ' ?0",
			Issuer: "https://id.example.com", Subject: "17",
			Roles: map[api.OrgID]api.Role{api.DefaultOrg: api.RoleOwner, "acme": api.RoleViewer}}, "kept"))(t)
		if want.Email != "maria@example.com" || !api.ValidID(api.PersonPrefix, string(want.ID)) || !want.HasPassword {
			t.Errorf("the person became %+v", want)
		}
		other := p.Open(catalog.Options{Now: clock.Now})
		got := catalogtest.Must(other.Person(t.Context(), want.ID))(t)
		if !reflect.DeepEqual(got, want) {
			t.Errorf("by id:\n%+v, want\n%+v", got, want)
		}
		got, password, err := other.PersonByEmail(t.Context(), "MARIA@example.com ")
		if err != nil || password != "kept" || !reflect.DeepEqual(got, want) {
			t.Errorf("by e-mail: %+v, %q, %v", got, password, err)
		}
		if got := catalogtest.Must(other.PersonByIdentity(t.Context(), "https://id.example.com", "17"))(t); got.ID != want.ID {
			t.Errorf("by identity: %+v", got)
		}
		for _, err := range []error{
			catalogtest.Second(other.Person(t.Context(), "usr_none")),
			catalogtest.Second(other.PersonByIdentity(t.Context(), "https://id.example.com", "1")),
			catalogtest.Second(other.PersonByIdentity(t.Context(), "https://other.example.com", "17")),
			catalogtest.Second(other.PersonByIdentity(t.Context(), "", "")),
			catalogtest.Second(other.Password(t.Context(), "usr_\x00")),
		} {
			if !errors.Is(err, api.ErrNotFound) {
				t.Errorf("who does not exist: error %v", err)
			}
		}
		if _, err := c.AddPerson(t.Context(), api.Person{Email: "maria@EXAMPLE.com", Name: "x"}, ""); !errors.Is(err,
			api.ErrConflict) {
			t.Errorf("the same address again: error %v", err)
		}
		if _, err := c.AddPerson(t.Context(), api.Person{Email: "b@example.com", Name: "x",
			Issuer: "https://id.example.com", Subject: "17"}, ""); !errors.Is(err, api.ErrConflict) {
			t.Errorf("the same identity again: error %v", err)
		}
		for _, email := range []string{"", "maria", "Maria <maria@example.com>", "a@b@c", "a b@example.com",
			"<a@example.com>"} {
			var invalid *api.InvalidError
			if _, err := c.AddPerson(t.Context(), api.Person{Email: email}, ""); !errors.As(err, &invalid) ||
				len(invalid.Problems) != 2 {
				t.Errorf("%q: error %v, want one that names email and name", email, err)
			}
		}
		catalogtest.Must(c.AddPerson(t.Context(), api.Person{Email: "two@example.com", Name: "without identity"}, ""))(t)
		catalogtest.Must(c.AddPerson(t.Context(), api.Person{Email: "three@example.com", Name: "without identity"}, ""))(t)
		if all := catalogtest.Must(c.People(t.Context()))(t); len(all) != 3 || all[0].ID != want.ID || len(all[1].Roles) != 0 {
			t.Errorf("people are %+v", all)
		}
		if in := catalogtest.Must(c.Members(t.Context(), "acme"))(t); len(in) != 1 || in[0].Role != api.RoleViewer ||
			in[0].Since.IsZero() {
			t.Errorf("members are %+v", in)
		}
	})
}

func TestAPersonsChangesAreSeenAtOnce(t *testing.T) {
	catalogtest.EachPlace(t, func(t *testing.T, p catalogtest.Place) {
		clock := catalogtest.NewClock() // stands still: nothing is read again because time went by
		c := p.Open(catalog.Options{Now: clock.Now})
		catalogtest.AddPerson(t, c, "owner", api.RoleOwner)
		m := catalogtest.AddPerson(t, c, "maria", api.RoleViewer)
		now := func() api.Person { return catalogtest.Must(c.Person(t.Context(), m.ID))(t) }
		now()
		do := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		do(c.SetRole(t.Context(), m.ID, api.DefaultOrg, api.RoleEditor))
		do(c.RenamePerson(t.Context(), m.ID, "Maria M."))
		do(c.SetPassword(t.Context(), m.ID, "another"))
		do(c.LinkIdentity(t.Context(), m.ID, "https://id.example.com", "4"))
		if got := now(); got.Roles[api.DefaultOrg] != api.RoleEditor || got.Name != "Maria M." || got.Subject != "4" {
			t.Errorf("it is %+v", got)
		}
		if got := catalogtest.Must(c.Password(t.Context(), m.ID))(t); got != "another" {
			t.Errorf("the password is %q", got)
		}
		if err := c.RenamePerson(t.Context(), m.ID, " "); !errors.Is(err, api.ErrInvalid) {
			t.Errorf("no name: %v", err)
		}
		if err := c.SetRole(t.Context(), m.ID, api.DefaultOrg, "root"); !errors.Is(err, api.ErrInvalid) {
			t.Errorf("no such role: %v", err)
		}
		if err := c.SetRole(t.Context(), m.ID, "nobody", api.RoleOwner); !errors.Is(err, api.ErrNotFound) {
			t.Errorf("no such organization: %v", err)
		}
		do(c.DisablePerson(t.Context(), m.ID, true))
		if now().DisabledAt == nil {
			t.Error("the person is not disabled")
		}
		do(c.DisablePerson(t.Context(), m.ID, false))
		if now().DisabledAt != nil {
			t.Error("the person is still disabled")
		}
		do(c.RemoveMember(t.Context(), m.ID, api.DefaultOrg))
		if _, err := c.Person(t.Context(), m.ID); !errors.Is(err, api.ErrNotFound) {
			t.Errorf("who was removed: error %v", err)
		}
		if err := c.RemoveMember(t.Context(), m.ID, api.DefaultOrg); !errors.Is(err, api.ErrNotFound) {
			t.Errorf("removing again: error %v", err)
		}
	})
}

func TestWhoIsInAnotherOrganizationStaysThere(t *testing.T) {
	catalogtest.EachPlace(t, func(t *testing.T, p catalogtest.Place) {
		c := p.Open(catalog.Options{})
		catalogtest.AddOrganization(t, c, "acme")
		m := catalogtest.AddPerson(t, c, "maria", api.RoleViewer)
		if err := c.SetRole(t.Context(), m.ID, "acme", api.RoleEditor); err != nil {
			t.Fatal(err)
		}
		if err := c.RemoveMember(t.Context(), m.ID, api.DefaultOrg); err != nil {
			t.Fatal(err)
		}
		want := map[api.OrgID]api.Role{"acme": api.RoleEditor}
		if got := catalogtest.Must(c.Person(t.Context(), m.ID))(t); !reflect.DeepEqual(got.Roles, want) {
			t.Errorf("the roles are %v", got.Roles)
		}
	})
}

func TestTheLastOwnerStays(t *testing.T) {
	catalogtest.EachPlace(t, func(t *testing.T, p catalogtest.Place) {
		c := p.Open(catalog.Options{})
		a, b := catalogtest.AddPerson(t, c, "a", api.RoleOwner), catalogtest.AddPerson(t, c, "b", api.RoleOwner)
		catalogtest.AddPerson(t, c, "editor", api.RoleEditor)
		// Each removes, demotes or disables the other at the same time: one of them remains an owner.
		var both sync.WaitGroup
		errs := make(chan error, 2)
		both.Go(func() { errs <- c.RemoveMember(t.Context(), a.ID, api.DefaultOrg) })
		both.Go(func() { errs <- c.SetRole(t.Context(), b.ID, api.DefaultOrg, api.RoleEditor) })
		both.Wait()
		first, other := <-errs, <-errs
		if (first == nil) == (other == nil) || first != nil && !errors.Is(first, api.ErrConflict) ||
			other != nil && !errors.Is(other, api.ErrConflict) {
			t.Errorf("%v and %v, want one refusal", first, other)
		}
		last := b.ID
		if _, err := c.Person(t.Context(), a.ID); err == nil {
			last = a.ID
		}
		for what, err := range map[string]error{
			"removed":  c.RemoveMember(t.Context(), last, api.DefaultOrg),
			"demoted":  c.SetRole(t.Context(), last, api.DefaultOrg, api.RoleViewer),
			"disabled": c.DisablePerson(t.Context(), last, true),
		} {
			if !errors.Is(err, api.ErrConflict) {
				t.Errorf("the last owner is %s: %v", what, err)
			}
		}
		if err := c.SetRole(t.Context(), last, api.DefaultOrg, api.RoleOwner); err != nil {
			t.Errorf("staying an owner: %v", err)
		}
		// An owner who is disabled counts for nothing.
		d := catalogtest.AddPerson(t, c, "d", api.RoleOwner)
		if err := c.DisablePerson(t.Context(), d.ID, true); err != nil {
			t.Fatal(err)
		}
		if err := c.RemoveMember(t.Context(), last, api.DefaultOrg); !errors.Is(err, api.ErrConflict) {
			t.Errorf("with one who is disabled left: %v", err)
		}
	})
}

func TestASessionIsKeptAndEnds(t *testing.T) {
	catalogtest.EachPlace(t, func(t *testing.T, p catalogtest.Place) {
		clock := catalogtest.NewClock()
		c := p.Open(catalog.Options{Now: clock.Now})
		catalogtest.AddPerson(t, c, "owner", api.RoleOwner)
		m := catalogtest.AddPerson(t, c, "maria", api.RoleViewer)
		add := func(n byte) api.SignIn {
			t.Helper()
			clock.Add(time.Millisecond)
			return catalogtest.Must(c.AddSession(t.Context(), api.SignIn{Kind: api.SessionOfPerson, Person: m.ID, Rights: "viewer",
				Client: "203.0.113.7", Agent: "Firefox\x00\xff", How: "password",
				ExpiresAt: clock.Now().Add(30 * 24 * time.Hour), Idle: 7 * 24 * time.Hour}, [32]byte{n}))(t)
		}
		one, two, three := add(1), add(2), add(3)
		get := func(n byte) api.SignIn {
			t.Helper()
			return catalogtest.Must(c.SessionByHash(t.Context(), [32]byte{n}))(t)
		}
		other := p.Open(catalog.Options{Now: clock.Now})
		if got := catalogtest.Must(other.SessionByHash(t.Context(), [32]byte{1}))(t); !reflect.DeepEqual(got, one) ||
			!got.Live(clock.Now()) {
			t.Errorf("the session is\n%+v, want\n%+v", got, one)
		}
		if _, err := c.SessionByHash(t.Context(), [32]byte{9}); !errors.Is(err, api.ErrNotFound) {
			t.Errorf("an unknown token: %v", err)
		}
		clock.Add(6 * 24 * time.Hour)
		c.TouchSession(one, clock.Now())
		clock.Add(2 * 24 * time.Hour)
		if !get(1).Live(clock.Now()) || get(2).Live(clock.Now()) {
			t.Error("who was seen goes on, who was not for a week does not")
		}
		if err := c.WriteSeen(t.Context()); err != nil {
			t.Fatal(err)
		}
		if !catalogtest.Must(p.Open(catalog.Options{Now: clock.Now}).SessionByHash(t.Context(), [32]byte{1}))(t).Live(clock.Now()) {
			t.Error("when it was seen is not stored")
		}
		if got := catalogtest.Must(c.Person(t.Context(), m.ID))(t); got.SeenAt == nil {
			t.Error("the person was never seen")
		}
		c.TouchSession(two, clock.Now())
		c.TouchSession(three, clock.Now())
		if got := catalogtest.Must(c.Sessions(t.Context(), api.SessionQuery{Person: m.ID}))(t); len(got) != 3 || got[0].ID != three.ID {
			t.Errorf("listed are %+v", got)
		}
		if err := c.EndSession(t.Context(), three.ID); err != nil {
			t.Fatal(err)
		}
		if get(3).Live(clock.Now()) || !get(2).Live(clock.Now()) {
			t.Error("the session that was ended goes on, or another one does not")
		}
		if err := c.EndSessionsOf(t.Context(), api.SessionQuery{Person: m.ID, Except: two.ID}); err != nil {
			t.Fatal(err)
		}
		if get(1).Live(clock.Now()) || !get(2).Live(clock.Now()) {
			t.Error("all others end, and this one does not")
		}
		if err := c.EndSessionsOf(t.Context(), api.SessionQuery{}); err != nil || !get(2).Live(clock.Now()) {
			t.Errorf("those of nobody: %v", err)
		}
		if err := c.DisablePerson(t.Context(), m.ID, true); err != nil || get(2).Live(clock.Now()) {
			t.Errorf("the session of who is disabled goes on; %v", err)
		}
		if err := c.RemoveMember(t.Context(), m.ID, api.DefaultOrg); err != nil {
			t.Fatal(err)
		}
		if _, err := c.SessionByHash(t.Context(), [32]byte{2}); !errors.Is(err, api.ErrNotFound) {
			t.Errorf("the session of who was removed: %v", err)
		}
	})
}

func TestARenewedSessionLetsTheOldTokenInForSeconds(t *testing.T) {
	catalogtest.EachPlace(t, func(t *testing.T, p catalogtest.Place) {
		clock := catalogtest.NewClock()
		c := p.Open(catalog.Options{Now: clock.Now})
		m := catalogtest.AddPerson(t, c, "maria", api.RoleOwner)
		s := catalogtest.Must(c.AddSession(t.Context(), api.SignIn{Person: m.ID, Rights: "viewer", Idle: time.Hour,
			ExpiresAt: clock.Now().Add(time.Hour)}, [32]byte{1}))(t)
		if !catalogtest.Must(c.RenewSession(t.Context(), s.ID, [32]byte{2}, "editor"))(t) {
			t.Fatal("it is not renewed")
		}
		if catalogtest.Must(c.RenewSession(t.Context(), s.ID, [32]byte{3}, "editor"))(t) {
			t.Error("it is renewed twice for the same rights")
		}
		for _, n := range []byte{1, 2} {
			if got := catalogtest.Must(c.SessionByHash(t.Context(), [32]byte{n}))(t); got.ID != s.ID || got.Rights != "editor" {
				t.Errorf("by token %d: %+v", n, got)
			}
		}
		clock.Add(people.RenewGrace + 2*time.Second)
		if _, err := c.SessionByHash(t.Context(), [32]byte{1}); !errors.Is(err, api.ErrNotFound) {
			t.Errorf("the old token is still good: %v", err)
		}
		catalogtest.Must(c.SessionByHash(t.Context(), [32]byte{2}))(t)
		if err := c.EndSession(t.Context(), s.ID); err != nil {
			t.Fatal(err)
		}
		if _, err := c.RenewSession(t.Context(), s.ID, [32]byte{4}, "owner"); !errors.Is(err, api.ErrNotFound) {
			t.Errorf("a session that has ended: %v", err)
		}
	})
}

func TestAnInvitationLetsOneIn(t *testing.T) {
	catalogtest.EachPlace(t, func(t *testing.T, p catalogtest.Place) {
		clock := catalogtest.NewClock()
		c := p.Open(catalog.Options{Now: clock.Now})
		catalogtest.AddOrganization(t, c, "acme")
		hash := [32]byte{1}
		invite := func(n byte, i api.Invitation) api.Invitation {
			t.Helper()
			i.ExpiresAt = clock.Now().Add(7 * 24 * time.Hour)
			return catalogtest.Must(c.AddInvitation(t.Context(), i, [32]byte{n}))(t)
		}
		want := invite(1, api.Invitation{Org: "acme", Role: api.RoleEditor, By: "Maria"})
		if got := catalogtest.Must(c.InvitationByHash(t.Context(), hash))(t); !reflect.DeepEqual(got, want) {
			t.Errorf("it is %+v, want %+v", got, want)
		}
		var several sync.WaitGroup
		let := make(chan api.Person, 5)
		for i := range 5 {
			several.Go(func() {
				person, _, err := c.AcceptInvitation(t.Context(), hash,
					api.Person{Email: fmt.Sprintf("p%d@example.com", i), Name: "P"}, "kept", "")
				if err == nil {
					let <- person
				} else if !errors.Is(err, api.ErrNotFound) {
					t.Errorf("a second use: %v", err)
				}
			})
		}
		several.Wait()
		close(let)
		if len(let) != 1 {
			t.Fatalf("%d came in by one invitation", len(let))
		}
		in := <-let
		if in.Roles["acme"] != api.RoleEditor || !in.HasPassword {
			t.Errorf("who came in is %+v", in)
		}
		if open := catalogtest.Must(c.Invitations(t.Context(), "acme"))(t); len(open) != 0 {
			t.Errorf("open are %+v", open)
		}
		// A person who is there already gets the higher role.
		for n, role := range []api.Role{api.RoleViewer, api.RoleOwner} {
			invite(byte(10+n), api.Invitation{Org: "acme", Role: role})
			person, _, err := c.AcceptInvitation(t.Context(), [32]byte{byte(10 + n)}, in, "", "")
			if err != nil || !person.Roles["acme"].AtLeast(api.RoleEditor) || (n == 1) != (person.Roles["acme"] == api.RoleOwner) {
				t.Errorf("as %s: %+v, %v", role, person, err)
			}
		}
		// One for an address needs that address verified, and not only written; a refused try leaves it open.
		invite(2, api.Invitation{Org: "acme", Role: api.RoleViewer, Email: "ann@example.com"})
		for email, verified := range map[string]string{"eve@example.com": "eve@example.com", "ann@example.com": ""} {
			if _, _, err := c.AcceptInvitation(t.Context(), [32]byte{2}, api.Person{Email: email, Name: "E"}, "",
				verified); !errors.Is(err, api.ErrForbidden) {
				t.Errorf("as %s, of whom %q is verified: %v", email, verified, err)
			}
		}
		if _, _, err := c.AcceptInvitation(t.Context(), [32]byte{2}, api.Person{Email: "Ann@example.com", Name: "Ann"},
			"", "Ann@example.com"); err != nil {
			t.Errorf("the right address: %v", err)
		}
		late, revoked := invite(3, api.Invitation{Org: "acme", Role: api.RoleViewer}), invite(4, api.Invitation{Org: "acme",
			Role: api.RoleViewer})
		if _, err := c.RevokeInvitation(t.Context(), api.DefaultOrg, revoked.ID); !errors.Is(err, api.ErrNotFound) {
			t.Errorf("another organization revokes it: %v", err)
		}
		catalogtest.Must(c.RevokeInvitation(t.Context(), "acme", revoked.ID))(t)
		clock.Add(7 * 24 * time.Hour)
		for what, hash := range map[string][32]byte{"expired": {3}, "revoked": {4}, "unknown": {5}} {
			if _, _, err := c.AcceptInvitation(t.Context(), hash, api.Person{Email: "x@example.com", Name: "X"},
				"", ""); !errors.Is(err, api.ErrNotFound) {
				t.Errorf("%s: %v", what, err)
			}
		}
		if got := catalogtest.Must(c.InvitationByHash(t.Context(), [32]byte{3}))(t); got.ID != late.ID || got.Open(clock.Now()) {
			t.Errorf("the late one is %+v", got)
		}
		if _, err := c.AddInvitation(t.Context(), api.Invitation{Org: "acme", Role: "root", Email: "x"},
			[32]byte{6}); !errors.Is(err, api.ErrInvalid) {
			t.Errorf("no role: %v", err)
		}
	})
}

func TestAOneTimeLinkWorksOnce(t *testing.T) {
	catalogtest.EachPlace(t, func(t *testing.T, p catalogtest.Place) {
		clock := catalogtest.NewClock()
		c := p.Open(catalog.Options{Now: clock.Now})
		want := catalogtest.Must(c.AddLink(t.Context(), api.Link{ExpiresAt: clock.Now().Add(time.Hour)}, [32]byte{1}))(t)
		catalogtest.Must(c.AddLink(t.Context(), api.Link{ExpiresAt: clock.Now().Add(time.Hour)}, [32]byte{2}))(t)
		if got := catalogtest.Must(c.LinkByHash(t.Context(), [32]byte{1}))(t); !reflect.DeepEqual(got, want) {
			t.Errorf("it is %+v, want %+v", got, want)
		}
		var several sync.WaitGroup
		used := make(chan error, 5)
		for range 5 {
			several.Go(func() { used <- catalogtest.Second(c.UseLink(t.Context(), [32]byte{1})) })
		}
		several.Wait()
		close(used)
		n := 0
		for err := range used {
			if err == nil {
				n++
			} else if !errors.Is(err, api.ErrNotFound) {
				t.Error(err)
			}
		}
		if n != 1 {
			t.Errorf("it was used %d times", n)
		}
		clock.Add(time.Hour)
		for _, hash := range [][32]byte{{1}, {2}, {3}} {
			if _, err := c.UseLink(t.Context(), hash); !errors.Is(err, api.ErrNotFound) {
				t.Errorf("%v: %v", hash[0], err)
			}
			if _, err := c.LinkByHash(t.Context(), hash); !errors.Is(err, api.ErrNotFound) {
				t.Errorf("%v: %v", hash[0], err)
			}
		}
	})
}

func TestATokenIsReplacedOnce(t *testing.T) {
	catalogtest.EachPlace(t, func(t *testing.T, p catalogtest.Place) {
		clock := catalogtest.NewClock()
		c := p.Open(catalog.Options{Now: clock.Now})
		now, end := clock.Now(), clock.Now().Add(90*24*time.Hour)
		made := catalogtest.Must(c.AddSession(t.Context(), api.SignIn{Kind: api.SessionOfClient, Key: make([]byte, 32), CreatedAt: now,
			ExpiresAt: now.Add(time.Minute), Idle: time.Hour}, [32]byte{1}))(t)
		var several sync.WaitGroup
		errs := make([]error, 5)
		for i := range errs {
			several.Go(func() { errs[i] = c.ReplaceToken(t.Context(), [32]byte{1}, [32]byte{byte(10 + i)}, end) })
		}
		several.Wait()
		winner := -1
		for i, err := range errs {
			switch {
			case err == nil && winner < 0:
				winner = i
			case !errors.Is(err, api.ErrNotFound):
				t.Errorf("%d: %v", i, err)
			}
		}
		if winner < 0 {
			t.Fatal("nobody replaced it")
		}
		next := [32]byte{byte(10 + winner)}
		clock.Add(time.Minute)
		if in, err := c.SessionByHash(t.Context(), next); err != nil || in.ID != made.ID || !in.Live(clock.Now()) {
			t.Errorf("the session is %+v, %v", in, err)
		}
		if _, err := c.SessionByHash(t.Context(), [32]byte{1}); !errors.Is(err, api.ErrNotFound) {
			t.Errorf("the token before finds it after a minute: %v", err)
		}
		if all := catalogtest.Must(c.Sessions(t.Context(), api.SessionQuery{Links: true}))(t); len(all) > 0 {
			t.Errorf("it is listed as the operator's: %+v", all)
		}
		if err := c.EndSession(t.Context(), made.ID); err != nil {
			t.Fatal(err)
		}
		if err := c.ReplaceToken(t.Context(), next, [32]byte{99}, end); !errors.Is(err, api.ErrNotFound) {
			t.Errorf("after its end: %v", err)
		}
	})
}

func TestAnotherTokenLeavesOtherSessionsRemembered(t *testing.T) {
	catalogtest.EachPlace(t, func(t *testing.T, p catalogtest.Place) {
		clock := catalogtest.NewClock()
		c := p.Open(catalog.Options{Now: clock.Now})
		end := clock.Now().Add(time.Hour)
		var made [3]api.SignIn
		for n := range made {
			made[n] = catalogtest.Must(c.AddSession(t.Context(), api.SignIn{Kind: api.SessionOfClient, Key: make([]byte, 32), Rights: "viewer",
				ExpiresAt: end, Idle: time.Hour}, [32]byte{byte(n)}))(t)
			catalogtest.Must(c.SessionByHash(t.Context(), [32]byte{byte(n)}))(t)
		}
		if err := c.ReplaceToken(t.Context(), [32]byte{0}, [32]byte{10}, end); err != nil {
			t.Fatal(err)
		}
		catalogtest.Must(c.RenewSession(t.Context(), made[1].ID, [32]byte{11}, "editor"))(t)
		c.Read.Close() // only memory can answer
		for n, remembered := range []bool{false, false, true} {
			if _, err := c.SessionByHash(t.Context(), [32]byte{byte(n)}); (err == nil) != remembered {
				t.Errorf("session %d is looked up: %v", n, err)
			}
		}
	})
}

func TestTheAuditLogIsReadInPages(t *testing.T) {
	catalogtest.EachPlace(t, func(t *testing.T, p catalogtest.Place) {
		clock := catalogtest.NewClock()
		began := clock.Now()
		c := p.Open(catalog.Options{Now: clock.Now})
		write := func(org api.OrgID, who, action string) {
			t.Helper()
			clock.Add(time.Second)
			if err := c.Audit(t.Context(), api.AuditEntry{Org: org, Project: "docs", WhoID: who, Who: "name of " + who,
				Action: action, Object: "key_1", Detail: "CI\x00\xff", Client: "203.0.113.7"}); err != nil {
				t.Fatal(err)
			}
		}
		for range 3 {
			write("", "usr_1", "key.create")
			write("acme", "usr_1", "key.create")
			write("", "usr_2", "person.remove")
		}
		all := catalogtest.Must(c.AuditLog(t.Context(), api.AuditQuery{Org: api.DefaultOrg, Limit: 100}))(t)
		if len(all) != 6 || all[0].Action != "person.remove" || all[0].Detail != "CI\uFFFD\uFFFD" || all[0].Project != "docs" ||
			all[0].Who != "name of usr_2" || !all[0].At.Equal(database.Stamp(clock.Now())) {
			t.Fatalf("the log is %+v", all)
		}
		var paged []api.AuditEntry
		for after := api.AuditID(""); ; {
			page := catalogtest.Must(c.AuditLog(t.Context(), api.AuditQuery{Org: api.DefaultOrg, After: after, Limit: 4}))(t)
			paged = append(paged, page...)
			if len(page) < 4 {
				break
			}
			after = page[3].ID
		}
		if !reflect.DeepEqual(paged, all) {
			t.Errorf("in pages it is %+v", paged)
		}
		for want, q := range map[int]api.AuditQuery{
			3: {WhoID: "usr_2"}, 0: {WhoID: "usr_2", Action: "key.create"}, 6: {Project: "docs"},
			2: {From: began.Add(7 * time.Second)}, 4: {Until: began.Add(7 * time.Second)},
		} {
			q.Org, q.Limit = api.DefaultOrg, 100
			if got := catalogtest.Must(c.AuditLog(t.Context(), q))(t); len(got) != want {
				t.Errorf("%+v gives %d entries, want %d", q, len(got), want)
			}
		}
		for _, q := range []api.AuditQuery{{Action: "\x00"}, {After: "aud_x"}, {Project: "blog"}} {
			q.Org, q.Limit = api.DefaultOrg, 100
			if got := catalogtest.Must(c.AuditLog(t.Context(), q))(t); len(got) != 0 {
				t.Errorf("%+v gives %d entries", q, len(got))
			}
		}
		actions, who, err := c.AuditWords(t.Context(), api.DefaultOrg)
		if err != nil || !reflect.DeepEqual(actions, []string{"key.create", "person.remove"}) ||
			!reflect.DeepEqual(who, map[string]string{"usr_1": "name of usr_1", "usr_2": "name of usr_2"}) {
			t.Errorf("the words are %v, %v, %v", actions, who, err)
		}
	})
}

// TestADamagedSessionLetsNobodyIn changes sessions and people behind the program's back.
func TestADamagedSessionLetsNobodyIn(t *testing.T) {
	catalogtest.EachPlace(t, func(t *testing.T, p catalogtest.Place) {
		c := p.Open(catalog.Options{Stale: time.Nanosecond})
		m := catalogtest.AddPerson(t, c, "maria", api.RoleViewer)
		catalogtest.AddPerson(t, c, "olga", api.RoleOwner)
		later := time.Now().Add(time.Hour)
		s := catalogtest.Must(c.AddSession(t.Context(), api.SignIn{Kind: api.SessionOfPerson, Person: m.ID, ExpiresAt: later,
			Idle: time.Hour}, [32]byte{1}))(t)
		set := func(statement string, args ...any) {
			t.Helper()
			if _, err := c.Write.NewRaw(statement, args...).Exec(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		set("UPDATE sessions SET expires_at = expires_at + 1000000000 WHERE id = ?", s.ID)
		if _, err := c.SessionByHash(t.Context(), [32]byte{1}); !errors.Is(err, api.ErrNotFound) {
			t.Errorf("a session whose end was put off: %v", err)
		}
		if err := c.EndSession(t.Context(), s.ID); err != nil {
			t.Errorf("it cannot be ended: %v", err)
		}
		set("UPDATE memberships SET role = 'owner' WHERE person_id = ?", m.ID)
		if got := catalogtest.Must(c.Person(t.Context(), m.ID))(t); len(got.Roles) != 0 {
			t.Errorf("a role that was given behind the program's back counts: %v", got.Roles)
		}
		set("UPDATE people SET password = 'mine' WHERE id = ?", m.ID)
		if _, _, err := c.PersonByEmail(t.Context(), m.Email); !errors.Is(err, catalog.ErrCorrupt) {
			t.Errorf("a password that was put there behind the program's back: %v", err)
		}
		if in := catalogtest.Must(c.Members(t.Context(), api.DefaultOrg))(t); len(in) != 1 || in[0].Name != "olga" {
			t.Errorf("members are %+v", in)
		}
	})
}
