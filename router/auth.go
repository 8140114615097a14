package router

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/uptrace/bunrouter"

	"docent/api"
	"docent/router/oauth"
	"docent/router/ownkey"
)

// The errors for a key that is refused. A key that was revoked, has expired or never was reads the same:
// who guesses keys learns nothing.
var (
	errNoKey = &keyError{kind: api.ErrUnauthorized,
		reason: `send an API key in the header Authorization: the word Bearer, a space and the key`}
	errBadKey = &keyError{kind: api.ErrUnauthorized,
		reason:    "this API key is not valid: it is mistyped, unknown, revoked or expired",
		challenge: `error="invalid_token"`}
)

// forReader is the refusal of a key in words for the readers of a site. Chat clients show them what they are
// answered, and whose key it is are others.
func forReader(err error) error {
	switch err {
	case errNoKey:
		return &keyError{kind: errNoKey.kind, challenge: errNoKey.challenge,
			reason: "The assistant and the search do not work here: this page sends no API key. Please tell those who run this site."}
	case errBadKey:
		return &keyError{kind: errBadKey.kind, challenge: errBadKey.challenge,
			reason: "The assistant and the search do not work here: the API key of this page is mistyped, unknown, revoked or expired. Please tell those who run this site."}
	}
	return err
}

// authorize finds out who calls and whether that key may do this from there; an admin key may too, where admins may.
func (s *Server) authorize(x *exchange, req bunrouter.Request, want api.KeyKind, admins bool) error {
	headers := req.Header.Values("Authorization")
	if len(headers) == 0 {
		s.metrics.refuse("unauthorized")
		return errNoKey
	}
	if len(headers) > 1 {
		return &keyError{kind: api.ErrUnauthorized, reason: "send one Authorization header, not several",
			challenge: `error="invalid_request"`}
	}
	scheme, secret, _ := strings.Cut(strings.TrimSpace(headers[0]), " ")
	secret = strings.TrimSpace(secret)
	if !strings.EqualFold(scheme, "Bearer") || secret == "" {
		return errNoKey
	}
	// A client that sends nothing more may read on: what is looked up for it is short, and is not broken off.
	key, signed, err := s.principal(context.WithoutCancel(req.Context()), secret, x.client, s.Now())
	if err != nil {
		if errors.Is(err, api.ErrUnauthorized) {
			s.metrics.refuse("unauthorized")
		}
		return err
	}
	x.key, x.signed, x.bound = key, signed, strings.HasPrefix(secret, oauth.Prefix)
	if x.bound && !ofTools(req.Request) && !strings.HasPrefix(x.route, "/mcp/") { // it has come by OAuth
		return &keyError{kind: api.ErrForbidden, reason: "this access is to the tools of one project alone: other operations need an API key"}
	}
	if admins && key.Kind == api.AdminKey {
		want = api.AdminKey
	}
	if key.Kind != want && !(want == api.AssistantKey && key.Reads()) {
		other := map[api.KeyKind]string{api.AdminKey: "an admin key", api.AssistantKey: "an assistant key",
			api.ServerKey: "a server key"}
		return &keyError{kind: api.ErrForbidden,
			reason: fmt.Sprintf("this operation needs %s, and this is %s", other[want], other[key.Kind])}
	}
	if want == api.AdminKey {
		if err := scope(key, req.Method); err != nil {
			return err
		}
	} else if err := origin(key, req); err != nil {
		return err
	}
	s.Catalog.TouchKey(key.ID, x.started)
	return nil
}

// mayFollow refuses who follows a job once their key is good no more: that may take hours.
func (s *Server) mayFollow(x *exchange, req bunrouter.Request) error {
	if err := s.authorize(x, req, api.AdminKey, false); err != nil {
		return err
	}
	return s.findProject(x, req)
}

// findProject finds the project that an operation is about. One of another organization is answered like an
// unknown one, and so is, for an assistant key, every project but its own.
func (s *Server) findProject(x *exchange, req bunrouter.Request) error {
	if x.key.Kind == api.AdminKey && param(req, "domain") == "" {
		project, err := s.Catalog.Project(context.WithoutCancel(req.Context()), api.ProjectID(param(req, "projectId")))
		if err != nil {
			return api.Named(err, "project")
		}
		if project.Org != x.key.Org || x.bound && project.ID != x.key.Project {
			return api.Missing("project")
		}
		x.project = project
		return nil
	}
	if x.openai {
		project, err := s.Catalog.Project(context.WithoutCancel(req.Context()), x.key.Project)
		if err == nil && project.Org != x.key.Org {
			return api.Missing("project")
		}
		x.project = project
		return api.Named(err, "project")
	}
	project, err := s.Catalog.ProjectByDomain(context.WithoutCancel(req.Context()), param(req, "domain"))
	if err != nil {
		return api.Named(err, "domain")
	}
	if project.ID != x.key.Project && x.key.Kind != api.AdminKey || project.Org != x.key.Org {
		return api.Missing("domain")
	}
	x.project = project
	return nil
}

