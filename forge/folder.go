package forge

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/storage/filesystem"

	"docent/forge/failure"
	"docent/forge/git"
	"docent/internal/background"
	"docent/internal/glob"
	"docent/persistence/datadir"
)

// neverImported are folders and files that tools leave behind. What a .gitignore names is left out too.
var neverImported = map[string]bool{
	".git": true, ".hg": true, ".svn": true, ".jj": true, ".DS_Store": true, "Thumbs.db": true,
	"node_modules": true, "bower_components": true, "__pycache__": true, ".venv": true,
	".tox": true, ".pytest_cache": true,
	".next": true, ".nuxt": true, ".output": true, ".docusaurus": true, ".astro": true, ".svelte-kit": true,
	".vercel":  true,
	".netlify": true, ".turbo": true, ".parcel-cache": true, ".cache": true, ".yarn": true, ".pnpm-store": true,
	"_site": true, ".jekyll-cache": true, ".terraform": true, ".gradle": true, ".idea": true,
}

// Names of files that write-back is in the middle of.
const (
	partPrefix = ".docent-"
	partSuffix = ".part"
)

func isPart(name string) bool {
	return strings.HasPrefix(name, partPrefix) && strings.HasSuffix(name, partSuffix)
}

// A found file is one that belongs to the import.
type found struct {
	path string
	info fs.FileInfo
	hash plumbing.Hash
	gone bool // vanished, or turned into something else, while it was looked at
}

func (f found) mode() filemode.FileMode {
	if f.info.Mode()&0o100 != 0 {
		return filemode.Executable
	}
	return filemode.Regular
}

// A seen file need not be read again while its size and time stay.
type seen struct {
	size int64
	time time.Time
	hash plumbing.Hash
}

// An importer turns a folder into a tree. Links are not followed and not imported.
type importer struct {
	store   *git.Store
	disk    *git.Disk
	root    *os.Root
	max     int64
	limit   int
	known   map[string]seen // of the last import; replaced when this one is done
	now     time.Time
	git     bool            // repositories within the folder are not ours
	had     bool            // there were files at the last import
	tracked map[string]bool // files that belong to it whatever is ignored
	dirs    map[string]bool // folders on the way to those
	ignored glob.GitIgnore

	files   []found
	skipped []string // why something was left out
}

