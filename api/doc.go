// Package api holds the resources, identifiers and errors of Docent's HTTP API: data and its validation, nothing that
// acts. It imports only the standard library, and every other package may import it.
package api
