package config

import (
	"net"
	"net/netip"
	"slices"
	"strings"

	"docent/internal/outbound"
)

// ConsoleURL is where the console is, as far as the settings tell.
func ConsoleURL(c Config) string {
	if c.PublicURL != "" {
		return strings.TrimRight(c.PublicURL, "/")
	}
	host, port, err := net.SplitHostPort(c.Listen)
	if err != nil {
		return "http://" + c.Listen
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "localhost"
	}
	return "http://" + net.JoinHostPort(host, port)
}

// UnlimitedClient returns whether an address is none that max_client_share limits.
func (c Config) UnlimitedClient() func(netip.Addr) bool {
	list := Prefixes(slices.Concat(c.Unlimited, c.TrustedProxies))
	return func(client netip.Addr) bool {
		return slices.ContainsFunc(list, func(p netip.Prefix) bool { return p.Contains(client) })
	}
}

// Prefixes reads addresses and CIDR ranges that were checked. It is not nil if there are none.
func Prefixes(texts []string) []netip.Prefix {
	list := []netip.Prefix{} // not nil: none means none
	for _, text := range texts {
		if p, err := parsePrefix(text); err == nil { // validated
			list = append(list, p)
		}
	}
	return list
}

// UnixScheme begins an address to listen on that is the path of a Unix socket.
const UnixScheme = "unix:"

// Targets says which addresses that people enter are sent to or asked: of webhooks, and of keys of reader
// tokens.
func (c *Config) Targets() outbound.Policy {
	return outbound.Policy{Allow: Prefixes(c.WebhookAllow), Setting: "webhook_allow"}
}
