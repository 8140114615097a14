// Package benchcmd is the command bench: load on a server, and the page of its results.
package benchcmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"docent/bench"
	"docent/bench/lab"
	"docent/bench/report"
	"docent/cmd/docent/build"
	"docent/cmd/docent/cli"
	"docent/cmd/docent/config"
)

// New makes the command.
func New(prog cli.Program) *cobra.Command {
	b := new(benchRun)
	s := new(streamsLoad)
	cmd := &cobra.Command{
		Use: "bench", Short: "Put a server under load, and measure latency and cost", Args: cobra.NoArgs,
		Long: "Measure a server under load. Without --url, a server is started on loopback with a temporary data directory, Docent's own\n" +
			"documentation (or --source), and a scripted model of the given speed: everything but the model is real. With --limit, a bare\n" +
			"net/http server that writes the same bytes at the same times is measured in the same run, in alternation. Client and servers\n" +
			"then share the machine's processors. Each measurement gets a fresh server process. `docent bench` alone is\n" +
			"`docent bench streams`.\n\n" +
			"An objective (--slo) is a list of conditions, such as 'ttfe.p99<200ms,lost=0': the exit status is 1 if one does not\n" +
			"hold. Figures: " + report.GoalFigures() + ".",
		RunE: func(cmd *cobra.Command, _ []string) error { return b.run(cmd, s.loads(b)) },
	}
	b.flags(cmd.PersistentFlags())
	s.flags(cmd.Flags())

	streams := &cobra.Command{Use: "streams", Short: "Concurrent assistant streams", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return b.run(cmd, s.loads(b)) }}
	s.flags(streams.Flags())
	cmd.AddCommand(streams, newBenchSearchCommand(b), newBenchJobsCommand(b), newBenchRecoverCommand(b),
		newBenchMixedCommand(b), newBenchOverloadCommand(b), newBenchLimitCommand(b), newBenchReportCommand(b), newFiguresCommand(),
		NewSeed(prog))
	return cmd
}

func newBenchLimitCommand(b *benchRun) *cobra.Command {
	var listen string
	cmd := &cobra.Command{
		Use: "limit", Short: "Serve the practical limit: a bare handler that writes the same bytes at the same times",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return serveUntil(cmd.Context(), listen, bench.Limit(b.script()))
		},
	}
	cmd.Flags().StringVar(&listen, "listen", "127.0.0.1:8081", "address to listen on, HOST:PORT")
	return cmd
}

