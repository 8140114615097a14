package benchcmd

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"docent/actors/job"
	"docent/actors/thread"
	"docent/api"
	"docent/api/client"
	"docent/bench"
	"docent/bench/lab"
	"docent/cmd/docent/cli"
	"docent/cmd/docent/config"
	"docent/cmd/docent/stores"
	"docent/internal/background"
	"docent/persistence/catalog"
	"docent/persistence/datadir"
	"docent/persistence/journal"
)

func newBenchHistoryCommand(b *benchRun) *cobra.Command {
	var turns, each int
	var threads, jobs []int
	var rate, jobRate float64
	var lasts time.Duration
	var prompts []string
	cmd := &cobra.Command{Use: "history",
		Short: "What a turn costs in a long thread, and a question and a job where many are stored", Args: cobra.NoArgs,
		Long: "Measure whether cost grows with history: the turns of a thread up to --turns, questions in new threads with so many\n" +
			"threads stored, jobs with so many jobs stored. What is stored is a copy of one thread and of one job under other names,\n" +
			"written into the journal, with all of it in the catalogue. `processor time, last to first` is the figure to look at.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if b.url != "" {
				return cli.Usagef("history fills the data directory of a server; it does so only with one that it has started, not with --url")
			}
			if !cmd.Flags().Changed("model") {
				b.model = "builtin"
			}
			return b.run(cmd, func() ([]lab.Load, error) {
				questions, err := b.readQuestions()
				if err != nil {
					return nil, err
				}
				var loads []lab.Load
				if turns > 1 {
					loads = append(loads, lab.Load{Name: fmt.Sprintf("%d turns in a thread", turns), Streams: each,
						Run: func(ctx context.Context, t bench.Target, progress bench.Progress) ([]bench.Result, error) {
							return one(bench.History{Target: t, Threads: each, Turns: turns, Form: b.form(), Questions: questions,
								Scripted: b.scripted(),
								Parts:    b.parts, Progress: progress}.Run(ctx))
						}})
				}
				c := &copier{cmd: cmd, server: func() *lab.Process { return b.lab.Server }}
				// stored is a load that is measured with so many copies in the data directory.
				stored := func(sizes []int, what string, fill func(ctx context.Context, n int) error,
					measure func(ctx context.Context, t bench.Target, progress bench.Progress) (bench.Result, error)) {
					first := make(map[int]float64) // by round, of the smallest
					for _, n := range sizes {
						name := fmt.Sprintf("%d %s stored", n, what)
						round := 0
						loads = append(loads, lab.Load{Name: name, Streams: int(rate*lasts.Seconds()) + 1,
							Before: func(ctx context.Context) error { return fill(ctx, n) },
							Run: func(ctx context.Context, t bench.Target, progress bench.Progress) ([]bench.Result, error) {
								r, err := measure(ctx, t, progress)
								round++
								if first[round] == 0 {
									first[round] = r.CPUPerRequest()
								}
								r.Scenario, r.Load, r.Size = "history", name, float64(n)
								if first[round] > 0 {
									r.Figures = map[string]float64{"history.growth": r.CPUPerRequest() / first[round]}
								}
								return one(r, err)
							}})
					}
				}
				stored(threads, "threads", c.storeThreads,
					func(ctx context.Context, t bench.Target, progress bench.Progress) (bench.Result, error) {
						return bench.Streams{Target: t, Rate: rate, For: lasts, Form: b.form(), Questions: questions,
							Scripted: b.scripted(), Parts: b.parts,
							Delay: b.firstDelay, Interval: b.interval, Progress: progress}.Run(ctx)
					})
				stored(jobs, "jobs", c.storeJobs,
					func(ctx context.Context, t bench.Target, progress bench.Progress) (bench.Result, error) {
						return bench.Jobs{Target: t, Rate: jobRate, For: lasts, Prompts: prompts, Progress: progress}.Run(ctx)
					})
				return loads, nil
			})
		}}
	cmd.Flags().IntVar(&turns, "turns", 1000, "turns in each thread (0: leave this out)")
	cmd.Flags().IntVar(&each, "each", 4, "threads that have them")
	cmd.Flags().IntSliceVar(&threads, "threads", []int{1000, 10_000, 100_000}, "threads that are stored, fewest first")
	cmd.Flags().IntSliceVar(&jobs, "jobs", []int{100, 1000, 10_000}, "jobs that are stored, fewest first")
	cmd.Flags().Float64Var(&rate, "rate", 200, "questions a second while threads are stored")
	cmd.Flags().Float64Var(&jobRate, "job-rate", 10, "jobs a second while jobs are stored")
	cmd.Flags().DurationVar(&lasts, "for", 10*time.Second, "how long they come")
	addPrompts(cmd, &prompts)
	return cmd
}

// A copier fills the data directory of a server that does not run with copies of what was made there.
type copier struct {
	cmd           *cobra.Command
	server        func() *lab.Process
	aThread, aJob *copied
}

// A copied is one stream that others are made from.
type copied struct {
	rec    journal.Recovered
	old    []string // ids in it, each of which becomes a new one of its kind
	stored int      // copies so far
}

