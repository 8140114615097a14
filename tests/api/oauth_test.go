package api

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"html"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"docent/cmd/docent/operator"
	"docent/internal/testing/need"
	"docent/persistence/catalog"
	"docent/persistence/catalog/catalogtest"
	"docent/persistence/datadir"
	"docent/tests/harness"
)

const readerSignIn = "https://acme.example.com/docent"

// An oauthLab is a server with private documentation, a person who may read it, and what its site signs readers with.
type oauthLab struct {
	t *testing.T
	*harness.Server
	project harness.Project
	secret  operator.ReaderSecretMade
}

func newOAuthLab(t *testing.T) *oauthLab {
	data := t.TempDir()
	s := harness.NewServer(t, data)
	s.Stop()
	s.Flags = []string{"--public-url", s.URL}
	s.Start()
	p := harness.NewProject(t, data, "acme", harness.WriteFiles(t, privatePages), "--reader-sign-in", readerSignIn)
	return &oauthLab{t, s, p, newReaderSecret(t, data, "acme")}
}

// person adds somebody and returns the link by which they come in.
func (l *oauthLab) person(email, role string, more ...string) string {
	l.t.Helper()
	var made operator.PersonMade
	args := append([]string{"person", "add", email, "--role", role, "--data", l.Data, "--json"}, more...)
	if err := json.Unmarshal([]byte(harness.Docent(l.t, args...)), &made); err != nil {
		l.t.Fatal(err)
	}
	u, err := url.Parse(made.Link.URL)
	if err != nil {
		l.t.Fatal(err)
	}
	return l.URL + u.Path
}

// reader is a token of the site for somebody of the staff, or for another reader.
func (l *oauthLab) reader(name string, groups ...string) string {
	return harness.SignReader(l.t, l.secret.Secret, jwt.MapClaims{"sub": name, "groups": groups, "aud": l.project.Domain,
		"exp": time.Now().Add(2 * time.Hour).Unix()})
}

// TestTheOfficialMCPClientConnectsByTheAddressAlone has the protocol's own client find, register, ask, refresh and use what
// it was given, with nothing but an address; the script is also the person at the browser.
func TestTheOfficialMCPClientConnectsByTheAddressAlone(t *testing.T) {
	t.Parallel()
	const clients = "../testdata/clients"
	need.Installed(t, "the MCP client for Node.js", "scripts/install-clients", clients+"/node_modules/@modelcontextprotocol/sdk")
	l := newOAuthLab(t)
	settings, err := json.Marshal(map[string]any{"url": l.URL, "domain": l.project.Domain, "project": l.project.ID,
		"viewer": l.person("vera@example.com", "viewer"), "editor": l.person("emil@example.com", "editor"), "signIn": readerSignIn,
		"staff": l.reader("alice", "staff"), "guest": l.reader("bob"), "admin": l.project.Admin, "assistant": l.project.Assistant,
		"private": privateText})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", "oauth.mjs")
	cmd.Dir, cmd.Env = clients, append(os.Environ(), "DOCENT_OAUTH="+string(settings))
	var problems, wrong bytes.Buffer
	cmd.Stdout, cmd.Stderr = &problems, &wrong
	if err := cmd.Run(); err != nil {
		t.Fatalf("oauth.mjs: %v\n%s\n%s", err, wrong.String(), l.Log)
	}
	if problems.Len() > 0 {
		t.Errorf("the client is not served as it should be:\n%s", problems.String())
	}
}

// A visitor is somebody at a browser.
type visitor struct {
	*oauthLab
	http *http.Client
}

