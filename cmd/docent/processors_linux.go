package main

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"
)

// A division gives a server that is measured processors of its own, and this process, which measures it, the others. To say how
// many goroutines may run at a time is not enough: the kernel then puts the busy threads of both on one processor for half
// a second at a time, since each wakes the other, and leaves the other one idle.
type division struct {
	servers, own unix.CPUSet
}

// divideProcessors keeps this process to what is left of its processors without the first n; to all of them where none are left.
func divideProcessors(n int) (*division, error) {
	d := &division{}
	var all unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		return nil, fmt.Errorf("look which processors may be used: %w", err)
	}
	left := n
	for cpu := range 1024 { // CPU_SETSIZE of sched_setaffinity(2)
		switch {
		case !all.IsSet(cpu):
		case left > 0:
			d.servers.Set(cpu)
			left--
		default:
			d.own.Set(cpu)
		}
	}
	if d.own.Count() == 0 {
		d.own = all
	}
	// Each thread has its own set, and gives it to those that it starts.
	for kept := map[int]bool{}; ; {
		threads, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return nil, fmt.Errorf("look for this process's threads: %w", err)
		}
		before := len(kept)
		for _, thread := range threads {
			id, err := strconv.Atoi(thread.Name())
			if err != nil || kept[id] {
				continue
			}
			if err := unix.SchedSetaffinity(id, &d.own); err != nil && err != unix.ESRCH {
				return nil, fmt.Errorf("keep to %d processors: %w", d.own.Count(), err)
			}
			kept[id] = true
		}
		if len(kept) == before {
			return d, nil
		}
	}
}

// start starts a server on its processors.
func (d *division) start(server *exec.Cmd) error {
	runtime.LockOSThread() // a process gets what the thread has that starts it
	defer runtime.UnlockOSThread()
	if err := unix.SchedSetaffinity(0, &d.servers); err != nil {
		return fmt.Errorf("give the server %d processors: %w", d.servers.Count(), err)
	}
	started := server.Start()
	if err := unix.SchedSetaffinity(0, &d.own); err != nil && started == nil {
		_ = server.Process.Kill()
		_ = server.Wait()
		return fmt.Errorf("go back to %d processors: %w", d.own.Count(), err)
	}
	return started
}
