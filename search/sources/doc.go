// Package sources follows the sources of documentation: it brings a project's repository up to date, indexes what has
// changed, and does so again when a folder changes, when a pull request is merged, at intervals, and when a client
// asks for an update.
//
// One project is read by one goroutine at a time, and few projects at once. What ends the process while it reads a
// source twice is left out until that source changes (Guard). An update that a client asked for is stored in the
// catalog before the client hears of it, and is begun again by the next server if this one dies in it (Updates).
package sources
