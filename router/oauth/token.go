package oauth

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"docent/api"
)

// Prefix begins each access token.
const Prefix = "dct_oat_"

// A grant is what a code or a token stands for.
type grant struct {
	Client  []byte // the hash of its id
	Project api.ProjectID
	Agent   bool          `json:",omitempty"`
	Scopes  []string      `json:",omitempty"`
	Reader  string        `json:",omitempty"` // the reader's token, which is verified with each request
	Key     []byte        `json:",omitempty"` // the hash of the key that a machine has shown
	Session api.SessionID `json:",omitempty"` // which ends when a code or a refresh token comes a second time
	Token   []byte        `json:",omitempty"` // of an access token: the hash of the refresh token that came with it
	End     int64         `json:",omitempty"` // of the whole grant
	Until   int64         // of this code or token

	Redirect, Challenge string `json:",omitempty"` // of a code
}

// key is what a grant amounts to at the API, in its project alone.
func (g grant) key(p api.Project, of string) api.Key {
	k := api.Key{ID: api.KeyID("oauth:" + of), Kind: api.AssistantKey, Org: p.Org, Project: p.ID}
	if g.Agent {
		k.Kind, k.Scopes = api.AdminKey, g.Scopes
	}
	return k
}

// errEnded says that what a grant stood on is gone.
var errEnded = &api.StateError{Kind: api.ErrUnauthorized, Reason: "this access has ended or was revoked: connect again"}

// Principal is the key that an access token stands for now, and the token of the reader who gave it, if one did. It fails
// with api.ErrUnauthorized if it stands for none.
func (s *Server) Principal(ctx context.Context, token string, from netip.Addr) (api.Key, string, error) {
	var g grant
	if s == nil || !s.open(asAccess, strings.TrimPrefix(token, Prefix), &g) || s.Now().Unix() >= g.Until {
		return api.Key{}, "", errEnded
	}
	k, _, err := s.holds(ctx, g, from)
	return k, g.Reader, err
}

// holds looks up what the giver of a grant may do now.
func (s *Server) holds(ctx context.Context, g grant, from netip.Addr) (k api.Key, p api.Project, err error) {
	if p, err = s.Catalog.Project(ctx, g.Project); err != nil {
		return k, p, ended(err)
	}
	if len(g.Key) == sha256.Size {
		if k, err = s.Catalog.KeyByHash(ctx, [32]byte(g.Key)); err == nil {
			err = k.Good(s.Now(), from)
		}
		if err != nil {
			return k, p, ended(err)
		}
		if g.Agent {
			all := k
			k.Project, k.Scopes = p.ID, slices.DeleteFunc(slices.Clone(g.Scopes), func(scope string) bool { return !all.Allows(scope) })
		}
		if !serves(k, p, g.Agent) || g.Agent && len(k.Scopes) == 0 { // no scopes would be all
			return k, p, errEnded
		}
		return k, p, nil
	}
	if len(g.Token) != sha256.Size {
		return k, p, errEnded
	}
	in, err := s.Catalog.SessionByHash(ctx, [32]byte(g.Token))
	if err != nil {
		return k, p, ended(err)
	}
	if in.Kind != api.SessionOfClient || in.ID != g.Session || !in.Live(s.Now()) {
		return k, p, errEnded
	}
	s.Catalog.TouchSession(api.SignIn{ID: in.ID}, s.Now()) // the program was here: its person perhaps not
	if g.Reader != "" {
		return g.key(p, string(p.ID)), p, nil // who it is and how long is verified with the token
	}
	person, err := s.Catalog.Person(ctx, in.Person)
	if err != nil {
		return k, p, ended(err)
	}
	k = g.key(p, string(person.ID))
	return k, p, ended(person.Rights().MayGive(api.GivenKey(k)))
}

// ended leaves errors alone after which one may try again.
func ended(err error) error {
	if errors.Is(err, api.ErrNotFound) || errors.Is(err, api.ErrForbidden) || errors.Is(err, api.ErrUnauthorized) {
		return errEnded
	}
	return err
}

// serves reports whether a key opens a project's tools by itself.
func serves(k api.Key, p api.Project, agent bool) bool {
	if agent {
		return k.Kind == api.AdminKey && k.Org == p.Org
	}
	return k.Reads() && k.Org == p.Org && k.Project == p.ID
}

// readForm reads the form of a request; a field that is there twice is refused (RFC 6749, section 3.2).
func readForm(w http.ResponseWriter, req *http.Request) (url.Values, error) {
	req.Body = http.MaxBytesReader(w, req.Body, maxForm)
	if err := req.ParseForm(); err != nil {
		return nil, refused{"invalid_request", "send a form, as application/x-www-form-urlencoded"}
	}
	for name, values := range req.PostForm {
		if len(values) > 1 {
			return nil, refused{"invalid_request", "a field is there more than once: " + clean(name)}
		}
	}
	return req.PostForm, nil
}

// token gives tokens for a code, for a refresh token, or for a key.
func (s *Server) token(w http.ResponseWriter, req *http.Request, from netip.Addr) error {
	form, err := readForm(w, req)
	var out map[string]any
	if err == nil {
		switch form.Get("grant_type") {
		case "authorization_code":
			out, err = s.redeem(req.Context(), form, from, asCode, form.Get("code"))
		case "refresh_token":
			out, err = s.redeem(req.Context(), form, from, asRefresh, form.Get("refresh_token"))
		case "client_credentials":
			out, err = s.machine(req, form, from)
		default:
			err = refused{"unsupported_grant_type", "grant_type is authorization_code, refresh_token, or client_credentials"}
		}
	}
	if err != nil {
		return refuse(w, err)
	}
	return answer(w, http.StatusOK, out)
}

