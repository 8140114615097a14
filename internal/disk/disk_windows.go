package disk

import (
	"errors"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/windows"
)

var (
	fullErrors = []syscall.Errno{windows.ERROR_DISK_FULL, windows.ERROR_HANDLE_DISK_FULL, windows.ERROR_DISK_QUOTA_EXCEEDED,
		windows.ERROR_FILE_TOO_LARGE}
	readOnlyErrors  = []syscall.Errno{windows.ERROR_WRITE_PROTECT}
	exhaustedErrors = []syscall.Errno{windows.ERROR_TOO_MANY_OPEN_FILES, windows.ERROR_NOT_ENOUGH_MEMORY, windows.ERROR_OUTOFMEMORY,
		windows.ERROR_NO_SYSTEM_RESOURCES, windows.ERROR_COMMITMENT_LIMIT, windows.ERROR_IO_DEVICE, windows.ERROR_CRC,
		windows.ERROR_NOT_READY, windows.ERROR_SHARING_VIOLATION, windows.ERROR_LOCK_VIOLATION, windows.ERROR_SEM_TIMEOUT}
)

// lockedAt is the byte that a lock is on. Windows refuses others what is locked, so it lies behind all that is written.
const lockedAt = 1 << 62

func tryLock(f *os.File) error {
	at := windows.Overlapped{Offset: 0, OffsetHigh: lockedAt >> 32}
	err := windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, &at)
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) || errors.Is(err, windows.ERROR_IO_PENDING) {
		return ErrLocked
	}
	return os.NewSyscallError("LockFileEx", err)
}

func unlock(*os.File) error { return nil } // a process that is started has no part in it

func syncFolder(*os.File) error { return nil }

// patience is how long a rename waits for other programs.
const patience = 2 * time.Second

func rename(from, to string) error {
	for deadline, pause := time.Now().Add(patience), time.Millisecond; ; pause *= 2 {
		err := os.Rename(from, to)
		if !errors.Is(err, windows.ERROR_SHARING_VIOLATION) && !errors.Is(err, windows.ERROR_ACCESS_DENIED) || time.Now().After(deadline) {
			return err
		}
		time.Sleep(pause)
	}
}