// storeThreads fills the data directory up to n threads.
func (c *copier) storeThreads(ctx context.Context, n int) error {
	if c.aThread == nil {
		var id string
		stream, rec, err := c.sample(ctx, func(ctx context.Context) (string, error) {
			reader := client.Client{Base: c.server().URL, Key: c.server().Readers}
			a, err := reader.Ask(ctx, client.Question{Domain: lab.Domain, Caller: "bench", Text: bench.Questions[0]}, io.Discard)
			id = a.ThreadID
			return thread.Stream(api.ThreadID(a.ThreadID)), err
		})
		if err != nil {
			return fmt.Errorf("make a thread to copy: %w", err)
		}
		history, ok, err := thread.History(api.ThreadID(id), rec)
		if err != nil || !ok || rec.Snapshot == nil {
			return fmt.Errorf("%s is not at rest: %w", stream, err)
		}
		c.aThread = &copied{rec: rec}
		for _, e := range history.Turns {
			c.aThread.old = append(c.aThread.old, string(e.Turn))
		}
	}
	return c.fill(ctx, c.aThread, n, api.TurnPrefix, func(now time.Time) (string, string) {
		return thread.Stream(api.ThreadID(api.NewID(api.ThreadPrefix, now))), ""
	})
}

// storeJobs fills the data directory up to n jobs.
func (c *copier) storeJobs(ctx context.Context, n int) error {
	if c.aJob == nil {
		var j api.Job
		stream, rec, err := c.sample(ctx, func(ctx context.Context) (string, error) {
			admin := client.Client{Base: c.server().URL, Key: c.server().Admin}
			made, err := admin.CreateJob(ctx, lab.ProjectID, client.CreateJob{Prompt: "fix broken internal links", DryRun: true})
			if err == nil {
				j, err = admin.WaitForJob(ctx, lab.ProjectID, string(made.ID))
			}
			return job.Stream(j.ID), err
		})
		if err != nil {
			return fmt.Errorf("make a job to copy: %w", err)
		}
		if rec.Snapshot == nil {
			return fmt.Errorf("%s is not at rest", stream)
		}
		c.aJob = &copied{rec: rec, old: []string{string(j.ID)}}
	}
	return c.fill(ctx, c.aJob, n, api.JobPrefix, func(now time.Time) (string, string) {
		id := api.NewID(api.JobPrefix, now)
		return job.Stream(api.JobID(id)), id
	})
}

// sample starts the server, has something made there, and stops it, so that what was made is at rest.
func (c *copier) sample(ctx context.Context, make func(context.Context) (stream string, err error)) (stream string,
	rec journal.Recovered, err error) {
	if err := c.server().Serve(ctx, "127.0.0.1:0"); err != nil {
		return "", rec, err
	}
	stream, err = make(ctx)
	c.server().Stop()
	if err != nil {
		return stream, rec, err
	}
	err = c.offline(func(_ *stores.Stores, j *journal.Journal) error {
		rec, err = j.Load(stream)
		return err
	})
	return stream, rec, err
}

// offline opens the data directory while no server runs on it.
func (c *copier) offline(do func(*stores.Stores, *journal.Journal) error) (err error) {
	log := slog.New(slog.DiscardHandler)
	dir, err := datadir.Open(c.server().Data(), "bench", 10*time.Second)
	if err != nil {
		return err
	}
	defer dir.Close()
	stores, err := stores.Open(context.Background(), dir, config.Default(), log)
	if err != nil {
		return err
	}
	defer stores.Close()
	j, err := journal.Open(dir.File(datadir.Journal), journal.Options{Log: log, UnsafeNoSync: true})
	if err != nil {
		return err
	}
	err = do(stores, j)
	return errors.Join(err, j.Close())
}

// fill writes copies of a stream under other names, until there are n of them, and has the catalogue follow.
func (c *copier) fill(ctx context.Context, of *copied, n int, prefix string,
	name func(time.Time) (stream, id string)) error {
	missing := n - of.stored
	if missing <= 0 {
		return nil
	}
	now := time.Now()
	err := c.offline(func(_ *stores.Stores, j *journal.Journal) error {
		var left atomic.Int64
		left.Store(int64(missing))
		group, ctx := background.WithContext(ctx)
		for range 256 {
			group.Go(func() error {
				for left.Add(-1) >= 0 {
					stream, id := name(now)
					state := of.rec.Snapshot
					for _, old := range of.old {
						state = bytes.ReplaceAll(state, []byte(old), []byte(cmp.Or(id, api.NewID(prefix, now))))
					}
					if _, err := j.Append(ctx,
						journal.Append{Stream: stream, Events: []journal.Event{{Type: "bench.slept.1"}}}); err != nil {
						return err
					}
					j.Snapshot(stream, 1, state)
				}
				return nil
			})
		}
		return group.Wait()
	})
	if err != nil {
		return fmt.Errorf("store %d copies: %w", missing, err)
	}
	of.stored = n
	return c.offline(func(stores *stores.Stores, j *journal.Journal) error { return catchUp(ctx, stores, j) })
}

// catchUp has the listings follow the journal to its end.
func catchUp(ctx context.Context, st *stores.Stores, j *journal.Journal) error {
	return stores.WithListings(st.Catalog, j, func(list []*catalog.Projector) error {
		var err error
		for _, p := range list {
			err = errors.Join(err, p.Wait(ctx, j.Position()))
		}
		return err
	})
}
