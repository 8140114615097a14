// Package evalcmd is the command eval: judged queries and judged answers.
package evalcmd

import (
	"bytes"
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

	"github.com/pelletier/go-toml/v2"
	"github.com/spf13/cobra"

	"docent/api"
	"docent/api/client"
	"docent/bench/retrieval"
	"docent/cmd/docent/cli"
	"docent/cmd/docent/operator"
	"docent/internal/backoff"
	"docent/search"
)

// New makes the command.
func New(prog cli.Program) *cobra.Command {
	o, c := &cli.Operator{Prog: prog}, new(client.Client)
	var file, project, domain, corpus, against string
	var misses bool
	cmd := &cobra.Command{
		Use: "eval [PROJECT]", Short: "Measure the search and the answers with your own questions, and compare",
		Long: "`docent eval answers` judges answers. Without it, asks every query of a file and judges what is found. The file has one JSON object a line:\n\n" +
			`  {"query": "rotate a key", "relevant": ["guides/keys.md"], "sections": ["guides/keys.md#rotate"], "kind": "question"}` + "\n\n" +
			"With PROJECT its index in the data directory is asked, also while a server runs on it; with --domain and --key a\n" +
			"server's search operation over HTTP. --against names a TOML file with weights that differ from the standard ones\n" +
			"(--weights prints those), and shows what they would change.",
		Example: "  docent eval docs --queries judged.jsonl --against weights.toml\n" +
			"  docent eval --url https://docent.example --domain docs.example.com --key $KEY --queries judged.jsonl",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if weights, _ := cmd.Flags().GetBool("weights"); weights {
				return toml.NewEncoder(cmd.OutOrStdout()).Encode(search.DefaultTuning)
			}
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
				if against != "" {
					return cli.Usagef("--against compares weights on an index: it needs a PROJECT, not --domain")
				}
				outcomes, err := operator.EvaluateTwice(cmd.Context(), queries, RemoteSearch(c, domain))
				if err != nil {
					return err
				}
				return PrintEvaluation(cmd.OutOrStdout(), o.JSON, misses, operator.Summarize(outcomes), nil)
			}
			params := operator.EvaluateParams{Project: api.ProjectID(project), Queries: queries}
			var first, second operator.SearchScores
			if err := o.Run(cmd, operator.OpEvaluate, params, &first.Outcomes); err != nil {
				return err
			}
			first = operator.Summarize(first.Outcomes)
			if against == "" {
				return PrintEvaluation(cmd.OutOrStdout(), o.JSON, misses, first, nil)
			}
			tuning, err := readTuning(against)
			if err != nil {
				return err
			}
			params.Tuning = &tuning
			if err := o.Run(cmd, operator.OpEvaluate, params, &second.Outcomes); err != nil {
				return err
			}
			second = operator.Summarize(second.Outcomes)
			return PrintEvaluation(cmd.OutOrStdout(), o.JSON, misses, first, &second)
		},
	}
	cli.OperatorFlags(cmd, o)
	cli.ClientFlags(cmd, c)
	flags := cmd.Flags()
	flags.StringVar(&file, "queries", "", "judged queries, one JSON object a line")
	flags.StringVar(&domain, "domain", cli.EnvOr("DOMAIN", ""), "domain of a project of a running server (DOCENT_DOMAIN)")
	flags.StringVar(&corpus, "corpus",
		"", "ask only the queries of this corpus, where the file has several; the project's id where it is one of them")
	flags.StringVar(&against, "against", "", "TOML file with other weights to compare with")
	flags.BoolVar(&misses, "misses", false,
		"list the queries whose page is not among the first five, and those that differ")
	flags.Bool("weights", false, "print the standard weights and end")
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

// readTuning reads weights. Those that the file does not name keep their standard value.
func readTuning(file string) (search.Tuning, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return search.Tuning{}, fmt.Errorf("read the weights: %w", err)
	}
	t := search.DefaultTuning
	d := toml.NewDecoder(bytes.NewReader(text)).DisallowUnknownFields()
	if err := d.Decode(&t); err != nil {
		var unknown *toml.StrictMissingError
		if errors.As(err, &unknown) {
			return t, fmt.Errorf("%s names weights that there are not:\n%s", file, unknown.String())
		}
		return t, fmt.Errorf("read the weights in %s: %w", file, err)
	}
	return t, nil
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

// PrintEvaluation prints how well a search does, and beside it how another one does where there is one.
func PrintEvaluation(w io.Writer, asJSON, misses bool, first operator.SearchScores, second *operator.SearchScores) error {
	if asJSON {
		return cli.PrintJSON(w, struct {
			operator.SearchScores
			Against *operator.SearchScores `json:"against,omitempty"`
		}{first, second})
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
	change := func(a, b retrieval.Score) {
		fmt.Fprintf(tab, "against\t\t%+.3f\t%+.3f\t%+.3f\t%+.3f\t%+.3f\t\t\t\t\n", b.NDCG-a.NDCG, b.Recall-a.Recall,
			b.MRR-a.MRR, b.HitAt5-a.HitAt5, b.HitAt1-a.HitAt1)
	}
	for _, kind := range slices.Sorted(maps.Keys(first.Kinds)) {
		row(kind, first.Kinds[kind])
		if second != nil {
			change(first.Kinds[kind], second.Kinds[kind])
		}
	}
	row("all", first.All)
	if second != nil {
		change(first.All, second.All)
	}
	if len(first.Kinds) > 1 {
		row("mean of kinds", first.Mean)
		if second != nil {
			change(first.Mean, second.Mean)
		}
	}
	if err := tab.Flush(); err != nil {
		return err
	}
	if second != nil {
		better, worse := 0, 0
		for i, o := range first.Outcomes {
			switch d := second.Outcomes[i].NDCG - o.NDCG; {
			case d > 0:
				better++
			case d < 0:
				worse++
			}
		}
		fmt.Fprintf(w, "\nWith the other weights %d queries do better and %d worse.\n", better, worse)
	}
	if !misses {
		return nil
	}
	for i, o := range first.Outcomes {
		switch {
		case second != nil && second.Outcomes[i].Rank != o.Rank:
			fmt.Fprintf(w, "rank %d -> %d: %s\n", o.Rank, second.Outcomes[i].Rank, o.Judged.Query)
		case second == nil && (o.Rank == 0 || o.Rank > 5):
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
