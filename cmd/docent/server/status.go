package server

import (
	"context"
	"fmt"
	"iter"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"docent/api"
	"docent/cmd/docent/build"
	"docent/cmd/docent/stores"
	"docent/internal/background"
	"docent/internal/health"
	"docent/model/registry"
	"docent/model/remote"
	"docent/search/sources"
)

// Status is what `docent status` and the console show of this server.
func (a *Server) Status() (health.Status, error) {
	v := build.Get()
	st, js := a.System.Stats(), a.Journal.Stats()
	s := health.Status{
		Version: v.Version, Commit: v.Commit, PID: os.Getpid(), Data: a.config.Data, URL: a.config.PublicURL,
		Started: a.upkeep.began.UTC(), Uptime: time.Since(a.upkeep.began).Seconds(), Crashed: a.dir.Crashed,
		Start: health.Start{Ready: time.Duration(a.upkeep.ready.Load()).Seconds(), Pending: a.upkeep.pending,
			TakenUp: time.Duration(a.upkeep.woken.Load()).Seconds()},
		Machine: health.Machine{System: v.OS + "/" + v.Arch, Go: v.Go, Processors: runtime.NumCPU(),
			Goroutines: runtime.NumGoroutine()},
		Jobs: health.Jobs{Working: st.RunningJobs, Queued: st.WaitingJobs, Awake: st.LiveJobs,
			Oldest: st.OldestInstruction.Seconds()},
		Threads: health.Threads{Answering: st.RunningTurns, Queued: st.WaitingTurns, Awake: st.LiveThreads},
		Actors: health.Actors{Quarantined: []health.Quarantined{}, Failures: st.Failures, Restarts: st.Restarts,
			DeadLetters: st.DeadLetters, Unhandled: st.Unhandled, Recoveries: st.Recoveries,
			RecoverySeconds: st.Recovering.Seconds()},
		Journal: health.Journal{ID: a.Journal.Identity().ID, Position: js.Position, Bytes: js.FileBytes,
			FreeBytes: js.FreeBytes, Pending: js.Pending, Damaged: js.Damaged, Unavailable: js.Down, Commits: js.Commits,
			LastCommit: js.Committed},
		Catalog: a.catalogStatus(),
		Edge:    health.Edge{Refused: map[string]int{}},
		Indexes: a.Stores.Library.Open(), LeftOut: a.Stores.Source.LeftOut(), Sources: a.collectedStatus(),
		Models: a.modelStatus(), Meaning: a.meaningStatus(), Questions: a.questionsStatus(), Backup: a.backups.Status(),
		Cluster: a.nodes.Status(),
	}
	if limit := debug.SetMemoryLimit(-1); limit != math.MaxInt64 {
		s.Machine.Limit = limit
	}
	if disk, err := health.DiskOf(a.config.Data); err == nil { // some systems do not say
		s.Disk = disk
	}
	for _, p := range st.Quarantined {
		s.Actors.Quarantined = append(s.Actors.Quarantined,
			health.Quarantined{Kind: p.Kind, ID: p.ID, Reason: p.Err.Error(), At: p.At})
	}
	s.Actors.Parked = s.Actors.Quarantined
	for i, p := range a.listings {
		if pos := p.Position(); i == 0 || pos < s.Journal.Listed {
			s.Journal.Listed = pos
		}
	}
	return s, a.measured(&s)
}

// catalogStatus says what can be said of the catalog: a database that does not answer hides no other figure.
func (a *Server) catalogStatus() (c health.Catalog) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if is, err := a.Stores.Catalog.Identity(ctx); err == nil {
		c.ID = is.ID
	} else {
		c.Error = err.Error()
	}
	c.Revision = a.Stores.Catalog.Revision()
	file := stores.CatalogFile(stores.CatalogDSN(a.dir, a.config))
	if c.Postgres = file == ""; !c.Postgres {
		c.Bytes, _ = stores.FileSize(file)
	}
	return c
}

