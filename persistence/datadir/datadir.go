// Package datadir provides the directory that a server keeps everything in: its layout, the lock that lets one process
// have it, the rights of its files, and what the runtime says when the process crashes.
package datadir

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"docent/internal/disk"
)

// Server is the command that serves a data directory. It holds the lock for long, all other commands for a moment.
const Server = "serve"

// What lies in a data directory.
const (
	Journal  = "journal.db"
	Catalog  = "catalog.db" // unless it is on PostgreSQL
	Repos    = "repos"
	Index    = "index"
	Checks   = "checks"    // what the operator's commands that check results write
	Reading  = "reading"   // which sources are being read
	Previews = "previews"  // of web sites, while they are read; removed at the start
	Manual   = "manual"    // the assistant of Docent's own documentation, while it answers; removed at the start
	SetAside = "set-aside" // records that were taken out of a store
	Socket   = "control.sock"
	Sources  = "sources"    // what was collected of web sites, uploads and issues
	Upload   = "upload.zip" // in the folder of a source that zips are uploaded to
	Secrets  = "secrets"    // tokens that were entered on a page; not in backups
	Certs    = "certs"      // certificates that were got by ACME, with their keys and the account; not in backups
	// Backup marks a copy: a server that starts on one rebuilds the listings from the journal.
	Backup    = "backup.json"
	Backups   = "backups.json" // what is known of the last backups of this directory
	lock      = "lock"
	crashFile = "crash.log"
	// OldControl held the address and the secret of older versions.
	OldControl = "control.json"
)

// A Dir is a data directory that this process holds alone.
type Dir struct {
	Path    string
	Crashed bool // the server before this one did; see WatchCrashes

	lock *os.File
}

// A LockedError says which process holds a data directory.
type LockedError struct {
	Path   string
	Holder Holder
}

// A Holder is a process that has a data directory.
type Holder struct {
	PID     int    `json:"pid"`
	Command string `json:"command"`
}

func (e *LockedError) Error() string {
	if e.Holder.PID == 0 {
		return fmt.Sprintf("the data directory %s is in use by another process", e.Path)
	}
	return fmt.Sprintf("the data directory %s is in use by process %d (docent %s)", e.Path, e.Holder.PID, e.Holder.Command)
}

// Used reports whether docent has worked with a directory.
func Used(path string) (bool, error) {
	for _, name := range []string{lock, Journal, Catalog} { // a backup has no lock
		if ok, err := Has(path, name); ok || err != nil {
			return ok, err
		}
	}
	return false, nil
}

// Missing says that there is no data directory: a command that makes nothing has nothing to show, and the name is
// mistyped.
func Missing(path string) error {
	return fmt.Errorf("no data directory at %s: name the right one with --data (or DOCENT_DATA); `docent project add` and `docent serve` make one", path)
}

// Open creates the directory if there is none, and takes its lock, waiting up to patience for a short-lived
// holder: a command, or what a killed server has left of itself, never a server that runs.
func Open(path, command string, patience time.Duration) (*Dir, error) {
	return open(path, command, patience, time.Sleep)
}

func open(path, command string, patience time.Duration, pause func(time.Duration)) (*Dir, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, Unwritable(path, fmt.Errorf("make the data directory: %w", err))
	}
	name := filepath.Join(path, lock)
	file, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, Unwritable(path, fmt.Errorf("open the data directory's lock: %w", err))
	}
	for deadline := time.Now().Add(patience); ; pause(20 * time.Millisecond) {
		err := disk.TryLock(file)
		if err == nil {
			break
		}
		if !errors.Is(err, disk.ErrLocked) {
			file.Close()
			return nil, fmt.Errorf("lock the data directory %s: %w", path, err)
		}
		var holder Holder
		if text, err := os.ReadFile(name); err == nil {
			_ = json.Unmarshal(text, &holder) // it may be half written; then the holder is not named
		}
		if holder.Command == Server && runs(holder.PID) || time.Now().After(deadline) {
			file.Close()
			return nil, &LockedError{Path: path, Holder: holder}
		}
	}
	if err := known(path); err != nil {
		file.Close()
		return nil, err
	}
	if err := ownersOnly(path); err != nil {
		file.Close()
		return nil, Unwritable(path, err)
	}
	// Always of one length, so that on a full disk what is there is written over. If even that fails the holder has no
	// name.
	text, _ := json.Marshal(Holder{PID: os.Getpid(), Command: command})
	text = append(text, bytes.Repeat([]byte{' '}, max(0, lockLength-len(text)))...)
	if err := errors.Join(writeAt(file, text), file.Truncate(int64(len(text)))); err != nil && !disk.Full(err) {
		file.Close()
		return nil, fmt.Errorf("write the data directory's lock: %w", err)
	}
	return &Dir{Path: path, lock: file}, nil
}

// runs reports whether a process is there. A child that a killed server was just starting has the server's open files until its
// program begins, and so the lock.
func runs(pid int) bool {
	p, err := os.FindProcess(pid)
	return err == nil && !errors.Is(p.Signal(syscall.Signal(0)), os.ErrProcessDone)
}

// lockLength is how many bytes the lock's text has at least.
const lockLength = 128

// Unwritable says what to do if nothing can be written to a data directory.
func Unwritable(path string, err error) error {
	switch {
	case disk.ReadOnly(err):
		return fmt.Errorf("the data directory %s is on a read-only file system: mount it writable, or name another one with --data: %w", path, err)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("the data directory %s cannot be written to by %s: change its owner or rights, or name another one with --data: %w", path, thisUser(), err)
	}
	return err
}

// thisUser names the user who runs this process: by the number if there is one.
func thisUser() string {
	if uid := os.Getuid(); uid >= 0 {
		return fmt.Sprintf("user %d", uid)
	}
	return "user " + os.Getenv("USERNAME")
}

func writeAt(file *os.File, text []byte) error {
	_, err := file.WriteAt(text, 0)
	return err
}

// Close gives the directory back. A process that dies gives it back too.
func (d *Dir) Close() error { return disk.Unlock(d.lock) }

// OpenUsed is Open for a directory that docent has worked with: it makes none.
func OpenUsed(path, command string, patience time.Duration) (*Dir, error) {
	if ok, err := Used(path); err != nil {
		return nil, Unwritable(path, err)
	} else if !ok {
		return nil, Missing(path)
	}
	return Open(path, command, patience)
}

// File is the path of one file or folder in the directory.
func (d *Dir) File(name string) string { return filepath.Join(d.Path, name) }

// WriteFile replaces a file whole: a reader sees the old one or the new one.
func WriteFile(path string, text []byte, mode fs.FileMode) error {
	temp, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer os.Remove(temp.Name())
	_, err = temp.Write(text)
	err = errors.Join(err, temp.Chmod(mode), temp.Sync(), temp.Close())
	if err != nil {
		return err
	}
	return disk.Rename(temp.Name(), path)
}

// Has reports whether a directory holds a file.
func Has(dir, name string) (bool, error) {
	_, err := os.Stat(filepath.Join(dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// Is reports whether a folder is a data directory, by the stores that it holds. A folder that cannot be looked at is
// none.
func Is(path string) bool {
	journal, _ := Has(path, Journal)
	catalog, _ := Has(path, Catalog)
	return journal || catalog
}

// HashOf is the SHA-256 of a file, in hexadecimal.
func HashOf(name string) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
