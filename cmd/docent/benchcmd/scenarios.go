package benchcmd

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"docent/bench"
	"docent/bench/lab"
	"docent/cmd/docent/cli"
)

func newBenchSearchCommand(b *benchRun) *cobra.Command {
	var rates []float64
	var lasts time.Duration
	cmd := &cobra.Command{Use: "search", Short: "Searches at a given rate", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return b.run(cmd, func() ([]lab.Load, error) {
				queries, err := b.readQuestions()
				var loads []lab.Load
				for _, rate := range rates {
					loads = append(loads, lab.Load{Name: fmt.Sprintf("%g a second", rate), Run: b.searches(rate, lasts, queries)})
				}
				return loads, err
			})
		}}
	cmd.Flags().Float64SliceVar(&rates, "rate", []float64{100},
		"searches a second; several are measured one after another")
	cmd.Flags().DurationVar(&lasts, "for", 10*time.Second, "how long")
	return cmd
}

func (b *benchRun) searches(rate float64, lasts time.Duration, queries []string) func(context.Context, bench.Target,
	bench.Progress) ([]bench.Result, error) {
	return func(ctx context.Context, t bench.Target, progress bench.Progress) ([]bench.Result, error) {
		return one(bench.Searches{Target: t, Rate: rate, For: lasts, Queries: queries, Progress: progress}.Run(ctx))
	}
}

func newBenchJobsCommand(b *benchRun) *cobra.Command {
	var rates []float64
	var lasts time.Duration
	var prompts []string
	cmd := &cobra.Command{Use: "jobs", Short: "Agent jobs at a given rate, each until its pull request is open",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if b.url != "" {
				if err := cli.Required(cmd, "project", "admin-key"); err != nil {
					return err
				}
			}
			return b.run(cmd, func() ([]lab.Load, error) {
				var loads []lab.Load
				for _, rate := range rates {
					loads = append(loads, lab.Load{Name: fmt.Sprintf("%g a second", rate), Run: b.jobs(rate, lasts, prompts)})
				}
				return loads, nil
			})
		}}
	cmd.Flags().Float64SliceVar(&rates, "rate", []float64{2}, "jobs a second; several are measured one after another")
	cmd.Flags().DurationVar(&lasts, "for", 10*time.Second, "how long")
	addPrompts(cmd, &prompts)
	return cmd
}

const (
	onePrompt    = `append "One more line, {id}." to quickstart.mdx`
	aboutPrompts = "what a job is told to do, something that leads to a pull request; {id} is a word of each job's own, " +
		"since equal changes share a pull request; may be given several times"
)

// addPrompts adds the flag for what jobs are told: by default something that changes Docent's own documentation.
func addPrompts(cmd *cobra.Command, prompts *[]string) {
	cmd.Flags().StringArrayVar(prompts, "prompt", []string{onePrompt}, aboutPrompts)
}

func (b *benchRun) jobs(rate float64, lasts time.Duration, prompts []string) func(context.Context, bench.Target,
	bench.Progress) ([]bench.Result, error) {
	return func(ctx context.Context, t bench.Target, progress bench.Progress) ([]bench.Result, error) {
		return one(bench.Jobs{Target: t, Rate: rate, For: lasts, Prompts: prompts, Progress: progress}.Run(ctx))
	}
}

func newBenchRecoverCommand(b *benchRun) *cobra.Command {
	var streams []int
	var ramp, after time.Duration
	cmd := &cobra.Command{Use: "recover",
		Short: "Kill the server in the middle of its streams, and see whether every answer is whole afterwards",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if b.url != "" {
				return cli.Usagef("recover kills the server; it does so only with one that it has started, not with --url")
			}
			return b.run(cmd, func() ([]lab.Load, error) {
				questions, err := b.readQuestions()
				var loads []lab.Load
				for _, n := range streams {
					loads = append(loads, lab.Load{Name: fmt.Sprintf("%d streams", n), Streams: n,
						Run: func(ctx context.Context, t bench.Target, progress bench.Progress) ([]bench.Result, error) {
							return one(bench.Recover{Target: t, Number: n, Ramp: ramp, After: after, Questions: questions, Parts: b.parts,
								Restart: b.lab.Server.Restart, Progress: progress}.Run(ctx))
						}})
				}
				return loads, err
			})
		}}
	cmd.Flags().IntSliceVar(&streams, "streams", []int{200}, "streams; several numbers are measured one after another")
	cmd.Flags().DurationVar(&ramp, "ramp", time.Second, "time over which their starts are spread")
	cmd.Flags().DurationVar(&after, "kill-after", 2*time.Second,
		"when the server is killed, from the first start; not before a stream was accepted")
	return cmd
}

