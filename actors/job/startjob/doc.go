// Package startjob gives instructions to jobs: within the quotas, and once for a key, however often and from how many
// places the same request comes.
//
// The API and the console give instructions through it. What a request costs is settled here too: a repeat, and an
// instruction that was refused, cost nothing.
package startjob
