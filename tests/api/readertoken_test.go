package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"docent/api/client"
	"docent/cmd/docent/operator"
	"docent/internal/testing/need"
	"docent/tests/harness"
)

var privatePages = map[string]string{
	"index.md":    "# Acme\n\nHello. Acme pays salaries once a month.\n",
	"salaries.md": "---\ntitle: Salaries\ngroups: [staff]\n---\n\nThe salary of grade nine is 77,000 crowns.\n",
}

const privateText = "77,000"

// headed sends headers with each request.
type headed http.Header

func (h headed) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	for name, values := range h {
		req.Header[name] = values
	}
	return http.DefaultTransport.RoundTrip(req)
}

func overHTTPWith(url string, headers http.Header) mcp.Transport {
	return &mcp.StreamableClientTransport{Endpoint: url, HTTPClient: &http.Client{Transport: headed(headers)}}
}

// newReaderSecret makes a secret of a project by the command.
func newReaderSecret(t testing.TB, data, project string) operator.ReaderSecretMade {
	t.Helper()
	var made operator.ReaderSecretMade
	if err := json.Unmarshal([]byte(harness.Docent(t, "reader-secret", "create", project, "--data", data, "--json")), &made); err != nil {
		t.Fatal(err)
	}
	return made
}

// A page for staff, in the front matter and as a source of its own, is read by nobody who only says to be of the staff: not
// by search, page, assistant or MCP with the key that stands in every page. It is read with a token that the site's server
// has signed, and with a server key.
func TestAPageForStaffIsReadByNobodyWhoOnlySaysSo(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	server := harness.NewServer(t, data)
	p := harness.NewProject(t, data, "acme", harness.WriteFiles(t, privatePages))
	secret := newReaderSecret(t, data, "acme")
	staffKey := harness.NewKey(t, data, "acme", "server", "--group", "staff")
	serverKey := harness.NewKey(t, data, "acme", "server")
	token := harness.SignReader(t, secret.Secret, jwt.MapClaims{"sub": "alice", "groups": []string{"staff"},
		"aud": p.Domain, "exp": time.Now().Add(time.Hour).Unix()})
	customer := harness.SignReader(t, secret.Secret, jwt.MapClaims{"sub": "bob", "aud": p.Domain, "exp": time.Now().Add(time.Hour).Unix()})

	const question = "What is the salary of grade nine?"
	filter := map[string]any{"groups": []string{"staff"}}
	messages := []any{map[string]any{"role": "user", "content": question, "parts": []any{map[string]any{"type": "text", "text": question}}}}
	requests := map[string]struct {
		path        string
		plain, says map[string]any
	}{
		"search": {"/discovery/v1/search/", map[string]any{"query": "salary grade nine"},
			map[string]any{"query": "salary grade nine", "filter": filter}},
		"page": {"/discovery/v1/page/", map[string]any{"path": "salaries"}, map[string]any{"path": "salaries", "groups": []string{"staff"}}},
		"assistant 1": {"/discovery/v1/assistant/DOMAIN/message", map[string]any{"fp": "anonymous", "messages": messages},
			map[string]any{"fp": "anonymous", "messages": messages, "filter": filter}},
		"assistant 2": {"/discovery/v2/assistant/DOMAIN/message", map[string]any{"fp": "anonymous", "messages": messages},
			map[string]any{"fp": "anonymous", "messages": messages, "filter": filter}},
	}
	send := func(path, key, token string, body any) (int, string) {
		t.Helper()
		raw, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+path, bytes.NewReader(raw))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Authorization", "Bearer "+key)
		if token != "" {
			req.Header.Set("X-Docent-Reader", token)
		}
		res, err := harness.Patient{}.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		var text bytes.Buffer
		if _, err := text.ReadFrom(res.Body); err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, text.String()
	}
	for name, r := range requests {
		path := strings.Replace(r.path, "DOMAIN", p.Domain, 1)
		if path == r.path {
			path += p.Domain
		}
		// Who is of the staff comes first: what was answered to them must not come out of a cache for others.
		for who, c := range map[string]struct {
			key, token string
			body       map[string]any
		}{"a token of the site's server": {p.Assistant, token, r.plain}, "a server key that names groups": {serverKey, "", r.says},
			"a server key for staff": {staffKey, "", r.plain}} {
			if status, text := send(path, c.key, c.token, c.body); status != http.StatusOK || !strings.Contains(text, privateText) {
				t.Errorf("%s with %s: %d %s", name, who, status, text)
			}
		}
		if status, text := send(path, p.Assistant, "", r.says); status != http.StatusForbidden || strings.Contains(text, privateText) {
			t.Errorf("%s with the widget's key that names groups: %d %s", name, status, text)
		}
		for who, c := range map[string]struct{ key, token string }{"the widget's key": {p.Assistant, ""},
			"a reader of no group": {p.Assistant, customer}, "a server key": {serverKey, ""}} {
			if _, text := send(path, c.key, c.token, r.plain); strings.Contains(text, privateText) {
				t.Errorf("%s with %s: %s", name, who, text)
			}
		}
		if status, text := send(path, p.Assistant, token+"x", r.plain); status != http.StatusUnauthorized || !strings.Contains(text, "reader_token") {
			t.Errorf("%s with a token that was changed: %d %s", name, status, text)
		}
	}
	private := map[string]any{"path": "salaries"}
	for who, headers := range map[string]http.Header{
		"the widget's key":       {"Authorization": {"Bearer " + p.Assistant}},
		"a reader of no group":   {"Authorization": {"Bearer " + p.Assistant}, "X-Docent-Reader": {customer}},
		"a token":                {"Authorization": {"Bearer " + p.Assistant}, "X-Docent-Reader": {token}},
		"a server key for staff": {"Authorization": {"Bearer " + staffKey}},
	} {
		editor, err := harness.Connect(t, overHTTPWith(server.URL+"/mcp/"+p.Domain, headers))
		if err != nil {
			t.Fatal(err)
		}
		may := who == "a token" || who == "a server key for staff"
		for tool, arguments := range map[string]map[string]any{"read_page": private, "search": {"query": "salary grade nine"},
			"ask": {"question": question}} {
			if text, _ := harness.CallTool(t, editor, tool, arguments); strings.Contains(text, privateText) != may {
				t.Errorf("%s over MCP with %s: %s", tool, who, text)
			}
		}
	}
	if _, err := harness.Connect(t, overHTTPWith(server.URL+"/mcp/"+p.Domain, http.Header{"Authorization": {"Bearer " + p.Assistant},
		"X-Docent-Reader": {"x"}})); err == nil {
		t.Error("a session over MCP began with a token that is not valid")
	}
	status, text := send("/v1/evaluation/acme", p.Admin, "", map[string]any{"questions": []any{map[string]any{"question": question, "filter": filter}}})
	if status != http.StatusForbidden {
		t.Errorf("an evaluation with an admin key that names groups: %d %s", status, text)
	}
	if status, text = send("/v1/evaluation/acme", p.Admin, token, map[string]any{"questions": []any{map[string]any{"question": question}}}); status !=
		http.StatusOK || !strings.Contains(text, privateText) || !strings.Contains(text, `"path":"salaries.md"`) {
		t.Errorf("an evaluation for a reader: %d %s", status, text)
	}
}

