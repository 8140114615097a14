// Package oauth implements an OAuth 2.1 authorization server for MCP clients, which need nothing but the server's address:
// metadata (RFC 8414, RFC 9728), client ID metadata documents and dynamic registration, authorization codes with PKCE,
// rotated refresh tokens, and client credentials.
//
// Everything that a client brings back is sealed with the kept secret: registrations, requests, codes, and tokens. The
// one thing that is stored is a session for each grant, under the hash of its code and then of its refresh token. It
// makes both work once, on all nodes and after a restart, and the person who gave the grant sees and ends it like any session.
// What a grant allows is looked up with each request: nobody's client does what they may not do themselves.
package oauth

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"time"

	"docent/api"
	"docent/internal/outbound"
)

// Catalog is what grants are looked up in.
type Catalog interface {
	AddSession(ctx context.Context, in api.SignIn, hash [32]byte) (api.SignIn, error)
	EndSession(ctx context.Context, id api.SessionID) error
	KeyByHash(ctx context.Context, hash [32]byte) (api.Key, error)
	Person(ctx context.Context, id api.PersonID) (api.Person, error)
	Project(ctx context.Context, id api.ProjectID) (api.Project, error)
	ProjectByDomain(ctx context.Context, domain string) (api.Project, error)
	// ReplaceToken gives the session that has one token another. It fails with api.ErrNotFound if none has it any more.
	ReplaceToken(ctx context.Context, before, after [32]byte, expires time.Time) error
	SessionByHash(ctx context.Context, hash [32]byte) (api.SignIn, error)
	TouchSession(in api.SignIn, at time.Time)
}

// Readers verifies who a reader is, by a token of the site's server.
type Readers interface {
	Verify(ctx context.Context, p api.Project, token string) (api.Reader, error)
}

// Deps is what a server works with. All of it is needed but Policy and Now.
type Deps struct {
	Catalog   Catalog
	Readers   Readers
	Policy    outbound.Policy // which addresses clients may be described at, beside public ones
	Secret    []byte          // seals; kept, and the same on all nodes
	PublicURL string          // the issuer, without a slash at the end
	Now       func() time.Time
}

// A Server lets clients in.
type Server struct {
	Deps
	aead cipher.AEAD
	http *http.Client

	mu        sync.Mutex
	documents map[string]document // of clients, by their addresses
}

// New returns a server; nil if the public address is not one at which tokens may be sent: https, or this machine.
func New(d Deps) *Server {
	at, err := url.Parse(d.PublicURL)
	if err != nil || at.Host == "" || at.Scheme != "https" && !(at.Scheme == "http" && api.Loopback(at)) {
		return nil
	}
	if d.Now == nil {
		d.Now = time.Now
	}
	d.PublicURL = strings.TrimRight(d.PublicURL, "/")
	block, err := aes.NewCipher(api.Sign(d.Secret, "oauth", nil))
	if err != nil {
		panic(err) // the key has the length of SHA-256
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic(err) // AES has blocks of the one length that GCM takes
	}
	return &Server{Deps: d, aead: aead, documents: map[string]document{}, http: d.Policy.Client(nil, fetchTimeout)}
}

// A use is what a sealed text is for: none is taken for one of another use.
type use string

const (
	asClient  use = "client"
	asRequest use = "request"
	asCode    use = "code"
	asAccess  use = "access"
	asRefresh use = "refresh"
)

// maxSealed bounds what is opened: a grant with the longest reader token.
const maxSealed = 16 << 10

func (s *Server) seal(u use, v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // of our own structs of strings and numbers
	}
	return base64.RawURLEncoding.EncodeToString(s.aead.Seal(nil, nil, text, []byte(u)))
}

