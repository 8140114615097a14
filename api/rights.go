package api

import (
	"maps"
	"net/http"
	"slices"
)

// Rights are what somebody who is signed in holds: a person, an admin key, or who came by the operator's link. All that
// is given to others is measured by them: see MayGive.
type Rights struct {
	Operator bool           // runs the server; has the role of an owner in each organization
	Roles    map[OrgID]Role // shared with other callers: read only
	Key      *Key           // the key that has them; nil if none does
}

// Rights are what a person holds who may sign in. Who is disabled holds nothing.
func (p Person) Rights() Rights {
	if p.DisabledAt != nil {
		return Rights{}
	}
	return Rights{Operator: p.Operator, Roles: p.Roles}
}

// Rights are what an admin key holds: in its organization it reads as a viewer, and changes what an editor may. They hold
// within the key's limits: ask Good for its end and its addresses, and Admits for its scopes.
func (k Key) Rights() Rights {
	r := Rights{Key: &k}
	if k.Kind == AdminKey {
		r.Roles = map[OrgID]Role{k.Org: RoleViewer}
		if k.Allows(ScopeWrite) {
			r.Roles[k.Org] = RoleEditor
		}
	}
	return r
}

// Role is what one may do in an organization; empty for one that is not theirs.
func (r Rights) Role(org OrgID) Role {
	if r.Operator {
		return RoleOwner
	}
	return r.Roles[org]
}

// Admits reports whether a request with that method is within the scopes of the key that the rights are of, if they are
// a key's.
func (r Rights) Admits(method string) bool { return r.Key == nil || r.Key.Allows(ScopeOf(method)) }

// ScopeOf is the scope that a key needs for a request with that method.
func ScopeOf(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return ScopeRead
	}
	return ScopeWrite
}

// GivenRole is what somebody holds who is given a role in an organization.
func GivenRole(org OrgID, role Role) Rights { return Rights{Roles: map[OrgID]Role{org: role}} }

// GivenKey is what the holder of a new key can do with it: with an assistant or server key, read what a viewer may.
func GivenKey(k Key) Rights {
	if k.Reads() {
		return GivenRole(k.Org, RoleViewer)
	}
	return GivenRole(k.Org, k.Rights().Roles[k.Org])
}

// GivenPerson is what somebody holds who is let in as a person, also once that person is enabled again.
func GivenPerson(p Person) Rights { return Rights{Operator: p.Operator, Roles: p.Roles} }

var (
	errKeyGives = &StateError{Kind: ErrForbidden,
		Reason: "a session that was opened with a key gives no rights to others: sign in as a person"}
	errOperatorGives = &StateError{Kind: ErrForbidden, Reason: "only an operator of this server can give the rights of an operator"}
)

// MayGive returns nil if somebody who holds r may give what others will hold then: nobody gives what they do not hold. It
// is asked for each role, invitation, key and link, in whatever way it comes about. A key gives nothing: what it gave
// would be without the key's scopes, addresses and end.
func (r Rights) MayGive(given Rights) error {
	switch {
	case r.Key != nil:
		return errKeyGives
	case r.Operator:
		return nil
	case given.Operator:
		return errOperatorGives
	}
	for _, org := range slices.Sorted(maps.Keys(given.Roles)) {
		if role := given.Roles[org]; !r.Role(org).AtLeast(role) {
			return &StateError{Kind: ErrForbidden, Reason: "you cannot give the rights of the role " + string(role) +
				" in the organization " + string(org) + ": you do not hold them"}
		}
	}
	return nil
}
