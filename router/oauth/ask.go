package oauth

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"docent/api"
)

const (
	maxQuery  = 2600    // bytes of a request: a sign-in with a provider keeps it in a cookie
	maxReader = 4 << 10 // bytes of a reader's token, which goes through an address
	// RequestLife is how long somebody has to sign in and decide.
	RequestLife = 15 * time.Minute
	codeLife    = time.Minute
	accessLife  = time.Hour
	// grantLife is how long a client is let in without being asked for again, and grantIdle how long it may stay away.
	grantLife = 90 * 24 * time.Hour
	grantIdle = 30 * 24 * time.Hour
)

// A Request is what a client asks somebody for.
type Request struct {
	Client    Client // as it describes itself; empty before Identify
	ClientID  string
	Redirect  string // where the answer goes
	State     string
	Challenge string
	Scopes    []string
	Project   api.Project
	Agent     bool // for the tools of the project's jobs
}

// To is where the answer goes, in words.
func (r Request) To() string {
	u, err := url.Parse(r.Redirect)
	switch {
	case err != nil:
		return ""
	case u.Scheme == "http":
		return "a program on your own machine"
	case u.Scheme != "https":
		return "the program that opens " + u.Scheme + ":// on your machine"
	}
	return u.Host
}

// Local reports whether the answer goes to a program on the machine of who is asked: any program there could say that it
// is this client.
func (r Request) Local() bool { return !strings.HasPrefix(r.Redirect, "https:") }

// Writes reports whether the client asks for more than to read.
func (r Request) Writes() bool { return slices.Contains(r.Scopes, api.ScopeWrite) }

// ErrUnknown is part of Server.Unknown.
var ErrUnknown = errors.New("no such resource")

// Unknown refuses a resource that is not there, or that who asks may not learn of.
func (s *Server) Unknown() error {
	return fmt.Errorf("%w: %w", ErrUnknown, invalid("resource",
		"must be the address of the tools of a project here, such as "+s.PublicURL+"/mcp/docs.example.com"))
}

// Read reads a request. Its errors are for a page: nobody is sent anywhere before somebody has decided. With ErrUnknown
// all of the request is good but its resource.
func (s *Server) Read(ctx context.Context, query string) (r Request, err error) {
	q, err := url.ParseQuery(query)
	if err != nil || len(query) > maxQuery || !utf8.ValidString(query) {
		return r, invalid("query", "is too long or not well formed")
	}
	for name, values := range q {
		if len(values) > 1 {
			return r, invalid(name, "must be sent once")
		}
	}
	r = Request{ClientID: q.Get("client_id"), Redirect: q.Get("redirect_uri"), State: q.Get("state"), Challenge: q.Get("code_challenge")}
	r.Project, r.Agent, err = s.find(ctx, q.Get("resource"))
	if err != nil && !errors.Is(err, api.ErrNotFound) {
		return r, err
	}
	switch {
	case q.Get("response_type") != "code":
		return r, invalid("response_type", "must be code")
	case q.Get("code_challenge_method") != "S256" || len(r.Challenge) != 43:
		return r, invalid("code_challenge", "is required, with the code_challenge_method S256")
	case r.ClientID == "":
		return r, invalid("client_id", "is required")
	case !redirectable(r.Redirect):
		return r, invalid("redirect_uri", "must be https, http on the user's machine, or a known program's scheme")
	}
	if r.Scopes = narrow(q.Get("scope"), scopesOf(r.Agent)); len(r.Scopes) == 0 {
		return r, invalid("scope", "must be "+strings.Join(scopesOf(r.Agent), " or "))
	}
	if err != nil {
		return r, s.Unknown()
	}
	return r, nil
}

// narrow is what is asked for of what there is; all if nothing is asked for. What is not known is passed over.
func narrow(asked string, all []string) []string {
	wanted := strings.Fields(asked)
	if len(wanted) == 0 {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), func(scope string) bool { return !slices.Contains(wanted, scope) })
}

// Identify finds the client of a request. It is asked for people who are known, since it may fetch the client's description.
func (s *Server) Identify(ctx context.Context, r *Request) (err error) {
	if r.Client, err = s.client(ctx, r.ClientID); err != nil {
		return invalid("client_id", err.Error())
	}
	if !r.Client.takes(r.Redirect) {
		return invalid("redirect_uri", "is not registered for this client")
	}
	if r.Client.Name == "" {
		r.Client.Name = "A client without a name"
	}
	return nil
}

// kept is a request on its way, sealed: to the site and back, and from the page to what its form does.
type kept struct {
	Query   string
	Browser []byte // the hash of what the browser has: another one's request is not taken up
	Reader  string `json:",omitempty"`
	Until   int64
}

// Keep seals a request for the browser that has that cookie, and for the reader with that token if there is one.
func (s *Server) Keep(query, cookie, reader string) string {
	browser := sha256.Sum256([]byte(cookie))
	return s.seal(asRequest, kept{query, browser[:], reader, s.Now().Add(RequestLife).Unix()})
}

