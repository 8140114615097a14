//go:build unix

package router_test

import (
	"syscall"
	"testing"
)

// cpuTime is how many microseconds of processor time this process has used.
func cpuTime(b *testing.B) float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e3
}
