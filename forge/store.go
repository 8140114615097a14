package forge

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/klauspost/compress/zlib"
	"golang.org/x/sync/errgroup"

	"docent/api"
)

// A store is one bare repository on disk. Objects are written whole and synced before they get their names, references
// after the objects that they name: at any moment what a reference reaches is there. go-git's own writing syncs nothing and
// changes references in place, so writing is done here; read.go says why reading is.
type store struct {
	dir     string
	project api.ProjectID
	disk    *disk
	cache   *cache.ObjectLRU
	damaged bool // it is read for what is sound in it: packs without a sound index are left out

	mu      sync.Mutex // held while something is read: no file of objects goes meanwhile
	indexed []*pack    // all packs; nil where they have to be looked for

	loose atomic.Int64 // objects in files of their own, about
	left  atomic.Int64 // of these, those that the last packing has left so
}

// errDamaged says that the repository's files are not what they should be.
var errDamaged = errors.New("the repository is damaged")

// errNoRepository says that the project has no repository yet.
var errNoRepository = fmt.Errorf("there is no repository yet: %w", fs.ErrNotExist)

const (
	objectCache = 4 << 20 // bytes of objects kept for each open repository
	looseLimit  = 256     // objects written one file each; more go into a pack
	syncAtOnce  = 8       // files written at the same time
	maxObject   = 64 << 20
)

// createStore makes an empty repository aside and moves it to its place.
func createStore(dir, head string) error {
	tmp, err := os.MkdirTemp(filepath.Dir(dir), ".new-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	for _, d := range []string{"objects/pack", "objects/info", "refs/heads", "refs/tags"} {
		if err := os.MkdirAll(filepath.Join(tmp, d), 0o700); err != nil {
			return err
		}
	}
	files := []struct{ name, text string }{
		{"HEAD", "ref: refs/heads/" + head + "\n"},
		{"config", "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = true\n"},
		{"description", "Docent documentation repository\n"},
	}
	for _, f := range files {
		if err := writeFile(filepath.Join(tmp, f.name), []byte(f.text), 0o600); err != nil {
			return err
		}
	}
	for _, d := range []string{"objects/pack", "objects/info", "objects", "refs/heads", "refs/tags", "refs", ""} {
		if err := syncDir(filepath.Join(tmp, d)); err != nil {
			return err
		}
	}
	if err := os.Rename(tmp, dir); err != nil {
		return err
	}
	return syncDir(filepath.Dir(dir))
}

// openStore opens a repository and clears what a crash has left: temporary files, locks, an index without its pack.
func openStore(dir string, project api.ProjectID, d *disk) (*store, error) {
	s := &store{dir: dir, project: project, disk: d, cache: cache.NewObjectLRU(objectCache)}
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil, errNoRepository
	}
	if _, err := os.Stat(filepath.Join(dir, "HEAD")); err != nil {
		return nil, sorted(err)
	}
	entries, err := os.ReadDir(s.packs())
	if err != nil {
		return nil, sorted(err)
	}
	for _, e := range entries {
		name := filepath.Join(s.packs(), e.Name())
		stem, isIndex := strings.CutSuffix(name, ".idx")
		_, err := os.Stat(stem + ".pack")
		if strings.HasPrefix(e.Name(), "tmp_") || isIndex && errors.Is(err, fs.ErrNotExist) {
			if err := os.Remove(name); err != nil {
				return nil, err
			}
		}
	}
	err = filepath.WalkDir(filepath.Join(dir, "refs"), func(path string, d fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".lock") {
			err = os.Remove(path)
		}
		return err
	})
	if err != nil {
		return nil, sorted(err)
	}
	loose, err := s.looseObjects()
	if err != nil {
		return nil, sorted(err)
	}
	s.loose.Store(int64(len(loose)))
	return s, nil
}

func (s *store) packs() string { return filepath.Join(s.dir, "objects", "pack") }

// read returns an object's content, checked against its name.
func (s *store) read(kind plumbing.ObjectType, hash plumbing.Hash) ([]byte, error) {
	data, got, err := s.load(hash)
	if err != nil {
		return nil, err
	}
	if got != kind {
		return nil, fmt.Errorf("%w: %s is a %s, not a %s", errDamaged, hash, got, kind)
	}
	return data, nil
}

func (s *store) tree(hash plumbing.Hash) ([]entry, error) {
	data, err := s.read(plumbing.TreeObject, hash)
	if err != nil {
		return nil, err
	}
	entries, err := decodeTree(data)
	if err != nil {
		return nil, fmt.Errorf("%w: tree %s: %w", errDamaged, hash, err)
	}
	if len(entries) > 2*s.disk.maxFiles {
		return nil, s.tooManyNames()
	}
	return entries, nil
}

