// Package agent edits documentation on request. It works on a workspace, the base commit's tree and an overlay of
// edited files, and touches nothing outside it; what leaves it is a Result that somebody else publishes.
package agent

import (
	"context"
	"time"

	"docent/api"
)

// A Tree is the repository at one commit. Paths are relative to the repository's root.
type Tree interface {
	Commit() string
	Files(ctx context.Context) ([]api.File, error)
	Read(ctx context.Context, path string) ([]byte, error) // fs.ErrNotExist where there is no such file
}

// A Task is one instruction with what came before it.
type Task struct {
	Project  api.Project
	Job      api.JobID
	Model    string        // asked for by the caller; empty for the project's
	Prompt   string        // the instruction to carry out now
	Earlier  []Instruction // earlier ones of the same job, oldest first
	Tree     Tree          // what to work on: the job's branch, or the base where it has none
	DocsDir  string        // nothing outside it is edited
	Now      time.Time
	Attempts int // how often this instruction has been tried before
}

// An Instruction is an earlier instruction of the job and what became of it.
type Instruction struct {
	Prompt  string
	Message string // what the agent said at its end
	Commit  string // where it ended in a commit
}

// A Change is one file as it is to be. Paths are relative to the repository's root.
type Change struct {
	Path    string
	Content []byte
	Delete  bool
	From    string // where the file was moved from
}

// A Result is what an instruction led to. No changes is a valid result: Message says why.
type Result struct {
	Model   string // which one worked: "rules-1" for the built-in instructions
	Changes []Change
	Title   string // of the pull request: what was done, in one line
	Commit  string // message of the commit
	Body    string // of the pull request, Markdown: what was asked, what changed, what was checked, what could not be done
	Message string // the agent's word to the user
	Todos   []api.Todo
}

// Progress is what a run reports while it goes on.
type Progress struct {
	Title string
	Todos []api.Todo
	Text  string // one line for people
}
