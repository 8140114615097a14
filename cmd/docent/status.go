package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"math"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"docent/datadir"
	"docent/model/remote"
)

// A serverStatus is how the running server fares.
type serverStatus struct {
	Version string        `json:"version"`
	Commit  string        `json:"commit,omitempty"`
	PID     int           `json:"pid"`
	Data    string        `json:"data"`
	URL     string        `json:"url"`
	Started time.Time     `json:"startedAt"`
	Uptime  float64       `json:"uptimeSeconds"`
	Start   startStatus   `json:"start"`
	Jobs    jobStatus     `json:"jobs"`
	Threads threadStatus  `json:"threads"`
	Actors  actorStatus   `json:"actors"`
	Journal journalStatus `json:"journal"`
	Edge    edgeStatus    `json:"edge"`
	Indexes int           `json:"openIndexes"`
	LeftOut []string      `json:"leftOut,omitempty"` // projects that are not read, and why
	Models  []modelStatus `json:"models"`
}

type (
	startStatus struct {
		Ready   float64 `json:"readySeconds"`   // from the beginning until requests were taken
		Pending int     `json:"pendingStreams"` // that called for work
		TakenUp float64 `json:"takenUpSeconds"` // until all of them had been taken up; 0 while that goes on
	}
	jobStatus struct {
		Working int `json:"working"`
		Queued  int `json:"queued"`
		Awake   int `json:"awake"`
	}
	threadStatus struct {
		Answering int `json:"answering"`
		Queued    int `json:"queued"`
		Awake     int `json:"awake"`
	}
	actorStatus struct {
		Quarantined     []quarantined `json:"quarantined"`
		Parked          []quarantined `json:"parked"` // the former name, for one release
		Failures        int           `json:"failures"`
		Restarts        int           `json:"restarts"`
		DeadLetters     int           `json:"deadLetters"`
		Unhandled       int           `json:"unhandled"`
		Recoveries      int           `json:"recoveries"`
		RecoverySeconds float64       `json:"recoverySeconds"` // altogether
	}
	quarantined struct {
		Kind   string    `json:"kind"`
		ID     string    `json:"id"`
		Reason string    `json:"reason"`
		At     time.Time `json:"at"`
	}
	journalStatus struct {
		Position    uint64  `json:"position"`
		Bytes       int64   `json:"bytes"`
		Pending     int     `json:"pendingStreams"`
		Damaged     int     `json:"damagedStreams"`
		Unavailable bool    `json:"unavailable"`
		Commits     uint64  `json:"commits"`
		CommitP50   float64 `json:"commitP50Seconds"`
		CommitP99   float64 `json:"commitP99Seconds"`
		AppendP99   float64 `json:"appendP99Seconds"`
		Listed      uint64  `json:"listedPosition"` // that the catalogue's listings reflect
	}
	// A modelStatus is a model that is reached over HTTP, with its use since the start.
	modelStatus struct {
		Name     string `json:"name"`
		Endpoint string `json:"endpoint"`
		// closed: calls go through; open: calls are refused at once; half-open: one call is tried
		State     string  `json:"state"`
		Again     float64 `json:"triedAgainSeconds,omitempty"`
		Calls     int64   `json:"calls"`
		Failures  int64   `json:"failures"`
		Tokens    int64   `json:"tokens"` // of prompts and answers
		CostCents float64 `json:"costCents"`
		Fallbacks int64   `json:"fallbacks"` // answers that the built-in model gave in its place
	}
	edgeStatus struct {
		Streams  int            `json:"openStreams"`
		InFlight int            `json:"requestsInFlight"`
		Queue    float64        `json:"queueSeconds"` // until who comes now is expected to be answered
		Refused  map[string]int `json:"refused,omitempty"`
	}
)

const opStatus = "status"

func (o *operations) status(context.Context, struct{}, Progress) (serverStatus, error) {
	if o.app == nil {
		return serverStatus{}, errNoServer
	}
	return o.app.status()
}

