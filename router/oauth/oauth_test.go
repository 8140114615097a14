package oauth

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"docent/api"
	"docent/internal/outbound"
)

var (
	docs  = api.Project{ID: "docs", Org: "org", Domain: "docs.example.com"}
	start = time.Date(2026, 11, 29, 8, 0, 0, 0, time.UTC)
	here  = outbound.Policy{Loopback: true, Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}, Setting: "webhook_allow"}
)

// shelf is a catalog with one project and nothing else.
type shelf struct{ Catalog }

func (shelf) Project(_ context.Context, id api.ProjectID) (api.Project, error) {
	if id == docs.ID {
		return docs, nil
	}
	return api.Project{}, api.ErrNotFound
}

func (shelf) ProjectByDomain(_ context.Context, domain string) (api.Project, error) {
	if domain == docs.Domain {
		return docs, nil
	}
	return api.Project{}, api.ErrNotFound
}

func (shelf) KeyByHash(context.Context, [32]byte) (api.Key, error) { return api.Key{}, api.ErrNotFound }

func newServer(policy outbound.Policy) *Server {
	return New(Deps{Catalog: shelf{}, Policy: policy, Secret: []byte(strings.Repeat("s", 32)), PublicURL: "https://docent.example.com",
		Now: func() time.Time { return start }})
}

func TestTokensAreSentOverTLSOrToThisMachineAlone(t *testing.T) {
	t.Parallel()
	for at, want := range map[string]bool{"https://docent.example.com": true, "http://localhost:8080": true, "http://127.0.0.1": true,
		"http://docent.example.com": false, "": false, "docent.example.com": false} {
		if got := New(Deps{PublicURL: at, Secret: []byte("s")}) != nil; got != want {
			t.Errorf("%q: %v", at, got)
		}
	}
	var none *Server // takes nobody in, and says nothing
	h := http.Header{}
	none.Challenge(h, http.StatusUnauthorized, "/mcp/x")
	if len(none.Routes()) > 0 || len(h) > 0 {
		t.Error("a server without a public address offers something")
	}
	if _, _, err := none.Principal(t.Context(), Prefix+"x", netip.Addr{}); err == nil {
		t.Error("a server without a public address lets somebody in")
	}
}

func TestPeopleAreSentOnlyWhereAClientHasSaid(t *testing.T) {
	t.Parallel()
	for at, want := range map[string]bool{
		"https://claude.ai/api/mcp/auth_callback": true, "http://127.0.0.1:1/x": true, "http://[::1]/x": true, "http://localhost": true,
		"cursor://anysphere.cursor-mcp/oauth/callback": true, "com.example.app:/callback": true,
		"http://example.com/x": false, "javascript:alert(1)": false, "data:text/html,x": false, "file:///etc/passwd": false,
		"vbscript:x": false, "https://a@b.example.com": false, "https://b.example.com/#x": false, "https://b.example.com/#": false,
		"https:///x": false, "https://b.example.com/\\x": false, "https://b.example.com/ x": false, "https://b.example.com/\nx": false,
		"//b.example.com": false, "": false, "https://b.example.com/" + strings.Repeat("x", maxRedirect): false, "blob:https://x": false,
		"http://127.0.0.1.example.com/": false, "http://2130706433/": false, "https://%D1%81laude.ai/cb": false, "cursor://%D1%81laude.ai/cb": false,
	} {
		if got := redirectable(at); got != want {
			t.Errorf("%q: %v", at, got)
		}
	}
	c := Client{Redirects: []string{"https://a.example.com/back", "http://127.0.0.1/back?x=1", "http://localhost:3/back", "http://localhost"}}
	for at, want := range map[string]bool{"https://a.example.com/back": true, "http://127.0.0.1:4000/back?x=1": true,
		"http://localhost:4000/back": true, "http://localhost:4000/": true, "https://a.example.com/back/": false, "https://a.example.com/back?x": false,
		"https://a.example.com:444/back": false, "https://A.example.com/back": false, "http://127.0.0.1:4000/back": false,
		"http://[::1]:4000/back?x=1": false, "https://localhost:4000/back": false, "https://a.example.com.evil.example/back": false} {
		if got := c.takes(at); got != want {
			t.Errorf("takes %q: %v", at, got)
		}
	}
}

