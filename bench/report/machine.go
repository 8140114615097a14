package report

import (
	"os"
	"runtime"
	"strconv"
	"strings"
)

// ThisMachine describes the machine that the bench runs on, as far as it tells.
func ThisMachine() Machine {
	m := Machine{System: runtime.GOOS + "/" + runtime.GOARCH, Processors: runtime.NumCPU(), Used: runtime.GOMAXPROCS(0),
		Go: runtime.Version()}
	field := func(file, name string) string {
		text, err := os.ReadFile(file)
		if err != nil {
			return "" // another system
		}
		for line := range strings.Lines(string(text)) {
			if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
				return strings.TrimSpace(value)
			}
		}
		return ""
	}
	m.Processor = field("/proc/cpuinfo", "model name")
	if kilobytes, ok := strings.CutSuffix(field("/proc/meminfo", "MemTotal"), " kB"); ok {
		if n, err := strconv.ParseInt(kilobytes, 10, 64); err == nil {
			m.Memory = n << 10
		}
	}
	if release, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		m.Kernel, _, _ = strings.Cut(strings.TrimSpace(string(release)), "-") // what follows is the builder's
	}
	return m
}