func (a *app) status() (serverStatus, error) {
	v := buildVersion()
	st, js := a.system.Stats(), a.journal.Stats()
	s := serverStatus{
		Version: v.Version, Commit: v.Commit, PID: os.Getpid(), Data: a.config.Data, URL: a.config.PublicURL,
		Started: a.upkeep.began.UTC(), Uptime: time.Since(a.upkeep.began).Seconds(),
		Start: startStatus{Ready: time.Duration(a.upkeep.ready.Load()).Seconds(), Pending: a.upkeep.pending,
			TakenUp: time.Duration(a.upkeep.woken.Load()).Seconds()},
		Jobs:    jobStatus{Working: st.RunningJobs, Queued: st.WaitingJobs, Awake: st.LiveJobs},
		Threads: threadStatus{Answering: st.RunningTurns, Queued: st.WaitingTurns, Awake: st.LiveThreads},
		Actors: actorStatus{Quarantined: []quarantined{}, Failures: st.Failures, Restarts: st.Restarts,
			DeadLetters: st.DeadLetters,
			Unhandled:   st.Unhandled, Recoveries: st.Recoveries, RecoverySeconds: st.Recovering.Seconds()},
		Journal: journalStatus{Position: js.Position, Bytes: js.FileBytes, Pending: js.Pending, Damaged: js.Damaged,
			Unavailable: js.Down, Commits: js.Commits},
		Edge:    edgeStatus{Refused: map[string]int{}},
		Indexes: a.stores.library.Open(),
		LeftOut: a.stores.source.LeftOut(),
		Models:  []modelStatus{},
	}
	for _, e := range a.models.Endpoints() {
		for _, u := range a.models.Uses() {
			if slices.Contains(e.Models, u.Model) {
				s.Models = append(s.Models, modelStatus{Name: u.Model, Endpoint: e.Address, State: e.State,
					Again: e.After.Seconds(), Calls: u.Calls,
					Failures: u.Failures, Tokens: u.Tokens.Prompt + u.Tokens.Completion, CostCents: float64(u.Cost) / 1e4,
					Fallbacks: u.Fallbacks})
			}
		}
	}
	for _, p := range st.Quarantined {
		s.Actors.Quarantined = append(s.Actors.Quarantined, quarantined{p.Kind, p.ID, p.Err.Error(), p.At})
	}
	s.Actors.Parked = s.Actors.Quarantined
	for i, p := range a.listings {
		if pos := p.Position(); i == 0 || pos < s.Journal.Listed {
			s.Journal.Listed = pos
		}
	}
	families, err := a.upkeep.metrics.Gather()
	if err != nil {
		return s, fmt.Errorf("gather the metrics: %w", err)
	}
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
				s.Journal.CommitP50, s.Journal.CommitP99 = quantile(0.5, h.GetSampleCount(), buckets), quantile(0.99,
					h.GetSampleCount(), buckets)
			case "docent_journal_append_seconds":
				s.Journal.AppendP99 = quantile(0.99, h.GetSampleCount(), buckets)
			case "docent_streams_open":
				s.Edge.Streams += int(m.GetGauge().GetValue())
			case "docent_http_requests_in_flight":
				s.Edge.InFlight = int(m.GetGauge().GetValue())
			case "docent_queue_seconds":
				s.Edge.Queue = m.GetGauge().GetValue()
			case "docent_refused_total":
				for _, l := range m.GetLabel() {
					s.Edge.Refused[l.GetValue()] += int(m.GetCounter().GetValue())
				}
			}
		}
	}
	return s, nil
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
	seconds := func(v float64) string {
		return time.Duration(v * float64(time.Second)).Round(10 * time.Microsecond).String()
	}
	line("docent", "%s, process %d, up %s", s.Version, s.PID,
		time.Duration(s.Uptime*float64(time.Second)).Round(time.Second))
	line("address", "%s", s.URL)
	line("data", "%s", s.Data)
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
	line("journal", "%s, position %d, %d bytes, %d damaged streams", state, s.Journal.Position, s.Journal.Bytes,
		s.Journal.Damaged)
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
	line("quarantined", "%d", len(s.Actors.Quarantined))
	for _, p := range s.Actors.Quarantined {
		line("", "%s %s: %s", p.Kind, p.ID, p.Reason)
	}
	return t.Flush()
}
