package journal

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Stats counts what the journal did since it was opened.
type Stats struct {
	Appends   uint64 // that are on disk
	Refused   uint64 // because of their sequence, their claim or damage
	Failed    uint64 // because the disk could not be written to
	Commits   uint64
	Events    uint64
	Bytes     uint64 // of events and snapshots, as they are stored
	Snapshots uint64
	Trimmed   uint64 // events removed because a snapshot covers them
	Position  uint64
	Streams   int  // with events after their snapshot: what the index in memory holds
	Pending   int  // streams that call for work
	Damaged   int  // streams that cannot be used
	Down      bool // the last attempt to write failed
	FileBytes int64
	FreeBytes int64     // of them: pages that are used again before the file grows
	Committed time.Time // the last commit; zero before the first one since the journal was opened
}

type metrics struct {
	appends, refused, failed, commits, events, bytes, snapshots, trimmed atomic.Uint64

	down        atomic.Bool
	committedAt atomic.Int64 // in nanoseconds since 1970; 0 before the first commit
	times       Times
}

// Times are how long appends and commits took.
type Times struct {
	Append prometheus.Histogram // seconds
	Commit prometheus.Histogram // seconds
	Group  prometheus.Histogram // appends
}

// NewTimes makes the metrics of a journal's times.
func NewTimes() (t Times) {
	t.Append = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name:    "docent_journal_append_seconds",
		Help:    "Time from an append's call to its being on disk; without the ends of answers, whose commit is delayed.",
		Buckets: prometheus.ExponentialBuckets(100e-6, 2, 16)})
	t.Commit = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "docent_journal_commit_seconds", Help: "Time of one commit with appends, its syncs included.",
		Buckets: prometheus.ExponentialBuckets(100e-6, 2, 16)})
	t.Group = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "docent_journal_group_appends", Help: "Appends that shared one commit.",
		Buckets: prometheus.ExponentialBuckets(1, 2, 14)})
	return t
}

// observe counts one group.
func (m *metrics) observe(reqs []*appendRequest, took time.Duration, err error) {
	if len(reqs) == 0 {
		return
	}
	if err != nil {
		m.failed.Add(uint64(len(reqs)))
		return
	}
	done := 0
	for _, r := range reqs {
		if r.err == nil {
			done++
		}
	}
	m.appends.Add(uint64(done))
	m.refused.Add(uint64(len(reqs) - done))
	m.times.Commit.Observe(took.Seconds())
	m.times.Group.Observe(float64(len(reqs)))
}

// committed counts what one commit wrote.
func (m *metrics) committed(c *commit) {
	m.commits.Add(1)
	m.committedAt.Store(time.Now().UnixNano())
	m.bytes.Add(uint64(c.bytes))
	m.snapshots.Add(uint64(len(c.snapshotted)))
	m.trimmed.Add(uint64(c.trimmed))
	var n uint64
	for _, a := range c.appended {
		n += a.n
	}
	m.events.Add(n)
}

// Stats tells how the journal stands.
func (j *Journal) Stats() Stats {
	m := &j.metrics
	s := Stats{
		Appends: m.appends.Load(), Refused: m.refused.Load(), Failed: m.failed.Load(), Commits: m.commits.Load(),
		Events: m.events.Load(), Bytes: m.bytes.Load(), Snapshots: m.snapshots.Load(), Trimmed: m.trimmed.Load(),
		Position: j.Position(), Down: m.down.Load(),
	}
	j.indexMu.RLock()
	s.Streams, s.Pending, s.Damaged = len(j.tails), len(j.pending), len(j.damage)
	j.indexMu.RUnlock()
	if st, err := j.file.Stat(); err == nil {
		s.FileBytes = st.Size()
	}
	if j.db != nil {
		free := j.db.Stats()
		s.FreeBytes = int64(free.FreePageN+free.PendingPageN) * int64(j.db.Info().PageSize)
	}
	if at := m.committedAt.Load(); at != 0 {
		s.Committed = time.Unix(0, at).UTC()
	}
	return s
}

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("docent_journal_"+name, help, labels, nil)
}

var (
	descAppends   = describe("appends_total", "Appends, by what became of them.", "result")
	descCommits   = describe("commits_total", "Transactions committed.")
	descEvents    = describe("events_total", "Events stored.")
	descBytes     = describe("bytes_total", "Bytes of events and snapshots stored.")
	descSnapshots = describe("snapshots_total", "Snapshots stored.")
	descTrimmed   = describe("trimmed_total", "Events removed because a snapshot covers them.")
	descStreams   = describe("streams", "Streams in the index in memory, by what they are.", "state")
	descDown      = describe("unavailable", "1 while the journal cannot be written to.")
	descFile      = describe("file_bytes", "Size of the journal's file.")
	descFree      = describe("free_bytes", "Of the journal's file, pages that are used again before it grows.")
)

// Describe implements prometheus.Collector.
func (j *Journal) Describe(c chan<- *prometheus.Desc) { j.metrics.times.Describe(c) }

// Collect implements prometheus.Collector.
func (j *Journal) Collect(c chan<- prometheus.Metric) { j.metrics.times.Collect(c, j.Stats()) }

// Describe describes the metrics of every journal.
func (t *Times) Describe(c chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descAppends, descCommits, descEvents, descBytes, descSnapshots, descTrimmed,
		descStreams, descDown, descFile, descFree} {
		c <- d
	}
	t.Append.Describe(c)
	t.Commit.Describe(c)
	t.Group.Describe(c)
}

// Collect sends the metrics of a journal.
func (t *Times) Collect(c chan<- prometheus.Metric, s Stats) {
	counter := func(d *prometheus.Desc, v uint64, labels ...string) {
		c <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), labels...)
	}
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		c <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	counter(descAppends, s.Appends, "stored")
	counter(descAppends, s.Refused, "refused")
	counter(descAppends, s.Failed, "failed")
	counter(descCommits, s.Commits)
	counter(descEvents, s.Events)
	counter(descBytes, s.Bytes)
	counter(descSnapshots, s.Snapshots)
	counter(descTrimmed, s.Trimmed)
	gauge(descStreams, float64(s.Streams), "unsnapshotted")
	gauge(descStreams, float64(s.Pending), "pending")
	gauge(descStreams, float64(s.Damaged), "damaged")
	down := 0.0
	if s.Down {
		down = 1
	}
	gauge(descDown, down)
	gauge(descFile, float64(s.FileBytes))
	gauge(descFree, float64(s.FreeBytes))
	t.Append.Collect(c)
	t.Commit.Collect(c)
	t.Group.Collect(c)
}
