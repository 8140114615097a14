package cell

import (
	"os"

	"golang.org/x/sys/unix"

	"docent/internal/race"
)

// confine takes from the process what no parser needs. Each measure is one beside the bounds that are watched, so that
// a system that knows one of them not is no reason not to read.
func confine(memory int64) {
	// When the machine or the container runs out of memory, this process goes first.
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0o600)
	set := func(resource int, most uint64) {
		_ = unix.Setrlimit(resource, &unix.Rlimit{Cur: most, Max: most})
	}
	if !race.Enabled { // which maps as much as there are addresses
		set(unix.RLIMIT_DATA, uint64(memory)*2+256<<20)
	}
	set(unix.RLIMIT_CORE, 0)
	set(unix.RLIMIT_FSIZE, 0)
	set(unix.RLIMIT_NOFILE, 3) // which is no more: no file and no socket is opened from here on
}
