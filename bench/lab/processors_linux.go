package lab

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"
)

// An affinity is which processors servers may use, and which this process.
type affinity struct {
	servers, own unix.CPUSet
}

// setAffinity keeps each thread of this process to the processors that are not the servers'.
func setAffinity(n int) (a affinity, err error) {
	var all unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		return a, fmt.Errorf("look which processors may be used: %w", err)
	}
	left := n
	for cpu := range 1024 { // CPU_SETSIZE of sched_setaffinity(2)
		switch {
		case !all.IsSet(cpu):
		case left > 0:
			a.servers.Set(cpu)
			left--
		default:
			a.own.Set(cpu)
		}
	}
	if a.own.Count() == 0 {
		a.own = all
	}
	// Each thread has its own set, and gives it to those that it starts.
	for kept := map[int]bool{}; ; {
		threads, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return a, fmt.Errorf("look for this process's threads: %w", err)
		}
		before := len(kept)
		for _, thread := range threads {
			id, err := strconv.Atoi(thread.Name())
			if err != nil || kept[id] {
				continue
			}
			if err := unix.SchedSetaffinity(id, &a.own); err != nil && err != unix.ESRCH {
				return a, fmt.Errorf("keep to %d processors: %w", a.own.Count(), err)
			}
			kept[id] = true
		}
		if len(kept) == before {
			return a, nil
		}
	}
}

func (a affinity) start(server *exec.Cmd) error {
	runtime.LockOSThread() // a process gets what the thread has that starts it
	defer runtime.UnlockOSThread()
	if err := unix.SchedSetaffinity(0, &a.servers); err != nil {
		return fmt.Errorf("give the server %d processors: %w", a.servers.Count(), err)
	}
	started := server.Start()
	if err := unix.SchedSetaffinity(0, &a.own); err != nil && started == nil {
		_ = server.Process.Kill()
		_ = server.Wait()
		return fmt.Errorf("go back to %d processors: %w", a.own.Count(), err)
	}
	return started
}