// collectedStatus says how the collected sources stand; of none if the catalog does not answer, which is told.
func (a *Server) collectedStatus() (out []health.Source) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	projects, err := a.Stores.Catalog.Projects(ctx)
	for _, p := range projects {
		if !slices.ContainsFunc(p.Parts(), func(part api.Project) bool { return part.Kind.Collected() }) {
			continue
		}
		var list []sources.Source
		if list, err = a.Stores.Source.Sources(ctx, p.ID); err != nil {
			break
		}
		for _, s := range list {
			if state := s.Health(); state != "" {
				out = append(out, health.Source{Project: string(p.ID), Label: s.Label, Kind: string(s.Kind), State: state,
					Failed: s.Error != ""})
			}
		}
	}
	if err != nil {
		a.Log.Debug("how sources stand is not known", "error", err)
	}
	return out
}

func (a *Server) modelStatus() []health.Model {
	out := []health.Model{}
	add := func(e remote.Endpoint, u registry.Use) {
		if slices.Contains(e.Models, u.Model) {
			out = append(out, health.Model{Name: u.Model, Endpoint: e.Address, State: e.State,
				Again: e.After.Seconds(), Calls: u.Calls, Failures: u.Failures,
				Tokens: u.Tokens.Prompt + u.Tokens.Completion, CostCents: float64(u.Cost) / 1e4,
				Unpriced: !u.Priced, Manners: u.Manners, Fallbacks: u.Fallbacks})
		}
	}
	for _, e := range a.models.Endpoints() {
		for _, u := range a.models.Uses() {
			add(e, u)
		}
	}
	for _, e := range a.Stores.Embeds.Endpoints() {
		for _, u := range a.Stores.Embeds.Uses() {
			u.Priced = true // embeddings have a limit of their own, in tokens
			add(e, registry.Use{Use: u})
		}
	}
	return out
}

// meaningStatus says how the vectors of the indexes stand.
func (a *Server) meaningStatus() (out []health.Meaning) {
	for _, m := range a.Stores.Library.Meanings() {
		h := health.Meaning{Index: string(m.Project), Model: m.Model, Serving: m.Serving, Sections: m.Sections,
			Embedded: m.Embedded, Working: m.Working, Problem: m.Problem}
		if !m.Again.IsZero() {
			h.Again = max(0, time.Until(m.Again).Seconds())
		}
		out = append(out, h)
	}
	return out
}

// questionsStatus says how the questions stand that a model writes for the sections of the indexes.
func (a *Server) questionsStatus() (out []health.Questions) {
	if a.config.Questions.Model == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	projects, err := a.Stores.Catalog.Projects(ctx)
	for _, p := range projects {
		for _, part := range p.Parts() {
			var w api.WrittenState
			if w, err = a.Stores.Catalog.WrittenState(ctx, part.ID); err != nil {
				break
			}
			out = append(out, health.Questions{Index: string(part.ID), Model: w.Model, Sections: w.Sections, Written: w.Written,
				Tokens: w.Tokens, CostCents: float64(w.Cost) / 1e4, ToGoCents: float64(w.ToGo()) / 1e4, Problem: w.Problem})
		}
	}
	if err != nil {
		a.Log.Debug("how written questions stand is not known", "error", err)
	}
	return out
}

// measured fills in what the metrics know.
func (a *Server) measured(s *health.Status) error {
	families, err := a.upkeep.metrics.Gather()
	if err != nil {
		return fmt.Errorf("gather the metrics: %w", err)
	}
	numbers := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			h := m.GetHistogram()
			buckets := func(yield func(upper float64, values uint64) bool) {
				for _, b := range h.GetBucket() {
					if !yield(b.GetUpperBound(), b.GetCumulativeCount()) {
						return
					}
				}
			}
			switch f.GetName() {
			case "docent_journal_commit_seconds":
				s.Journal.CommitP50 = quantile(0.5, h.GetSampleCount(), buckets)
				s.Journal.CommitP99 = quantile(0.99, h.GetSampleCount(), buckets)
			case "docent_journal_append_seconds":
				s.Journal.AppendP99 = quantile(0.99, h.GetSampleCount(), buckets)
			case "docent_refused_total":
				for _, l := range m.GetLabel() {
					if m.GetCounter().GetValue() == 0 {
						continue
					}
					s.Edge.Refused[l.GetValue()] += int(m.GetCounter().GetValue())
				}
			default:
				numbers[f.GetName()] += m.GetGauge().GetValue() + m.GetCounter().GetValue()
			}
		}
	}
	s.Edge.Streams = int(numbers["docent_streams_open"])
	s.Edge.InFlight = int(numbers["docent_http_requests_in_flight"])
	s.Edge.Queue = numbers["docent_queue_seconds"]
	s.Edge.Working, s.Edge.Waiting = int(numbers["docent_queue_working"]), int(numbers["docent_queue_waiting"])
	s.Edge.Rate = numbers["docent_queue_rate"]
	s.Machine.CPUSeconds = numbers["process_cpu_seconds_total"]
	s.Machine.Resident = int64(numbers["process_resident_memory_bytes"])
	s.Machine.OpenFiles, s.Machine.MaxFiles = int(numbers["process_open_fds"]), int(numbers["process_max_fds"])
	return nil
}

