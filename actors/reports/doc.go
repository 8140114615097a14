// Package reports makes the report of a project's week, as figures and as a table, and journals it each week: outgoing
// webhooks make an event of that.
package reports
