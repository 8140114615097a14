package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"docent/api"
	"docent/datadir"
	"docent/health"
	"docent/ingest"
	"docent/model/registry"
	"docent/model/remote"
)

// A serverStatus is how the running server fares.
type serverStatus = health.Status

const opStatus = "status"

func (o *operations) status(context.Context, struct{}, Progress) (serverStatus, error) {
	if o.app == nil {
		return serverStatus{}, errNoServer
	}
	return o.app.status()
}

// status is what `docent status` and the console show of this server.
func (a *app) status() (serverStatus, error) {
	v := buildVersion()
	st, js := a.system.Stats(), a.journal.Stats()
	s := serverStatus{
		Version: v.Version, Commit: v.Commit, PID: os.Getpid(), Data: a.config.Data, URL: a.config.PublicURL,
		Started: a.upkeep.began.UTC(), Uptime: time.Since(a.upkeep.began).Seconds(), Crashed: a.dir.Crashed,
		Start: health.Start{Ready: time.Duration(a.upkeep.ready.Load()).Seconds(), Pending: a.upkeep.pending,
			TakenUp: time.Duration(a.upkeep.woken.Load()).Seconds()},
		Machine: health.Machine{System: v.OS + "/" + v.Arch, Go: v.Go, Processors: runtime.NumCPU(),
			Goroutines: runtime.NumGoroutine()},
		Jobs:    health.Jobs{Working: st.RunningJobs, Queued: st.WaitingJobs, Awake: st.LiveJobs},
		Threads: health.Threads{Answering: st.RunningTurns, Queued: st.WaitingTurns, Awake: st.LiveThreads},
		Actors: health.Actors{Quarantined: []health.Quarantined{}, Failures: st.Failures, Restarts: st.Restarts,
			DeadLetters: st.DeadLetters, Unhandled: st.Unhandled, Recoveries: st.Recoveries,
			RecoverySeconds: st.Recovering.Seconds()},
		Journal: health.Journal{ID: a.journal.Identity().ID, Position: js.Position, Bytes: js.FileBytes,
			FreeBytes: js.FreeBytes, Pending: js.Pending, Damaged: js.Damaged, Unavailable: js.Down, Commits: js.Commits,
			LastCommit: js.Committed},
		Catalog: a.catalogStatus(),
		Edge:    health.Edge{Refused: map[string]int{}},
		Indexes: a.stores.library.Open(), LeftOut: a.stores.source.LeftOut(), Sources: a.collectedStatus(),
		Models: a.modelStatus(), Meaning: a.meaningStatus(), Backup: a.backups.Status(),
		Cluster: clusterStatus(a.nodes.Status()),
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

// catalogStatus says what can be said of the catalogue: a database that does not answer hides no other figure.
func (a *app) catalogStatus() (c health.Catalog) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if is, err := a.stores.catalog.Identity(ctx); err == nil {
		c.ID = is.ID
	} else {
		c.Error = err.Error()
	}
	c.Revision = a.stores.catalog.Revision()
	file := catalogFile(catalogDSN(a.dir, a.config))
	if c.Postgres = file == ""; !c.Postgres {
		c.Bytes, _ = fileSize(file)
	}
	return c
}

// collectedStatus says how the collected sources stand; of none where the catalogue does not answer, which is told.
func (a *app) collectedStatus() (out []health.Source) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	projects, err := a.stores.catalog.Projects(ctx)
	for _, p := range projects {
		if !slices.ContainsFunc(p.Parts(), func(part api.Project) bool { return part.Kind.Collected() }) {
			continue
		}
		var sources []ingest.Source
		if sources, err = a.stores.source.Sources(ctx, p.ID); err != nil {
			break
		}
		for _, s := range sources {
			if state := s.Health(); state != "" {
				out = append(out, health.Source{Project: string(p.ID), Label: s.Label, Kind: string(s.Kind), State: state,
					Failed: s.Error != ""})
			}
		}
	}
	if err != nil {
		a.log.Debug("how sources stand is not known", "error", err)
	}
	return out
}

func (a *app) modelStatus() []health.Model {
	out := []health.Model{}
	add := func(e remote.Endpoint, u registry.Use) {
		if slices.Contains(e.Models, u.Model) {
			out = append(out, health.Model{Name: u.Model, Endpoint: e.Address, State: e.State,
				Again: e.After.Seconds(), Calls: u.Calls, Failures: u.Failures,
				Tokens: u.Tokens.Prompt + u.Tokens.Completion, CostCents: float64(u.Cost) / 1e4, Fallbacks: u.Fallbacks})
		}
	}
	for _, e := range a.models.Endpoints() {
		for _, u := range a.models.Uses() {
			add(e, u)
		}
	}
	for _, e := range a.stores.embeds.Endpoints() {
		for _, u := range a.stores.embeds.Uses() {
			add(e, registry.Use{Use: u})
		}
	}
	return out
}

// meaningStatus says how the vectors of the indexes stand.
func (a *app) meaningStatus() (out []health.Meaning) {
	for _, m := range a.stores.library.Meanings() {
		h := health.Meaning{Index: string(m.Project), Model: m.Model, Serving: m.Serving, Sections: m.Sections,
			Embedded: m.Embedded, Working: m.Working, Problem: m.Problem}
		if !m.Again.IsZero() {
			h.Again = max(0, time.Until(m.Again).Seconds())
		}
		out = append(out, h)
	}
	return out
}

// measured fills in what the metrics know.
func (a *app) measured(s *serverStatus) error {
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
// above it and not below half of it. It is 0 where there are no values.
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

func newStatusCommand(prog program) *cobra.Command {
	o := &operator{prog: prog, here: noServerHere}
	cmd := &cobra.Command{
		Use: "status", Short: "Show the state of the running server on one screen", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return show(o, cmd, opStatus, nil, printStatus)
		},
	}
	operatorFlags(cmd, o)
	return cmd
}