// serveUntil serves until ctx ends.
func serveUntil(ctx context.Context, listen string, handler http.Handler) error {
	server := &http.Server{Addr: listen, Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	stop := context.AfterFunc(ctx, func() { server.Close() })
	defer stop()
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// A benchRun is what the flags that all scenarios share ask for.
type benchRun struct {
	url, domain, key, project, adminKey string
	source                              string
	model                               string
	parts                               int
	interval, firstDelay, pace          time.Duration
	limit                               bool
	rounds                              int
	procs                               int
	questions                           string
	slo                                 string
	json                                bool
	out                                 string
	commit                              string
	name, about                         string

	lab *lab.Lab // while it runs
}

func (b *benchRun) flags(flags *pflag.FlagSet) {
	flags.StringVar(&b.url, "url", "", "measure this server instead of starting one")
	flags.StringVar(&b.domain, "domain", "", "domain of the project on that server")
	flags.StringVar(&b.key, "key", "", "assistant key for that server")
	flags.StringVar(&b.project, "project", "", "project on that server (jobs)")
	flags.StringVar(&b.adminKey, "admin-key", "", "admin key for that server (jobs)")
	flags.StringVar(&b.source, "source", "", "documentation for the server that is started")
	flags.StringVar(&b.model, "model", lab.Scripted, "model of the server that is started: scripted or builtin")
	flags.IntVar(&b.parts, "parts", 200, "text parts of an answer (scripted model)")
	flags.DurationVar(&b.interval, "interval", 20*time.Millisecond, "time between two parts (scripted model)")
	flags.DurationVar(&b.firstDelay, "first-delay", 0, "time before the first part (scripted model)")
	flags.DurationVar(&b.pace, "pace", config.Default().StreamPace.Duration,
		"least time between two writes to one reader (server that is started: stream_pace)")
	flags.BoolVar(&b.limit, "limit", false, "also measure a bare server that writes the same bytes at the same times")
	flags.IntVar(&b.rounds, "rounds", 1, "how often to measure; reports show medians")
	flags.IntVar(&b.procs, "procs",
		0, "processors that a server that is started may use; the bench then keeps to the others (0: both use all)")
	flags.StringVar(&b.questions, "questions", "", "file with a question on each line")
	flags.StringVar(&b.slo, "slo", "", "objective that must hold, such as 'ttfe.p99<200ms,lost=0'")
	flags.BoolVar(&b.json, "json", false, "print the report as one JSON object instead of tables")
	flags.StringVar(&b.out, "out", "", "also write the report to this path, with .json and .html appended")
	flags.StringVar(&b.name, "name", "", "name of this measurement in the report, for a page with several")
	flags.StringVar(&b.about, "about", "", "what this measurement shows, in a sentence")
	flags.StringVar(&b.commit, "commit", "", "version to name in the report, if the build does not know its own")
}

func (b *benchRun) script() bench.Script {
	return bench.Script{Delay: b.firstDelay, Interval: b.interval, Parts: b.parts, Pace: b.pace}
}

// scripted says whether the answers come from a script that the bench knows.
func (b *benchRun) scripted() bool { return b.url == "" && b.model == lab.Scripted }

// one is the only result of a measurement.
func one(r bench.Result, err error) ([]bench.Result, error) { return []bench.Result{r}, err }

// A streamsLoad is what the flags of the streams scenario ask for.
type streamsLoad struct {
	streams         []int
	rates           []float64
	ramp, lasts     time.Duration
	closed, poisson bool
	turns           int
	marginal        int
	stored          []int
}

func (s *streamsLoad) flags(flags *pflag.FlagSet) {
	flags.IntSliceVar(&s.streams, "streams", []int{1000},
		"streams, each by a caller of its own; several numbers are measured one after another")
	flags.Float64SliceVar(&s.rates, "rate", nil, "instead of --streams: new streams a second, for the duration of --for")
	flags.DurationVar(&s.ramp, "ramp", 5*time.Second, "time over which the starts of --streams are spread")
	flags.DurationVar(&s.lasts, "for", 10*time.Second, "how long --rate and --closed run")
	flags.BoolVar(&s.closed, "closed", false, "each caller asks again as soon as it has its answer")
	flags.BoolVar(&s.poisson, "poisson", false, "start streams of --rate at random (Poisson) intervals instead of even ones")
	flags.IntVar(&s.marginal, "marginal", 0,
		"measure the load a second time with answers of so many parts, to tell what a turn costs from what each further part does (scripted model)")
	flags.IntVar(&s.turns, "turns", 1, "questions that each caller asks, one after another in one thread")
	flags.IntSliceVar(&s.stored, "stored", []int{0},
		"made-up conversations that the server holds before, in rising order; with several, growth is what a question costs with the last to what it costs with the first")
}

func (s *streamsLoad) loads(b *benchRun) func() ([]lab.Load, error) {
	return func() ([]lab.Load, error) {
		questions, err := b.readQuestions()
		if err != nil {
			return nil, err
		}
		base := bench.Streams{Ramp: s.ramp, For: s.lasts, Closed: s.closed, Poisson: s.poisson, Turns: s.turns,
			Questions: questions, Scripted: b.scripted(), Parts: b.parts, Delay: b.firstDelay, Interval: b.interval}
		if s.marginal != 0 && (!b.scripted() || s.marginal < 1 || s.marginal >= b.parts || s.turns > 1 || s.closed) {
			return nil, cli.Usagef("--marginal needs the scripted model, one turn a caller, and fewer parts than --parts")
		}
		var all []bench.Streams
		if len(s.rates) > 0 {
			if s.closed {
				return nil, cli.Usagef("--rate is an open loop and --closed is not")
			}
			for _, rate := range s.rates {
				l := base
				l.Rate = rate
				all = append(all, l)
			}
		} else {
			for _, n := range s.streams {
				l := base
				l.Number = n
				all = append(all, l)
			}
		}
		if !slices.IsSorted(s.stored) || len(s.stored) == 0 || s.stored[len(s.stored)-1] > 0 && (b.url != "" || len(all) > 1 || b.rounds > 1) {
			return nil, cli.Usagef("--stored rises, and needs a server that is started here, one load, and one round")
		}
		return s.each(b, all), nil
	}
}

// each makes the loads of streams, with each number of conversations stored.
func (s *streamsLoad) each(b *benchRun, all []bench.Streams) (loads []lab.Load) {
	first := 0.0
	for _, stored := range s.stored {
		for _, l := range all {
			label := l.Load() + b.answers()
			if len(s.stored) > 1 {
				label += fmt.Sprintf(", %d conversations stored", stored)
			}
			open := l.Number
			if l.Rate > 0 {
				answer := l.Delay + time.Duration(l.Parts)*l.Interval
				open = int(l.Rate*min(l.For, answer+time.Minute).Seconds()) + 1
			}
			loads = append(loads, lab.Load{Name: label, Streams: open, Limit: b.scripted() && l.Turns <= 1,
				Short: s.marginal, Stored: stored, Settled: len(s.stored) > 1,
				Run: func(ctx context.Context, t bench.Target, progress bench.Progress) ([]bench.Result, error) {
					l := l
					l.Target, l.Progress, l.Parts = t, progress, b.lab.Script.Parts
					r, err := l.Run(ctx)
					r.Load = label
					if len(s.stored) > 1 && r.CPUPerRequest() > 0 {
						first = cmp.Or(first, r.CPUPerRequest())
						r.Figures = map[string]float64{"growth": r.CPUPerRequest() / first}
					}
					return one(r, err)
				}})
		}
	}
	return loads
}

// answers describes the answers of a load, so that loads with others are not taken for the same in a report.
func (b *benchRun) answers() string {
	switch {
	case b.url != "":
		return ""
	case b.model != lab.Scripted:
		return ", built-in model"
	}
	text := fmt.Sprintf(", %d parts %v apart", b.parts, b.interval)
	if b.pace != config.Default().StreamPace.Duration {
		text += fmt.Sprintf(", flushed every %v", b.pace)
	}
	return text
}

func (b *benchRun) readQuestions() ([]string, error) {
	if b.questions == "" {
		return bench.Questions, nil
	}
	text, err := os.ReadFile(b.questions)
	if err != nil {
		return nil, fmt.Errorf("read the questions: %w", err)
	}
	var questions []string
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" {
			questions = append(questions, line)
		}
	}
	if len(questions) == 0 {
		return nil, fmt.Errorf("%s holds no question", b.questions)
	}
	return questions, nil
}

