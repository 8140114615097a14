package main

import (
	"strconv"
	"strings"
)

// memoryLimit is what the garbage collector should stay under, in bytes: the setting, and without one three quarters
// of what there is, of the machine or of the control group that the process runs in. 0 leaves the runtime as it is:
// somebody has set GOMEMLIMIT, or nothing is known. Collecting harder near the end of memory costs time; running out
// costs the process.
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
