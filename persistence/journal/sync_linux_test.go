package journal

import (
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func syncData(f *os.File) error { return unix.Fdatasync(int(f.Fd())) }

// processorTime is what this process has used so far.
func processorTime(tb testing.TB) time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
