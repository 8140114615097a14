package forge_test

import (
	"bufio"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"docent/api"
	"docent/forge"
	"docent/forge/forgetest"
	"docent/internal/testing/freeport"
	"docent/internal/testing/need"
)

// The parts of GitHub's API that are used.
var githubPaths = []string{
	"/repos/{owner}/{repo}", "/repos/{owner}/{repo}/pulls", "/repos/{owner}/{repo}/pulls/{pull_number}",
	"/repos/{owner}/{repo}/issues/{issue_number}/labels", "/repos/{owner}/{repo}/installation",
	"/app/installations/{installation_id}/access_tokens", "/app",
	"/repos/{owner}/{repo}/issues/{issue_number}/comments", "/repos/{owner}/{repo}/pulls/{pull_number}/comments",
	"/repos/{owner}/{repo}/pulls/{pull_number}/comments/{comment_id}/replies",
	"/repos/{owner}/{repo}/pulls/{pull_number}/reviews", "/repos/{owner}/{repo}/collaborators/{username}/permission",
	"/repos/{owner}/{repo}/pulls/{pull_number}/requested_reviewers", "/repos/{owner}/{repo}/commits", "/users/{username}",
}

// published is GitHub's own description of those parts, with all that they refer to.
func published(t *testing.T, file string) []byte {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var whole struct {
		OpenAPI    string                                `json:"openapi"`
		Info       json.RawMessage                       `json:"info"`
		Paths      map[string]json.RawMessage            `json:"paths"`
		Components map[string]map[string]json.RawMessage `json:"components"`
	}
	if err := json.Unmarshal(data, &whole); err != nil {
		t.Fatal(err)
	}
	paths := map[string]json.RawMessage{}
	components := map[string]map[string]json.RawMessage{}
	var follow func(v any)
	follow = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, x := range v {
				follow(x)
			}
		case map[string]any:
			for key, x := range v {
				ref, ok := x.(string)
				if key != "$ref" || !ok {
					follow(x)
					continue
				}
				parts := strings.Split(strings.TrimPrefix(ref, "#/components/"), "/")
				if len(parts) != 2 || components[parts[0]][parts[1]] != nil {
					continue
				}
				part := whole.Components[parts[0]][parts[1]]
				if components[parts[0]] == nil {
					components[parts[0]] = map[string]json.RawMessage{}
				}
				components[parts[0]][parts[1]] = part
				var inside any
				if err := json.Unmarshal(part, &inside); err != nil {
					t.Fatal(err)
				}
				follow(inside)
			}
		}
	}
	for _, path := range githubPaths {
		if paths[path] = whole.Paths[path]; paths[path] == nil {
			t.Fatalf("the description has no %s", path)
		}
		var inside any
		if err := json.Unmarshal(paths[path], &inside); err != nil {
			t.Fatal(err)
		}
		follow(inside)
	}
	out, err := json.Marshal(map[string]any{"openapi": whole.OpenAPI, "info": whole.Info, "paths": paths,
		"components": components})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestGitHubByItsPublishedDescription runs the contract with a proxy in between that holds each request, and each
