package main

import (
	"io/fs"
	"math"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
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
		"a setting":              {setting: 5, environment: "1GiB", files: map[string]string{"/proc/meminfo": machine}, want: 5},
		"the runtime's own":      {environment: "1GiB", files: map[string]string{"/proc/meminfo": machine}},
		"a machine":              {files: map[string]string{"/proc/meminfo": machine}, want: 12 << 30},
		"a container":            {files: map[string]string{"/proc/meminfo": machine, "/sys/fs/cgroup/memory.max": "1073741824\n"}, want: 768 << 20},
		"a container of old":     {files: map[string]string{"/proc/meminfo": machine, "/sys/fs/cgroup/memory/memory.limit_in_bytes": "1073741824"}, want: 768 << 20},
		"a container, unlimited": {files: map[string]string{"/proc/meminfo": machine, "/sys/fs/cgroup/memory.max": "max\n"}, want: 12 << 30},
		"nothing known":          {},
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

func TestTheCollectorStaysAwayWhileTheProcessorsAreShort(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const collect = -1
		var (
			mu  sync.Mutex
			did []int // the percentages that were set, and collections
		)
		do := func(what int) int {
			mu.Lock()
			defer mu.Unlock()
			did = append(did, what)
			return 0
		}
		expect := func(want ...int) {
			t.Helper()
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			if !slices.Equal(did, want) {
				t.Errorf("it did %v, want %v", did, want)
			}
			did = nil
		}
		meanwhile := func() {} // happens during a collection
		c := newCollecting("", 1<<30, do, func() { do(collect); meanwhile() })
		time.Sleep(2 * calmAfter)
		for range 3 { // at the edge of what it carries
			c.crowd(true)
			time.Sleep(calmAfter / 2)
			c.crowd(false)
			time.Sleep(calmAfter / 2)
		}
		expect(crowdedPercent, crowdedPercent, crowdedPercent)
		time.Sleep(calmAfter) // the processors have had room for long enough
		expect(collect, calmPercent)

		c.crowd(true)
		c.calmDown() // the timer had ended already
		expect(crowdedPercent)
		meanwhile = func() { c.crowd(true) }
		c.crowd(false)
		time.Sleep(2 * calmAfter)
		expect(collect, crowdedPercent)
	})
	for name, c := range map[string]*collecting{
		"as somebody has set it":   newCollecting("200", 1<<30, nil, nil),
		"where memory is no bound": newCollecting("", math.MaxInt64, nil, nil),
	} {
		c.crowd(true) // changes nothing
		if c != nil {
			t.Errorf("%s it would change", name)
		}
	}
}
