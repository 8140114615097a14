package git

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
	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/klauspost/compress/zlib"

	"docent/forge/failure"
	"docent/internal/background"
)

// A Store is one bare repository on disk. Objects are written whole and synced before they get their names, references
// after the objects that they name: at any moment what a reference reaches is there. go-git's own writing syncs nothing
// and changes references in place, so writing is done here; read.go says why reading is.
type Store struct {
	dir     string
	name    string
	disk    *Disk
	cache   *cache.ObjectLRU
	damaged bool // it is read for what is sound in it: packs without a sound index are left out

	mu       sync.Mutex // held while something is read: no file of objects goes meanwhile
	indexed  []*pack    // all packs; nil if they have yet to be listed
	bases    *cache.BufferLRU
	numbered int64 // packs so far

	loose atomic.Int64 // objects in files of their own, about
	left  atomic.Int64 // of these, those that the last packing has left so
	few   atomic.Int64 // packs of few objects

	verified atomic.Bool                         // see Verify
	known    *lru.Cache[plumbing.Hash, struct{}] // commits that are connected
}

// ErrDamaged says that the repository's files are not what they should be.
var ErrDamaged = errors.New("the repository is damaged")

// ErrNoRepository says that the project has no repository yet.
var ErrNoRepository = fmt.Errorf("there is no repository yet: %w", fs.ErrNotExist)

const (
	objectCache = 4 << 20  // bytes of objects kept for each open repository
	looseLimit  = 256      // objects written one file each; more go into a pack
	writeBatch  = 32 << 20 // bytes of objects held before they are written
	syncAtOnce  = 8        // files written at the same time
	MaxObject   = 64 << 20
)

// Create makes an empty repository aside and moves it to its place.
func Create(dir, head string, on *Disk) error {
	if err := on.at("mkdir", dir); err != nil {
		return err
	}
	tmp, err := os.MkdirTemp(filepath.Dir(dir), ".new-")
	if err != nil {
		return err
	}
	defer on.RemoveAll(tmp)
	for _, d := range []string{"objects/pack", "objects/info", "refs/heads", "refs/tags"} {
		if err := os.MkdirAll(filepath.Join(tmp, d), 0o700); err != nil {
			return err
		}
	}
	files := []struct{ name, text string }{
		{"HEAD", "ref: refs/heads/" + head + "\n"},
		{"config", "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = true\n"},
		{"description", "Docent documentation repository\n"},
		{verifiedFile, "1\n"},
	}
	for _, f := range files {
		if err := on.writeFile(filepath.Join(tmp, f.name), []byte(f.text), 0o600); err != nil {
			return err
		}
	}
	for _, d := range []string{"objects/pack", "objects/info", "objects", "refs/heads", "refs/tags", "refs", ""} {
		if err := on.SyncFolder(filepath.Join(tmp, d)); err != nil {
			return err
		}
	}
	if err := on.Rename(tmp, dir); err != nil {
		return err
	}
	return on.SyncFolder(filepath.Dir(dir))
}