// answer of the stand-in, against GitHub's OpenAPI description.
func TestGitHubByItsPublishedDescription(t *testing.T) {
	const dir = "contract/node_modules"
	prism, err := filepath.Abs(filepath.Join(dir, ".bin", "prism"))
	if err != nil {
		t.Fatal(err)
	}
	need.Peer(t, "GitHub's published description", "scripts/install-host-contract", prism)
	description := filepath.Join(t.TempDir(), "github.json")
	if err := os.WriteFile(description, published(t, filepath.Join(dir, "@octokit/openapi/generated/api.github.com.json")),
		0o644); err != nil {
		t.Fatal(err)
	}

	// The host behind the proxy changes from part to part.
	var current atomic.Pointer[forgetest.StandIn]
	behind := func() *url.URL { u, _ := url.Parse(current.Load().URL); return u }
	upstream := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(behind())
		r.Out.URL.Path, r.Out.URL.RawPath = "/api/v3"+r.In.URL.Path, ""
	}})
	defer upstream.Close()

	port := strconv.Itoa(freeport.On(t, "127.0.0.1"))
	cmd := exec.CommandContext(t.Context(), prism, "proxy", description, upstream.URL, "--errors", "--host", "127.0.0.1",
		"--port", port)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	listening := make(chan struct{})
	logged := make(chan struct{})
	go func() {
		defer close(logged)
		lines := bufio.NewScanner(out)
		lines.Buffer(nil, 1<<20)
		said := false
		for lines.Scan() {
			if !said && strings.Contains(lines.Text(), "Prism is listening") {
				said = true
				close(listening)
			}
		}
	}()
	t.Cleanup(func() { cmd.Process.Kill(); <-logged; cmd.Wait() })
	select {
	case <-listening:
	case <-logged:
		t.Fatal("the proxy ended before it listened")
	case <-time.After(3 * time.Minute):
		t.Fatal("the proxy does not listen")
	}

	proxy, _ := url.Parse("http://127.0.0.1:" + port)
	var checks atomic.Int32
	checker := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(proxy)
			r.Out.URL.Path, r.Out.URL.RawPath = strings.TrimPrefix(r.In.URL.Path, "/api/v3"), ""
		},
		ModifyResponse: func(res *http.Response) error {
			checks.Add(1)
			body, err := io.ReadAll(res.Body)
			res.Body = io.NopCloser(strings.NewReader(string(body)))
			v := res.Header.Get("sl-violations")
			// not described for each request, but given
			if res.StatusCode == http.StatusUnauthorized || res.StatusCode == http.StatusBadGateway {
				v = ""
			}
			if v != "" || strings.Contains(string(body), "stoplight.io/prism") {
				t.Errorf("%s %s is not as GitHub describes it: %s %.2000s", res.Request.Method, res.Request.URL.Path, v, body)
			}
			return err
		},
	}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/api/v3/") {
			checker.ServeHTTP(w, r)
			return
		}
		(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(behind()) }}).ServeHTTP(w, r)
	}))
	defer front.Close()

	through := func(t *testing.T) (*forgetest.StandIn, api.Project) {
		s, p := standIn(t, api.HostGitHub)
		current.Store(s)
		p.HostURL = front.URL
		return s, p
	}
	t.Run("Contract", func(t *testing.T) {
		forgetest.Test(t, func(t *testing.T) forgetest.Host {
			s, p := through(t)
			h := s.Host(open(t, t.TempDir(), p, &forgetest.Pulls{}, quick).Hub, p)
			h.Rename = nil // the proxy follows the host's redirects itself, so the new name never shows
			return h
		})
	})
	t.Run("AppDraftLabelsAndReviewers", func(t *testing.T) {
		s, p := through(t)
		s.Tokens = nil
		s.App = &forgetest.StandInApp{ID: 17, Installation: 4711, Lifetime: time.Hour, Now: time.Now,
			Verify: func(string) error { return nil }}
		s.People, s.Teams = map[string]string{"ann": "write"}, []string{"writers"}
		p.AppID, p.Labels, p.Pulls.Reviewers = 17, "docs", "ann, acme/writers, stranger"
		t.Setenv("DOCENT_TEST_TOKEN", appKey(t))
		r := open(t, t.TempDir(), p, &forgetest.Pulls{}, quick)
		if err := r.Access(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		pub := forgetest.Publication(p, r.tip(t, "docent/job_1"), "# Set up\n\nNew.\n")
		pub.Draft = true
		for range 2 {
			if _, err := r.Publish(t.Context(), pub); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := r.Authors(t.Context(), p, []forge.Commit{{Hash: s.Commits(t, "main")[0], Author: "Docent"}}); err != nil {
			t.Fatal(err)
		}
		if got := s.Pulls(pub.Branch); len(got) != 1 || !got[0].Draft || fmt.Sprint(got[0].Labels) != "[docs]" ||
			fmt.Sprint(got[0].Reviewers) != "[ann acme/writers]" {
			t.Errorf("pull requests %+v", got)
		}
	})
	t.Run("Refusals", func(t *testing.T) {
		s, p := through(t)
		r := open(t, t.TempDir(), p, &forgetest.Pulls{}, quick)
		pub := forgetest.Publication(p, r.tip(t, "docent/job_1"), "# Set up\n\nNew.\n")
		first := failing(s, forgetest.Fault{Act: true, Drop: true}, creates)
		if _, err := r.Publish(t.Context(), pub); err != nil || first.Load() == 0 || len(s.Pulls(pub.Branch)) != 1 {
			t.Errorf("with the answer lost: %v", err)
		}
		t.Setenv("DOCENT_TEST_TOKEN", "another")
		if err := r.Access(t.Context(), p); err == nil || !strings.Contains(err.Error(), "does not accept") {
			t.Errorf("access with a wrong token: %v", err)
		}
	})
	t.Run("Comments", func(t *testing.T) {
		s, p := through(t)
		s.Tokens = nil
		s.App = &forgetest.StandInApp{ID: 17, Installation: 4711, Slug: "acme-docs", Lifetime: time.Hour, Now: time.Now,
			Verify: func(string) error { return nil }}
		p.AppID = 17
		t.Setenv("DOCENT_TEST_TOKEN", appKey(t))
		h := comment(t, s, open(t, t.TempDir(), p, &forgetest.Pulls{}, quick))
		h.Say(h.number, "ann", "in the conversation")
		h.Say(h.number, "stranger", "somebody else's")
		line := h.SayOn(forgetest.StandInComment{Pull: h.number, Author: "lea", Path: "guide/setup.md", Line: 3, Hunk: hunk,
			Body: "on a line"})
		h.SayOn(forgetest.StandInComment{Root: line, Author: "ann", Body: "in its thread"})
		h.Submit(h.Draft(h.number, "lea", "a review", forgetest.StandInComment{Path: "docs.json", Body: "on a file"}))
		gone := h.SayOn(forgetest.StandInComment{Pull: h.number, Author: "lea", Path: "index.md", Line: 1, Hunk: hunk,
			Body: "soon gone"})
		list := h.read(t, h.hour)
		if len(list) != 7 {
			t.Errorf("%d comments", len(list))
		}
		h.Unsay(gone)
		for _, c := range list {
			for range 2 {
				if err := h.Hub.Reply(t.Context(), p, h.number, c, "to-"+c.ID, "Done."); err != nil {
					t.Errorf("a reply to %q: %v", c.Body, err)
				}
			}
		}
		if got := h.Replies(h.number); len(got) != 7 {
			t.Errorf("%d replies", len(got))
		}
	})
	if checks.Load() == 0 {
		t.Error("nothing went through the proxy")
	}
	t.Logf("%d requests and answers were checked", checks.Load())
}

func appKey(t *testing.T) string {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}))
}