// check refuses flags that have no meaning together.
func (b *benchRun) check(cmd *cobra.Command) error {
	if b.url == "" {
		if b.model != lab.Scripted && b.model != "builtin" {
			return cli.Usagef("--model is scripted or builtin, not %q", b.model)
		}
		return nil
	}
	if err := cli.Required(cmd, "domain", "key"); err != nil {
		return err
	}
	switch {
	case b.limit:
		return cli.Usagef("--limit compares with a server that is started here; it has no meaning with --url")
	case b.procs > 0:
		return cli.Usagef("--procs is for a server that is started here; it has no meaning with --url")
	}
	return nil
}

// options are what the lab is asked for.
func (b *benchRun) options() (lab.Options, error) {
	o := lab.Options{Source: b.source, Model: b.model, Script: b.script(),
		Limit: b.limit, Streams: config.Default().MaxStreams}
	if b.url != "" {
		o.There = &bench.Target{URL: b.url, Domain: b.domain, Key: b.key, Project: b.project, Admin: b.adminKey}
		return o, nil
	}
	var err error
	if o.Questions, err = b.readQuestions(); err == nil && b.procs > 0 {
		o.Partition, err = lab.PartitionProcessors(b.procs)
	}
	return o, err
}

// run measures every load, round by round and in turn with the limit server, and reports.
func (b *benchRun) run(cmd *cobra.Command, plan func() ([]lab.Load, error)) error {
	loads, err := plan()
	if err != nil {
		return err
	}
	var goals []report.Goal
	if b.slo != "" {
		if goals, err = report.ParseGoals(b.slo); err != nil {
			return cli.Usagef("%w", err)
		}
	}
	if err := b.check(cmd); err != nil {
		return err
	}
	made := report.Report{Name: b.name, About: b.about, Made: time.Now().UTC().Truncate(time.Second),
		Commit: cmp.Or(b.commit, benchCommit(build.Get())), Machine: report.ThisMachine(), Command: benchCommand(cmd)}
	made.Machine.Shared, made.Machine.Used = b.url == "", b.procs
	if self, err := os.Executable(); err == nil && b.url == "" {
		if info, err := os.Stat(self); err == nil {
			made.Binary = info.Size()
		}
	}
	options, err := b.options()
	if err != nil {
		return err
	}
	progress, end := cli.ShowProgress(cmd.ErrOrStderr(), config.NewLogger(config.Default(), cmd.ErrOrStderr()))
	options.Progress = progress
	b.lab, err = lab.Open(cmd.Context(), options, loads)
	defer b.lab.Close()
	if err == nil {
		made.Results, err = b.lab.Measure(cmd.Context(), loads, b.rounds)
	}
	end()
	if err != nil {
		return err
	}
	made.Goals = made.Judge(goals)
	return b.report(cmd, made)
}

// benchCommit is the version, and where the build knows no better the commit.
func benchCommit(v build.Info) string {
	if v.Version == "(devel)" && v.Commit != "" {
		return v.Commit
	}
	return v.Version
}

