package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// A dataDir is a data directory that this process holds alone.
type dataDir struct {
	path    string
	lock    *os.File
	crashed bool // the server before this one did
}

// A lockedError says which process holds a data directory.
type lockedError struct {
	path   string
	holder lockHolder
}

type lockHolder struct {
	PID     int    `json:"pid"`
	Command string `json:"command"`
}

func (e *lockedError) Error() string {
	if e.holder.PID == 0 {
		return fmt.Sprintf("the data directory %s is in use by another process", e.path)
	}
	return fmt.Sprintf("the data directory %s is in use by process %d (docent %s)", e.path, e.holder.PID, e.holder.Command)
}

// isDataDir is whether docent has worked with a directory.
func isDataDir(path string) (bool, error) {
	for _, name := range []string{"lock", journalFile, "catalog.db"} { // a backup has no lock
		if ok, err := hasFile(path, name); ok || err != nil {
			return ok, err
		}
	}
	return false, nil
}

// noDataDir says that there is no data directory: a command that makes nothing has nothing to show, and the name is mistyped.
func noDataDir(path string) error {
	return fmt.Errorf("no data directory at %s: name the right one with --data (or DOCENT_DATA); `docent project add` and `docent serve` make one", path)
}

// openDataDir makes the directory where there is none, and takes its lock, waiting up to patience for a short-lived
// holder: a command, never a server.
func openDataDir(path, command string, patience time.Duration) (*dataDir, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, unwritable(path, fmt.Errorf("make the data directory: %w", err))
	}
	name := filepath.Join(path, "lock")
	file, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, unwritable(path, fmt.Errorf("open the data directory's lock: %w", err))
	}
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			break
		}
		if !errors.Is(err, unix.EWOULDBLOCK) {
			file.Close()
			return nil, fmt.Errorf("lock the data directory %s: %w", path, err)
		}
		var holder lockHolder
		if text, err := os.ReadFile(name); err == nil {
			_ = json.Unmarshal(text, &holder) // it may be half written; then the holder is not named
		}
		if holder.Command == serveCommand || time.Now().After(deadline) {
			file.Close()
			return nil, &lockedError{path: path, holder: holder}
		}
	}
	if err := ownersOnly(path); err != nil {
		file.Close()
		return nil, unwritable(path, err)
	}
	// Always of one length, so that on a full disk what is there is written over. Where even that fails the holder has no name.
	text, _ := json.Marshal(lockHolder{PID: os.Getpid(), Command: command})
	text = append(text, bytes.Repeat([]byte{' '}, max(0, lockLength-len(text)))...)
	if err := errors.Join(writeAt(file, text), file.Truncate(int64(len(text)))); err != nil && !diskFull(err) {
		file.Close()
		return nil, fmt.Errorf("write the data directory's lock: %w", err)
	}
	return &dataDir{path: path, lock: file}, nil
}

// lockLength is how many bytes the lock's text has at least.
const lockLength = 128

// diskFull says that there is no room on the disk: what is stored can be served, and room may be made.
func diskFull(err error) bool {
	return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) || errors.Is(err, unix.EFBIG)
}

// unwritable says what to do where nothing can be written to a data directory.
func unwritable(path string, err error) error {
	switch {
	case errors.Is(err, unix.EROFS):
		return fmt.Errorf("the data directory %s is on a read-only file system: mount it writable, or name another one with --data: %w", path, err)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("the data directory %s cannot be written to by user %d: change its owner or mode, or name another one with --data: %w", path, os.Getuid(), err)
	}
	return err
}

func writeAt(file *os.File, text []byte) error {
	_, err := file.WriteAt(text, 0)
	return err
}

// Close gives the directory back. A process that dies gives it back too.
func (d *dataDir) Close() error { return d.lock.Close() }

// file is the path of one file or folder in the directory.
func (d *dataDir) file(name string) string { return filepath.Join(d.path, name) }

// writeFileAtomic replaces a file whole: a reader sees the old one or the new one.
func writeFileAtomic(path string, text []byte, mode fs.FileMode) error {
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
	return os.Rename(temp.Name(), path)
}
