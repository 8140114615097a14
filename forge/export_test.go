package forge

import "docent/api"

// Failing makes a hub fail after the steps for which fault returns an error.
func Failing(o Options, fault func(step string) error) Options {
	o.fault = fault
	return o
}

var (
	Merge3    = merge3
	DiffLines = func(a, b []byte) string { x, y := splitLines(a), splitLines(b); return unified(x, y, diffLines(x, y)) }
)

// Waiting is how many wait for the turn of a project's repository.
func Waiting(h *Hub, project api.ProjectID) int {
	r, err := h.repo(project)
	if err != nil {
		panic(err)
	}
	return int(r.waiting.Load())
}
