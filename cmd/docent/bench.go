package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"docent/bench"
	"docent/docs"
	"docent/stream"
)

func newBenchCommand() *cobra.Command {
	b := new(streamBench)
	cmd := &cobra.Command{
		Use: "bench", Short: "Measure concurrent assistant streams against a real server", Args: cobra.NoArgs,
		Long: "Measure concurrent assistant streams. Without --url a server of its own is started on loopback with a temporary\n" +
			"data directory, Docent's own documentation (or --source) and a scripted model of the given speed: everything but\n" +
			"the model is the real thing. With --limit a bare net/http server that writes the same bytes at the same times is\n" +
			"measured in the same run, in turn with the other. Client and servers share the machine's processors.",
		RunE: func(cmd *cobra.Command, _ []string) error { return b.run(cmd) },
	}
	flags := cmd.PersistentFlags()
	flags.IntVar(&b.Parts, "parts", 200, "text parts of an answer (scripted model)")
	flags.DurationVar(&b.Interval, "interval", 20*time.Millisecond, "between two parts (scripted model)")
	flags.BoolVar(&b.v1, "v1", false, "use version 1 of the operation in place of version 2")
	flags = cmd.Flags()
	flags.IntVar(&b.Streams, "streams", 1000, "streams, each in a thread of its own")
	flags.DurationVar(&b.Ramp, "ramp", 5*time.Second, "time over which their starts are spread")
	flags.DurationVar(&b.firstDelay, "first-delay", 0, "before the first part (scripted model)")
	flags.StringVar(&b.Question, "question", "What happens when the server is killed?", "question of every stream")
	flags.StringVar(&b.source, "source", "", "documentation for the server that is started")
	flags.BoolVar(&b.limit, "limit", false, "also measure a bare server that writes the same bytes")
	flags.IntVar(&b.rounds, "rounds", 1, "how often to measure")
	flags.StringVar(&b.URL, "url", "", "measure this server in place of one that is started")
	flags.StringVar(&b.Domain, "domain", "", "domain of the project on that server")
	flags.StringVar(&b.Key, "key", "", "assistant key for that server")
	flags.BoolVar(&b.json, "json", false, "print a JSON object for each measurement")

	var listen string
	limit := &cobra.Command{
		Use: "limit", Short: "Serve the practical limit: a bare handler that writes the same bytes at the same times", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			server := &http.Server{Addr: listen, Handler: bench.Limit(b.form(), b.Parts, b.Interval), ReadHeaderTimeout: 10 * time.Second}
			stop := context.AfterFunc(cmd.Context(), func() { server.Close() })
			defer stop()
			if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
				return err
			}
			return nil
		},
	}
	limit.Flags().StringVar(&listen, "listen", "127.0.0.1:8081", "address to listen on, HOST:PORT")
	cmd.AddCommand(limit)
	return cmd
}

// A streamBench is what the command's flags ask for.
type streamBench struct {
	bench.Scenario
	firstDelay time.Duration
	source     string
	rounds     int
	v1, limit  bool
	json       bool
	progress   Progress
}

func (b *streamBench) form() stream.Form {
	if b.v1 {
		return stream.DataStream
	}
	return stream.UIMessages
}

func (b *streamBench) run(cmd *cobra.Command) error {
	b.Form = b.form()
	if b.URL != "" {
		if err := required(cmd, "domain", "key"); err != nil {
			return err
		}
		b.Parts, b.Interval = 0, 0 // another server's model has its own ideas
	} else {
		server, err := startBenchServer(cmd, b.Scenario, b.firstDelay, b.source)
		if server != nil {
			defer server.cleanUp()
		}
		if err != nil {
			return err
		}
		b.URL, b.Domain, b.Key = server.url, demoDomain, server.assistant
	}
	targets := []target{{"docent", b.Scenario}}
	if b.limit {
		bare := &demo{cmd: cmd, out: io.Discard}
		defer bare.cleanUp()
		if err := bare.startLimit(cmd.Context(), b); err != nil {
			return err
		}
		s := b.Scenario
		s.URL = bare.url
		targets = append(targets, target{"limit", s})
	}
	var end func()
	b.progress, end = showProgress(cmd.ErrOrStderr(), newLogger(DefaultConfig(), cmd.ErrOrStderr()))
	defer end()
	lost := 0
	for round := range b.rounds {
		for _, t := range targets {
			result, err := b.measure(cmd, t, round)
			if err != nil {
				return err
			}
			lost += result.Lost
		}
	}
	if lost > 0 {
		return fmt.Errorf("%d streams were lost", lost)
	}
	return nil
}

// A target is one server under measurement.
type target struct {
	name     string
	scenario bench.Scenario
}

func (b *streamBench) measure(cmd *cobra.Command, t target, round int) (bench.Result, error) {
	t.scenario.Progress = func(_, ended int) { b.progress(t.name, ended, t.scenario.Streams) }
	result, err := bench.Streams(cmd.Context(), t.scenario)
	if err != nil {
		return result, err
	}
	if b.json {
		return result, printJSON(cmd.OutOrStdout(), struct {
			Target string `json:"target"`
			Round  int    `json:"round"`
			bench.Result
		}{t.name, round + 1, result})
	}
	return result, printBench(cmd.OutOrStdout(), t, result)
}

