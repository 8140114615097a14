// Package cli has what the commands share: flags, exit statuses, tables, JSON, progress, and how a command reaches the process that
// serves a data directory.
package cli

import (
	"time"

	"docent/api"
	"docent/cmd/docent/config"
)

// A Program is docent with what is no setting of it: a test of the whole program puts in its own.
type Program struct {
	Now            func() time.Time  // time.Now if nil
	BeforeIndexing func(api.Project) // see sources.Deps
}

// Configured puts what is no setting beside the settings.
func (p Program) Configured(c config.Config) config.Config {
	if p.Now != nil {
		c.Now = p.Now
	}
	c.BeforeIndexing = p.BeforeIndexing
	return c
}
