package api

import (
	"errors"
	"testing"
	"time"
)

func TestNobodyGivesWhatTheyDoNotHold(t *testing.T) {
	ends := time.Now().Add(time.Hour)
	person := func(operator bool, role Role) Rights {
		return Person{Operator: operator, Roles: map[OrgID]Role{"a": role}}.Rights()
	}
	operator, owner, editor, viewer := person(true, RoleViewer), person(false, RoleOwner), person(false, RoleEditor),
		person(false, RoleViewer)
	both := GivenPerson(Person{Roles: map[OrgID]Role{"a": RoleViewer, "b": RoleViewer}})
	for _, c := range []struct {
		name  string
		who   Rights
		given Rights
		may   bool
	}{
		{"an operator gives operator", operator, Rights{Operator: true}, true},
		{"an operator gives a role anywhere", operator, GivenRole("b", RoleOwner), true},
		{"an owner gives owner", owner, GivenRole("a", RoleOwner), true},
		{"an owner gives operator", owner, Rights{Operator: true}, false},
		{"an owner gives a role elsewhere", owner, GivenRole("b", RoleViewer), false},
		{"an owner of the default organization gives operator",
			Person{Roles: map[OrgID]Role{DefaultOrg: RoleOwner}}.Rights(), Rights{Operator: true}, false},
		{"an owner lets in as an operator", owner, GivenPerson(Person{Operator: true, Roles: map[OrgID]Role{"a": RoleViewer}}), false},
		{"an owner lets in as who is elsewhere too", owner, both, false},
		{"an owner lets in as a disabled operator", owner, GivenPerson(Person{Operator: true, DisabledAt: &ends}), false},
		{"an owner gives a key", owner, GivenKey(Key{Kind: AdminKey, Org: "a"}), true},
		{"an owner gives a key elsewhere", owner, GivenKey(Key{Kind: AdminKey, Org: "b"}), false},
		{"an editor gives owner", editor, GivenRole("a", RoleOwner), false},
		{"a viewer gives a key that writes", viewer, GivenKey(Key{Kind: AdminKey, Org: "a"}), false},
		{"a viewer gives a key that only writes", viewer, GivenKey(Key{Kind: AdminKey, Org: "a", Scopes: []string{ScopeWrite}}), false},
		{"a viewer gives a key of readers", viewer, GivenKey(Key{Kind: AssistantKey, Org: "a", Project: "p"}), true},
		{"a viewer gives a key of a server", viewer, GivenKey(Key{Kind: ServerKey, Org: "a", Project: "p"}), true},
		{"an owner gives a key of a server elsewhere", owner, GivenKey(Key{Kind: ServerKey, Org: "b", Project: "p"}), false},
		{"a key gives a key of a server", Key{Kind: AdminKey, Org: "a"}.Rights(), GivenKey(Key{Kind: ServerKey, Org: "a"}), false},
		{"a key gives the least role", Key{Kind: AdminKey, Org: "a"}.Rights(), GivenRole("a", RoleViewer), false},
		{"a key gives a key", Key{Kind: AdminKey, Org: "a"}.Rights(), GivenKey(Key{Kind: AssistantKey, Org: "a"}), false},
		{"a key of the default organization gives operator", Key{Kind: AdminKey, Org: DefaultOrg}.Rights(), Rights{Operator: true}, false},
		{"who is disabled gives a role", Person{Operator: true, Roles: map[OrgID]Role{"a": RoleOwner}, DisabledAt: &ends}.Rights(),
			GivenRole("a", RoleViewer), false},
		{"nobody gives a role", Rights{}, GivenRole("a", RoleViewer), false},
	} {
		err := c.who.MayGive(c.given)
		if (err == nil) != c.may || err != nil && !errors.Is(err, ErrForbidden) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestAKeyHoldsNoMoreThanItsScopes(t *testing.T) {
	for name, c := range map[string]struct {
		key         Key
		role        Role
		read, write bool
	}{
		"both":      {Key{Kind: AdminKey, Org: "a"}, RoleEditor, true, true},
		"read":      {Key{Kind: AdminKey, Org: "a", Scopes: []string{ScopeRead}}, RoleViewer, true, false},
		"write":     {Key{Kind: AdminKey, Org: "a", Scopes: []string{ScopeWrite}}, RoleEditor, false, true},
		"assistant": {Key{Kind: AssistantKey, Org: "a", Project: "p"}, "", true, true},
	} {
		r := c.key.Rights()
		if r.Operator || r.Role("a") != c.role || r.Role(DefaultOrg) != "" || r.Admits("GET") != c.read || r.Admits("HEAD") != c.read ||
			r.Admits("POST") != c.write || r.Admits("DELETE") != c.write {
			t.Errorf("%s: %+v", name, r)
		}
	}
}
