//go:build unix

package disk

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

var (
	fullErrors      = []syscall.Errno{unix.ENOSPC, unix.EDQUOT, unix.EFBIG}
	readOnlyErrors  = []syscall.Errno{unix.EROFS}
	exhaustedErrors = []syscall.Errno{unix.EMFILE, unix.ENFILE, unix.ENOMEM, unix.EIO, unix.EAGAIN, unix.ESTALE, unix.ETIMEDOUT}
)

func tryLock(f *os.File) error {
	err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return ErrLocked
	}
	return os.NewSyscallError("flock", err)
}

func unlock(f *os.File) error {
	return os.NewSyscallError("flock", unix.Flock(int(f.Fd()), unix.LOCK_UN))
}

func syncFolder(folder *os.File) error { return folder.Sync() }

func rename(from, to string) error { return os.Rename(from, to) }
