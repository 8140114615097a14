// Package cli has what the commands share: flags, exit statuses, tables, JSON, progress, and how a command reaches the process that
// serves a data directory.
package cli

import (
	"cmp"
	"time"

	"docent/api"
	"docent/cmd/docent/config"
	"docent/router/discord"
	"docent/router/slack"
)

// A Program is docent with what is no setting of it: a test of the whole program puts in its own.
type Program struct {
	Now            func() time.Time  // time.Now if nil
	BeforeIndexing func(api.Project) // see sources.Deps
	SlackURL       string            // Slack's own if empty
	DiscordURL     string            // the same
}

// Configured puts what is no setting beside the settings.
func (p Program) Configured(c config.Config) config.Config {
	if p.Now != nil {
		c.Now = p.Now
	}
	c.BeforeIndexing = p.BeforeIndexing
	c.SlackURL, c.DiscordURL = cmp.Or(p.SlackURL, slack.URL), cmp.Or(p.DiscordURL, discord.URL)
	return c
}
