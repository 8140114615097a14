package config

import (
	"net"
	"slices"
	"strings"
)

// Where the journal is kept.
const (
	JournalBolt     = "bbolt"
	JournalPostgres = "postgres"
)

// NodeSecretEnv names the secret that nodes know each other by.
const NodeSecretEnv = EnvPrefix + "NODE_SECRET"

// LeastNodeSecret is how many bytes it has at least, each of two, so that it cannot be guessed: not from the public keys in
// the database either.
const LeastNodeSecret = 32

// Shared reports whether the journal is in a database that several nodes can share.
func (c *Config) Shared() bool { return c.Journal == JournalPostgres }

// checkNodes finds settings of a cluster that cannot be used.
func (c *Config) checkNodes(list *Problems) {
	if c.NodeAddress != "" && c.NodeListen == "" {
		list.add("node_address", "it is the address of node_listen, which is not set: set node_listen to HOST:PORT as well, or leave node_address out")
	}
	switch c.Journal {
	case JournalBolt:
		if c.NodeListen != "" {
			list.add("node_listen", "nodes share a journal in PostgreSQL: set journal = \"postgres\" as well, or leave node_listen out")
		}
		return
	case JournalPostgres:
	default:
		list.add("journal", "%q is neither bbolt nor postgres", c.Journal)
		return
	}
	if !strings.HasPrefix(c.CatalogDSN, "postgres") {
		list.add("journal", "postgres keeps the journal in the catalog's database: set catalog_dsn to postgres://…")
	}
	if slices.ContainsFunc(c.NodeSecrets(), func(s string) bool { return len(s) < LeastNodeSecret }) {
		list.add("journal", "%s is shorter than %d bytes: make one with openssl rand -base64 32", NodeSecretEnv, LeastNodeSecret)
	}
	if c.NodeListen == "" {
		return
	}
	list.hostPort("node_listen", c.NodeListen)
	if c.NodeAddress != "" {
		list.hostPort("node_address", c.NodeAddress)
	} else if host, _, err := net.SplitHostPort(c.NodeListen); err == nil && unspecified(host) {
		list.add("node_address", "node_listen names no address that other nodes can reach: set node_address to HOST:PORT")
	}
	if c.nodeSecret == nil {
		list.add("node_listen", "%w: nodes know each other by a secret of at least %d bytes, the same on all of them (openssl rand -base64 32)",
			c.nodeSecretProblem, LeastNodeSecret)
	}
}

// NodeSecrets are what nodes know each other by, none if none is given. There are two, with a space between them, while
// the secret is replaced: the first is used, and what comes from nodes that have another order is understood.
func (c *Config) NodeSecrets() []string {
	if c.nodeSecret == nil {
		return nil
	}
	return strings.Fields(c.nodeSecret.Value())
}

// unspecified reports whether a host of a listener stands for all addresses of the machine.
func unspecified(host string) bool {
	ip := net.ParseIP(host)
	return host == "" || ip != nil && ip.IsUnspecified()
}

// DatabaseDSN is the address of the catalog's database, as it is given now.
func (c *Config) DatabaseDSN() string {
	if c.CatalogSecret != nil {
		return c.CatalogSecret.Value()
	}
	return c.CatalogDSN
}