// Two secrets sign at a time, so that none of the readers is refused while the site's server changes over.
func TestReaderSecretsAreRotatedWithoutRefusingAnyReader(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	server := harness.NewServer(t, data)
	p := harness.NewProject(t, data, "acme", harness.WriteFiles(t, privatePages))
	reads := func(secret string) error {
		c := server.Client(p.Assistant)
		c.ReaderToken = func(context.Context, bool) (string, error) {
			return harness.SignReader(t, secret, jwt.MapClaims{"sub": "alice", "groups": []string{"staff"}, "aud": "acme",
				"exp": time.Now().Add(time.Hour).Unix()}), nil
		}
		_, err := c.ReadPage(t.Context(), p.Domain, client.ReadPage{Path: "salaries"})
		return err
	}
	first := newReaderSecret(t, data, "acme")
	second := newReaderSecret(t, data, "acme")
	for _, s := range []operator.ReaderSecretMade{first, second} {
		if err := reads(s.Secret); err != nil {
			t.Error(err)
		}
	}
	if out, err := harness.TryDocent(t, "reader-secret", "create", "acme", "--data", data); err == nil {
		t.Errorf("a third secret was made: %s", out)
	}
	harness.Docent(t, "project", "set", "acme", "--data", data, "--deflection", "help@example.com") // loses no secret
	harness.Docent(t, "reader-secret", "retire", "acme", first.ID, "--data", data)
	if err := reads(first.Secret); !errors.Is(err, client.ErrUnauthorized) {
		t.Errorf("a token of the secret that is retired: %v", err)
	}
	if err := reads(second.Secret); err != nil {
		t.Error(err)
	}
	server.Stop()
	server.Start()
	if err := reads(second.Secret); err != nil {
		t.Errorf("after a restart: %v", err)
	}
	if out := harness.Docent(t, "reader-secret", "list", "acme", "--data", data); !strings.Contains(out, second.ID) || strings.Contains(out, first.ID) ||
		strings.Contains(out, second.Secret) {
		t.Errorf("listed:\n%s", out)
	}
	files, err := os.ReadDir(filepath.Join(data, "secrets"))
	if err != nil || len(files) != 1 {
		t.Errorf("%v, %v: want the secret in use alone", files, err)
	}
}

