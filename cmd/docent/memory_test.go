package main

import (
	"io/fs"
	"testing"
)

func TestMemoryLimitFollowsWhatThereIs(t *testing.T) {
	t.Parallel()
	const machine = "MemTotal:       16777216 kB\nMemFree:         1000 kB\n"
	for name, c := range map[string]struct {
		setting     int64
		environment string
		files       map[string]string
		want        int64
	}{
		"a setting": {setting: 5, environment: "1GiB", files: map[string]string{"/proc/meminfo": machine},
			want: 5},
		"the runtime's own": {environment: "1GiB", files: map[string]string{"/proc/meminfo": machine}},
		"a machine":         {files: map[string]string{"/proc/meminfo": machine}, want: 12 << 30},
		"a container": {files: map[string]string{"/proc/meminfo": machine,
			"/sys/fs/cgroup/memory.max": "1073741824\n"}, want: 768 << 20},
		"a container of old": {files: map[string]string{"/proc/meminfo": machine,
			"/sys/fs/cgroup/memory/memory.limit_in_bytes": "1073741824"}, want: 768 << 20},
		"a container, unlimited": {files: map[string]string{"/proc/meminfo": machine, "/sys/fs/cgroup/memory.max": "max\n"},
			want: 12 << 30},
		"nothing known": {},
	} {
		read := func(file string) ([]byte, error) {
			if text, ok := c.files[file]; ok {
				return []byte(text), nil
			}
			return nil, fs.ErrNotExist
		}
		if got := memoryLimit(c.setting, c.environment, read); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}
