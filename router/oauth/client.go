package oauth

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"

	"docent/api"
	"docent/internal/brief"
)

// Bounds of what strangers register and publish.
const (
	maxForm      = 64 << 10 // bytes of a request
	maxDocument  = 16 << 10
	maxRedirects = 10
	maxRedirect  = 500  // bytes of one
	maxID        = 1600 // bytes of what a registration is sealed into: it comes back with each request
	maxName      = 60   // characters
	maxDocuments = 100  // that are remembered
	fetchTimeout = 5 * time.Second
	freshFor     = 10 * time.Minute
)

// A Client is a program that wants to be let in, as it describes itself.
type Client struct {
	Name      string   `json:"client_name"`
	Redirects []string `json:"redirect_uris"`
	// Host is the one that publishes the description, at the address that is the client's id; empty if it was registered,
	// so that nobody knows whose it is.
	Host string `json:"-"`
}

// A document is the description of a client, or why there is none, as it was last fetched.
type document struct {
	client Client
	err    error
	until  time.Time
}

// register seals what a client says of itself into its id (RFC 7591): nothing is stored.
func (s *Server) register(w http.ResponseWriter, req *http.Request, _ netip.Addr) error {
	var c Client
	if err := json.NewDecoder(http.MaxBytesReader(w, req.Body, maxForm)).Decode(&c); err != nil {
		return refuse(w, refused{"invalid_client_metadata", "send a JSON object with redirect_uris"})
	}
	c.Name = clean(c.Name)
	if say := problem(c.Redirects); say != "" {
		return refuse(w, refused{"invalid_redirect_uri", say})
	}
	id := s.seal(asClient, c)
	if len(id) > maxID {
		return refuse(w, refused{"invalid_redirect_uri", "redirect_uris are too long together"})
	}
	return answer(w, http.StatusCreated, map[string]any{"client_id": id, "client_id_issued_at": s.Now().Unix(),
		"client_name": c.Name, "redirect_uris": c.Redirects, "token_endpoint_auth_method": "none",
		"grant_types": []string{"authorization_code", "refresh_token"}, "response_types": []string{"code"}})
}

// clean is a name that a page shows: one line, without characters that hide, fill, or turn others round.
func clean(name string) string {
	name = strings.Map(func(r rune) rune {
		if !unicode.IsGraphic(r) || r == 0x2800 || unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(name, ""))
	return strings.TrimSpace(brief.Runes(name, maxName, "…"))
}

// problem says what is wrong with the addresses to which a client wants people to be sent; empty if nothing is.
func problem(redirects []string) string {
	if len(redirects) == 0 || len(redirects) > maxRedirects {
		return "redirect_uris must name 1 to 10 addresses"
	}
	for _, r := range redirects {
		if !redirectable(r) {
			return "a redirect URI must be an https address, an http address of the client's own machine, or one of the scheme of an " +
				"installed program, without a fragment"
		}
	}
	return ""
}

// programs lists schemes of known programs that lack the dot RFC 8252 asks for.
var programs = []string{"cursor", "vscode", "vscode-insiders", "vscodium", "windsurf", "zed", "claude", "goose", "raycast", "warp"}

// redirectable reports whether people may be sent to an address with a code: never one that a browser would run.
func redirectable(text string) bool {
	u, err := url.Parse(text)
	if err != nil || len(text) > maxRedirect || u.Fragment != "" || strings.Contains(text, "#") || u.User != nil || u.Opaque != "" || !ascii(u.Host) ||
		strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r >= 0x7f || r == '\\' || r == '"' || r == '<' || r == '>' }) {
		return false
	}
	switch u.Scheme {
	case "https":
		return u.Hostname() != ""
	case "http":
		return api.Loopback(u)
	}
	return strings.Contains(u.Scheme, ".") || slices.Contains(programs, u.Scheme)
}

// ascii keeps out hosts that look like another one, percent-encoded ones too.
func ascii(host string) bool {
	return !strings.ContainsFunc(host, func(r rune) bool { return r >= 0x80 })
}

// errDescription is all that is said of a description: who asks must not learn what this server can reach.
var errDescription = errors.New("cannot be fetched or is not a valid description")

// takes reports whether a client may have people sent to an address: one that it has named, to the letter. On the
// machine itself any port will do (RFC 8252, section 7.3): a program takes the one that is free.
func (c Client) takes(redirect string) bool {
	if !redirectable(redirect) {
		return false
	}
	asked, err := url.Parse(redirect)
	return err == nil && slices.ContainsFunc(c.Redirects, func(r string) bool {
		if r == redirect {
			return true
		}
		named, err := url.Parse(r)
		return err == nil && asked.Scheme == "http" && named.Scheme == "http" && api.Loopback(asked) && api.Loopback(named) &&
			asked.Hostname() == named.Hostname() && cmp.Or(asked.EscapedPath(), "/") == cmp.Or(named.EscapedPath(), "/") && asked.RawQuery == named.RawQuery
	})
}

// client finds a client by its id: what was sealed into it, or what lies at the address that it is. Only for people who
// are known: strangers have nothing fetched.
func (s *Server) client(ctx context.Context, id string) (Client, error) {
	var c Client
	if s.open(asClient, id, &c) {
		return c, nil
	}
	u, err := url.Parse(id)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || strings.Trim(u.Path, "/") == "" ||
		slices.ContainsFunc(strings.Split(u.Path, "/"), func(part string) bool { return part == "." || part == ".." }) {
		return c, errors.New("is unknown here. Register the client, or send the URL of its metadata document")
	}
	if !ascii(u.Host) || s.Policy.CheckURL(id) != "" { // http too, but where the policy allows a network
		return c, errDescription
	}
	s.mu.Lock()
	d, known := s.documents[id]
	s.mu.Unlock()
	if known && s.Now().Before(d.until) {
		return d.client, d.err
	}
	d.client, d.err = s.fetch(ctx, id)
	d.client.Host, d.until = u.Hostname(), s.Now().Add(freshFor)
	if d.err != nil {
		d.until = s.Now().Add(time.Minute)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.documents) >= maxDocuments {
		clear(s.documents)
	}
	s.documents[id] = d
	return d.client, d.err
}

func (s *Server) fetch(ctx context.Context, id string) (c Client, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), fetchTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, id, http.NoBody)
	if err != nil {
		return c, errDescription
	}
	req.Header.Set("Accept", "application/json")
	res, err := s.http.Do(req)
	if err != nil {
		return c, errDescription
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(res.Body, maxDocument+1))
	var found struct {
		Client
		ID string `json:"client_id"`
	}
	if err != nil || res.StatusCode != http.StatusOK || len(raw) > maxDocument || json.Unmarshal(raw, &found) != nil {
		return c, errDescription
	}
	found.Name = clean(found.Name)
	if found.ID != id || found.Name == "" || problem(found.Redirects) != "" {
		return c, errDescription
	}
	return found.Client, nil
}

// invalid refuses a request for a page.
func invalid(field, message string) error {
	return &api.InvalidError{Problems: []api.Problem{{Field: field, Message: message}}}
}