// Open opens a repository and clears what a crash has left: temporary files, locks, an index without its pack.
func Open(dir string, name string, d *Disk) (*Store, error) {
	s := newStore(dir, name, d)
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNoRepository
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
			if err := d.remove(name); err != nil {
				return nil, err
			}
		}
	}
	err = filepath.WalkDir(filepath.Join(dir, "refs"), func(path string, _ fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".lock") {
			err = d.remove(path)
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
	mark, err := s.note(verifiedFile)
	if err != nil {
		return nil, err
	}
	s.verified.Store(mark != nil)
	return s, nil
}

func newStore(dir, name string, d *Disk) *Store {
	known, err := lru.New[plumbing.Hash, struct{}](knownCommits)
	if err != nil {
		panic(err) // the size is a constant that is allowed
	}
	return &Store{dir: dir, name: name, disk: d, cache: cache.NewObjectLRU(objectCache), known: known}
}

// file is the path of a file of the repository.
func (s *Store) file(name string) string { return filepath.Join(s.dir, filepath.FromSlash(name)) }

func (s *Store) packs() string { return filepath.Join(s.dir, "objects", "pack") }

// read returns an object's content, checked against its name.
func (s *Store) read(kind plumbing.ObjectType, hash plumbing.Hash) ([]byte, error) {
	data, got, err := s.load(hash)
	if err != nil {
		return nil, err
	}
	if got != kind {
		return nil, fmt.Errorf("%w: %s is a %s, not a %s", ErrDamaged, hash, got, kind)
	}
	return data, nil
}

// Blob is a file's content.
func (s *Store) Blob(hash plumbing.Hash) ([]byte, error) { return s.read(plumbing.BlobObject, hash) }

// Tree lists a folder.
func (s *Store) Tree(hash plumbing.Hash) ([]Entry, error) {
	data, err := s.read(plumbing.TreeObject, hash)
	if err != nil {
		return nil, err
	}
	entries, err := decodeTree(data)
	if err != nil {
		return nil, fmt.Errorf("%w: tree %s: %w", ErrDamaged, hash, err)
	}
	if len(entries) > 2*s.disk.maxFiles {
		return nil, s.TooManyNames()
	}
	return entries, nil
}

// Commit is a commit, with what is needed of it.
func (s *Store) Commit(hash plumbing.Hash) (Commit, error) {
	data, err := s.read(plumbing.CommitObject, hash)
	if err != nil {
		return Commit{}, err
	}
	c, err := decodeCommit(hash, data)
	if err != nil {
		return Commit{}, fmt.Errorf("%w: commit %s: %w", ErrDamaged, hash, err)
	}
	return c, nil
}

// Write stores the objects that are not there yet. When it returns they are on disk.
func (s *Store) Write(objects []Object) error { return unwritten(s.writeMissing(objects)) }

func (s *Store) writeMissing(objects []Object) error {
	seen := make(map[plumbing.Hash]bool, len(objects))
	missing := make([]Object, 0, len(objects))
	for _, o := range objects {
		if seen[o.Hash] {
			continue
		}
		seen[o.Hash] = true
		there, err := s.Has(o.Hash)
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
	commits := 0
	for _, o := range missing {
		if o.kind == plumbing.CommitObject {
			commits++
		}
	}
	if len(missing) > looseLimit || commits > 1 {
		_, err := s.writePack(len(missing), func(i int) (Object, error) { return missing[i], nil },
			func() error { return nil })
		return err
	}
	return s.writeFiles(inOrder(missing))
}

// inOrder puts objects behind those that they name.
func inOrder(objects []Object) []Object {
	at := make(map[plumbing.Hash]int, len(objects))
	for i, o := range objects {
		at[o.Hash] = i
	}
	list := make([]Object, 0, len(objects))
	done := make([]bool, len(objects))
	var put func(i int)
	put = func(i int) {
		if done[i] {
			return
		}
		done[i] = true
		for _, hash := range objects[i].names() {
			if j, ok := at[hash]; ok {
				put(j)
			}
		}
		list = append(list, objects[i])
	}
	for i := range objects {
		put(i)
	}
	return list
}

// writeFiles writes objects in files of their own, which get their names one after the other when all are on disk: a
// process that ends in between leaves none of which a part is missing.
func (s *Store) writeFiles(objects []Object) error {
	dirs := map[string]bool{}
	for _, o := range objects {
		dir := filepath.Dir(s.loosePath(o.Hash))
		if dirs[dir] {
			continue
		}
		if err := s.disk.mkdir(dir); err == nil {
			dirs[filepath.Join(s.dir, "objects")] = true
		} else if !errors.Is(err, fs.ErrExist) {
			return err
		}
		dirs[dir] = true
	}
	written := make([]string, len(objects))
	defer func() {
		for _, name := range written {
			if name != "" {
				_ = s.disk.remove(name) // else the next opening does
			}
		}
	}()
	var g background.Group
	g.SetLimit(syncAtOnce)
	for i, o := range objects {
		g.Go(func() (err error) {
			written[i], err = s.writeLoose(o)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	for i, o := range objects {
		if err := s.disk.Rename(written[i], s.loosePath(o.Hash)); err != nil {
			return err
		}
		written[i] = ""
		s.loose.Add(1)
	}
	for dir := range dirs {
		g.Go(func() error {
			defer s.disk.Take()()
			return s.disk.SyncFolder(dir)
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	for _, o := range objects {
		if o.kind != plumbing.BlobObject {
			s.keep(o)
		}
	}
	return nil
}

// deflaters are large: each holds its tables.
var deflaters = sync.Pool{New: func() any {
	z, err := zlib.NewWriterLevel(nil, zlib.BestSpeed)
	if err != nil {
		panic(err) // the level is a constant that exists
	}
	return z
}}

// writeLoose writes a loose object, synced, under a name that is not yet its own.
func (s *Store) writeLoose(o Object) (name string, err error) {
	var b bytes.Buffer
	z := deflaters.Get().(*zlib.Writer)
	defer deflaters.Put(z)
	z.Reset(&b)
	z.Write(objectHeader(o.kind, int64(len(o.data)))) // into memory: cannot fail
	z.Write(o.data)
	if err := z.Close(); err != nil {
		return "", err
	}
	defer s.disk.Take()()
	f, err := s.disk.createTemp(s.packs(), "tmp_obj_")
	if err != nil {
		return "", err
	}
	defer f.Close()
	if _, err := (diskWriter{s.disk, f}).Write(b.Bytes()); err != nil {
		return f.Name(), err
	}
	return f.Name(), s.disk.finish(f, 0o400)
}

// Walk calls each for every file and directory below a tree, in git's order, until it fails.
func (s *Store) Walk(hash plumbing.Hash, prefix string, each func(path string, e Entry) error) error {
	return s.walkBelow(&walk{store: s}, hash, prefix, each)
}

func (s *Store) walkBelow(n *walk, hash plumbing.Hash, prefix string, each func(path string, e Entry) error) error {
	entries, err := s.Tree(hash)
	if err != nil {
		return err
	}
	for _, e := range entries {
		path := prefix + e.Name
		if err := n.add(path, e); err != nil {
			return err
		}
		if err := each(path, e); err != nil {
			return err
		}
		if e.IsDir() {
			if err := s.walkBelow(n, e.Hash, path+"/", each); err != nil {
				return err
			}
		}
	}
	return nil
}

// A walk counts what it meets in trees: a few objects that name each other again and again can stand for any number of
// files, and for folders of any depth.
type walk struct {
	store          *Store
	files, folders int
	bytes          int64
}

const (
	maxPath  = 4096      // bytes of a path; checkPath refuses a longer one
	maxDepth = 2048      // folders within each other: so many have such a path
	maxNames = 256 << 20 // bytes of all paths of a commit
)

func (n *walk) add(path string, e Entry) error {
	if e.IsDir() {
		n.folders++
	} else {
		n.files++
	}
	n.bytes += int64(len(path))
	switch {
	case max(n.files, n.folders) > n.store.disk.maxFiles:
		return n.store.TooManyNames()
	case len(path) > maxPath:
		return n.store.tooLong()
	case n.bytes > maxNames:
		return n.store.tooMuch("the paths of its files have more than %d bytes together", int64(maxNames))
	}
	return nil
}

func (s *Store) tooLong() error {
	return s.tooMuch("a path in it is longer than %d bytes", maxPath)
}

func (s *Store) tooDeep() error {
	return s.tooMuch("a folder in it lies more than %d folders deep", maxDepth)
}

// TooManyNames is the error of a commit or a folder with more files than the limit.
func (s *Store) TooManyNames() error {
	return s.tooMuch("it holds more than %d files or folders", s.disk.maxFiles)
}

// ErrTooMuch says that a repository goes beyond a limit.
var ErrTooMuch = errors.New("the repository goes beyond a limit")

type limitError struct{ said *failure.Error }

func (e limitError) Error() string   { return e.said.Error() }
func (e limitError) Unwrap() []error { return []error{e.said, ErrTooMuch} }

// tooMuch says that a repository goes beyond a limit: nothing passes by waiting.
func (s *Store) tooMuch(format string, args ...any) error {
	return limitError{failure.Misconfigured("The repository of %s goes beyond a limit: %s.", s.name,
		fmt.Sprintf(format, args...))}
}

// Loose is about how many objects are in files of their own.
func (s *Store) Loose() int { return int(s.loose.Load()) }

// Unpacked is Loose without those that the last packing had to leave so.
func (s *Store) Unpacked() int { return int(s.loose.Load() - s.left.Load()) }

// Small is how many packs have so few objects that they are worth joining.
func (s *Store) Small() int { return int(s.few.Load()) }
