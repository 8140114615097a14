// Package affected finds the pages of a documentation that a change of code concerns, with lines and reasons, without a
// language model.
//
// A change is a unified diff. What it removes, renames, adds or gives another value is looked up in the pages: flags,
// environment variables, settings, endpoints and functions, however each side spells them (log-level, LOG_LEVEL,
// logLevel). What is new stands on no page yet, so the names beside it in the code, and what the files are called, lead
// to the page where it belongs. diff.go reads the change, terms.go says what it changes, index.go reads the pages, find.go
// ranks them, report.go writes the result for people and for programs.
package affected
