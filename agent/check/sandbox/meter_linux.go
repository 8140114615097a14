package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// meterInterval is how often it is looked at what a command holds.
const meterInterval = 200 * time.Millisecond

// A meter sums up what all processes of a command hold together, which no limit of single processes bounds.
type meter struct {
	box  Box
	disk int    // descriptor of a folder on it; negative if there is none
	free uint64 // bytes on it when the command began
}

func newMeter(b Box) *meter {
	m := &meter{box: b}
	var err error
	if m.disk, err = unix.Open(b.Work, unix.O_PATH|unix.O_CLOEXEC, 0); err != nil {
		m.disk = -1
	}
	m.free, _ = m.freeBytes()
	return m
}

func (m *meter) freeBytes() (uint64, bool) {
	var fs unix.Statfs_t
	if m.disk < 0 || unix.Fstatfs(m.disk, &fs) != nil {
		return 0, false
	}
	return fs.Bavail * uint64(fs.Bsize), true
}

// excess says what the command has too much of; "" if it keeps within its bounds.
func (m *meter) excess() string {
	all := processes()
	mine := below(all, os.Getpid())
	var tasks int
	var memory int64
	for _, p := range mine {
		tasks += all[p].tasks
		memory += all[p].memory
	}
	if memory > m.box.Memory { // what they share counted for each: count it once
		memory = 0
		for _, p := range mine {
			memory += proportional(p, all[p].memory)
		}
	}
	switch {
	case tasks > m.box.Tasks:
		return fmt.Sprintf("it was ended: it ran %d threads and processes at once, and %d are its limit", tasks, m.box.Tasks)
	case memory > m.box.Memory:
		return fmt.Sprintf("it was ended: its processes held more than the %d bytes of memory that are its limit", m.box.Memory)
	}
	// Nothing that is on the disk but not in a folder, or in a folder that is shut, escapes this. Others write as well;
	// what is left for them counts more than that.
	if now, ok := m.freeBytes(); ok && now < m.free && m.free-now > min(uint64(m.box.Disk), m.free/2) {
		return fmt.Sprintf("it was ended: the disk lost %d bytes meanwhile", m.free-now)
	}
	return ""
}

// A process is what is summed up of one.
type process struct {
	parent, tasks int
	memory        int64
}

// processes are those that this process sees.
func processes() map[int]process {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	out := map[int]process{}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		text, err := os.ReadFile("/proc/" + e.Name() + "/stat")
		if err != nil {
			continue // it has ended
		}
		f := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:])) // state parent …
		if len(f) < 22 {
			continue
		}
		var p process
		p.parent, _ = strconv.Atoi(f[1])
		p.tasks, _ = strconv.Atoi(f[17])
		pages, _ := strconv.ParseInt(f[21], 10, 64)
		p.memory = pages * int64(os.Getpagesize())
		out[pid] = p
	}
	return out
}

// tasksOf counts the threads of a user, as far as this process sees them.
func tasksOf(user int) (n int) {
	for pid, p := range processes() {
		var stat unix.Stat_t
		if unix.Stat("/proc/"+strconv.Itoa(pid), &stat) == nil && int(stat.Uid) == user {
			n += p.tasks
		}
	}
	return n
}

// below are the descendants of a process.
func below(all map[int]process, of int) []int {
	under := map[int][]int{}
	for pid, p := range all {
		under[p.parent] = append(under[p.parent], pid)
	}
	out := append([]int(nil), under[of]...)
	for i := 0; i < len(out); i++ {
		out = append(out, under[out[i]]...)
	}
	return out
}

// proportional is a process's share of the memory that it holds, or all of it if that is not to be known.
func proportional(pid int, all int64) int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return all
	}
	_, rest, ok := strings.Cut(string(text), "\nPss:")
	f := strings.Fields(rest)
	if !ok || len(f) == 0 {
		return all
	}
	kib, err := strconv.ParseInt(f[0], 10, 64)
	if err != nil {
		return all
	}
	return kib << 10
}

// children are this process's. One that hides from /proc is in the list of the kernel's own, if that is kept.
func children() []int {
	var out []int
	for pid, p := range processes() {
		if p.parent == os.Getpid() {
			out = append(out, pid)
		}
	}
	lists, _ := filepath.Glob("/proc/self/task/*/children") // the pattern is well-formed
	for _, list := range lists {
		text, _ := os.ReadFile(list) // of a thread that has ended
		for field := range strings.FieldsSeq(string(text)) {
			if pid, err := strconv.Atoi(field); err == nil {
				out = append(out, pid)
			}
		}
	}
	return out
}
