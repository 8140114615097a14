package git

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/klauspost/compress/zlib"

	"docent/forge/failure"
	"docent/internal/disk"
)

// A Disk is what all repositories of a hub share: how many of their files may be open at a time, and how much is read
// of one.
type Disk struct {
	files    chan struct{} // one token for each file that is open
	maxFiles int           // of one commit
	maxBytes int64         // that one fetch may inflate to

	fault func(op, name string) error // tests fail here, see NewDisk
	// For tests: bytes that were inflated, and those of them that were held in memory.
	inflated, held atomic.Int64
}

// openFiles bounds the object files that are open at a time, in all repositories together.
const openFiles = 32

// NewDisk bounds what is read of one repository. Fault is for tests, and may be nil: it is called before each operation
// on a file with its name, and its error is what the system says. Operations are "open" and "read", and those that
// change something: "create", "write", "sync", "rename", "remove" and "mkdir".
func NewDisk(maxFiles int, maxBytes int64, fault func(op, name string) error) *Disk {
	return &Disk{files: make(chan struct{}, openFiles), maxFiles: maxFiles, maxBytes: maxBytes, fault: fault}
}

// Take waits until one more file may be open. A caller that has a token must not ask for a second one.
func (d *Disk) Take() (give func()) {
	d.files <- struct{}{}
	return func() { <-d.files }
}

func (d *Disk) at(op, name string) error {
	if d.fault == nil {
		return nil
	}
	return d.fault(op, name)
}

// A diskFile remembers what the operating system had against reading it: what goes wrong above that is the content's
// fault.
type diskFile struct {
	*os.File
	disk *Disk
	give func()
	err  error
}

func (d *Disk) open(name string) (*diskFile, error) {
	give := d.Take()
	err := d.at("open", name)
	var f *os.File
	if err == nil {
		f, err = os.Open(name)
	}
	if err != nil {
		give()
		return nil, err
	}
	return &diskFile{File: f, disk: d, give: give}, nil
}

func (f *diskFile) Close() error {
	defer f.give()
	return f.File.Close()
}

func (f *diskFile) ReadAt(b []byte, off int64) (int, error) {
	if err := f.disk.at("read", f.Name()); err != nil {
		f.err = err
		return 0, err
	}
	n, err := f.File.ReadAt(b, off)
	if err != nil && err != io.EOF {
		f.err = err
	}
	return n, err
}

func (f *diskFile) Read(b []byte) (int, error) {
	if err := f.disk.at("read", f.Name()); err != nil {
		f.err = err
		return 0, err
	}
	n, err := f.File.Read(b)
	if err != nil && err != io.EOF {
		f.err = err
	}
	return n, err
}

// fault sorts an error that came up while the file was read.
func (f *diskFile) fault(err error) error {
	var limit *failure.Error
	switch {
	case err == nil:
		return nil
	case f.err != nil:
		return sorted(f.err)
	case errors.As(err, &limit):
		return err
	}
	return fmt.Errorf("%w: %w", ErrDamaged, err)
}

// sorted sorts an error of the operating system about a repository's file: one that is not there is damage; all else
// passes, or is the operator's to mend, and says nothing of the repository.
func sorted(err error) error {
	switch {
	case err == nil, errors.Is(err, ErrDamaged), errors.Is(err, failure.ErrTemporary):
		return err
	case missing(err):
		return fmt.Errorf("%w: %v", ErrDamaged, err) // not "no such file" to those who ask for one of the documentation's
	}
	return Passing(err)
}

// missing says that there is no such file: something else under its name, or under that of its folder, counts as that.
func missing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.EISDIR)
}

// Passing gives an error of the machine the form of one for which trying again helps.
func Passing(err error) error {
	return fmt.Errorf("%w: %w", &failure.Error{Kind: failure.ErrTemporary,
		Say: fmt.Sprintf("The server cannot use its own copy of the repository now (%v).", failure.Reason(err))}, err)
}

// unwritten sorts an error about writing a repository's file: rights that were taken away may come back.
func unwritten(err error) error {
	if err != nil && !errors.Is(err, failure.ErrTemporary) && (errors.Is(err, fs.ErrPermission) || disk.Exhausted(err)) {
		return Passing(err)
	}
	return err
}

// inflaters hold their tables and windows.
var inflaters sync.Pool