// principal is the key that a secret stands for, if it is good now and from there, and the token of the reader who let a
// client in.
func (s *Server) principal(ctx context.Context, secret string, client netip.Addr, now time.Time) (key api.Key, signed string, err error) {
	if strings.HasPrefix(secret, oauth.Prefix) {
		if key, signed, err = s.OAuth.Principal(ctx, secret, client); errors.Is(err, api.ErrUnauthorized) {
			err = errBadKey
		}
		return key, signed, err
	}
	key, err = s.keyOf(ctx, secret, client, now)
	return key, "", err
}

func (s *Server) keyOf(ctx context.Context, secret string, client netip.Addr, now time.Time) (api.Key, error) {
	if key, ours, good := ownkey.Read(s.Secret, secret, now); ours {
		if !good {
			return api.Key{}, errBadKey
		}
		p, err := s.Catalog.Project(ctx, key.Project)
		if err != nil {
			return api.Key{}, errBadKey
		}
		key.Org = p.Org
		return usable(key, now, client)
	}
	kind, ok := api.ParseSecret(secret)
	if !ok {
		return api.Key{}, errBadKey // mistyped, or no key of ours: no lookup needed
	}
	key, err := s.keyByHash(ctx, api.HashSecret(secret), client, now)
	if err == nil && key.Kind != kind {
		return api.Key{}, errBadKey
	}
	return key, err
}

// keyByHash is the key with that hash, if it is good now and from there.
func (s *Server) keyByHash(ctx context.Context, hash [32]byte, client netip.Addr, now time.Time) (api.Key, error) {
	key, err := s.Catalog.KeyByHash(ctx, hash)
	switch {
	case errors.Is(err, api.ErrNotFound):
		return api.Key{}, errBadKey
	case err != nil:
		return api.Key{}, fmt.Errorf("look up the key: %w", err)
	}
	return usable(key, now, client)
}

// usable is a key, if it is good now and from there.
func usable(key api.Key, now time.Time, client netip.Addr) (api.Key, error) {
	switch err := key.Good(now, client); {
	case errors.Is(err, api.ErrUnauthorized):
		return api.Key{}, errBadKey
	case err != nil:
		return api.Key{}, &keyError{kind: api.ErrForbidden, reason: "this key may not be used from this address"}
	}
	return key, nil
}

// scope refuses an admin key that may not read, or not write. A key without scopes may do both.
func scope(key api.Key, method string) error {
	need := api.ScopeOf(method)
	if key.Allows(need) {
		return nil
	}
	return &keyError{kind: api.ErrForbidden, reason: fmt.Sprintf("this key lacks the scope %q", need),
		challenge: fmt.Sprintf(`error="insufficient_scope", scope="%s"`, need)}
}

// origin refuses every browser page a server key, and one that an assistant key is not meant for. A browser leaves
// Origin out of a GET to the page's own host; there its Referer says the same.
func origin(key api.Key, req bunrouter.Request) error {
	if key.Kind == api.ServerKey && req.Header.Get("Origin") != "" {
		return &keyError{kind: api.ErrForbidden, reason: "this is a server key, and the request comes from a browser (it has an Origin): " +
			"a server key is secret and never in a page. Revoke it if it was published, and use an assistant key in pages"}
	}
	if len(key.Origins) == 0 {
		return nil
	}
	from := req.Header.Get("Origin")
	if from == "" && safe(req.Method) {
		if u, err := url.Parse(req.Header.Get("Referer")); err == nil && u.Host != "" {
			from = u.Scheme + "://" + u.Host
		}
	}
	same := func(o string) bool { return strings.EqualFold(strings.TrimRight(o, "/"), from) }
	if slices.ContainsFunc(key.Origins, same) {
		return nil
	}
	return &keyError{kind: api.ErrForbidden, reason: "this key may only be used from the origins that it was made for"}
}

// channel is the way by which a question came: browsers say of themselves that they are, and keys of chats which.
func channel(x *exchange, req *http.Request) api.Channel {
	if req.Header.Get("Origin") != "" || req.Header.Get("Sec-Fetch-Mode") != "" {
		return api.ChannelWeb
	}
	return ownkey.Channel(x.key.ID)
}
