//go:build unix

package main

import (
	"fmt"
	"syscall"
	"time"
)

// timeUsed is what the process has used so far.
func timeUsed() (time.Duration, error) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, fmt.Errorf("read the processor time: %w", err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), nil
}