// report shows a report, and as a page its parts, where it has several.
func (b *benchRun) report(cmd *cobra.Command, made report.Report, parts ...report.Report) error {
	var err error
	if b.json {
		err = made.WriteJSON(cmd.OutOrStdout())
	} else {
		err = made.WriteTable(cmd.OutOrStdout())
	}
	if err == nil && b.out != "" {
		if len(parts) == 0 {
			parts = []report.Report{made}
		}
		err = writeReport(b.out, made, parts)
	}
	if err != nil {
		return err
	}
	lost, missed := 0, 0
	for _, r := range made.Results {
		lost += r.Lost
	}
	for _, v := range made.Goals {
		if !v.Held {
			missed++
		}
	}
	switch {
	case missed > 0:
		return fmt.Errorf("%d of %d conditions did not hold", missed, len(made.Goals))
	case lost > 0 && b.slo == "":
		return fmt.Errorf("%d requests were lost", lost)
	}
	return nil
}

func writeReport(path string, made report.Report, parts []report.Report) error {
	path = strings.TrimSuffix(strings.TrimSuffix(path, ".json"), ".html")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	write := func(path string, content func(io.Writer) error) error {
		file, err := os.Create(path)
		if err != nil {
			return err
		}
		return errors.Join(content(file), file.Close())
	}
	return errors.Join(write(path+".json", made.WriteJSON), write(path+".html", func(w io.Writer) error {
		return report.WriteHTML(w, parts...)
	}))
}

// newBenchReportCommand shows a stored report again, or several as one.
func newBenchReportCommand(b *benchRun) *cobra.Command {
	var noSeries bool
	var before string
	cmd := &cobra.Command{
		Use:   "report FILE.json…",
		Short: "Show reports that were written with --out, several as one; with --out and --slo too",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var all report.Report
			var parts []report.Report
			var moved []string
			for i, name := range args {
				one, err := readReport(name)
				if err != nil {
					return err
				}
				if before != "" {
					was, err := readReport(filepath.Join(before, filepath.Base(name)))
					if err != nil && !errors.Is(err, fs.ErrNotExist) {
						return err
					}
					moved = append(moved, one.Moved(was)...)
				}
				parts = append(parts, one)
				if i == 0 {
					all = one
					all.Goals = slices.Clone(one.Goals)
					continue
				}
				all.Name, all.About = "", ""
				all.Command += "; " + one.Command
				all.Results = append(all.Results, one.Results...)
				all.Goals = append(all.Goals, one.Goals...)
			}
			if b.slo != "" {
				goals, err := report.ParseGoals(b.slo)
				if err != nil {
					return cli.Usagef("%w", err)
				}
				all.Goals = all.Judge(goals)
				for i := range parts {
					parts[i].Goals = parts[i].Judge(goals)
				}
			}
			if noSeries {
				for i := range all.Results {
					all.Results[i].Series = nil
				}
			}
			err := b.report(cmd, all, parts...)
			for _, line := range moved {
				fmt.Fprintln(cmd.OutOrStdout(), line)
			}
			return err
		},
	}
	cmd.Flags().StringVar(&before, "before", "", "folder with earlier reports of the same names, to say which figures moved")
	cmd.Flags().BoolVar(&noSeries, "no-series", false, "omit the time series from --json")
	return cmd
}

func readReport(name string) (report.Report, error) {
	file, err := os.Open(name)
	if err != nil {
		return report.Report{}, err
	}
	defer file.Close()
	one, err := report.ReadReport(file)
	if err != nil {
		err = fmt.Errorf("%s: %w", name, err)
	}
	return one, err
}

// benchCommand is the command line that a report shows: with the flags that were given, but for keys and paths.
func benchCommand(cmd *cobra.Command) string {
	words := []string{cmd.CommandPath()}
	cmd.Flags().Visit(func(f *pflag.Flag) {
		switch f.Name {
		case "key", "admin-key", "url", "domain", "project", "out", "commit", "name", "about":
		case "source", "questions":
			words = append(words, "--"+f.Name, filepath.Base(f.Value.String()))
		default:
			value := f.Value.String()
			if list, ok := f.Value.(pflag.SliceValue); ok {
				numbers := list.GetSlice()
				for i, n := range numbers {
					if number, err := strconv.ParseFloat(n, 64); err == nil {
						numbers[i] = strconv.FormatFloat(number, 'g', -1, 64)
					}
				}
				value = strings.Join(numbers, ",")
			}
			if f.Value.Type() == "bool" {
				words = append(words, "--"+f.Name)
				if value != "true" {
					words[len(words)-1] += "=" + value
				}
				return
			}
			if strings.ContainsAny(value, " <>*?$'\"&;|") {
				value = strconv.Quote(value)
			}
			words = append(words, "--"+f.Name, value)
		}
	})
	return strings.Join(words, " ")
}