// redeem takes a code or a refresh token, once. A token used twice may be stolen, so the whole grant ends.
func (s *Server) redeem(ctx context.Context, form url.Values, from netip.Addr, u use, sealed string) (map[string]any, error) {
	var g grant
	now := s.Now()
	client := sha256.Sum256([]byte(form.Get("client_id")))
	switch {
	case !s.open(u, sealed, &g), now.Unix() >= g.Until:
		return nil, refused{"invalid_grant", "the code or the refresh token is not valid or has expired"}
	case subtle.ConstantTimeCompare(client[:], g.Client) != 1:
		return nil, refused{"invalid_grant", "client_id: it was given to another client"}
	case u == asCode && form.Has("redirect_uri") && form.Get("redirect_uri") != g.Redirect:
		return nil, refused{"invalid_grant", "redirect_uri: it is another one than that of the request"}
	case u == asCode && !proves(form.Get("code_verifier"), g.Challenge):
		return nil, refused{"invalid_grant", "code_verifier: it is not that of the code_challenge"}
	}
	before := api.HashSecret(sealed)
	g.Token, g.Redirect, g.Challenge = before[:], "", ""
	_, p, err := s.holds(ctx, g, from)
	expires := now.Add(accessLife)
	if err == nil {
		if form.Has("resource") && strings.TrimSuffix(form.Get("resource"), "/") != s.resource(p, g.Agent) {
			return nil, refused{"invalid_target", "resource: it is another one than that of the request"}
		}
		if g.Reader != "" {
			var reader api.Reader
			if reader, err = s.Readers.Verify(ctx, p, g.Reader); err == nil && reader.Until.Before(expires) {
				expires = reader.Until
			}
		}
	}
	if scopes := narrow(form.Get("scope"), g.Scopes); err == nil && u == asRefresh && len(scopes) == 0 {
		return nil, refused{"invalid_scope", "scope: it is none of those that were given"}
	}
	var refresh string
	if err == nil {
		g.Token, g.Until = nil, g.End
		refresh = s.seal(asRefresh, g)
		err = s.Catalog.ReplaceToken(ctx, before, api.HashSecret(refresh), time.Unix(g.End, 0))
	}
	if err = ended(err); errors.Is(err, api.ErrUnauthorized) {
		if failed := s.Catalog.EndSession(context.WithoutCancel(ctx), g.Session); failed != nil {
			return nil, failed
		}
		return nil, refused{"invalid_grant", errEnded.Reason}
	}
	if err != nil {
		return nil, err
	}
	hash := api.HashSecret(refresh)
	g.Token = hash[:]
	if u == asRefresh {
		g.Scopes = narrow(form.Get("scope"), g.Scopes)
	}
	out := s.access(g, expires)
	out["refresh_token"] = refresh
	return out, nil
}

// access is the answer with an access token.
func (s *Server) access(g grant, expires time.Time) map[string]any {
	g.Until = expires.Unix()
	return map[string]any{"access_token": Prefix + s.seal(asAccess, g), "token_type": "Bearer",
		"expires_in": max(g.Until-s.Now().Unix(), 0), "scope": strings.Join(g.Scopes, " ")}
}

// machine gives a program that has an API key a token that is for one resource and ends soon. The key's id may be sent as
// the client's, or anything else.
func (s *Server) machine(req *http.Request, form url.Values, from netip.Addr) (map[string]any, error) {
	secret := form.Get("client_secret")
	if _, password, ok := req.BasicAuth(); ok {
		var err error
		if secret, err = url.QueryUnescape(password); err != nil {
			secret = ""
		}
	}
	unknown := refused{"invalid_client", "client_secret: send an API key that may be used from here"}
	if _, ok := api.ParseSecret(secret); !ok {
		return nil, unknown
	}
	hash := api.HashSecret(secret)
	k, err := s.Catalog.KeyByHash(req.Context(), hash)
	if err == nil {
		err = k.Good(s.Now(), from)
	}
	if err = ended(err); errors.Is(err, api.ErrUnauthorized) {
		return nil, unknown
	}
	if err != nil {
		return nil, err
	}
	p, agent, err := s.find(req.Context(), form.Get("resource"))
	if !form.Has("resource") && k.Reads() {
		p, err = s.Catalog.Project(req.Context(), k.Project)
	}
	if err != nil && !errors.Is(err, api.ErrNotFound) {
		return nil, err
	}
	if err != nil || !serves(k, p, agent) {
		return nil, refused{"invalid_target", "resource: name the address of tools that this key opens by itself"}
	}
	scopes := slices.DeleteFunc(slices.Clone(narrow(form.Get("scope"), scopesOf(agent))), func(scope string) bool {
		return agent && !k.Allows(scope)
	})
	if len(scopes) == 0 {
		return nil, refused{"invalid_scope", "scope: this key has none of them"}
	}
	return s.access(grant{Project: p.ID, Agent: agent, Scopes: scopes, Key: hash[:]}, s.Now().Add(accessLife)), nil
}
