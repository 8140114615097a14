// Package api holds the resources, identifiers and errors of Docent's HTTP API: data and its validation, nothing that
// acts. Beside the standard library it imports internal/brief alone, and every other package may import it.
package api
