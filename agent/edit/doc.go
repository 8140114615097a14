// Package edit holds the operations on documentation, such as replacing a term or moving a page with all links to it.
// The built-in instructions and the tools of language models both work through them.
//
// An operation names what it does and where: its Scope. Run.Do carries it out and refuses whatever it changes outside
// of its scope. The run keeps the account of what was done, which the report of the result is written from.
package edit
