package deploy

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"docent/persistence/datadir"
	"docent/tests/harness"
)

// A server that is measured with --procs has its processors to itself: each thread of the bench keeps to the others.
func TestTheBenchKeepsToItsProcessors(t *testing.T) {
	harness.SkipShort(t)
	t.Parallel()
	var all unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		t.Fatal(err)
	}
	if all.Count() < 2 {
		t.Skip("left out: one processor cannot be divided")
	}
	cmd := exec.CommandContext(t.Context(), harness.Self(t), "bench", "streams", "--procs", "1", "--streams", "1",
		"--parts", "500")
	cmd.Env = harness.Environment(t)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) } // so that it ends its server
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Cancel()
		_ = cmd.Wait()
	}()
	bench, server := cmd.Process.Pid, 0
	harness.Until(t, "the bench has started a server", func() bool {
		children, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", bench))
		for _, file := range children {
			pids, _ := os.ReadFile(file)
			for pid := range strings.FieldsSeq(string(pids)) {
				line, _ := os.ReadFile("/proc/" + pid + "/cmdline")
				if args := strings.Split(string(line), "\x00"); len(args) > 1 && args[1] == datadir.Server {
					server, _ = strconv.Atoi(pid)
				}
			}
		}
		return server != 0
	})
	if servers := allowed(t, server); servers.Count() != 1 {
		t.Errorf("the server may use %d processors", servers.Count())
	}
	// the thread that starts a server has the server's until that runs
	harness.Until(t, "the bench keeps to the other processors", func() bool {
		servers, own := allowed(t, server), allowed(t, bench)
		for i := range own {
			if servers[i]&own[i] != 0 {
				return false
			}
		}
		return own.Count() == all.Count()-1
	})
}

// allowed are the processors that any thread of a process may use.
func allowed(t *testing.T, pid int) (by unix.CPUSet) {
	t.Helper()
	threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, thread := range threads {
		id, err := strconv.Atoi(thread.Name())
		var set unix.CPUSet
		if err != nil || unix.SchedGetaffinity(id, &set) != nil {
			continue // it has ended
		}
		for i := range set {
			by[i] |= set[i]
		}
	}
	return by
}
