package datadir

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"docent/internal/disk"
)

// A server that was killed while it started a program leaves its lock, for a moment, to what becomes that program: the next server
// waits for that. It does not wait for a server that runs.
func TestAKilledServersLockIsWaitedFor(t *testing.T) {
	dead := exec.Command(os.Args[0], "-test.run=^$")
	if err := dead.Run(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		pid  int
		ok   bool
	}{{"killed", dead.Process.Pid, true}, {"running", os.Getpid(), false}} {
		t.Run(c.name, func(t *testing.T) {
			path := t.TempDir()
			held, err := os.Create(filepath.Join(path, lock))
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(disk.TryLock(held), json.NewEncoder(held).Encode(Holder{PID: c.pid, Command: Server})); err != nil {
				t.Fatal(err)
			}
			var asked bool
			opened := func(time.Duration) { // instead of a pause
				if !asked {
					asked = true
					_ = disk.Unlock(held)
				}
			}
			d, err := open(path, Server, time.Minute, opened)
			if (err == nil) != c.ok || asked != c.ok {
				t.Fatalf("%v, having waited: %v", err, asked)
			}
			if err != nil {
				_ = disk.Unlock(held)
			} else if err := d.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}
