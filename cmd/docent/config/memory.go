package config

import (
	"fmt"
	"math"
	"path"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"

	"docent/internal/health"
)

// MemoryLimit is what the garbage collector should stay under, in bytes: the setting, and without one three quarters
// of what there is, of the machine or of the control group that the process runs in. 0 leaves the runtime as it is:
// somebody has set GOMEMLIMIT, or nothing is known. Collecting harder near the end of memory costs time; running out
// costs the process.
func MemoryLimit(setting int64, environment string, read func(file string) ([]byte, error)) int64 {
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
	for _, file := range groupLimits(read) {
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

// groupLimits are the files that say how much memory the control group of the process may use, and those above it, in
// both versions of control groups. A container sees its own group as the root.
func groupLimits(read func(file string) ([]byte, error)) []string {
	const v2, v1 = "memory.max", "memory.limit_in_bytes"
	files := []string{"/sys/fs/cgroup/" + v2, "/sys/fs/cgroup/memory/" + v1}
	groups, err := read("/proc/self/cgroup")
	if err != nil {
		return files
	}
	for line := range strings.Lines(string(groups)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3) // number:controllers:path
		if len(parts) < 3 {
			continue
		}
		for dir := path.Clean("/" + parts[2]); dir != "/"; dir = path.Dir(dir) {
			switch parts[1] {
			case "":
				files = append(files, path.Join("/sys/fs/cgroup", dir, v2), path.Join("/sys/fs/cgroup/unified", dir, v2))
			case "memory":
				files = append(files, path.Join("/sys/fs/cgroup/memory", dir, v1))
			}
		}
	}
	return files
}

// minMemory is what the process needs to stay under to index and to answer; see docs/operate/load.
const minMemory = 96 << 20

// EnoughMemory refuses to begin where the process would be killed at its first work.
func EnoughMemory(limit int64) error {
	if limit == 0 || limit >= minMemory {
		return nil
	}
	return fmt.Errorf("the machine or the container leaves this process %s of memory, and it needs %s to index and to answer: give the container 128 MB, better 256 MB (or set memory_limit, if it may use more than is seen here)",
		health.Bytes(uint64(limit)), health.Bytes(minMemory))
}

// A Sizing is what the search may hold at once.
type Sizing struct {
	Index                 int64 // of all open indexes
	Terms, Texts, Results int64 // that an open index remembers; 0 for as much as there is use for
	Parsed                int64 // of pages while they are indexed
	Batch, Workers        int   // sections that are written at once, and pages that are read at once
}

// Sizes follow the memory that the process stays under: a quarter of it is for open indexes, and what an update makes
// beside them grows with it. They are what the settings say where there is plenty.
func Sizes(limit, index int64) Sizing {
	const plenty = 2 << 30
	if limit <= 0 || limit == math.MaxInt64 || limit >= plenty {
		return Sizing{Index: index}
	}
	return Sizing{Index: min(index, limit/4), Terms: min(32<<20, limit/32), Texts: min(8<<20, limit/128),
		Results: min(4<<20, limit/256), Parsed: min(16<<20, limit/128), Batch: int(min(1000, max(100, limit>>20))),
		Workers: int(min(int64(runtime.GOMAXPROCS(0)), max(1, limit/(256<<20))))}
}

// SearchSizes are those of this process.
func (c *Config) SearchSizes() Sizing { return Sizes(debug.SetMemoryLimit(-1), c.IndexMemory) }