func noServerHere(_ context.Context, c Config, _ string, _ []byte, _ Progress) (json.RawMessage, error) {
	if ok, err := datadir.Used(c.Data); err == nil && !ok {
		return nil, datadir.Missing(c.Data)
	}
	return nil, errNoServer
}

func printStatus(w io.Writer, s serverStatus) error {
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	line := func(name, format string, args ...any) { fmt.Fprintf(t, "%s\t%s\n", name, fmt.Sprintf(format, args...)) }
	printCluster(line, s.Cluster)
	seconds := func(v float64) string {
		return time.Duration(v * float64(time.Second)).Round(10 * time.Microsecond).String()
	}
	line("docent", "%s, process %d, up %s", s.Version, s.PID,
		time.Duration(s.Uptime*float64(time.Second)).Round(time.Second))
	line("address", "%s", s.URL)
	line("data", "%s", s.Data)
	if s.Disk.Total > 0 {
		line("disk", "%s free of %s", health.Bytes(s.Disk.Free), health.Bytes(s.Disk.Total))
	}
	if s.Cluster == nil { // with the journal in PostgreSQL the database's own backups count
		line("backup", "%s", backupLine(s.Backup))
	}
	takenUp := "are being resumed"
	if s.Start.TakenUp > 0 {
		takenUp = "resumed after " + seconds(s.Start.TakenUp)
	}
	line("start", "ready after %s; %d unfinished jobs and answers %s", seconds(s.Start.Ready), s.Start.Pending, takenUp)
	line("jobs", "%d working, %d queued, %d awake", s.Jobs.Working, s.Jobs.Queued, s.Jobs.Awake)
	line("threads", "%d answering, %d queued, %d awake", s.Threads.Answering, s.Threads.Queued, s.Threads.Awake)
	line("actors", "%d failures, %d restarts, %d dead letters, %d recoveries in %s", s.Actors.Failures, s.Actors.Restarts,
		s.Actors.DeadLetters, s.Actors.Recoveries, seconds(s.Actors.RecoverySeconds))
	state := "writable"
	if s.Journal.Unavailable {
		state = "CANNOT BE WRITTEN TO: the disk is full, read-only or broken"
	}
	line("journal", "%s, position %d, %d bytes (%d of them free), %d damaged streams", state, s.Journal.Position,
		s.Journal.Bytes, s.Journal.FreeBytes, s.Journal.Damaged)
	line("commits", "%d; half within %s, 99%% within %s; appends 99%% within %s", s.Journal.Commits,
		seconds(s.Journal.CommitP50),
		seconds(s.Journal.CommitP99), seconds(s.Journal.AppendP99))
	line("listings", "up to position %d", s.Journal.Listed)
	line("edge", "%d streams open, %d requests in flight, queue %s", s.Edge.Streams, s.Edge.InFlight,
		seconds(s.Edge.Queue))
	var refused []string
	for reason, n := range s.Edge.Refused {
		refused = append(refused, fmt.Sprintf("%s %d", reason, n))
	}
	if slices.Sort(refused); len(refused) > 0 {
		line("refused", "%s", strings.Join(refused, ", "))
	}
	line("indexes", "%d open", s.Indexes)
	for _, c := range s.Sources {
		line("source", "%s of %s (%s): %s", c.Label, c.Project, c.Kind, c.State)
	}
	for i, m := range s.Models {
		name, state := "models", ""
		if i > 0 {
			name = ""
		}
		switch m.State {
		case remote.Open:
			state = ", CIRCUIT OPEN after repeated failures: the next call is tried in " + seconds(m.Again)
		case remote.HalfOpen:
			state = ", CIRCUIT HALF OPEN after repeated failures: the next call tries it"
		}
		if m.Fallbacks > 0 {
			state += fmt.Sprintf(", the built-in model answered %d times in its place", m.Fallbacks)
		}
		line(name, "%s at %s: %d calls, %d failed, %d tokens, $%.2f%s", m.Name, m.Endpoint, m.Calls, m.Failures, m.Tokens,
			m.CostCents/100, state)
	}
	for i, m := range s.Meaning {
		name := "meaning"
		if i > 0 {
			name = ""
		}
		line(name, "%s: %s", m.Index, meaningLine(m))
	}
	line("quarantined", "%d", len(s.Actors.Quarantined))
	for _, p := range s.Actors.Quarantined {
		line("", "%s %s: %s", p.Kind, p.ID, p.Reason)
	}
	return t.Flush()
}

// meaningLine says how the vectors of one index stand.
func meaningLine(m health.Meaning) string {
	text := fmt.Sprintf("%d of %d sections have vectors of %s", m.Embedded, m.Sections, m.Model)
	switch {
	case m.Model == "":
		text = "waits for its turn"
	case m.Serving == "":
		text += "; searches go by words alone until most have one"
	case m.Serving != m.Model:
		text += "; searches use those of " + m.Serving + " meanwhile"
	}
	if m.Problem != "" {
		text += fmt.Sprintf("; STOPPED, tried again in %s: %s",
			time.Duration(m.Again*float64(time.Second)).Round(time.Second), m.Problem)
	}
	return text
}

// backupLine says when the data directory was last copied.
func backupLine(b health.Backup) string {
	text := "none was made yet: `docent backup DIR` makes one"
	if b.Made != nil {
		text = fmt.Sprintf("%s, to %s", shownTime(b.Made.Began), b.Made.Dir)
	}
	if b.Failed != nil {
		text += fmt.Sprintf("; one FAILED at %s: %s", shownTime(b.Failed.Began), b.Failed.Error)
	}
	return text
}