// inflate calls use with the inflated bytes of r, which is read no further than their end if it is an io.ByteReader.
func (d *Disk) inflate(r io.Reader, use func(io.Reader) error) error {
	z, ok := inflaters.Get().(io.ReadCloser)
	if !ok {
		var err error
		if z, err = zlib.NewReader(r); err != nil {
			return err
		}
	} else if err := z.(zlib.Resetter).Reset(r, nil); err != nil {
		inflaters.Put(z)
		return err
	}
	defer inflaters.Put(z)
	counted := &counter{next: z}
	defer func() { d.inflated.Add(counted.n) }()
	return use(counted)
}

type counter struct {
	next io.Reader
	n    int64
}

func (c *counter) Read(b []byte) (int, error) {
	n, err := c.next.Read(b)
	c.n += int64(n)
	return n, err
}

// exactly reads what is said to be size bytes, to their end.
func (d *Disk) exactly(r io.Reader, size int64) ([]byte, error) {
	d.held.Add(size)
	data := make([]byte, size)
	if _, err := io.ReadFull(r, data); err != nil {
		return nil, err
	}
	return data, atEnd(r)
}

// atEnd checks that nothing follows, and with it the checksum of what came.
func atEnd(r io.Reader) error {
	var one [1]byte
	switch n, err := io.ReadFull(r, one[:]); {
	case n > 0:
		return errMalformed // longer than it says
	case err != io.EOF:
		return err
	}
	return nil
}

// readFile reads a small file of a repository.
func (d *Disk) readFile(name string) ([]byte, error) {
	f, err := d.open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(f)
}

// createTemp makes a file under a name of its own.
func (d *Disk) createTemp(dir, pattern string) (*os.File, error) {
	if err := d.at("create", filepath.Join(dir, pattern)); err != nil {
		return nil, err
	}
	return os.CreateTemp(dir, pattern)
}

// A diskWriter is a file that is written to.
type diskWriter struct {
	disk *Disk
	file *os.File
}

func (w diskWriter) Write(b []byte) (int, error) {
	if err := w.disk.at("write", w.file.Name()); err != nil {
		return 0, err
	}
	return w.file.Write(b)
}

// finish gives a written file its mode, syncs and closes it.
func (d *Disk) finish(f *os.File, mode os.FileMode) error {
	if err := f.Chmod(mode); err != nil {
		return err
	}
	if err := d.at("sync", f.Name()); err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// Rename is disk.Rename.
func (d *Disk) Rename(from, to string) error {
	if err := d.at("rename", to); err != nil {
		return err
	}
	return disk.Rename(from, to)
}

// SyncFolder is disk.SyncFolder.
func (d *Disk) SyncFolder(dir string) error {
	if err := d.at("sync", dir); err != nil {
		return err
	}
	return disk.SyncFolder(dir)
}

// remove removes a file; one that is not there is no error.
func (d *Disk) remove(name string) error {
	if err := d.at("remove", name); err != nil {
		return err
	}
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// RemoveAll removes a folder with all that is in it.
func (d *Disk) RemoveAll(dir string) error {
	if err := d.at("remove", dir); err != nil {
		return err
	}
	return os.RemoveAll(dir)
}

func (d *Disk) mkdir(dir string) error {
	if err := d.at("mkdir", dir); err != nil {
		return err
	}
	return os.Mkdir(dir, 0o700)
}

// writeFile writes a new file and syncs it; the directory is the caller's to sync.
func (d *Disk) writeFile(name string, data []byte, mode os.FileMode) error {
	if err := d.at("create", name); err != nil {
		return err
	}
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
	if _, err := (diskWriter{d, f}).Write(data); err != nil {
		return err
	}
	return d.finish(f, mode)
}

// replaceFile changes a file so that a crash leaves the old or the new content.
func (d *Disk) replaceFile(name string, data []byte) error {
	err := d.writeFile(name+".new", data, 0o600)
	if err == nil {
		err = d.Rename(name+".new", name)
	}
	if err == nil {
		err = d.SyncFolder(filepath.Dir(name))
	}
	return unwritten(err)
}

// mkdirAll makes a directory and says which ones got a new entry.
func (d *Disk) mkdirAll(dir string) (changed []string, err error) {
	if _, err := os.Stat(dir); err == nil {
		return nil, nil
	}
	if changed, err = d.mkdirAll(filepath.Dir(dir)); err != nil {
		return nil, err
	}
	if err := d.mkdir(dir); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	return append(changed, filepath.Dir(dir)), nil
}

// Inflated is how many bytes were inflated to look at them, and how many of those were held in memory.
func (d *Disk) Inflated() (all, held int64) { return d.inflated.Load(), d.held.Load() }
