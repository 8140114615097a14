package benchcmd

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"docent/cmd/docent/cli"
	"docent/cmd/docent/operator"
)

// NewSeed is for measurements of pages and listings. It is hidden: what it writes does not go away again.
func NewSeed(prog cli.Program) *cobra.Command {
	o := &cli.Operator{Prog: prog}
	p := operator.SeedParams{}
	cmd := &cobra.Command{
		Use: "seed", Hidden: true, Short: "Fill a data directory with made-up conversations and jobs", Args: cobra.NoArgs,
		Long: "Fill the data directory of a stopped server with half a year of made-up conversations and jobs, to measure\n" +
			"and test with. They do not go away again.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := cli.Required(cmd, "project"); err != nil {
				return err
			}
			return cli.Show(o, cmd, operator.OpSeed, p, func(w io.Writer, r operator.Seeded) error {
				_, err := fmt.Fprintf(w, "%d conversations with %d questions and %d jobs in %.1f s\n", r.Conversations, r.Questions,
					r.Jobs, r.Seconds)
				return err
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar((*string)(&p.Project), "project", "", "project")
	flags.IntVar(&p.Conversations, "conversations", 100_000, "conversations")
	flags.IntVar(&p.Jobs, "jobs", 10_000, "jobs")
	flags.Uint64Var(&p.Seed, "seed", 1, "seed of the random texts, times, and ratings")
	cli.OperatorFlags(cmd, o)
	return cmd
}
