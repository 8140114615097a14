// Package evalcmd is the command eval: judged queries and judged answers.
package evalcmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"docent/api"
	"docent/api/client"
	"docent/bench/retrieval"
	"docent/cmd/docent/cli"
	"docent/cmd/docent/operator"
	"docent/internal/backoff"
)

// New makes the command.
func New(prog cli.Program) *cobra.Command {
	o, c := &cli.Operator{Prog: prog}, new(client.Client)
	var file, project, domain, corpus string
	var misses bool
	cmd := &cobra.Command{
		Use: "eval [PROJECT]", Short: "Measure search and answers with your own questions, and compare",
		Long: "Run every query in a file and judge the search results; `docent eval answers` judges answers. The file has one JSON object\n" +
			"per line:\n\n" +
			`  {"query": "rotate a key", "relevant": ["guides/keys.md"], "sections": ["guides/keys.md#rotate"], "kind": "question"}` + "\n\n" +
			"With PROJECT, the index in the data directory is searched, even while a server is running; with --domain and --key, a\n" +
			"server over HTTP.",
		Example: "  docent eval docs --queries judged.jsonl --misses\n" +
			"  docent eval --url https://docent.example --domain docs.example.com --key $KEY --queries judged.jsonl",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := cli.Required(cmd, "queries"); err != nil {
				return err
			}
			if project != "" && !cmd.Flags().Changed("domain") {
				domain = "" // of the environment
			}
			if (project == "") == (domain == "") {
				return cli.Usagef("eval needs either a PROJECT or --domain; see 'docent eval --help'")
			}
			queries, err := readJudged(file, cmp.Or(corpus, project), corpus != "")
			if err != nil {
				return err
			}
			if domain != "" {
				outcomes, err := operator.EvaluateTwice(cmd.Context(), queries, RemoteSearch(c, domain))
				if err != nil {
					return err
				}
				return PrintEvaluation(cmd.OutOrStdout(), o.JSON, misses, operator.Summarize(outcomes))
			}
			params := operator.EvaluateParams{Project: api.ProjectID(project), Queries: queries}
			var outcomes []retrieval.Outcome
			if err := o.Run(cmd, operator.OpEvaluate, params, &outcomes); err != nil {
				return err
			}
			return PrintEvaluation(cmd.OutOrStdout(), o.JSON, misses, operator.Summarize(outcomes))
		},
	}
	cli.OperatorFlags(cmd, o)
	cli.ClientFlags(cmd, c)
	flags := cmd.Flags()
	flags.StringVar(&file, "queries", "", "judged queries, one JSON object a line")
	flags.StringVar(&domain, "domain", cli.EnvOr("DOMAIN", ""), "domain of a project of a running server (DOCENT_DOMAIN)")
	flags.StringVar(&corpus, "corpus",
		"", "ask only the queries of this corpus, if the file has several (default: the project's ID, if it is one of them)")
	flags.BoolVar(&misses, "misses", false,
		"list the queries whose page is not among the first five")
	cli.Named(cmd, &project, "project", "a PROJECT", true)
	cmd.AddCommand(newEvalAnswersCommand(o, c), newEvalMakeCommand(o))
	return cmd
}

// readJudged reads the queries of one corpus; of all where the name is none of theirs and was not asked for.
func readJudged(file, corpus string, only bool) ([]retrieval.Query, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("read the judged queries: %w", err)
	}
	defer f.Close()
	all, err := retrieval.Read(f)
	if err != nil {
		return nil, err
	}
	own := slices.DeleteFunc(slices.Clone(all), func(q retrieval.Query) bool { return q.Corpus != "" && q.Corpus != corpus })
	if len(own) == 0 && !only {
		own = all
	}
	if len(own) == 0 {
		return nil, fmt.Errorf("%s has no queries of %q", file, corpus)
	}
	return own, nil
}

// RemoteSearch asks a server's search operation.
func RemoteSearch(c *client.Client, domain string) func(context.Context, retrieval.Query) ([]retrieval.Found, error) {
	return func(ctx context.Context, q retrieval.Query) ([]retrieval.Found, error) {
		for {
			hits, err := c.Search(ctx, domain, client.Search{Query: q.Query, PageSize: 10})
			if errors.Is(err, client.ErrLimited) { // there are many queries for one key
				if err := backoff.Sleep(ctx, time.Second); err != nil {
					return nil, err
				}
				continue
			}
			found := make([]retrieval.Found, len(hits))
			for i, h := range hits {
				found[i] = retrieval.Found{Path: h.Path, Anchor: h.Metadata.Anchor}
			}
			return found, err
		}
	}
}

// PrintEvaluation prints how well a search does.
func PrintEvaluation(w io.Writer, asJSON, misses bool, scores operator.SearchScores) error {
	if asJSON {
		return cli.PrintJSON(w, scores)
	}
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tab, "KIND\tQUERIES\tNDCG@10\tRECALL@5\tMRR@10\tHIT@5\tHIT@1\tSECTION@1\tP50\tP99\t")
	row := func(name string, s retrieval.Score) {
		section := "-"
		if s.Sections > 0 {
			section = fmt.Sprintf("%.3f", s.Section1)
		}
		fmt.Fprintf(tab, "%s\t%d\t%.3f\t%.3f\t%.3f\t%.3f\t%.3f\t%s\t%v\t%v\t\n", name, s.Queries, s.NDCG, s.Recall, s.MRR,
			s.HitAt5, s.HitAt1, section,
			s.P50.Round(time.Microsecond), s.P99.Round(time.Microsecond))
	}
	for _, kind := range slices.Sorted(maps.Keys(scores.Kinds)) {
		row(kind, scores.Kinds[kind])
	}
	row("all", scores.All)
	if len(scores.Kinds) > 1 {
		row("mean of kinds", scores.Mean)
	}
	if err := tab.Flush(); err != nil || !misses {
		return err
	}
	for _, o := range scores.Outcomes {
		if o.Rank == 0 || o.Rank > 5 {
			fmt.Fprintf(w, "rank %d: %s\n  wants %v\n  finds %v\n", o.Rank, o.Judged.Query, o.Judged.Relevant, paths(o.Found))
		}
	}
	return nil
}

func paths(found []retrieval.Found) []string {
	out := make([]string, 0, 5)
	for _, f := range found[:min(5, len(found))] {
		out = append(out, f.Path)
	}
	return out
}