// quantile is the upper bound of the bucket that holds the q-th share of a histogram's values: the true one is not
// above it and not below half of it. It is 0 if there are no values.
func quantile(q float64, count uint64, buckets iter.Seq2[float64, uint64]) float64 {
	rank := uint64(math.Ceil(q * float64(count)))
	last := 0.0
	if rank == 0 {
		return last
	}
	for upper, values := range buckets {
		if !math.IsInf(upper, 1) {
			last = upper
		}
		if values >= rank {
			break
		}
	}
	return last
}

var (
	descBuild = prometheus.NewDesc("docent_build_info", "How this server was built; the value is 1.",
		[]string{"version", "revision", "goversion"}, nil)
	descReady = prometheus.NewDesc("docent_start_duration_seconds",
		"Time from the start of the server until it took requests; 0 before.", nil, nil)
	descCrashed = prometheus.NewDesc("docent_start_after_crash", "1 if the previous server crashed.", nil, nil)
	descDisk    = prometheus.NewDesc("docent_disk_size_bytes", "Size of the disk of the data directory.", nil, nil)
	descFree    = prometheus.NewDesc("docent_disk_free_bytes",
		"Bytes on the disk of the data directory that the server may still use.", nil, nil)
	descBackup = prometheus.NewDesc("docent_backup_last_success_timestamp_seconds",
		"When the last completed backup began; 0 if there is none.", nil, nil)
	descBackupFailed = prometheus.NewDesc("docent_backup_failed", "1 if the last backup failed.", nil, nil)
	descLeftOut      = prometheus.NewDesc("docent_projects_left_out",
		"Projects that are not read because the server ended while it read them.", nil, nil)
	descPanics = prometheus.NewDesc("docent_panics_recovered_total",
		"Panics that ended one piece of work and not the server: each is a defect, and is in the log with its stack.", nil, nil)
)

// processFigures are the metrics of what belongs to no room.
type processFigures struct{ *Server }

func (f processFigures) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descBuild, descReady, descCrashed, descDisk, descFree, descBackup, descBackupFailed,
		descLeftOut, descPanics} {
		ch <- d
	}
}

func (f processFigures) Collect(ch chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	yes := map[bool]float64{true: 1}
	v := build.Get()
	gauge(descBuild, 1, v.Version, v.Commit, v.Go)
	gauge(descReady, float64(f.upkeep.ready.Load())/1e9)
	gauge(descCrashed, yes[f.dir.Crashed])
	if disk, err := health.DiskOf(f.config.Data); err == nil { // some systems do not say
		gauge(descDisk, float64(disk.Total))
		gauge(descFree, float64(disk.Free))
	}
	if !f.config.Shared() { // with the journal in PostgreSQL the database's own backups count
		backup := f.backups.Status()
		made := 0.0
		if backup.Made != nil {
			made = float64(backup.Made.Began.Unix())
		}
		gauge(descBackup, made)
		gauge(descBackupFailed, yes[backup.Failed != nil])
	}
	gauge(descLeftOut, float64(len(f.Stores.Source.LeftOut())))
	ch <- prometheus.MustNewConstMetric(descPanics, prometheus.CounterValue, float64(background.Panics()))
}