func (l *oauthLab) browser() *visitor {
	jar, _ := cookiejar.New(nil)
	return &visitor{l, &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

// enter comes in by a link.
func (v *visitor) enter(link string) *visitor {
	v.t.Helper()
	if res, page := v.send(link, url.Values{}); res.StatusCode != http.StatusSeeOther {
		v.t.Fatalf("%s: %s\n%s", link, res.Status, page)
	}
	return v
}

func (v *visitor) do(method, address string, form url.Values) (*http.Response, string) {
	v.t.Helper()
	req, err := http.NewRequestWithContext(v.t.Context(), method, address, strings.NewReader(form.Encode()))
	if err != nil {
		v.t.Fatal(err)
	}
	req.Header.Set("Accept", "text/html")
	if method == http.MethodPost {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	res, err := v.http.Do(req)
	if err != nil {
		v.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		v.t.Fatal(err)
	}
	return res, string(text)
}

// send sends the form of a page.
func (v *visitor) send(address string, form url.Values) (*http.Response, string) {
	v.t.Helper()
	_, page := v.do(http.MethodGet, address, nil)
	m := harness.FormToken.FindStringSubmatch(page)
	if m == nil {
		v.t.Fatalf("%s has no form:\n%s", address, page)
	}
	form.Set("token", html.UnescapeString(m[1]))
	return v.do(http.MethodPost, address, form)
}

const (
	verifier = "a-verifier-that-is-long-enough-to-be-one-0123456789"
	redirect = "http://127.0.0.1:49152/callback"
)

// register is a client of that name; its id.
func (l *oauthLab) register(redirects ...string) string {
	l.t.Helper()
	body, _ := json.Marshal(map[string]any{"client_name": "Editor", "redirect_uris": redirects})
	res, err := http.Post(l.URL+"/oauth/register", "application/json", bytes.NewReader(body))
	if err != nil {
		l.t.Fatal(err)
	}
	defer res.Body.Close()
	var made struct {
		ID string `json:"client_id"`
	}
	if err := json.NewDecoder(res.Body).Decode(&made); err != nil || res.StatusCode != http.StatusCreated {
		l.t.Fatalf("registered: %s, %v", res.Status, err)
	}
	return made.ID
}

func (l *oauthLab) address(client, resource string) string {
	sum := sha256.Sum256([]byte(verifier))
	return l.URL + "/oauth/authorize?" + url.Values{"response_type": {"code"}, "client_id": {client}, "redirect_uri": {redirect},
		"state": {"of the client"}, "code_challenge": {base64.RawURLEncoding.EncodeToString(sum[:])}, "code_challenge_method": {"S256"},
		"resource": {resource}}.Encode()
}

var (
	keptRequest = regexp.MustCompile(`name="request" value="([^"]+)"`)
	siteLink    = regexp.MustCompile(`href="(` + regexp.QuoteMeta(readerSignIn) + `[^"]+)"`)
)

// decide decides on the page that asks, and gives what the client is told.
func (v *visitor) decide(page, decision string) url.Values {
	v.t.Helper()
	kept, token := keptRequest.FindStringSubmatch(page), harness.FormToken.FindStringSubmatch(page)
	if kept == nil || token == nil {
		v.t.Fatalf("the page asks nothing:\n%s", page)
	}
	res, text := v.do(http.MethodPost, v.URL+"/oauth/authorize/decide", url.Values{"token": {html.UnescapeString(token[1])},
		"request": {html.UnescapeString(kept[1])}, "decision": {decision}})
	to, ok := strings.CutPrefix(res.Header.Get("Refresh"), "0; url="+redirect+"?")
	if !ok {
		v.t.Fatalf("decided: %s to %q\n%s", res.Status, res.Header.Get("Refresh"), text)
	}
	if strings.Contains(v.Log.String(), to) {
		v.t.Error("the log has the code")
	}
	q, err := url.ParseQuery(to)
	if err != nil || q.Get("iss") != v.URL || q.Get("state") != "of the client" {
		v.t.Fatalf("the client is told %v, %v", q, err)
	}
	return q
}

// asReader goes to the site and back with its token.
func (v *visitor) asReader(address, token string) string {
	v.t.Helper()
	_, page := v.do(http.MethodGet, address, nil)
	m := siteLink.FindStringSubmatch(page)
	if m == nil {
		v.t.Fatalf("the page does not lead to the site:\n%s", page)
	}
	site, err := url.Parse(html.UnescapeString(m[1]))
	if err != nil {
		v.t.Fatal(err)
	}
	res, text := v.do(http.MethodPost, v.URL+"/oauth/reader", url.Values{"request": {site.Query().Get("request")}, "token": {token}})
	if res.StatusCode != http.StatusSeeOther {
		v.t.Fatalf("back from the site: %s\n%s", res.Status, text)
	}
	_, page = v.do(http.MethodGet, v.URL+res.Header.Get("Location"), nil)
	return page
}

// token asks for tokens; it returns the answer's status too.
func (l *oauthLab) token(pairs ...string) (int, map[string]any) {
	l.t.Helper()
	form := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		form.Set(pairs[i], pairs[i+1])
	}
	res, err := http.PostForm(l.URL+"/oauth/token", form)
	if err != nil {
		l.t.Fatal(err)
	}
	defer res.Body.Close()
	var out map[string]any
	if err := json.NewDecoder(res.Body).Decode(&out); err != nil || res.Header.Get("Cache-Control") != "no-store" {
		l.t.Fatalf("%s: %v", res.Status, err)
	}
	return res.StatusCode, out
}

// tokens are those of an answer.
func tokens(t *testing.T, status int, out map[string]any) (access, refresh string) {
	t.Helper()
	access, _ = out["access_token"].(string)
	refresh, _ = out["refresh_token"].(string)
	if status != http.StatusOK || access == "" || out["token_type"] != "Bearer" || out["expires_in"].(float64) > 3600 {
		t.Fatalf("tokens: %d %v", status, out)
	}
	return access, refresh
}

// reads is what the tools find at an address with a token; empty if it lets nobody in.
func (l *oauthLab) reads(path, access string) string {
	l.t.Helper()
	editor, err := harness.Connect(l.t, overHTTP(l.URL+path, access))
	if err != nil {
		return ""
	}
	defer editor.Close()
	tool, args := "search", map[string]any{"query": "salary of grade nine"}
	if strings.Contains(path, "/agent/") {
		tool, args = "list_jobs", map[string]any{}
	}
	text, _ := harness.CallTool(l.t, editor, tool, args)
	return "found: " + text
}

// refuses checks that a token opens none of these.
func (l *oauthLab) refuses(access string, paths ...string) {
	l.t.Helper()
	for _, path := range paths {
		req, _ := http.NewRequestWithContext(l.t.Context(), http.MethodGet, l.URL+path, nil)
		req.Header.Set("Authorization", "Bearer "+access)
		req.Header.Set("X-Forwarded-For", "203.0.113.9")
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			l.t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != http.StatusForbidden && res.StatusCode != http.StatusNotFound {
			l.t.Errorf("%s: %s", path, res.Status)
		}
	}
}

func TestAClientIsLetInByAPersonOnce(t *testing.T) {
	t.Parallel()
	l := newOAuthLab(t)
	readers, agent := l.URL+"/mcp/"+l.project.Domain, l.URL+"/mcp/agent/"+l.project.ID

	// The refusal of a client without a key names what leads on.
	res, err := http.Post(readers, "application/json", strings.NewReader(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if got, want := res.Header.Get("WWW-Authenticate"), `Bearer realm="docent", resource_metadata="`+l.URL+
		"/.well-known/oauth-protected-resource/mcp/"+l.project.Domain+`", scope="read"`; got != want {
		t.Errorf("the challenge is %s", got)
	}

	client, other := l.register("http://127.0.0.1:1/callback"), l.register(redirect)
	vera := l.browser().enter(l.person("vera@example.com", "viewer"))
	_, page := l.browser().do(http.MethodGet, l.address(client, readers), nil)
	if !strings.Contains(page, "Sign in to the console") || strings.Contains(page, "Allow") {
		t.Errorf("a stranger is shown\n%s", page)
	}
	// Who signs in first comes back to the request.
	m := regexp.MustCompile(`href="(/login[?][^"]+)"`).FindStringSubmatch(page)
	if m == nil {
		t.Fatalf("nothing leads to the sign-in:\n%s", page)
	}
	_, page = l.browser().do(http.MethodGet, l.URL+html.UnescapeString(m[1]), nil)
	if next := `name="next" value="` + html.EscapeString(strings.TrimPrefix(l.address(client, readers), l.URL)); !strings.Contains(
		strings.ReplaceAll(page, "&#43;", "+"), next) {
		t.Errorf("the sign-in does not lead to %s\n%s", next, page)
	}
	res, page = vera.do(http.MethodGet, l.address(client, readers), nil)
	if !strings.Contains(res.Header.Get("Content-Security-Policy"), "frame-ancestors 'none'") || !strings.Contains(page, "Editor") ||
		!strings.Contains(page, "on your own machine") {
		t.Errorf("asked with %v\n%s", res.Header, page)
	}
	// The page that is shown again has its time again.
	again, _ := vera.do(http.MethodGet, l.address(client, readers), nil)
	if a, b := clientCookie(res), clientCookie(again); a == nil || b == nil || a.Value != b.Value || b.MaxAge != 15*60 {
		t.Errorf("the request is tied to its browser by %v, then %v", a, b)
	}
	if got := vera.decide(page, "deny"); got.Get("error") != "access_denied" || got.Has("code") {
		t.Errorf("a refusal is %v", got)
	}
	for name, address := range map[string]string{
		"another redirect":             strings.Replace(l.address(client, readers), "callback", "elsewhere", 1),
		"a page that runs":             strings.Replace(l.address(client, readers), url.QueryEscape(redirect), "javascript%3Aalert(1)", 1),
		"another site":                 l.address(client, "https://other.example.com/mcp/x"),
		"a plain challenge":            strings.Replace(l.address(client, readers), "S256", "plain", 1),
		"an unknown client":            l.address("somebody", readers),
		"a client on a machine":        l.address("https://127.0.0.1/client.json", readers),
		"a client in metadata":         l.address("https://169.254.169.254/client.json", readers),
		"a parameter that comes twice": l.address(client, readers) + "&redirect_uri=https%3A%2F%2Fevil.example.com",
	} {
		if res, page := vera.do(http.MethodGet, address, nil); res.StatusCode != http.StatusBadRequest || res.Header.Get("Location") != "" ||
			res.Header.Get("Refresh") != "" || strings.Contains(page, "Allow") {
			t.Errorf("%s: %s to %q\n%s", name, res.Status, res.Header.Get("Location"), page)
		}
	}
	// A form from elsewhere decides nothing, nor does one that another browser was shown.
	_, page = vera.do(http.MethodGet, l.address(client, readers), nil)
	form := url.Values{"request": {html.UnescapeString(keptRequest.FindStringSubmatch(page)[1])}, "decision": {"allow"}}
	if res, _ := vera.do(http.MethodPost, l.URL+"/oauth/authorize/decide", form); res.StatusCode != http.StatusForbidden {
		t.Errorf("a form without its token: %s", res.Status)
	}
	emil := l.browser().enter(l.person("emil@example.com", "editor"))
	_, his := emil.do(http.MethodGet, l.address(client, readers), nil)
	form.Set("token", html.UnescapeString(harness.FormToken.FindStringSubmatch(his)[1]))
	if res, _ := emil.do(http.MethodPost, l.URL+"/oauth/authorize/decide", form); res.StatusCode != http.StatusForbidden {
		t.Errorf("another browser's request: %s", res.Status)
	}

	code := func(v *visitor, resource string) string {
		t.Helper()
		_, page := v.do(http.MethodGet, l.address(client, resource), nil)
		return v.decide(page, "allow").Get("code")
	}
	first := code(vera, readers)
	exchange := func(code string, changed ...string) (int, map[string]any) {
		t.Helper()
		return l.token(append([]string{"grant_type", "authorization_code", "code", code, "client_id", client, "redirect_uri", redirect,
			"code_verifier", verifier, "resource", readers}, changed...)...)
	}
	for name, changed := range map[string][]string{"verifier": {"code_verifier", strings.Repeat("x", 43)},
		"redirect": {"redirect_uri", "http://127.0.0.1:1/callback"}, "resource": {"resource", agent}, "client": {"client_id", other}} {
		if status, out := exchange(first, changed...); status != http.StatusBadRequest {
			t.Errorf("with another %s: %d %v", name, status, out)
		}
	}
	l.Stop() // a restart changes nothing
	l.Start()
	status, out := exchange(first)
	access, refresh := tokens(t, status, out)
	if found := l.reads("/mcp/"+l.project.Domain, access); !strings.Contains(found, "once a month") || strings.Contains(found, privateText) {
		t.Errorf("a viewer finds %q", found)
	}
	if l.reads("/mcp/agent/"+l.project.ID, access) != "" {
		t.Error("a token for readers opens the agent's tools")
	}
	// Refreshed, the token before is worth nothing; and one that comes again ends the whole grant.
	status, out = l.token("grant_type", "refresh_token", "refresh_token", refresh, "client_id", client)
	access, next := tokens(t, status, out)
	if l.reads("/mcp/"+l.project.Domain, access) == "" {
		t.Error("a refreshed token lets nobody in")
	}
	if status, _ := l.token("grant_type", "refresh_token", "refresh_token", refresh, "client_id", client); status != http.StatusBadRequest {
		t.Errorf("a refresh token again: %d", status)
	}
	if status, _ := l.token("grant_type", "refresh_token", "refresh_token", next, "client_id", client); status != http.StatusBadRequest ||
		l.reads("/mcp/"+l.project.Domain, access) != "" {
		t.Errorf("after a refresh token came again the grant goes on: %d", status)
	}
	// A code that comes again ends what it gave.
	second := code(vera, readers)
	status, out = exchange(second)
	access, _ = tokens(t, status, out)
	if status, _ := exchange(second); status != http.StatusBadRequest || l.reads("/mcp/"+l.project.Domain, access) != "" {
		t.Errorf("a code again: %d", status)
	}

	// Nobody gives what they do not hold.
	if _, page := vera.do(http.MethodGet, l.address(client, agent), nil); strings.Contains(page, "Allow") || !strings.Contains(page, "do not hold them") {
		t.Errorf("a viewer is asked for the agent's tools\n%s", page)
	}
	status, out = exchange(code(emil, agent), "resource", agent)
	access, _ = tokens(t, status, out)
	if !strings.HasPrefix(l.reads("/mcp/agent/"+l.project.ID, access), "found") {
		t.Error("an editor's client does not see the jobs")
	}
	l.refuses(access, "/metrics", "/v2/agent/other/jobs", "/v1/analytics/"+l.project.ID+"/assistant", "/v1/agent/"+l.project.ID+"/jobs",
		"/v2/agent/"+l.project.ID+"/jobs") // the tools' own operations too: it has no other ones
	harness.Docent(t, "person", "role", "emil@example.com", "viewer", "--data", l.Data)
	if l.reads("/mcp/agent/"+l.project.ID, access) != "" {
		t.Error("a client goes on with a role that was taken")
	}
	status, out = exchange(code(vera, readers))
	access, _ = tokens(t, status, out)
	_, page = vera.do(http.MethodGet, l.URL+"/console/account", nil)
	if !strings.Contains(page, "Editor") || !strings.Contains(page, "OAuth for "+l.project.Domain) {
		t.Errorf("the account does not show the client:\n%s", page)
	}
	harness.Docent(t, "person", "disable", "vera@example.com", "--data", l.Data)
	if l.reads("/mcp/"+l.project.Domain, access) != "" {
		t.Error("the client of a person who may not sign in goes on")
	}
	if strings.Contains(l.Log.String(), access) || strings.Contains(l.Log.String(), refresh) {
		t.Error("the log has a token")
	}
}

// clientCookie is what ties a request to its browser.
func clientCookie(res *http.Response) *http.Cookie {
	for _, c := range res.Cookies() {
		if c.Name == "docent_client" {
			return c
		}
	}
	return nil
}

func TestAReadersClientFindsWhatTheReaderMayRead(t *testing.T) {
	t.Parallel()
	l := newOAuthLab(t)
	resource, path := l.URL+"/mcp/"+l.project.Domain, "/mcp/"+l.project.Domain
	client := l.register(redirect)
	connect := func(name string, groups ...string) (access, refresh string) {
		t.Helper()
		v := l.browser()
		code := v.decide(v.asReader(l.address(client, resource), l.reader(name, groups...)), "allow").Get("code")
		status, out := l.token("grant_type", "authorization_code", "code", code, "client_id", client, "code_verifier", verifier, "resource", resource)
		return tokens(t, status, out)
	}
	staff, refresh := connect("alice", "staff")
	if found := l.reads(path, staff); !strings.Contains(found, privateText) {
		t.Errorf("one of the staff finds %q", found)
	}
	l.refuses(staff, "/llms/"+l.project.Domain+"/llms.txt", "/discovery/v1/assistant/"+l.project.Domain+"/challenge", "/v1/models", "/v1/analytics/"+l.project.ID+"/assistant")
	guest, _ := connect("bob")
	if found := l.reads(path, guest); !strings.HasPrefix(found, "found") || strings.Contains(found, privateText) {
		t.Errorf("a guest finds %q", found)
	}
	// What another browser began is not taken up, and the agent's tools are not for readers.
	one, two := l.browser(), l.browser()
	two.do(http.MethodGet, l.address(client, resource), nil)
	_, page := one.do(http.MethodGet, l.address(client, resource), nil)
	site, _ := url.Parse(html.UnescapeString(siteLink.FindStringSubmatch(page)[1]))
	res, _ := two.do(http.MethodPost, l.URL+"/oauth/reader", url.Values{"request": {site.Query().Get("request")}, "token": {l.reader("eve", "staff")}})
	if res, page := two.do(http.MethodGet, l.URL+res.Header.Get("Location"), nil); res.StatusCode != http.StatusForbidden {
		t.Errorf("a request of another browser: %s\n%s", res.Status, page)
	}
	// A token that nobody signed, or that has expired, is told of on the page, which leads to the site again.
	if page := one.asReader(l.address(client, resource), "made up"); strings.Contains(page, "Allow") || !strings.Contains(page, `role="alert"`) ||
		!siteLink.MatchString(page) {
		t.Errorf("a token that nobody signed:\n%s", page)
	}
	_, page = one.do(http.MethodGet, l.address(client, l.URL+"/mcp/agent/"+l.project.ID), nil)
	if siteLink.MatchString(page) || strings.Contains(page, l.project.Domain) {
		t.Error("readers are asked for the agent's tools, or strangers told of a project")
	}
	if _, none := one.do(http.MethodGet, l.address(client, l.URL+"/mcp/agent/none"), nil); len(none) != len(page)-len(l.project.ID)+len("none") {
		t.Errorf("strangers learn whether there is a project:\n%s\n%s", page, none)
	}
	// Who belongs to another organization is a stranger here: sent to the site for the readers' tools, told of no others.
	l.Stop()
	c, err := catalog.Open(t.Context(), "sqlite:"+filepath.Join(l.Data, datadir.Catalog), catalog.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	catalogtest.AddOrganization(t, c, "other")
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	l.Start()
	oona := l.browser().enter(l.person("oona@example.com", "owner", "--org", "other"))
	if _, page := oona.do(http.MethodGet, l.address(client, resource), nil); !siteLink.MatchString(page) || strings.Contains(page, "Allow") {
		t.Errorf("an owner of another organization is shown\n%s", page)
	}
	for _, project := range []string{l.project.ID, "none"} {
		if res, page := oona.do(http.MethodGet, l.address(client, l.URL+"/mcp/agent/"+project), nil); res.StatusCode != http.StatusBadRequest ||
			strings.Contains(page, l.project.Domain) {
			t.Errorf("an owner of another organization asks for %s: %s\n%s", project, res.Status, page)
		}
	}
	// Nobody lets clients in without end.
	page = one.asReader(l.address(client, resource), l.reader("carol"))
	form := url.Values{"token": {html.UnescapeString(harness.FormToken.FindStringSubmatch(page)[1])},
		"request": {html.UnescapeString(keptRequest.FindStringSubmatch(page)[1])}, "decision": {"allow"}}
	allowed := 0
	for ; allowed < 40; allowed++ {
		if res, _ := one.do(http.MethodPost, l.URL+"/oauth/authorize/decide", form); res.StatusCode != http.StatusOK {
			break
		}
	}
	if allowed != 29 { // the page counts too
		t.Errorf("a reader lets %d clients in", allowed)
	}
	// A secret that is retired ends what stood on it.
	harness.Docent(t, "reader-secret", "retire", "acme", l.secret.ID, "--data", l.Data)
	if l.reads(path, staff) != "" {
		t.Error("the client goes on without the secret")
	}
	if status, _ := l.token("grant_type", "refresh_token", "refresh_token", refresh, "client_id", client); status != http.StatusBadRequest {
		t.Errorf("it is refreshed without the secret: %d", status)
	}
}

func TestAMachineComesWithItsKey(t *testing.T) {
	t.Parallel()
	l := newOAuthLab(t)
	agent := l.URL + "/mcp/agent/" + l.project.ID
	status, out := l.token("grant_type", "client_credentials", "client_id", "ci", "client_secret", l.project.Assistant)
	access, _ := tokens(t, status, out)
	if !strings.Contains(l.reads("/mcp/"+l.project.Domain, access), "once a month") {
		t.Error("a machine does not read")
	}
	status, out = l.token("grant_type", "client_credentials", "client_secret", l.project.Admin, "resource", agent, "scope", "read")
	if access, _ := tokens(t, status, out); out["scope"] != "read" || l.reads("/mcp/agent/"+l.project.ID, access) != "" {
		t.Errorf("a token to read sends messages to the agent's tools, or is for %v", out["scope"])
	}
	for name, pairs := range map[string][]string{"no key": {"client_secret", "x"},
		"the wrong tools": {"client_secret", l.project.Assistant, "resource", agent}} {
		if status, out := l.token(append([]string{"grant_type", "client_credentials"}, pairs...)...); status < 400 {
			t.Errorf("%s: %d %v", name, status, out)
		}
	}
	for line := range strings.Lines(harness.Docent(t, "key", "list", "--data", l.Data, "--json")) {
		var k struct{ ID, Kind string }
		if err := json.Unmarshal([]byte(line), &k); err != nil {
			t.Fatal(err)
		}
		if k.Kind == "assistant" {
			harness.Docent(t, "key", "revoke", k.ID, "--data", l.Data)
		}
	}
	if l.reads("/mcp/"+l.project.Domain, access) != "" {
		t.Error("the token outlives its key")
	}
}
