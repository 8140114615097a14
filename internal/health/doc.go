// Package health is how a server fares: its figures at one moment, as `docent status` and the console's page about the
// system show them, the newest records of its log, and the disk that its data directory is on.
//
// The figures are plain data; cmd/docent, which knows every room, fills them in.
package health
