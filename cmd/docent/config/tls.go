package config

import (
	"strings"
	"time"
)

// OverTLS is whether the server speaks TLS by itself.
func (c Config) OverTLS() bool { return c.TLSCert != "" || len(c.ACMEDomains) > 0 }

// StrictTransport is how long browsers are told to keep to TLS: of its own accord only where the server itself speaks it.
func (c Config) StrictTransport() time.Duration {
	if !c.OverTLS() && c.origins["hsts"] == "" {
		return 0
	}
	return c.HSTS.Duration
}

// Scheme begins the server's own address.
func (c Config) Scheme() string {
	if c.OverTLS() {
		return "https://"
	}
	return "http://"
}

// checkTLS looks at the settings of TLS.
func (c Config) checkTLS(list *Problems) {
	switch {
	case c.TLSCert != "" && c.TLSKey == "":
		list.add("tls_key", "must name the file with the key of tls_cert")
	case c.TLSKey != "" && c.TLSCert == "":
		list.add("tls_cert", "must name the file with the certificate of tls_key")
	case c.TLSCert != "" && len(c.ACMEDomains) > 0:
		list.add("acme_domains", "there is a certificate already: set either tls_cert and tls_key, or acme_domains")
	}
	for _, domain := range c.ACMEDomains {
		switch {
		case strings.Contains(domain, "*"):
			list.add("acme_domains", "%q stands for many names, which no authority gives a certificate for without access to DNS: "+
				"name each one, or set tls_cert", domain)
		case !strings.Contains(domain, ".") || strings.ContainsAny(domain, ":/ @"):
			list.add("acme_domains", "%q is no domain name such as docs.example.com", domain)
		}
	}
	if len(c.ACMEDomains) > 0 && !c.ACMEAcceptTerms {
		list.add("acme_accept_terms", "must be true: the authority gives certificates to those who agree to its terms of service; "+
			"those of Let's Encrypt are at https://letsencrypt.org/repository/")
	}
	if c.ACMEDirectory != "" && !WebURL(c.ACMEDirectory) {
		list.add("acme_directory", "%q is not an https URL", c.ACMEDirectory)
	}
	if c.RedirectListen != "" {
		list.hostPort("redirect_listen", c.RedirectListen)
		if !c.OverTLS() {
			list.add("redirect_listen", "there is no TLS to send browsers to: set tls_cert and tls_key, or acme_domains")
		}
	}
}
