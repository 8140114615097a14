package git_test

import (
	"fmt"
	"io"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"

	"docent/forge/git"
)

// Others have what a branch of theirs reaches, however far it has moved on: of a commit that builds on an older one they
// lack that commit alone, and of the older one nothing.
func TestNothingIsSentThatAMovedBranchReaches(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "docs.git")
	on := git.NewDisk(1000, 1<<30, nil)
	if err := git.Create(dir, "main", on); err != nil {
		t.Fatal(err)
	}
	st, err := git.Open(dir, "docs", on)
	if err != nil {
		t.Fatal(err)
	}
	commit := func(content string, parents ...plumbing.Hash) plumbing.Hash {
		blob := git.NewBlob([]byte(content))
		tree := git.NewTree([]git.Entry{{Name: "index.md", Mode: filemode.Regular, Hash: blob.Hash}})
		c := git.NewCommit(tree.Hash, parents, "Test <test@example.com>", time.Unix(1e9, 0), content)
		if err := st.Write([]git.Object{blob, tree, c}); err != nil {
			t.Fatal(err)
		}
		return c.Hash
	}
	history := []plumbing.Hash{commit("first")}
	for n := range 150 {
		history = append(history, commit(fmt.Sprint(n), history[n]))
	}
	tip := history[len(history)-1]
	elsewhere := plumbing.ComputeHash(plumbing.CommitObject, []byte("of a branch that is not here"))
	there := map[plumbing.Hash]bool{tip: true, elsewhere: true}
	const ofACommit = 3 // itself, its tree, its file
	for _, c := range []struct {
		name string
		head plumbing.Hash
		want int
	}{
		{"the tip", tip, 0},
		{"one before it", history[148], 0},
		{"the first", history[0], 0},
		{"a commit on the tip", commit("on the tip", tip), ofACommit},
		{"a commit on an old one", commit("on an old one", history[20]), ofACommit},
		{"a merge of an old one", commit("merge", tip, commit("branch", history[20])), 2 * ofACommit},
		{"another history", commit("of its own"), ofACommit},
	} {
		n, _, err := st.PackTo(io.Discard, []plumbing.Hash{c.head}, there, 1<<20)
		if err != nil || n != c.want {
			t.Errorf("of %s, %d objects are sent, want %d; %v", c.name, n, c.want, err)
		}
	}
	if n, bytes, err := st.PackTo(io.Discard, []plumbing.Hash{tip}, nil, 1<<20); err != nil || n != 151*ofACommit || bytes == 0 {
		t.Errorf("to whom has nothing, %d objects of %d bytes are sent; %v", n, bytes, err)
	}
}
