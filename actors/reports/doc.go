// Package reports makes the report of a project's week, as figures, as a table, and as a message to a webhook.
//
// A report is delivered in three steps: it is stored, it is sent, and how that went is stored. A server that dies in
// between sends it again, under the same id, as does one whose receiver was not there; a receiver that knows the id has
// it already.
package reports