func newBenchMixedCommand(b *benchRun) *cobra.Command {
	var streams, searches, jobs float64
	var lasts time.Duration
	var prompts []string
	cmd := &cobra.Command{Use: "mixed", Short: "Streams, searches and jobs at the same time", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if b.url != "" {
				if err := cli.Required(cmd, "project", "admin-key"); err != nil {
					return err
				}
			}
			return b.run(cmd, func() ([]lab.Load, error) {
				questions, err := b.readQuestions()
				if err != nil {
					return nil, err
				}
				s := bench.Streams{Rate: streams, For: lasts, Questions: questions, Scripted: b.scripted(),
					Parts: b.parts,
					Delay: b.firstDelay, Interval: b.interval}
				name := fmt.Sprintf("%g streams, %g searches, %g jobs a second", streams, searches, jobs)
				return []lab.Load{{Name: name, Streams: int(streams*lasts.Seconds()) + 1,
					Run: func(ctx context.Context, t bench.Target, progress bench.Progress) ([]bench.Result, error) {
						s.Target, s.Progress = t, progress
						first := func(results []bench.Result, err error) (bench.Result, error) { return results[0], err }
						results, err := bench.Mixed(ctx, s.Run,
							func(ctx context.Context) (bench.Result, error) {
								return first(b.searches(searches, lasts, questions)(ctx, t, nil))
							},
							func(ctx context.Context) (bench.Result, error) {
								return first(b.jobs(jobs, lasts, prompts)(ctx, t, nil))
							})
						for i := range results {
							results[i].Load = name
						}
						return results, err
					}}}, nil
			})
		}}
	cmd.Flags().Float64Var(&streams, "stream-rate", 50, "new streams a second")
	cmd.Flags().Float64Var(&searches, "search-rate", 50, "searches a second")
	cmd.Flags().Float64Var(&jobs, "job-rate", 1, "jobs a second")
	cmd.Flags().DurationVar(&lasts, "for", 10*time.Second, "how long to start new ones")
	addPrompts(cmd, &prompts)
	return cmd
}

func newBenchOverloadCommand(b *benchRun) *cobra.Command {
	s := bench.Overload{}
	cmd := &cobra.Command{Use: "overload",
		Short: "Twice the load that the server carries: what becomes of those it accepts, how fast it refuses the others, and when it is back to normal", Args: cobra.NoArgs,
		Long: "Ask more than the server can carry. First it is found out how many questions a second that is, by callers who ask again as\n" +
			"soon as they have their answer (or --carried says it); then come a low rate, --factor times what it carries, and the low\n" +
			"rate again. With --procs the server that is started gets some of the processors and the bench keeps to the others,\n" +
			"so that it is not the client that is past saturation; `sent` says how late it was itself.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !cmd.Flags().Changed("model") {
				b.model = "builtin"
			}
			if s.Carried <= 0 && b.scripted() && b.interval*time.Duration(b.parts)+b.firstDelay > 100*time.Millisecond {
				return cli.Usagef("with answers that take their time, callers who wait for them do not find out what the server carries: say it with --carried")
			}
			return b.run(cmd, func() ([]lab.Load, error) {
				questions, err := b.readQuestions()
				if err != nil {
					return nil, err
				}
				s := s
				if s.Callers == 0 {
					s.Callers = 24 * cmp.Or(b.procs, runtime.NumCPU())
				}
				s.Questions, s.Scripted, s.Parts = questions, b.scripted(), b.parts
				name := fmt.Sprintf("%g times what it carries", s.Factor) + b.answers()
				return []lab.Load{{Name: name,
					Run: func(ctx context.Context, t bench.Target, progress bench.Progress) ([]bench.Result, error) {
						s := s
						s.Target, s.Progress = t, progress
						r, err := s.Run(ctx)
						r.Load = name
						return one(r, err)
					}}}, nil
			})
		}}
	cmd.Flags().Float64Var(&s.Carried, "carried", 0, "questions a second that the server carries (0: find out)")
	cmd.Flags().IntVar(&s.Callers, "callers", 0, "callers who find it out (0: 24 for each processor)")
	cmd.Flags().DurationVar(&s.Find, "find", 8*time.Second,
		"how long they do; as long as the high rate, since work that lags behind has its share in both")
	cmd.Flags().Float64Var(&s.Factor, "factor", 2, "how much more than that is asked")
	cmd.Flags().DurationVar(&s.Calm, "calm", 5*time.Second, "how long the low rate lasts before")
	cmd.Flags().DurationVar(&s.For, "for", 8*time.Second, "how long the high rate lasts")
	cmd.Flags().DurationVar(&s.After, "after", 4*time.Second, "how long the low rate lasts after")
	return cmd
}
