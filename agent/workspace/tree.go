package workspace

import (
	"context"

	"docent/api"
)

// A Tree is the repository at one commit. Paths are relative to the repository's root.
type Tree interface {
	Commit() string
	Files(ctx context.Context) ([]api.File, error)
	Read(ctx context.Context, path string) ([]byte, error) // fs.ErrNotExist where there is no such file
}

// Moved are the files that changes move away.
func Moved(changes []Change) map[string]bool {
	moved := map[string]bool{}
	for _, c := range changes {
		moved[c.From] = moved[c.From] || c.From != ""
	}
	return moved
}

// A Change is one file as it is to be. Paths are relative to the repository's root.
type Change struct {
	Path    string
	Content []byte
	Delete  bool
	From    string // where the file was moved from
}

// History is a Tree that also shows other commits of its repository. With it an instruction can be undone.
type History interface {
	Parent(ctx context.Context, commit string) (string, error) // the commit that this one was made on
	FilesAt(ctx context.Context, commit string) ([]api.File, error)
	ReadAt(ctx context.Context, commit, path string) ([]byte, error)
}

// Linked is a Tree that also names what is neither a file nor a folder: symbolic links and submodules. Nothing is
// written to them or below them.
type Linked interface {
	Links(ctx context.Context) ([]string, error)
}
