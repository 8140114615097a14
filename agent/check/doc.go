// Package check looks at the result of a run before it is published: what the edits would break, what they would delete
// unasked, what they would have the site's build run, and what the operator's own command says about them.
package check