func (s *Server) open(u use, sealed string, into any) bool {
	if len(sealed) > maxSealed {
		return false
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(sealed)
	if err != nil {
		return false
	}
	text, err := s.aead.Open(nil, nil, raw, []byte(u))
	return err == nil && json.Unmarshal(text, into) == nil
}

// The paths that metadata names.
const (
	// AuthorizePath is where browsers are sent: a page of package web.
	AuthorizePath    = "/oauth/authorize"
	tokenPath        = "/oauth/token"
	registerPath     = "/oauth/register"
	readerPath       = "/oauth/reader"
	serverMetadata   = "/.well-known/oauth-authorization-server"
	resourceMetadata = "/.well-known/oauth-protected-resource"
	readersResource  = "/mcp/"
	agentResource    = "/mcp/agent/"
)

// A Route is one operation that needs no key. What it serves has answered; its error is for the log.
type Route struct {
	Method, Pattern string
	Serve           func(w http.ResponseWriter, req *http.Request, from netip.Addr) error
}

// Routes returns the operations. Pages of any origin may call them: none reads a cookie.
func (s *Server) Routes() []Route {
	if s == nil {
		return nil
	}
	return []Route{
		{http.MethodGet, serverMetadata, s.describe},
		{http.MethodGet, resourceMetadata + readersResource + ":domain", s.describeResource},
		{http.MethodGet, resourceMetadata + agentResource + ":projectId", s.describeResource},
		{http.MethodPost, registerPath, s.register},
		{http.MethodPost, readerPath, s.fromSite},
		{http.MethodPost, tokenPath, s.token},
	}
}

// Challenge names in the refusal of a request for a resource where a client finds how to be let in.
func (s *Server) Challenge(h http.Header, status int, path string) {
	said := h.Get("WWW-Authenticate")
	if s == nil || !strings.HasPrefix(path, readersResource) || status != http.StatusUnauthorized && (status != http.StatusForbidden || said == "") {
		return
	}
	if said == "" {
		said = `Bearer realm="docent"`
	}
	said += `, resource_metadata="` + s.PublicURL + resourceMetadata + path + `"`
	if !strings.Contains(said, "scope=") {
		said += `, scope="` + strings.Join(scopesOf(strings.HasPrefix(path, agentResource)), " ") + `"`
	}
	h.Set("WWW-Authenticate", said)
}

func (s *Server) describe(w http.ResponseWriter, _ *http.Request, _ netip.Addr) error {
	at := s.PublicURL
	return answer(w, http.StatusOK, map[string]any{"issuer": at, "authorization_endpoint": at + AuthorizePath,
		"token_endpoint": at + tokenPath, "registration_endpoint": at + registerPath, "scopes_supported": scopesOf(true),
		"response_types_supported": []string{"code"}, "response_modes_supported": []string{"query"},
		"grant_types_supported":                          []string{"authorization_code", "refresh_token", "client_credentials"},
		"token_endpoint_auth_methods_supported":          []string{"none", "client_secret_basic", "client_secret_post"},
		"code_challenge_methods_supported":               []string{"S256"},
		"authorization_response_iss_parameter_supported": true, "client_id_metadata_document_supported": true,
		"service_documentation": at + "/docs/assistant/mcp"})
}

// describeResource says the same of each address: who asks learns nothing of which projects exist.
func (s *Server) describeResource(w http.ResponseWriter, req *http.Request, _ netip.Addr) error {
	path := strings.TrimPrefix(req.URL.EscapedPath(), resourceMetadata)
	return answer(w, http.StatusOK, map[string]any{"resource": s.PublicURL + path, "authorization_servers": []string{s.PublicURL},
		"scopes_supported": scopesOf(strings.HasPrefix(path, agentResource)), "bearer_methods_supported": []string{"header"},
		"resource_name": "Docent", "resource_documentation": s.PublicURL + "/docs/assistant/mcp"})
}

// scopesOf are the scopes of a resource: who reads only reads, and the agent's tools need both.
func scopesOf(agent bool) []string {
	if agent {
		return []string{api.ScopeRead, api.ScopeWrite}
	}
	return []string{api.ScopeRead}
}

// resource is the address of a project's tools, for which a token is.
func (s *Server) resource(p api.Project, agent bool) string {
	if agent {
		return s.PublicURL + agentResource + string(p.ID)
	}
	return s.PublicURL + readersResource + p.Domain
}

// find finds the project of a resource, or fails with api.ErrNotFound.
func (s *Server) find(ctx context.Context, resource string) (p api.Project, agent bool, err error) {
	path, ours := strings.CutPrefix(strings.TrimSuffix(resource, "/"), s.PublicURL)
	if !ours || len(path) > 512 {
		return p, false, api.ErrNotFound
	}
	if id, is := strings.CutPrefix(path, agentResource); is {
		agent = true
		p, err = s.Catalog.Project(ctx, api.ProjectID(id))
	} else if domain, is := strings.CutPrefix(path, readersResource); is {
		p, err = s.Catalog.ProjectByDomain(ctx, domain)
	} else {
		return p, false, api.ErrNotFound
	}
	return p, agent, err
}

// answer writes JSON that nobody keeps.
func answer(w http.ResponseWriter, status int, body any) error {
	text, err := json.Marshal(body)
	if err != nil {
		text = []byte("{}") // strings and numbers: cannot happen
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	w.Write(text) // a client that has gone is no error of ours
	return nil
}

// refused is an error in OAuth's form (RFC 6749, section 5.2).
type refused struct {
	Code   string `json:"error"`
	Reason string `json:"error_description"`
}

func (r refused) Error() string { return r.Reason }

// refuse answers with an error, and returns it if it is the server's own.
func refuse(w http.ResponseWriter, err error) error {
	said, ok := errors.AsType[refused](err)
	switch {
	case !ok:
		w.Header().Set("Retry-After", "2")
		_ = answer(w, http.StatusServiceUnavailable, refused{"temporarily_unavailable", "try again shortly"})
		return err
	case said.Code == "invalid_client":
		w.Header().Set("WWW-Authenticate", `Basic realm="docent"`)
		return answer(w, http.StatusUnauthorized, said)
	}
	return answer(w, http.StatusBadRequest, said)
}
