package commands

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"docent/cmd/docent/cli"
	"docent/cmd/docent/operator"
	"docent/internal/health"
	"docent/model/remote"
	"docent/persistence/cluster"
)

// printCluster prints the state of the nodes, a line at a time.
func printCluster(line func(name, format string, args ...any), c *health.Cluster) {
	if c == nil {
		return
	}
	for _, n := range c.Nodes {
		at, self := "", ""
		if n.Address != "" { // one that others cannot reach has none
			at = ", at " + n.Address
		}
		if n.Self {
			self = ", this one"
		}
		line("node "+n.Name, "%s, %d of %d shards, version %s%s%s", n.State, n.Shards, cluster.Shards, n.Version, at, self)
		if n.Reason != "" {
			line("", "%s", n.Reason)
		}
	}
	if c.Without > 0 {
		line("shards", "%d are run by no node", c.Without)
	}
	if !c.Acts {
		line("database", "out of reach since %.1f s: this node acts on nothing that it runs", c.LastBeat)
	}
}

func newStatusCommand(prog cli.Program) *cobra.Command {
	o := &cli.Operator{Prog: prog, Here: operator.NoServerHere}
	cmd := &cobra.Command{
		Use: "status", Short: "Show the state of the running server", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return cli.Show(o, cmd, operator.OpStatus, nil, printStatus)
		},
	}
	cli.OperatorFlags(cmd, o)
	return cmd
}

// printStatus prints the state of a server for people.
func printStatus(w io.Writer, s health.Status) error {
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
	oldest := ""
	if s.Jobs.Oldest > 0 {
		oldest = fmt.Sprintf("; the oldest instruction in hand was given %v ago", time.Duration(s.Jobs.Oldest*float64(time.Second)).Round(time.Second))
	}
	line("jobs", "%d working, %d queued, %d awake%s", s.Jobs.Working, s.Jobs.Queued, s.Jobs.Awake, oldest)
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
		if m.Unpriced {
			state += ", no price known: agent_cost and answer_cost can't hold"
		}
		if m.Manners != "" {
			state += ", asked " + m.Manners
		}
		if m.Fallbacks > 0 {
			state += fmt.Sprintf(", the built-in model answered in its place: %d", m.Fallbacks)
		}
		line(name, "%s at %s: %d calls, %d failed, %d tokens, $%.2f%s", m.Name, m.Endpoint, m.Calls, m.Failures, m.Tokens,
			m.CostCents/100, state)
	}
	for i, m := range s.Meaning {
		name := "meaning"
		if i > 0 {
			name = ""
		}
		line(name, "%s: %s", m.Index, health.MeaningLine(m))
	}
	for i, q := range s.Questions {
		name := "questions"
		if i > 0 {
			name = ""
		}
		line(name, "%s: %s", q.Index, health.QuestionsLine(q))
	}
	line("quarantined", "%d", len(s.Actors.Quarantined))
	for _, p := range s.Actors.Quarantined {
		line("", "%s %s: %s", p.Kind, p.ID, p.Reason)
	}
	return t.Flush()
}

// backupLine says when the data directory was last copied.
func backupLine(b health.Backup) string {
	text := "none was made yet: `docent backup DIR` makes one"
	if b.Made != nil {
		text = fmt.Sprintf("%s, to %s", health.LocalTime(b.Made.Began), b.Made.Dir)
	}
	if b.Failed != nil {
		text += fmt.Sprintf("; one FAILED at %s: %s", health.LocalTime(b.Failed.Began), b.Failed.Error)
	}
	return text
}
