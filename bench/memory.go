package bench

import (
	"bytes"
	"os"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
)

// AnonymousMemory tells of the memory of its process that stands for no file, where the system says so: objects, stacks
// and what the runtime keeps. Pages of a file that are mapped, as the journal's are, are the page cache's: they go when
// somebody needs the room, and the kernel maps some that nobody has asked for.
func AnonymousMemory() prometheus.Collector {
	return anonymousMemory{prometheus.NewDesc("docent_anonymous_memory_bytes",
		"Memory of the process that stands for no file: resident memory without mapped pages of files.", nil, nil)}
}

type anonymousMemory struct{ *prometheus.Desc }

func (m anonymousMemory) Describe(ch chan<- *prometheus.Desc) { ch <- m.Desc }

func (m anonymousMemory) Collect(ch chan<- prometheus.Metric) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return // another system
	}
	if n, ok := anonymous(status); ok {
		ch <- prometheus.MustNewConstMetric(m.Desc, prometheus.GaugeValue, float64(n))
	}
}

// anonymous finds the figure in a process's status, which is described in proc_pid_status(5).
func anonymous(status []byte) (n int64, ok bool) {
	for line := range bytes.Lines(status) {
		if kilobytes, is := bytes.CutPrefix(line, []byte("RssAnon:")); is {
			kilobytes = bytes.TrimSpace(bytes.TrimSuffix(bytes.TrimSpace(kilobytes), []byte("kB")))
			n, err := strconv.ParseInt(string(kilobytes), 10, 64)
			return n << 10, err == nil
		}
	}
	return 0, false
}