// Kept opens a request that was sealed for the same browser.
func (s *Server) Kept(sealed, cookie string) (query, reader string, ok bool) {
	var k kept
	if !s.open(asRequest, sealed, &k) || s.Now().Unix() > k.Until || cookie == "" {
		return "", "", false
	}
	browser := sha256.Sum256([]byte(cookie))
	return k.Query, k.Reader, subtle.ConstantTimeCompare(browser[:], k.Browser) == 1
}

// fromSite takes what a project's site says of who a reader is, from a form that the reader's browser sends, so that no
// address and no log has it. The page looks whether it is the browser that was sent there in time, and whose token it is.
func (s *Server) fromSite(w http.ResponseWriter, req *http.Request, _ netip.Addr) error {
	form, err := readForm(w, req)
	if err != nil {
		return refuse(w, err)
	}
	var k kept
	if !s.open(asRequest, form.Get("request"), &k) {
		return refuse(w, refused{"invalid_request", "the request is unknown or expired. Connect again from the program"})
	}
	r, err := s.Read(req.Context(), k.Query)
	if _, ours := errors.AsType[*api.InvalidError](err); err != nil && !ours {
		return refuse(w, err)
	}
	k.Reader = form.Get("token")
	if err != nil || r.Project.ReaderSignIn == "" || k.Reader == "" || len(k.Reader) > maxReader {
		return refuse(w, refused{"invalid_request", "the project has no sign-in for readers, or the token is missing or too long"})
	}
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Location", AuthorizePath+"?request="+url.QueryEscape(s.seal(asRequest, k)))
	w.WriteHeader(http.StatusSeeOther)
	return nil
}

// A Holder is who gives a client what they hold: a person, or a reader by the token of the site's server.
type Holder struct {
	Person  api.Person
	Reader  string
	Address string
}

// May says why a holder may not give what a request asks for; nil if they may. The end is when the holder's own right ends.
func (s *Server) May(ctx context.Context, r Request, h Holder) (who string, end time.Time, err error) {
	end = s.Now().Add(grantLife)
	if h.Reader == "" {
		if h.Person.ID == "" {
			return "", end, &api.StateError{Kind: api.ErrForbidden, Reason: "a session that was opened with a key or a link lets no client in: sign in as a person"}
		}
		return h.Person.Name, end, h.Person.Rights().MayGive(api.GivenKey(grant{Agent: r.Agent, Scopes: r.Scopes}.key(r.Project, "")))
	}
	reader, err := s.Readers.Verify(ctx, r.Project, h.Reader)
	if err == nil && r.Agent {
		err = &api.StateError{Kind: api.ErrForbidden, Reason: "readers have no part in the jobs of a project"}
	}
	return reader.Subject, reader.Until, err
}

// Allow makes the address that a client's answer goes to, with a code. Somebody has decided so.
func (s *Server) Allow(ctx context.Context, r Request, h Holder) (string, error) {
	who, end, err := s.May(ctx, r, h)
	if err != nil {
		return "", err
	}
	now := s.Now()
	in := api.SignIn{ID: api.SessionID(api.NewID(api.SessionPrefix, now)), Kind: api.SessionOfClient, Person: h.Person.ID,
		Client: h.Address, Agent: r.Client.Name, How: "OAuth for " + r.Project.Domain, CreatedAt: now, ExpiresAt: now.Add(codeLife), Idle: grantIdle}
	if h.Reader != "" { // no person's, and no operator's either
		hash := sha256.Sum256([]byte("reader\x00" + string(r.Project.ID) + "\x00" + who))
		in.Person, in.Key = "", hash[:]
	}
	client := sha256.Sum256([]byte(r.ClientID))
	g := grant{Client: client[:], Project: r.Project.ID, Agent: r.Agent, Scopes: r.Scopes, Reader: h.Reader,
		Session: in.ID, End: end.Unix(), Until: now.Add(codeLife).Unix(), Redirect: r.Redirect, Challenge: r.Challenge}
	code := s.seal(asCode, g)
	if _, err := s.Catalog.AddSession(ctx, in, api.HashSecret(code)); err != nil {
		return "", err
	}
	return s.reply(r, "code", code), nil
}

// Deny makes the address that a client's answer goes to if somebody refuses.
func (s *Server) Deny(r Request) string { return s.reply(r, "error", "access_denied") }

// reply says whose the answer is too (RFC 9207): a client that asks at several servers is not misled.
func (s *Server) reply(r Request, name, value string) string {
	u, err := url.Parse(r.Redirect)
	if err != nil {
		return "/" // it was parsed before
	}
	q := url.Values{name: {value}, "iss": {s.PublicURL}}
	if r.State != "" {
		q.Set("state", r.State)
	}
	u.RawQuery = strings.TrimPrefix(u.RawQuery+"&"+q.Encode(), "&")
	return u.String()
}

// proves reports whether a verifier is that of a challenge (RFC 7636).
func proves(verifier, challenge string) bool {
	sum := sha256.Sum256([]byte(verifier))
	return len(verifier) >= 43 && len(verifier) <= 128 &&
		subtle.ConstantTimeCompare([]byte(base64.RawURLEncoding.EncodeToString(sum[:])), []byte(challenge)) == 1
}
