package host

import (
	"context"
	"crypto/rsa"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"docent/api"
	"docent/forge/failure"
	"docent/internal/secret"
)

// readSecret is what the operator gives under the name of the project's variable.
func readSecret(variable string) (string, error) {
	if variable == "" {
		return "", nil
	}
	value, err := secret.Read(variable, os.LookupEnv)
	if err != nil {
		return "", failure.Misconfigured("The code host's credentials cannot be read: %v.", err)
	}
	return value, nil
}

// credentials is what a project has as its token or key: stored, or in its variable.
func (h *Hosts) credentials(p api.Project) (string, error) {
	if p.TokenFile == "" {
		return readSecret(p.TokenEnv)
	}
	if h.o.Stored == nil {
		return "", failure.Misconfigured("The token of this project is stored in the server's data directory.")
	}
	value, err := h.o.Stored(p.TokenFile)
	if err != nil {
		return "", failure.Misconfigured(
			"The stored token of this project cannot be read: %v. Backups leave tokens out: after a restore, enter it again on the console's page Sources, or with `docent project token %s`.",
			failure.Reason(err), p.ID)
	}
	return value, nil
}

// Secret is what a project's repository is reached with now: its token, its SSH key, or its app's token of the hour.
func (h *Hosts) Secret(ctx context.Context, p api.Project) (string, error) {
	if p.Host == api.HostGitHub && p.AppID != 0 {
		return h.appToken(ctx, p)
	}
	return h.credentials(p)
}

// An installation is an app's access to one repository.
type installation struct {
	mu      sync.Mutex // held while a token is fetched: many jobs wait for one
	id      int64
	token   string
	expires time.Time
	login   string // of the account that the app writes as
	author  string // of its commits
}

func (h *Hosts) installation(p api.Project) *installation {
	key := fmt.Sprintf("%s %d %s %s", githubAPI(p.HostURL), p.AppID, p.TokenEnv+p.TokenFile, strings.ToLower(p.Repository))
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.installs[key] == nil {
		h.installs[key] = new(installation)
	}
	return h.installs[key]
}

// appToken is the installation's token; a new one if the old one has less than five minutes left.
func (h *Hosts) appToken(ctx context.Context, p api.Project) (string, error) {
	in := h.installation(p)
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.token != "" && h.o.Now().Add(5*time.Minute).Before(in.expires) {
		return in.token, nil
	}
	app, err := h.githubApp(p)
	if err != nil {
		return "", err
	}
	if in.id == 0 {
		if in.id, err = app.installation(ctx); err != nil {
			return "", err
		}
	}
	token, expires, err := app.accessToken(ctx, in.id)
	if answered(err, 404) { // reinstalled under another number
		in.id = 0
	}
	if err != nil {
		return "", err
	}
	in.token, in.expires = token, expires
	return token, nil
}

// appLogin is the account that the project's app writes as.
func (h *Hosts) appLogin(ctx context.Context, p api.Project) (string, error) {
	in := h.installation(p)
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.login != "" {
		return in.login, nil
	}
	app, err := h.githubApp(p)
	if err == nil {
		in.login, err = app.login(ctx)
	}
	return in.login, err
}

// AppAuthor is the account that the project's app writes as, as an author of commits: with the address by which the host
// knows it. Empty if there is no app.
func (h *Hosts) AppAuthor(ctx context.Context, p api.Project) (string, error) {
	if p.Host != api.HostGitHub || p.AppID == 0 {
		return "", nil
	}
	in := h.installation(p)
	in.mu.Lock()
	author := in.author
	in.mu.Unlock()
	if author != "" {
		return author, nil
	}
	login, err := h.appLogin(ctx, p)
	if err != nil {
		return "", err
	}
	g, err := h.github(p)
	if err != nil {
		return "", err
	}
	if author, err = g.commitName(ctx, login); err != nil {
		return "", err
	}
	in.mu.Lock()
	in.author = author
	in.mu.Unlock()
	return author, nil
}

// dropAppToken forgets a token that the host refused; true if there is reason to try with another one.
func (h *Hosts) dropAppToken(p api.Project, refused string) bool {
	in := h.installation(p)
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.token == refused {
		in.token = ""
	}
	return true
}

// appJWT is how an app says who it is, for ten minutes at most. The host's clock may be a little behind ours.
func appJWT(appID int64, key *rsa.PrivateKey, now time.Time) (string, error) {
	signed, err := jwt.NewWithClaims(jwt.SigningMethodRS256, jwt.MapClaims{
		"iat": now.Add(-time.Minute).Unix(), "exp": now.Add(8 * time.Minute).Unix(), "iss": fmt.Sprint(appID),
	}).SignedString(key)
	if err != nil {
		return "", fmt.Errorf("sign as app %d: %w", appID, err)
	}
	return signed, nil
}

// parseAppKey reads the key that the host gave for the app. Line ends may be written as \n, as in files of variables.
func parseAppKey(text string) (*rsa.PrivateKey, error) {
	if !strings.Contains(text, "\n") {
		text = strings.ReplaceAll(text, `\n`, "\n")
	}
	return jwt.ParseRSAPrivateKeyFromPEM([]byte(text))
}
