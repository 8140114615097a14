// Package forge brings edits to where the documentation lives: it reads the repository at a commit, pushes a branch and
// opens a pull request. The built-in host keeps bare repositories in the data directory and needs nothing else.
//
// Publishing is idempotent: the commit is derived from its content, an open pull request for the branch is found before
// one is made, and a repeat of a publication that took effect changes nothing.
//
// Below it lie git (a repository on disk), remote (git's protocol), host (the APIs of code hosts) and failure (what can
// be done about an error). Here they meet: hub.go opens repositories and gives turns, sync.go brings the source, tip.go
// returns a branch's state, publish.go and hosted.go publish, comments.go reads and answers what people say there,
// pulls.go is the built-in host, folder.go and writeback.go read and write folders, salvage.go mends.
package forge

import (
	"time"

	"docent/api"
	"docent/forge/failure"
	"docent/forge/git"
)

// Errors that a job can act on.
var (
	ErrMoved         = failure.ErrMoved
	ErrMisconfigured = failure.ErrMisconfigured
	ErrTemporary     = failure.ErrTemporary
	ErrLost          = failure.ErrLost
	ErrRefused       = failure.ErrRefused
	ErrMergeConflict = failure.ErrMergeConflict
)

// A HostError is what a code host or a repository has against a request, as a sentence for the user.
type HostError = failure.Error

// A ConflictError names the files for which a merge is refused. It wraps ErrMergeConflict.
type ConflictError = failure.ConflictError

// What git knows of changes.
type (
	Change   = git.Change
	Diff     = git.Diff
	FileDiff = git.FileDiff
)

// QuotePath is a path as git writes it in a diff.
func QuotePath(path string) string { return git.QuotePath(path) }

// A Publication is one commit that is to stand on a branch with a pull request.
type Publication struct {
	Project api.Project
	Job     api.JobID
	Branch  string // created from the base if it does not exist
	Base    string // branch that the pull request is meant for
	Parent  string // commit that the changes build on: the branch's head, or the base's if the branch is new
	Changes []Change
	Message string    // of the commit
	At      time.Time // of the commit: part of what makes a repeat the same commit
	Title   string    // of the pull request; kept if it is already open
	Body    string
	Draft   bool
	Author  string    // of the commit, as "Name <address>"; Docent's own if empty
	SignOff bool      // the message ends with the author's Signed-off-by
	Asker   api.KeyID // who asked for it, for Options.CoAuthor
	Review  bool      // a person looks at it first, even if the project commits directly
	Join    bool      // no pull request is opened if an open one changes the same
	// accounts that are asked to review this change, beside those that the project asks when a pull request is opened
	Reviewers []string
}

// Published says where a publication is.
type Published struct {
	Commit string
	Number int
	Link   string // of the pull request; a path under the service's own address for the built-in host
	New    bool   // the pull request was opened now
	Text   string // what to say if there is no pull request: a request-pull text, or where the commit is
	// Joined is the branch of an open pull request that changes the same: nothing was published, and Commit, Number and
	// Link are that one's. Empty as a rule.
	Joined string `cbor:",omitempty"`
}

// A Commit is one of a pull request's, or of a history's.
type Commit = api.Commit