// track finds the files that belong to the import whatever is ignored: those of the last import or, if the folder is
// a working tree, those that git tracks. A new page of a working tree that nothing ignores is one too, before "git
// add".
func (im *importer) track(base plumbing.Hash, src source) error {
	im.tracked, im.dirs = map[string]bool{}, map[string]bool{}
	add := func(p string) {
		im.tracked[p] = true
		for dir := path.Dir(p); dir != "." && !im.dirs[dir]; dir = path.Dir(dir) {
			im.dirs[dir] = true
		}
	}
	if !base.IsZero() {
		err := im.store.Walk(base, "", func(p string, e git.Entry) error {
			if e.IsFile() {
				im.had = true
				if src.kind != workTree {
					add(p)
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	if src.kind != workTree {
		return nil
	}
	im.git = true
	dir, err := gitDir(src.path)
	if err != nil {
		return err
	}
	if err := im.excluded(dir); err != nil {
		return err
	}
	if n, err := indexed(dir); err != nil {
		return fmt.Errorf("%w: read the index of the working tree: %w", ErrMisconfigured, err)
	} else if n > im.limit {
		return im.store.TooManyNames()
	}
	index, err := filesystem.NewStorage(osfs.New(dir), cache.NewObjectLRU(0)).Index()
	if err != nil {
		return fmt.Errorf("%w: read the index of the working tree: %w", ErrMisconfigured, err)
	}
	for _, e := range index.Entries {
		if e.Mode.IsFile() && e.Mode != filemode.Symlink && !e.IntentToAdd {
			add(e.Name)
		}
	}
	return nil
}

// excluded reads what the repository of a working tree ignores beside its .gitignore files.
func (im *importer) excluded(gitDir string) error {
	common := gitDir
	if b, err := os.ReadFile(path.Join(gitDir, "commondir")); err == nil { // of a linked working tree
		if common = strings.TrimSpace(string(b)); !path.IsAbs(common) {
			common = path.Join(gitDir, common)
		}
	}
	f, err := os.Open(path.Join(common, "info", "exclude"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%w: read what the working tree ignores: %w", ErrMisconfigured, failure.Reason(err))
	}
	defer f.Close()
	return im.ignore("", f)
}

// ignore reads the patterns that count for a folder.
func (im *importer) ignore(dir string, from io.Reader) error {
	data, err := io.ReadAll(io.LimitReader(from, 1<<20))
	if err == nil {
		im.ignored.Add(dir, string(data))
	}
	return err
}

// indexed is how many files a working tree's index says that it has, before the index is read whole.
func indexed(gitDir string) (int, error) {
	f, err := os.Open(path.Join(gitDir, "index"))
	if errors.Is(err, fs.ErrNotExist) { // nothing was ever added
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer f.Close()
	var head [12]byte // "DIRC", version, count
	if _, err := io.ReadFull(f, head[:]); err != nil {
		return 0, err
	}
	return int(binary.BigEndian.Uint32(head[8:])), nil
}

// gitDir finds a working tree's git files; a linked working tree has a file that says where they are.
func gitDir(dir string) (string, error) {
	p := path.Join(dir, ".git")
	info, err := os.Stat(p)
	if err != nil {
		return "", fmt.Errorf("%w: open the working tree: %w", ErrMisconfigured, failure.Reason(err))
	}
	if info.IsDir() {
		return p, nil
	}
	b, err := os.ReadFile(p)
	if err != nil {
		return "", fmt.Errorf("%w: open the working tree: %w", ErrMisconfigured, failure.Reason(err))
	}
	to, ok := strings.CutPrefix(strings.TrimSpace(string(b)), "gitdir: ")
	if !ok {
		return "", fmt.Errorf("%w: the working tree's .git file is not understood", ErrMisconfigured)
	}
	if !path.IsAbs(to) {
		to = path.Join(dir, to)
	}
	return to, nil
}

// list finds what belongs to the import below dir.
func (im *importer) list(ctx context.Context, dir string, onlyTracked bool) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	name := dir
	if dir == "" {
		name = "."
	}
	if f, err := im.root.Open(path.Join(name, ".gitignore")); err == nil {
		err := im.ignore(dir, f)
		f.Close()
		if err != nil {
			return err
		}
	}
	entries, err := fs.ReadDir(im.root.FS(), name)
	if err != nil {
		return fmt.Errorf("read the folder %q: %w", dir, err)
	}
	for _, e := range entries {
		p := path.Join(dir, e.Name())
		if e.Name() == ".git" || isPart(e.Name()) {
			continue
		}
		out := !im.tracked[p] && (onlyTracked || neverImported[e.Name()] || im.ignored.Ignores(p, e.IsDir()))
		switch {
		case e.IsDir() && (!out || im.dirs[p]):
			err = im.listFolder(ctx, p, out)
		case !e.IsDir() && !out:
			err = im.add(p, e)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// listFolder lists a folder within, unless it is a repository of its own.
func (im *importer) listFolder(ctx context.Context, p string, onlyTracked bool) error {
	// A server that keeps its data within the folder that it reads would read what it has read, without end.
	if datadir.Is(path.Join(im.root.Name(), p)) {
		im.skip(p, "a data directory of Docent")
		return nil
	}
	switch {
	case im.git && exists(path.Join(im.root.Name(), p, ".git")):
		return nil
	case git.CheckPath(p) != nil:
		im.skip(p, "not a name for a folder")
		return nil
	}
	return im.list(ctx, p, onlyTracked)
}

// add takes a file into the import, if it can be imported.
func (im *importer) add(p string, e fs.DirEntry) error {
	info, err := e.Info()
	switch {
	case e.Type()&fs.ModeSymlink != 0:
		im.skip(p, "a symbolic link")
	case !e.Type().IsRegular():
		im.skip(p, "not a regular file")
	case git.CheckPath(p) != nil:
		im.skip(p, "not a name for a file")
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	case info.Size() > im.max:
		im.skip(p, fmt.Sprintf("%d bytes are more than the limit", info.Size()))
	default:
		if im.files = append(im.files, found{path: p, info: info}); len(im.files) > im.limit {
			return im.store.TooManyNames()
		}
	}
	return nil
}

func (im *importer) skip(path, why string) {
	im.skipped = append(im.skipped, fmt.Sprintf("%q: %s", path, why))
}

const importBatch = 32 << 20 // bytes read before they are written

// read hashes all files and stores the contents that are new, a batch at a time.
func (im *importer) read(ctx context.Context, progress func(string)) error {
	var size int64
	from := 0
	for i, f := range im.files {
		size += f.info.Size()
		if size <= importBatch && i < len(im.files)-1 {
			continue
		}
		if err := im.readBatch(ctx, im.files[from:i+1]); err != nil {
			return err
		}
		from, size = i+1, 0
		progress(fmt.Sprintf("read %d of %d files", from, len(im.files)))
	}
	known := make(map[string]seen, len(im.files))
	for _, f := range im.files {
		// A file changed in the very moment of the import may change again within the clock's grain: read it next time.
		if !f.gone && im.now.Sub(f.info.ModTime()) > 3*time.Second {
			known[f.path] = seen{size: f.info.Size(), time: f.info.ModTime(), hash: f.hash}
		}
	}
	im.known = known
	return nil
}

func (im *importer) readBatch(ctx context.Context, batch []found) error {
	contents := make([]*git.Object, len(batch))
	g, ctx := background.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i := range batch {
		f := &batch[i]
		if k, ok := im.known[f.path]; ok && k.size == f.info.Size() && k.time.Equal(f.info.ModTime()) {
			f.hash = k.hash
			continue
		}
		g.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			data, err := im.load(f.path)
			if errors.Is(err, fs.ErrNotExist) {
				f.gone = true
				return nil
			}
			if err != nil {
				return err
			}
			o := git.NewBlob(data)
			f.hash = o.Hash
			there, err := im.store.Has(o.Hash)
			if err == nil && !there {
				contents[i] = &o
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	var objects []git.Object
	for _, o := range contents {
		if o != nil {
			objects = append(objects, *o)
		}
	}
	return im.store.Write(objects)
}

// load reads a file of the folder.
func (im *importer) load(name string) ([]byte, error) {
	defer im.disk.Take()()
	return readRegular(im.root, name, im.max)
}

// readRegular reads a file that is one: no link, no pipe, and the same one throughout.
func readRegular(root *os.Root, name string, limit int64) ([]byte, error) {
	before, err := root.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !before.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "read", Path: name, Err: fs.ErrNotExist}
	}
	f, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil {
		return nil, err
	} else if !os.SameFile(before, info) {
		return nil, &fs.PathError{Op: "read", Path: name, Err: fs.ErrNotExist}
	}
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("%q grew beyond the limit of %d bytes", name, limit)
	}
	return data, nil
}

// tree makes the trees above the files.
func (im *importer) tree() (plumbing.Hash, error) {
	files := slices.DeleteFunc(im.files, func(f found) bool { return f.gone })
	slices.SortFunc(files, func(a, b found) int { return strings.Compare(a.path, b.path) })
	root, objects := treesAbove(files, 0, nil)
	return root, im.store.Write(objects)
}

// treesAbove makes the tree of files that share their path up to from.
func treesAbove(files []found, from int, objects []git.Object) (plumbing.Hash, []git.Object) {
	var entries []git.Entry
	for i := 0; i < len(files); {
		name, _, more := cutPath(files[i].path[from:])
		if !more {
			entries = append(entries, git.Entry{Name: name, Mode: files[i].mode(), Hash: files[i].hash})
			i++
			continue
		}
		prefix := files[i].path[:from+len(name)+1]
		j := i + 1
		for j < len(files) && strings.HasPrefix(files[j].path, prefix) {
			j++
		}
		var sub plumbing.Hash
		sub, objects = treesAbove(files[i:j], len(prefix), objects)
		entries = append(entries, git.Entry{Name: name, Mode: filemode.Dir, Hash: sub})
		i = j
	}
	o := git.NewTree(entries)
	return o.Hash, append(objects, o)
}

// importFolder commits the folder as it is now, if it differs from the branch.
func (h *Hub) importFolder(
	ctx context.Context, s *session, old plumbing.Hash, progress func(string),
) (plumbing.Hash, error) {
	root, err := os.OpenRoot(s.source.path)
	if err != nil {
		return plumbing.ZeroHash, fmt.Errorf("%w: open the folder: %w", ErrMisconfigured, failure.Reason(err))
	}
	defer root.Close()
	if datadir.Is(s.source.path) {
		return plumbing.ZeroHash, fmt.Errorf(
			"%w: the folder %q is a data directory of Docent: name the folder of the documentation", ErrMisconfigured,
			s.source.path)
	}
	var before plumbing.Hash
	if !old.IsZero() {
		c, err := s.store.Commit(old)
		if err != nil {
			return plumbing.ZeroHash, err
		}
		before = c.Tree
	}
	im := &importer{store: s.store, disk: h.disk, root: root, max: h.o.MaxFile, limit: h.o.MaxFiles, known: s.repo.known,
		now: h.o.Now()}
	if err := im.track(before, s.source); err != nil {
		return plumbing.ZeroHash, err
	}
	if err := im.list(ctx, "", false); err != nil {
		return plumbing.ZeroHash, err
	}
	if len(im.files) == 0 && (im.had || len(im.tracked) > 0) {
		return plumbing.ZeroHash, fmt.Errorf(
			"%w: the folder %q is empty but was not before; nothing is changed until it has files again",
			ErrTemporary, s.source.path)
	}
	if err := im.read(ctx, progress); err != nil {
		return plumbing.ZeroHash, err
	}
	tree, err := im.tree()
	if err != nil {
		return plumbing.ZeroHash, err
	}
	s.repo.known = im.known
	for i, why := range im.skipped {
		if i == 20 {
			h.o.Log.Warn("more files not imported", "project", s.project.ID, "count", len(im.skipped)-i)
			break
		}
		h.o.Log.Debug("not imported", "project", s.project.ID, "file", why)
	}
	if tree == before {
		return old, nil
	}
	var parents []plumbing.Hash
	if !old.IsZero() {
		parents = []plumbing.Hash{old}
	}
	c := git.NewCommit(tree, parents, ownName, h.o.Now(), "Import from folder")
	if err := s.store.Write([]git.Object{c}); err != nil {
		return plumbing.ZeroHash, err
	}
	if err := h.step("import written"); err != nil {
		return plumbing.ZeroHash, err
	}
	if err := h.setRefs(ctx, s, refMove{"refs/heads/" + s.base, old, c.Hash}); err != nil {
		return plumbing.ZeroHash, err
	}
	return c.Hash, nil
}
