package shared_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/jackc/pgx/v5/stdlib"

	"docent/forge/failure"
	"docent/forge/git"
	"docent/forge/shared"
	"docent/persistence/catalog/catalogtest"
)

// A forgetful database loses the answer to a call of a function, once for each time that it is told to: the call took
// place, the connection is gone, and the caller asks again over another one, as the catalog's connections do.
type forgetful struct {
	driver.Connector
	mu    sync.Mutex
	calls string // of the function whose answer is lost next
	then  func() // before it is asked again
}

func (f *forgetful) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := f.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return forgetfulConn{conn.(*stdlib.Conn), f}, nil
}

// lose drops the answer to the next call of a function.
func (f *forgetful) lose(function string, then func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls, f.then = function, then
}

type forgetfulConn struct {
	*stdlib.Conn
	of *forgetful
}

func (c forgetfulConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	rows, err := c.Conn.QueryContext(ctx, query, args)
	c.of.mu.Lock()
	lost, then := err == nil && c.of.calls != "" && strings.Contains(query, c.of.calls+"("), c.of.then
	if lost {
		c.of.calls = ""
	}
	c.of.mu.Unlock()
	if !lost {
		return rows, err
	}
	if err := errors.Join(rows.Close(), c.Conn.Close()); err != nil {
		return nil, err
	}
	if then != nil {
		then()
	}
	return nil, driver.ErrBadConn
}

func openForgetful(t *testing.T) (*shared.Store, *forgetful) {
	t.Helper()
	connector, err := stdlib.GetDefaultDriver().(driver.DriverContext).OpenConnector(catalogtest.Postgres(t) + "&default_query_exec_mode=exec")
	if err != nil {
		t.Fatal(err)
	}
	f := &forgetful{Connector: connector}
	db := sql.OpenDB(f)
	t.Cleanup(func() { db.Close() })
	s, err := shared.Open(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	return s, f
}

const project = "docs"

func newStore(t *testing.T) *git.Store {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "docs.git")
	on := git.NewDisk(1000, 1<<30, nil)
	st, err := (*git.Store)(nil), git.Create(dir, "main", on)
	if err == nil {
		st, err = git.Open(dir, project, on)
	}
	if err != nil {
		t.Fatal(err)
	}
	return st
}

// committed stores a commit of one file.
func committed(t *testing.T, st *git.Store, content string) plumbing.Hash {
	t.Helper()
	blob := git.NewBlob([]byte(content))
	tree := git.NewTree([]git.Entry{{Name: "index.md", Mode: filemode.Regular, Hash: blob.Hash}})
	c := git.NewCommit(tree.Hash, nil, "Test <test@example.com>", time.Unix(1e9, 0), "Say it")
	if err := st.Write([]git.Object{blob, tree, c}); err != nil {
		t.Fatal(err)
	}
	return c.Hash
}

// pushed moves a branch to a commit of one file; of several sizes, since larger packs are sent in parts.
func pushed(t *testing.T, s *shared.Store, st *git.Store, branch, old string, size int, n int) (commit string, err error) {
	t.Helper()
	content := strings.Builder{}
	for i := 0; content.Len() < size; i++ {
		fmt.Fprintf(&content, "%x", plumbing.ComputeHash(plumbing.BlobObject, fmt.Appendf(nil, "%d %d", n, i)))
	}
	c := committed(t, st, content.String())
	_, _, err = s.Push(t.Context(), project, []shared.Move{{Name: branch, Old: old, New: c.String()}},
		func(w io.Writer) (int, int64, error) { return st.PackTo(w, []plumbing.Hash{c}, nil, 1<<30) })
	return c.String(), err
}

// reads fetches all that the database has into an empty repository, and checks that the commits are whole there.
func reads(t *testing.T, s *shared.Store, commits ...string) {
	t.Helper()
	st := newStore(t)
	_, _, err := s.Fetch(t.Context(), project, shared.Place{}, st.ReadPack)
	for _, c := range commits {
		err = errors.Join(err, st.Whole(plumbing.NewHash(c)))
	}
	if err != nil {
		t.Errorf("a new node cannot read the repository: %v", err)
	}
}

func TestAPushWhoseAnswerIsLostKeepsItsObjects(t *testing.T) {
	t.Parallel()
	s, f := openForgetful(t)
	st := newStore(t)
	for n, size := range []int{100, 3 << 20} {
		branch := fmt.Sprint("refs/heads/", n)
		f.lose("host_push", nil)
		first, err := pushed(t, s, st, branch, "", size, 2*n)
		if err != nil {
			t.Fatal(err)
		}
		reads(t, s, first)
		// Another node moves the branch on before it is asked again.
		var next string
		f.lose("host_push", func() {
			_, values, err := s.Fetch(t.Context(), project, shared.Place{}, func(r io.Reader) error {
				_, err := io.Copy(io.Discard, r)
				return err
			})
			if err == nil {
				next, err = pushed(t, s, newStore(t), branch, values[branch], 100, 1000+n)
			}
			if err != nil {
				t.Error(err)
			}
		})
		if second, err := pushed(t, s, st, branch, first, size, 2*n+1); !errors.Is(err, failure.ErrMoved) {
			t.Fatalf("%s: %v", second, err)
		} else {
			reads(t, s, first, second, next)
		}
	}
}

func TestPacksThatAreJoinedStayWhereTheAnswerIsLost(t *testing.T) {
	t.Parallel()
	s, f := openForgetful(t)
	st := newStore(t)
	var commits []string
	for n := range 30 {
		c, err := pushed(t, s, st, fmt.Sprint("refs/heads/", n), "", 1000, n)
		if err != nil {
			t.Fatal(err)
		}
		commits = append(commits, c)
	}
	f.lose("host_join", nil)
	if err := s.Join(t.Context(), project); err != nil {
		t.Fatal(err)
	}
	reads(t, s, commits...)
}
