package main

import (
	"math"
	"strconv"
	"strings"
	"sync"
	"time"
)

// memoryLimit is what the garbage collector should stay under, in bytes: the setting, and without one three quarters of
// what there is, of the machine or of the control group that the process runs in. 0 leaves the runtime as it is: somebody
// has set GOMEMLIMIT, or nothing is known. Collecting harder near the end of memory costs time; running out costs the process.
func memoryLimit(setting int64, environment string, read func(file string) ([]byte, error)) int64 {
	if setting > 0 {
		return setting
	}
	if environment != "" {
		return 0
	}
	var least int64
	consider := func(bytes int64, err error) {
		if err == nil && bytes > 0 && (least == 0 || bytes < least) {
			least = bytes
		}
	}
	for _, file := range []string{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"} {
		if text, err := read(file); err == nil {
			consider(strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)) // "max" is no number, and no limit
		}
	}
	if text, err := read("/proc/meminfo"); err == nil {
		for line := range strings.Lines(string(text)) {
			if fields := strings.Fields(line); len(fields) == 3 && fields[0] == "MemTotal:" {
				kilobytes, err := strconv.ParseInt(fields[1], 10, 64)
				consider(kilobytes<<10, err)
			}
		}
	}
	return least / 4 * 3
}

const (
	// crowdedPercent is how much is made anew before the garbage collector works again, of what is in use, while the processors
	// are short; calmPercent is the runtime's own figure.
	crowdedPercent, calmPercent = 1600, 100
	// calmAfter is how long the processors have room before it is the runtime's own again: at the edge of what a server
	// carries it would otherwise collect each time that there is room for a moment.
	calmAfter = 250 * time.Millisecond
)

// A collecting keeps the garbage collector from the processors while they are short. It takes a quarter of them while it works,
// on few processors in pieces of 10 ms, and past saturation it would work for a third of the time. Then it works a sixteenth
// as often, and memory grows instead, as far as its limit.
type collecting struct {
	set     func(percent int) int
	collect func() // works once, while the others go on

	mu      sync.Mutex
	crowded bool
	calm    *time.Timer
}

// newCollecting is nil where somebody has said how often to collect (GOGC), or where memory has no limit.
func newCollecting(environment string, limit int64, set func(percent int) int, collect func()) *collecting {
	if environment != "" || limit == math.MaxInt64 {
		return nil
	}
	c := &collecting{set: set, collect: collect}
	c.calm = time.AfterFunc(calmAfter, c.calmDown)
	c.calm.Stop()
	return c
}

// crowd hears when the processors are short, and when they have room again.
func (c *collecting) crowd(is bool) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.crowded = is; !is {
		c.calm.Reset(calmAfter)
		return
	}
	c.calm.Stop()
	c.set(crowdedPercent)
}

// calmDown collects before the percentage says that there is far too much: whoever needs memory then would have to help.
func (c *collecting) calmDown() {
	c.mu.Lock()
	crowded := c.crowded
	c.mu.Unlock()
	if crowded {
		return // they have become short again just as the time was over
	}
	c.collect()
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.crowded {
		c.set(calmPercent)
	}
}
