// Package oidctest starts, for tests, a real provider of OpenID Connect: the one that the certified library
// zitadel/oidc brings along, which scripts/install-oidc-provider builds. It has an implementation of its own of
// everything that the sign-in relies on.
package oidctest

import (
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"docent/internal/background"
	"docent/internal/testing/freeport"
	"docent/internal/testing/need"
)

// ClientID is what the provider knows this installation as.
const ClientID = "web"

const clientSecret = "secret"

// ClientSecret is its secret.
func ClientSecret() string { return clientSecret }

// A User is somebody whom the provider knows.
type User struct {
	ID, Username, Password, FirstName, LastName, Email string
	EmailVerified                                      bool
	PreferredLanguage                                  string
}

// The users of every provider.
var (
	Maria = User{ID: "sub-maria", Username: "maria", Password: "maria's secret", FirstName: "Maria",
		LastName: "Lindqvist", Email: "Maria@Example.com", EmailVerified: true, PreferredLanguage: "en"}
	Eve = User{ID: "sub-eve", Username: "eve", Password: "eve's secret", FirstName: "Eve", LastName: "Unverified",
		Email: "maria@example.com", PreferredLanguage: "en"}
	Olga = User{ID: "sub-olga", Username: "olga", Password: "olga's secret", FirstName: "Olga", LastName: "Other",
		Email: "olga@elsewhere.example", EmailVerified: true, PreferredLanguage: "en"}
)

// Program is where scripts/install-oidc-provider puts the provider.
func Program() string { return filepath.Join(need.Root(), "bin", "oidc-provider") }

// A Provider runs as a process of its own until the test ends.
type Provider struct {
	Issuer string

	t    *testing.T
	port string
	env  []string
	stop func()
}

// Start starts a provider that sends browsers back to one of the addresses. The test is skipped if the provider is
// not installed.
func Start(t *testing.T, redirects ...string) *Provider {
	t.Helper()
	need.Peer(t, "a real provider of OpenID Connect", "scripts/install-oidc-provider", Program())
	port := strconv.Itoa(freeport.On(t, "127.0.0.1"))
	users, err := json.Marshal(map[string]User{Maria.ID: Maria, Eve.ID: Eve, Olga.ID: Olga})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "users.json")
	if err := os.WriteFile(file, users, 0o600); err != nil {
		t.Fatal(err)
	}
	p := &Provider{Issuer: "http://localhost:" + port + "/", t: t, port: port,
		env: append(os.Environ(), "PORT="+port, "USERS_FILE="+file, "REDIRECT_URI="+strings.Join(redirects, ","))}
	t.Cleanup(p.Stop)
	p.Run()
	return p
}

// Run starts the process, also after Stop.
func (p *Provider) Run() {
	p.t.Helper()
	cmd := exec.Command(Program())
	cmd.Env = p.env
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	ended := make(chan struct{})
	background.Go("web/oidc/oidctest.Run", func() { defer close(ended); _ = cmd.Wait() })
	p.stop = func() { _ = cmd.Process.Kill(); <-ended }
	for deadline := time.Now().Add(time.Minute); ; {
		resp, err := http.Get(p.Issuer + ".well-known/openid-configuration")
		if err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return
			}
		}
		if time.Now().After(deadline) {
			p.t.Fatalf("the provider does not answer: %v", err)
		}
		select {
		case <-ended:
			p.t.Fatal("the provider ends at once")
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Stop ends the process.
func (p *Provider) Stop() {
	if p.stop != nil {
		p.stop()
		p.stop = nil
	}
}

var hidden = regexp.MustCompile(`name="id" value="([^"]*)"`)

// SignIn does what a person does who was sent to the provider: types name and password there. It returns the address
// to which the provider sends the browser back.
func (p *Provider) SignIn(address string, u User) (back string, err error) {
	jar, err := cookiejar.New(nil)
	if err != nil {
		return "", err
	}
	browser := &http.Client{Jar: jar, Timeout: time.Minute, CheckRedirect: func(r *http.Request, _ []*http.Request) error {
		if !strings.HasPrefix(r.URL.String(), p.Issuer) {
			return http.ErrUseLastResponse // it is sent back
		}
		return nil
	}}
	resp, err := browser.Get(address)
	if err != nil {
		return "", err
	}
	page, err := io.ReadAll(resp.Body)
	if err := errors.Join(err, resp.Body.Close()); err != nil {
		return "", err
	}
	id := hidden.FindSubmatch(page)
	if id == nil {
		return "", fmt.Errorf("the provider shows no form: %s %s", resp.Status, page)
	}
	resp, err = browser.PostForm(p.Issuer+"login/username",
		url.Values{"id": {html.UnescapeString(string(id[1]))}, "username": {u.Username}, "password": {u.Password}})
	if err != nil {
		return "", err
	}
	page, _ = io.ReadAll(resp.Body)
	resp.Body.Close()
	back = resp.Header.Get("Location")
	if back == "" {
		return "", fmt.Errorf("the provider does not send the browser back: %s %s", resp.Status, page)
	}
	return back, nil
}