// The keys of reader tokens are fetched from where webhooks may go, and looked at when the address is set.
func TestAnAddressOfReaderKeysIsLookedAtWhenItIsSet(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	harness.NewProject(t, data, "acme", harness.WriteFiles(t, privatePages))
	for address, says := range map[string]string{"https://127.0.0.1:1/keys": "webhook_allow", "http://example.com/keys": "https",
		"ftp://example.com": "https://"} {
		_, err := harness.TryDocent(t, "project", "set", "acme", "--data", data, "--reader-jwks", address)
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", address, err, says)
		}
	}
}

// The code of the page signs tokens that a server takes.
func TestTheDocumentedSignerIsAccepted(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	server := harness.NewServer(t, data)
	p := harness.NewProject(t, data, "acme", harness.WriteFiles(t, privatePages))
	secret := newReaderSecret(t, data, "acme").Secret
	fences := harness.ReadFences(t, "docs/assistant/private.mdx")
	i := slices.IndexFunc(fences, func(f harness.Fence) bool { return f.Language == "js" })
	file := filepath.Join(harness.WriteFiles(t, map[string]string{"sign.mjs": fences[i].Text}), "sign.mjs")
	node, err := exec.LookPath("node")
	if err != nil && need.All {
		t.Fatal("node is not there, which CI has")
	} else if err != nil {
		t.Skip("there is no node")
	}
	cmd := exec.CommandContext(t.Context(), node, file, "alice", "staff")
	cmd.Env = append(os.Environ(), "DOCENT_READER_SECRET="+secret, "DOCENT_DOMAIN="+p.Domain)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	c := server.Client(p.Assistant)
	c.ReaderToken = func(context.Context, bool) (string, error) { return strings.TrimSpace(string(out)), nil }
	page, err := c.ReadPage(t.Context(), p.Domain, client.ReadPage{Path: "salaries"})
	if err != nil || !strings.Contains(page.Content, privateText) {
		t.Errorf("%v %s", err, page.Content)
	}
}

// The widget asks, searches and rates in the name of the reader whom the page's function names, and in nobody's once it
// names none.
func TestTheWidgetAsksInItsReadersName(t *testing.T) {
	t.Parallel()
	need.Installed(t, "the widget's requests", "scripts/build-widget", "../../router/widget/node_modules/esbuild")
	data := t.TempDir()
	server := harness.NewServer(t, data)
	p := harness.NewProject(t, data, "acme", harness.WriteFiles(t, privatePages))
	token := harness.SignReader(t, newReaderSecret(t, data, "acme").Secret, jwt.MapClaims{"sub": "alice", "groups": []string{"staff"}, "aud": p.Domain,
		"exp": time.Now().Add(time.Hour).Unix()})
	settings, err := json.Marshal(map[string]string{"server": server.URL, "domain": p.Domain, "key": p.Assistant, "token": token})
	if err != nil {
		t.Fatal(err)
	}
	if problems := runBrowser(t, "widgetreader.mjs", "DOCENT_WIDGET="+string(settings)); problems != "" {
		t.Error(problems)
	}
}