func TestWhatIsSealedForOneUseIsGoodForNoOther(t *testing.T) {
	t.Parallel()
	s := newServer(here)
	other := New(Deps{PublicURL: s.PublicURL, Secret: []byte("another")})
	for _, u := range []use{asClient, asRequest, asCode, asAccess, asRefresh} {
		sealed := s.seal(u, grant{Project: "docs", Until: 1})
		for _, as := range []use{asClient, asRequest, asCode, asAccess, asRefresh} {
			var g grant
			if got := s.open(as, sealed, &g); got != (as == u) {
				t.Errorf("%s as %s: %v", u, as, got)
			}
		}
		var g grant
		if other.open(u, sealed, &g) || s.open(u, sealed[:len(sealed)-1], &g) || s.open(u, sealed+"A", &g) {
			t.Errorf("%s is opened by another secret, or changed", u)
		}
	}
}

// A client's description is fetched from public addresses alone, once in a while, and believed if it is of its own address.
func TestAClientMayDescribeItselfAtItsAddress(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	var site *httptest.Server
	site = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if asked.Add(1); !req.Close {
			t.Error("the connection is kept for later")
		}
		body := map[string]any{"client_id": site.URL + req.URL.Path, "client_name": "An\u202e\u061c\u00ad\u180e\u115f\u1160\u3164\U000e0041 editor", "redirect_uris": []string{"https://x.example.com/back"}}
		switch req.URL.Path {
		case "/moved":
			http.Redirect(w, req, "/good", http.StatusFound)
			return
		case "/large":
			body["logo"] = strings.Repeat("x", maxDocument)
		case "/stolen":
			body["client_id"] = "https://claude.ai/client.json"
		case "/runs":
			body["redirect_uris"] = []string{"javascript:alert(1)"}
		case "/none":
			delete(body, "client_name")
		}
		json.NewEncoder(w).Encode(body)
	}))
	t.Cleanup(site.Close)
	s := newServer(here)
	for range 2 {
		c, err := s.client(t.Context(), site.URL+"/good")
		if err != nil || c.Name != "An editor" || c.Host != "127.0.0.1" || !c.takes("https://x.example.com/back") {
			t.Errorf("%+v, %v", c, err)
		}
	}
	if n := asked.Load(); n != 1 {
		t.Errorf("it was asked for %d times", n)
	}
	for _, path := range []string{"/moved", "/large", "/stolen", "/runs", "/none", "", "/", "/x/../good", "/good#x"} {
		if c, err := s.client(t.Context(), site.URL+path); err == nil {
			t.Errorf("%s: %+v", path, c)
		}
	}
	asked.Store(0)
	strict := newServer(outbound.Policy{Setting: "webhook_allow"})
	for _, id := range []string{site.URL + "/good", "https://127.0.0.1/good", "https://169.254.169.254/latest", "https://[::ffff:10.0.0.1]/x",
		"http://example.com/x", "https://localhost/x", "ftp://example.com/x", "x"} {
		if c, err := strict.client(t.Context(), id); err == nil {
			t.Errorf("%s: %+v", id, c)
		}
	}
	if asked.Load() > 0 {
		t.Error("this machine was asked")
	}
	for i := range 2 * maxDocuments { // what is remembered has a bound
		s.documents[strings.Repeat("x", i)] = document{}
		if len(s.documents) >= maxDocuments {
			break
		}
	}
	if _, err := s.client(t.Context(), site.URL+"/good?again"); err == nil || len(s.documents) > 1 {
		t.Errorf("%d descriptions are remembered, %v", len(s.documents), err)
	}
}

// broken is a catalog that cannot be read.
type broken struct{ shelf }

var errDisk = errors.New("disk I/O error")

func (broken) KeyByHash(context.Context, [32]byte) (api.Key, error) { return api.Key{}, errDisk }

// What fails here is for the log; the client hears only that it was not its fault.
func TestWhatFailsIsReturnedForTheLog(t *testing.T) {
	t.Parallel()
	s := newServer(here)
	s.Catalog = broken{}
	for _, r := range s.Routes() {
		if r.Pattern != tokenPath {
			continue
		}
		for secret, want := range map[string]error{api.NewSecret(api.AssistantKey): errDisk, "x": nil} {
			form := url.Values{"grant_type": {"client_credentials"}, "client_secret": {secret}}.Encode()
			req := httptest.NewRequest(http.MethodPost, r.Pattern, strings.NewReader(form))
			req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			w := httptest.NewRecorder()
			if err := r.Serve(w, req, netip.Addr{}); !errors.Is(err, want) || (w.Code >= 500) != (want != nil) || strings.Contains(w.Body.String(), "disk") {
				t.Errorf("returned %v, answered %d %s", err, w.Code, w.Body)
			}
		}
	}
}