func (s *store) commit(hash plumbing.Hash) (commit, error) {
	data, err := s.read(plumbing.CommitObject, hash)
	if err != nil {
		return commit{}, err
	}
	c, err := decodeCommit(hash, data)
	if err != nil {
		return commit{}, fmt.Errorf("%w: commit %s: %w", errDamaged, hash, err)
	}
	return c, nil
}

// write stores the objects that are not there yet. When it returns they are on disk.
func (s *store) write(objects []object) error { return unwritten(s.writeMissing(objects)) }

func (s *store) writeMissing(objects []object) error {
	seen := make(map[plumbing.Hash]bool, len(objects))
	missing := make([]object, 0, len(objects))
	for _, o := range objects {
		if seen[o.hash] {
			continue
		}
		seen[o.hash] = true
		there, err := s.has(o.hash)
		if err != nil {
			return err
		}
		if !there {
			missing = append(missing, o)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	if len(missing) > looseLimit {
		return s.writePack(missing)
	}
	dirs := map[string]bool{}
	var g errgroup.Group
	g.SetLimit(syncAtOnce)
	for _, o := range missing {
		name := s.loosePath(o.hash)
		dir := filepath.Dir(name)
		if err := os.Mkdir(dir, 0o700); err == nil {
			dirs[filepath.Join(s.dir, "objects")] = true
		} else if !errors.Is(err, fs.ErrExist) {
			return errors.Join(err, g.Wait())
		}
		dirs[dir] = true
		g.Go(func() error { return s.place(name, o) })
	}
	if err := g.Wait(); err != nil {
		return err
	}
	s.loose.Add(int64(len(missing)))
	for dir := range dirs {
		g.Go(func() error {
			defer s.disk.take()()
			return syncDir(dir)
		})
	}
	return g.Wait()
}

// deflaters are large: each holds its tables.
var deflaters = sync.Pool{New: func() any {
	z, err := zlib.NewWriterLevel(nil, zlib.BestSpeed)
	if err != nil {
		panic(err) // the level is a constant that exists
	}
	return z
}}

// place writes a loose object, synced before it gets its name.
func (s *store) place(name string, o object) error {
	var b bytes.Buffer
	z := deflaters.Get().(*zlib.Writer)
	defer deflaters.Put(z)
	z.Reset(&b)
	z.Write(objectHeader(o.kind, int64(len(o.data)))) // into memory: cannot fail
	z.Write(o.data)
	if err := z.Close(); err != nil {
		return err
	}
	defer s.disk.take()()
	f, err := os.CreateTemp(s.packs(), "tmp_obj_")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	if _, err := f.Write(b.Bytes()); err != nil {
		return err
	}
	if err := f.Chmod(0o400); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	return os.Rename(f.Name(), name)
}

// head is the commit that a branch points at; zero where there is no such branch.
func (s *store) head(branch string) (plumbing.Hash, error) {
	return s.ref("refs/heads/" + branch)
}

// setRef moves a reference from old to new, under git's own lock file, and syncs it.
func (s *store) setRef(name string, old, new plumbing.Hash) error {
	return unwritten(s.moveRef(name, old, new))
}

func (s *store) moveRef(name string, old, new plumbing.Hash) error {
	path := filepath.Join(s.dir, filepath.FromSlash(name))
	made, err := mkdirAll(filepath.Dir(path))
	if err != nil {
		return fmt.Errorf("set %s: %w", name, err)
	}
	lock, err := os.OpenFile(path+".lock", os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("lock %s: %w", name, err)
	}
	defer lock.Close()
	done := false
	defer func() {
		if !done {
			os.Remove(lock.Name())
		}
	}()
	now, err := s.ref(name)
	if err != nil {
		return err
	}
	if now != old {
		return fmt.Errorf("set %s: %w", name, ErrMoved)
	}
	if _, err := lock.WriteString(new.String() + "\n"); err != nil {
		return fmt.Errorf("set %s: %w", name, err)
	}
	if err := lock.Sync(); err != nil {
		return fmt.Errorf("set %s: %w", name, err)
	}
	if err := os.Rename(lock.Name(), path); err != nil {
		return fmt.Errorf("set %s: %w", name, err)
	}
	done = true
	for _, dir := range append(made, filepath.Dir(path)) {
		if err := syncDir(dir); err != nil {
			return fmt.Errorf("set %s: %w", name, err)
		}
	}
	return nil
}

// setDefault makes branch the one that HEAD names.
func (s *store) setDefault(branch string) error {
	want := []byte("ref: refs/heads/" + branch + "\n")
	if have, err := os.ReadFile(filepath.Join(s.dir, "HEAD")); err == nil && bytes.Equal(have, want) {
		return nil
	}
	return replaceFile(filepath.Join(s.dir, "HEAD"), want)
}

// defaultBranch is the one that HEAD names.
func (s *store) defaultBranch() (string, error) {
	b, err := s.disk.readFile(filepath.Join(s.dir, "HEAD"))
	if err != nil {
		return "", sorted(err)
	}
	branch, ok := strings.CutPrefix(strings.TrimSpace(string(b)), "ref: refs/heads/")
	if !ok || checkBranch(branch) != nil {
		return "", fmt.Errorf("%w: HEAD names no branch", errDamaged)
	}
	return branch, nil
}

// shallow lists the commits whose parents are left out on purpose.
func (s *store) shallow() (map[plumbing.Hash]bool, error) {
	b, err := s.disk.readFile(filepath.Join(s.dir, "shallow"))
	if missing(err) {
		return nil, nil
	}
	if err != nil {
		return nil, passing(err)
	}
	out := map[plumbing.Hash]bool{}
	for _, line := range strings.Fields(string(b)) {
		out[plumbing.NewHash(line)] = true
	}
	return out, nil
}

func (s *store) setShallow(hashes map[plumbing.Hash]bool) error {
	var b strings.Builder
	for h := range hashes {
		b.WriteString(h.String() + "\n")
	}
	return replaceFile(filepath.Join(s.dir, "shallow"), []byte(b.String()))
}

// walkTree calls each for every file and directory below a tree, in git's order, until it fails.
func (s *store) walkTree(hash plumbing.Hash, prefix string, each func(path string, e entry) error) error {
	return s.walkBelow(&walk{store: s}, hash, prefix, each)
}

func (s *store) walkBelow(n *walk, hash plumbing.Hash, prefix string, each func(path string, e entry) error) error {
	entries, err := s.tree(hash)
	if err != nil {
		return err
	}
	for _, e := range entries {
		path := prefix + e.name
		if err := n.add(path, e); err != nil {
			return err
		}
		if err := each(path, e); err != nil {
			return err
		}
		if e.isDir() {
			if err := s.walkBelow(n, e.hash, path+"/", each); err != nil {
				return err
			}
		}
	}
	return nil
}

// A walk counts what it meets in trees: a few objects that name each other again and again can stand for any number of files,
// and for folders of any depth.
type walk struct {
	store          *store
	files, folders int
	bytes          int64
}

const (
	maxPath  = 4096      // bytes of a path; checkPath refuses a longer one
	maxDepth = 2048      // folders within each other: so many have such a path
	maxNames = 256 << 20 // bytes of all paths of a commit
)

func (n *walk) add(path string, e entry) error {
	if e.isDir() {
		n.folders++
	} else {
		n.files++
	}
	n.bytes += int64(len(path))
	switch {
	case max(n.files, n.folders) > n.store.disk.maxFiles:
		return n.store.tooManyNames()
	case len(path) > maxPath:
		return n.store.tooMuch("a path in it is longer than %d bytes", maxPath)
	case n.bytes > maxNames:
		return n.store.tooMuch("the paths of its files have more than %d bytes together", int64(maxNames))
	}
	return nil
}

func (s *store) tooDeep() error {
	return s.tooMuch("a folder in it lies more than %d folders deep", maxDepth)
}

func (s *store) tooManyNames() error {
	return s.tooMuch("it holds more than %d files or folders", s.disk.maxFiles)
}

// writeFile writes a new file and syncs it; the directory is the caller's to sync.
func writeFile(name string, data []byte, mode os.FileMode) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if errors.Is(err, fs.ErrPermission) { // a read-only leftover of the same name
		if os.Remove(name) == nil {
			f, err = os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
		}
	}
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.Write(data); err != nil {
		return err
	}
	if err := f.Chmod(mode); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	return f.Close()
}

// replaceFile changes a file so that a crash leaves the old or the new content.
func replaceFile(name string, data []byte) error {
	err := writeFile(name+".new", data, 0o600)
	if err == nil {
		err = os.Rename(name+".new", name)
	}
	if err == nil {
		err = syncDir(filepath.Dir(name))
	}
	return unwritten(err)
}

func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}

// mkdirAll makes a directory and says which ones got a new entry.
func mkdirAll(dir string) (changed []string, err error) {
	if _, err := os.Stat(dir); err == nil {
		return nil, nil
	}
	if changed, err = mkdirAll(filepath.Dir(dir)); err != nil {
		return nil, err
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	return append(changed, filepath.Dir(dir)), nil
}
