// Package review takes what people say on the pull requests of jobs, where they say it, to the jobs: a comment that
// addresses the agent becomes a follow-up, once, and is answered in its thread.
//
// A code host's webhook is only a hint that a pull request has news; polling finds the same without it, later. What is
// said and by whom is always read through the host's API. Each step is stored before it acts: a comment is taken
// (State taken), given to its job under a key of the journal (given), the job's answer is kept (ended), and sent under
// a mark that the host's thread shows (answered). A crash at any point goes on where the stored state says.
//
// mention.go reads a comment, prompt.go makes the instruction and the answers, look.go looks at pull requests, ask.go
// takes instructions to their end, review.go keeps the time. On the built-in host people send their comments to the job
// from the page; builtin.go stores what became of them.
package review