// startBenchServer runs a server on a temporary directory whose only project answers with a scripted model.
func startBenchServer(cmd *cobra.Command, s bench.Scenario, firstDelay time.Duration, source string) (*demo, error) {
	ctx := cmd.Context()
	d := &demo{cmd: cmd, out: io.Discard}
	var err error
	if d.dir, err = os.MkdirTemp("", "docent-bench-"); err != nil {
		return nil, err
	}
	if source == "" {
		source = filepath.Join(d.dir, "docs")
		if err := os.CopyFS(source, docs.Files); err != nil {
			return d, fmt.Errorf("copy the documentation: %w", err)
		}
	}
	d.config = filepath.Join(d.dir, "docent.toml")
	config := fmt.Sprintf("log_level = \"warn\"\nmax_streams = %d\nmax_requests = %d\nmax_turns = %d\n[limits]\nkey_month = -1\norg_hour = -1\nip_day = -1\n"+
		"[models.bench]\nprovider = \"scripted\"\nfirst_delay = %q\nrate = %g\nparts = %d\n",
		s.Streams+1000, s.Streams+1000, s.Streams+1000, firstDelay, rate(s.Interval), s.Parts)
	if err := os.WriteFile(d.config, []byte(config), 0o600); err != nil {
		return d, err
	}
	if err := d.start(ctx, "127.0.0.1:0"); err != nil {
		return d, err
	}
	return d, d.makeProject(ctx, source, "--model", "bench")
}

// startLimit runs the bare server as a process of its own.
func (d *demo) startLimit(ctx context.Context, b *streamBench) error {
	var err error
	if d.dir, err = os.MkdirTemp("", "docent-bench-"); err != nil {
		return err
	}
	address, err := freeAddress()
	if err != nil {
		return err
	}
	return d.launch(ctx, address, "bench", "limit", "--listen", address, "--parts", fmt.Sprint(b.Parts), "--interval", b.Interval.String(), fmt.Sprintf("--v1=%t", b.v1))
}

// rate is how many pieces a second an interval makes; 0, as fast as they are taken, where there is none.
func rate(interval time.Duration) float64 {
	if interval <= 0 {
		return 0
	}
	return float64(time.Second) / float64(interval)
}

// makeProject adds the one project and makes its keys.
func (d *demo) makeProject(ctx context.Context, source string, flags ...string) error {
	args := append([]string{"project", "add", "--data", d.data(), "--config", d.config, "--id", demoProject, "--domain", demoDomain,
		"--source", source, "--site-url", "https://" + demoDomain, "--json"}, flags...)
	if err := d.docent(ctx, &d.project, args...); err != nil {
		return err
	}
	for kind, secret := range map[string]*string{"admin": &d.admin, "assistant": &d.assistant} {
		var made keyMade
		if err := d.docent(ctx, &made, "key", "create", "--data", d.data(), "--config", d.config, "--project", demoProject, "--kind", kind, "--json"); err != nil {
			return err
		}
		*secret = made.Key
	}
	return nil
}

func printBench(w io.Writer, t target, r bench.Result) error {
	var b strings.Builder
	s := t.scenario
	fmt.Fprintf(&b, "%s: %d streams (%v) over %v, %d parts each %v apart; %s, %d processors, client on the same machine\n\n",
		t.name, r.Streams, s.Form, s.Ramp, s.Parts, s.Interval, runtime.GOARCH, runtime.NumCPU())
	fmt.Fprintf(&b, "completed %d, refused %d, lost %d; most open at once %d; %.1f s\n", r.Completed, r.Refused, r.Lost, r.MostOpen, r.Elapsed.Seconds())
	fmt.Fprintf(&b, "%-28s %10s %10s %10s %10s\n", "milliseconds", "p50", "p90", "p99", "max")
	for _, row := range []struct {
		name string
		l    bench.Latency
	}{{"to the first event", r.FirstEvent}, {"to the first text", r.FirstText}, {"to the end", r.Whole}, {"part behind its schedule", r.Late}} {
		fmt.Fprintf(&b, "%-28s %10.1f %10.1f %10.1f %10.1f\n", row.name, row.l.P50, row.l.P90, row.l.P99, row.l.Max)
	}
	fmt.Fprintf(&b, "\nserver: %.1f MB resident before, %.1f MB at most, %d KB an open stream; %.2f s of processor time",
		mega(r.Server.ResidentBefore), mega(r.Server.Resident), r.Server.PerStream(r.MostOpen)/1024, r.Server.CPU.Seconds())
	if r.Parts > 0 {
		fmt.Fprintf(&b, ", %.1f µs and %.1f allocations a part", float64(r.Server.CPU.Microseconds())/float64(r.Parts),
			float64(r.Server.Allocations)/float64(r.Parts))
	}
	b.WriteString("\n\n")
	for _, f := range r.Failures {
		fmt.Fprintf(&b, "failure: %s\n", f)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func mega(bytes int64) float64 { return float64(bytes) / (1 << 20) }