// challenge is that of a verifier of 43 letters.
func challenge() string {
	sum := sha256.Sum256([]byte(strings.Repeat("v", 43)))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// FuzzAuthorize reads requests: none that is taken leads where a browser would run something, or to another resource.
func FuzzAuthorize(f *testing.F) {
	good := url.Values{"response_type": {"code"}, "client_id": {"x"}, "redirect_uri": {"http://127.0.0.1:1/x?y=z"}, "state": {"a&b"},
		"code_challenge": {challenge()}, "code_challenge_method": {"S256"}, "resource": {"https://docent.example.com/mcp/docs.example.com"}}
	f.Add(good.Encode())
	good.Set("resource", "https://docent.example.com/mcp/agent/docs")
	f.Add(good.Encode() + "&scope=read+offline_access")
	f.Add("redirect_uri=javascript:alert(1)&" + good.Encode())
	f.Add(good.Encode() + "&\x8c\x98")
	s := newServer(here)
	f.Fuzz(func(t *testing.T, query string) {
		r, err := s.Read(t.Context(), query)
		if err != nil {
			return
		}
		if r.Project.ID != docs.ID || len(r.Challenge) != 43 || len(r.Scopes) == 0 || !r.Agent && r.Writes() {
			t.Errorf("%q is taken as %+v", query, r)
		}
		to, err := url.Parse(s.Deny(r))
		asked, _ := url.Parse(r.Redirect)
		if err != nil || to.Scheme != asked.Scheme || to.Host != asked.Host || to.Path != asked.Path || to.Fragment != "" {
			t.Errorf("%q leads to %v, %v", query, to, err)
		}
		if q := to.Query(); asked.RawQuery == "" && (q.Get("iss") != s.PublicURL || q.Get("state") != r.State || q.Get("error") == "") {
			t.Errorf("%q answers %v", query, q)
		}
		if got, reader, ok := s.Kept(s.Keep(query, "cookie", "reader"), "cookie"); !ok || got != query || reader != "reader" {
			t.Errorf("%q is kept as %q", query, got)
		}
		if _, _, ok := s.Kept(s.Keep(query, "cookie", ""), "another"); ok {
			t.Error("another browser takes it up")
		}
	})
}

// FuzzToken sends forms and registrations: nothing that was not sealed here gets a token, and all errors have OAuth's form.
func FuzzToken(f *testing.F) {
	s := newServer(here)
	old := s.seal(asCode, grant{Project: "docs", Until: start.Unix()})
	f.Add("grant_type=authorization_code&code="+old, "")
	f.Add("grant_type=refresh_token&refresh_token="+s.seal(asClient, Client{Name: "x"}), "")
	f.Add("grant_type=client_credentials&client_secret=dct_pub_x&resource=https://docent.example.com/mcp/docs.example.com", "Basic eDp5")
	f.Add(`{"redirect_uris":["http://127.0.0.1/"]}`, "")
	f.Add(`{"redirect_uris":["https://x.example.com/?`+strings.Repeat("&", 400)+`"]}`, "")
	f.Fuzz(func(t *testing.T, body, authorization string) {
		for _, r := range s.Routes() {
			if r.Method != http.MethodPost {
				continue
			}
			req := httptest.NewRequest(http.MethodPost, r.Pattern, strings.NewReader(body))
			req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			req.Header.Set("Authorization", authorization)
			w := httptest.NewRecorder()
			if err := r.Serve(w, req, netip.MustParseAddr("192.0.2.1")); err != nil {
				t.Error(err)
			}
			var said struct {
				Code  string `json:"error"`
				Token string `json:"access_token"`
				ID    string `json:"client_id"`
			}
			if err := json.Unmarshal(w.Body.Bytes(), &said); err != nil || said.Token != "" || w.Header().Get("Cache-Control") != "no-store" ||
				(said.Code == "") != (w.Code == http.StatusCreated) || len(said.ID) > maxID {
				t.Errorf("%s answers %q with %d %s", r.Pattern, body, w.Code, w.Body)
			}
		}
	})
}
