// Package disk provides what systems do differently with files: locks, names that reach the disk, files that are
// replaced, and what a full disk answers.
package disk

import (
	"errors"
	"os"
	"runtime"
	"slices"
)

// OpenFilesPin says that a folder can be neither renamed nor removed while a file in it is open, and neither can that
// file: so it is on Windows.
const OpenFilesPin = runtime.GOOS == "windows"

// ErrLocked says that another process, or another opening of the file, has its lock.
var ErrLocked = errors.New("the file is locked")

// TryLock takes the lock of a file for this process alone, without waiting; ErrLocked if somebody has it. The file can
// be read and written by others all the while. Closing it, or the end of the process, gives the lock back.
func TryLock(f *os.File) error { return tryLock(f) }

// Unlock gives the lock of a file back and closes it. Closing it alone leaves the lock for a moment to a process that is just being
// started, which has the open file until its program begins.
func Unlock(f *os.File) error { return errors.Join(unlock(f), f.Close()) }

// SyncFolder brings the names in a folder to the disk. On Windows a folder cannot be synced: NTFS journals names by
// itself.
func SyncFolder(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(Sync(d), d.Close())
}

// Sync is SyncFolder of a folder that is open.
func Sync(folder *os.File) error { return syncFolder(folder) }

// Rename gives a file or folder another name; a file that bears it is replaced. On Windows that waits for a moment if
// another program, such as a virus scanner, has one of the two open. What this process has open there cannot be renamed:
// close it first.
func Rename(from, to string) error { return rename(from, to) }

// Full says that there is no room on the disk, for this user, or for a file of that size.
func Full(err error) bool { return isAny(err, fullErrors) }

// ReadOnly says that the file system takes no writes.
func ReadOnly(err error) bool { return isAny(err, readOnlyErrors) }

// Exhausted tells the errors of a machine that is short of something, or whose disk fails: they say nothing of what was
// read.
func Exhausted(err error) bool {
	return isAny(err, fullErrors) || isAny(err, readOnlyErrors) || isAny(err, exhaustedErrors)
}

func isAny[E error](err error, of []E) bool {
	return slices.ContainsFunc(of, func(e E) bool { return errors.Is(err, e) })
}
