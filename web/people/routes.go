// Package people provides the pages for signing in, for accounts and for the people of an organization.
package people

import (
	"time"

	"docent/router/oauth"
	"docent/web/console"
	"docent/web/password"
)

// Deps is what the pages work with.
type Deps struct {
	Catalog Catalog
	// Provider signs people in by OpenID Connect. There is none if it is nil.
	Provider Provider
	// Newcomers says who may sign in with the provider without having been invited.
	Newcomers Newcomers
	// Counts counts the attempts to sign in on several nodes. A single node counts in memory if it is nil.
	Counts Counts
	// Clients lets clients of MCP in. Nobody is asked for them if it is nil.
	Clients *oauth.Server
}

type handler struct {
	*console.Server
	Deps
	passwords *password.Hasher
}

// Routes returns the pages, and what their forms do.
func Routes(s *console.Server, d Deps) []console.Route {
	if d.Counts == nil {
		d.Counts = &attempts{now: func() time.Time { return s.Now() }, failed: map[attempted]attempt{}}
	}
	h := &handler{Server: s, Deps: d, passwords: password.NewHasher()}
	return []console.Route{
		// Sign-in
		console.Get("/login", console.Anybody, h.showLogin),
		console.Post("/login", console.Anybody, h.login),
		console.Post("/logout", console.Anybody, h.logout),
		console.Get("/login/oidc", console.Anybody, h.loginWithProvider),
		console.Get(callbackPath, console.Anybody, h.fromProvider),
		console.Get("/enter/:token", console.Anybody, h.showEnter), // a one-time link
		console.Post("/enter/:token", console.Anybody, h.enter),
		console.Get("/invite/:token", console.Anybody, h.showInvitation),
		console.Post("/invite/:token", console.Anybody, h.acceptInvitation),
		console.Post("/invite/:token/provider", console.Anybody, h.joinWithProvider),

		// Whom a client is to act for: who is signed in, or a reader whom the site knows
		console.Get(oauth.AuthorizePath, console.Anybody, h.showAuthorize),
		console.Post(oauth.AuthorizePath+"/decide", console.Anybody, h.decide),

		// Everyone who is signed in
		console.Get(accountPath, console.SignedIn, h.showAccount),
		console.Post(accountPath+"/name", console.SignedIn, h.renameMe),
		console.Post(accountPath+"/password", console.SignedIn, h.changePassword),
		console.Post(accountPath+"/connect", console.SignedIn, h.connectMe),
		console.Post(accountPath+"/disconnect", console.SignedIn, h.disconnectMe),
		console.Post(accountPath+"/end", console.SignedIn, h.endSession),
		console.Post(accountPath+"/end-others", console.SignedIn, h.endOtherSessions),
		console.Post(accountPath+"/make", console.SignedIn, h.makeOwner),

		// An organization's people
		console.Get("/console/:org/people", console.Viewer|console.NotKeys, h.showPeople),
		console.Post("/console/:org/people/invite", console.Owner|console.NotKeys, h.invite),
		console.Post("/console/:org/people/revoke", console.Owner|console.NotKeys, h.revokeInvitation),
		console.Post("/console/:org/people/role", console.Owner|console.NotKeys, h.changeRole),
		console.Post("/console/:org/people/operator", console.Operator|console.NotKeys, h.changeOperator),
		console.Post("/console/:org/people/remove", console.Owner|console.NotKeys, h.removePerson),
		console.Post("/console/:org/people/disable", console.Owner|console.NotKeys, h.disablePerson),
		console.Post("/console/:org/people/link", console.Owner|console.NotKeys, h.linkPerson),
		console.Post("/console/:org/people/unlink", console.Owner|console.NotKeys, h.revokePersonsLink),
		console.Post("/console/:org/people/end", console.Owner|console.NotKeys, h.endPersonsSessions),
	}
}
