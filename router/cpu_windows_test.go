package router_test

import (
	"syscall"
	"testing"
)

// cpuTime is how many microseconds of processor time this process has used.
func cpuTime(b *testing.B) float64 {
	self, err := syscall.GetCurrentProcess()
	if err != nil {
		b.Fatal(err)
	}
	var began, ended, kernel, user syscall.Filetime
	if err := syscall.GetProcessTimes(self, &began, &ended, &kernel, &user); err != nil {
		b.Fatal(err)
	}
	ticks := func(t syscall.Filetime) float64 { return float64(t.HighDateTime)*(1<<32) + float64(t.LowDateTime) } // of 100 ns
	return (ticks(kernel) + ticks(user)) / 10
}
