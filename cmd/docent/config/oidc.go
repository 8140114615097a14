package config

import (
	"errors"
	"net/url"
	"strings"

	"docent/api"
	"docent/internal/secret"
)

// OIDC is the [oidc] table: the provider of OpenID Connect with which people sign in to the console.
type OIDC struct {
	Issuer       string   `toml:"issuer" usage:"OpenID Connect provider for the console's sign-in"`
	ClientID     string   `toml:"client_id" usage:"this server's client id at the provider"`
	SecretEnv    string   `toml:"client_secret_env" usage:"variable with the client's secret"`
	Name         string   `toml:"name" usage:"the provider's name on the sign-in page"`
	Scopes       []string `toml:"scopes" usage:"scopes requested besides openid"`
	Domains      []string `toml:"allowed_domains" usage:"email domains whose people need no invitation"`
	Organization string   `toml:"organization" usage:"organization that these people join"`
	Role         string   `toml:"role" usage:"role of these people: viewer, editor or owner"`

	Secret        *secret.Secret `toml:"-"` // of SecretEnv; nil if there is no provider
	secretProblem error
}

func defaultOIDC() OIDC {
	return OIDC{SecretEnv: EnvPrefix + "OIDC_CLIENT_SECRET", Name: "single sign-on", Scopes: []string{"email", "profile"},
		Organization: string(api.DefaultOrg), Role: string(api.RoleViewer)}
}

// resolve finds the secret. A client may have none.
func (c *OIDC) resolve(environ secret.Environ) {
	if c.Issuer != "" && c.SecretEnv != "" {
		c.Secret, c.secretProblem = secret.New(c.SecretEnv, environ)
	}
}

func (c OIDC) check(list *Problems) {
	if c.Issuer == "" {
		return
	}
	if !WebURL(c.Issuer) {
		list.add("oidc.issuer", "%q is not an http or https URL", c.Issuer)
	} else if err := overTLS(c.Issuer); err != nil {
		list.add("oidc.issuer", "%v", err)
	}
	if c.ClientID == "" {
		list.add("oidc.client_id", "is empty: it is what the provider knows this server as")
	}
	if !api.Role(c.Role).Valid() {
		list.add("oidc.role", "%q is none of viewer, editor, owner", c.Role)
	}
	for _, domain := range c.Domains {
		if strings.ContainsAny(domain, "@*/ ") || !strings.Contains(domain, ".") {
			list.add("oidc.allowed_domains", "%q is not a domain such as example.com", domain)
		}
	}
}

// overTLS refuses a provider whose answers anybody on the way could write. One on the machine itself may do without.
func overTLS(issuer string) error {
	u, err := url.Parse(issuer)
	if err != nil {
		return err
	}
	if host := u.Hostname(); u.Scheme != "https" && host != "localhost" && !strings.HasPrefix(host, "127.") && host != "::1" {
		return errors.New("must begin with https://: anyone on the way to the provider could sign in as anybody")
	}
	return nil
}
