package config

import (
	"io/fs"
	"math"
	"strings"
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
		"a unit of systemd's": {files: map[string]string{"/proc/meminfo": machine,
			"/proc/self/cgroup": "0::/system.slice/docent.service\n",
			"/sys/fs/cgroup/system.slice/docent.service/memory.max": "max\n",
			"/sys/fs/cgroup/system.slice/memory.max":                "1073741824\n"}, want: 768 << 20},
		"a group of old": {files: map[string]string{"/proc/meminfo": machine,
			"/proc/self/cgroup": "9:name=systemd:/x\n4:cpu,cpuacct:/y\n4:memory:/a/b\n0::/\n",
			"/sys/fs/cgroup/memory/a/b/memory.limit_in_bytes": "536870912\n",
			"/sys/fs/cgroup/memory/a/memory.limit_in_bytes":   "1073741824\n"}, want: 384 << 20},
		"nothing known": {},
	} {
		read := func(file string) ([]byte, error) {
			if text, ok := c.files[file]; ok {
				return []byte(text), nil
			}
			return nil, fs.ErrNotExist
		}
		if got := MemoryLimit(c.setting, c.environment, read); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

// What the search may hold follows the memory of the container, down to the smallest that is let in, and the settings
// where there is plenty; what is too little is refused with the figure.
func TestWhatIsHeldFollowsTheMemoryOfTheContainer(t *testing.T) {
	t.Parallel()
	const setting = 512 << 20
	for _, limit := range []int64{0, math.MaxInt64, 2 << 30, 12 << 30} {
		if got := Sizes(limit, setting); got != (Sizing{Index: setting}) {
			t.Errorf("under %d: %+v", limit, got)
		}
	}
	for limit := int64(minMemory); limit < 2<<30; limit += 16 << 20 {
		got := Sizes(limit, setting)
		if got.Index > limit/4 || got.Index < 16<<20 || got.Terms+got.Texts+got.Results > got.Index ||
			got.Parsed > limit/64 || got.Parsed < 512<<10 || got.Batch < 96 || got.Batch > 1000 || got.Workers < 1 ||
			got.Terms > 32<<20 || got.Texts > 8<<20 || got.Results > 4<<20 {
			t.Errorf("under %d: %+v", limit, got)
		}
	}
	if got := Sizes(1<<30, 10<<20); got.Index != 10<<20 {
		t.Errorf("a setting below the share becomes %d", got.Index)
	}
	for limit, want := range map[int64]string{0: "", minMemory: "", 192 << 20: "", 48 << 20: "needs 96.0 MiB"} {
		if err := EnoughMemory(limit); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("under %d: %v", limit, err)
		}
	}
}
