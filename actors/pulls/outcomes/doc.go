// Package outcomes tells jobs what became of their pull requests on the built-in host. The catalog knows which states
// jobs have not heard of, so that one that is merged while no server runs, or whose server dies in that moment, is told
// later; a job that is told twice changes nothing.
package outcomes
