package commands

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"docent/api"
	"docent/cmd/docent/cli"
	"docent/cmd/docent/operator"
	"docent/internal/health"
)

func newReaderSecretCommand(prog cli.Program) *cobra.Command {
	o := &cli.Operator{Prog: prog}
	cmd := &cobra.Command{Use: "reader-secret", Short: "Create, list and retire the secrets that sign reader tokens",
		Long: "A reader token identifies a reader of private documentation and the reader's groups. Your own server signs it with a secret\n" +
			"of the project. To rotate, create a second secret, sign with it, and retire the first once its last tokens have expired."}
	cli.OperatorFlags(cmd, o)
	create := &cobra.Command{
		Use: "create PROJECT", Short: "Create a secret; it is shown once", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			p := operator.ReaderSecretParams{Project: api.ProjectID(args[0])}
			return cli.Show(o, cmd, operator.OpReaderSecretCreate, p, func(w io.Writer, made operator.ReaderSecretMade) error {
				fmt.Fprintf(cmd.ErrOrStderr(), "The secret %s is shown once; keep it on your server:\n", made.ID)
				_, err := fmt.Fprintln(w, made.Secret)
				return err
			})
		},
	}
	list := &cobra.Command{
		Use: "list PROJECT", Short: "List the secrets in use, without their text", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			p := operator.ReaderSecretParams{Project: api.ProjectID(args[0])}
			return cli.ShowRows(o, cmd, operator.OpReaderSecretList, p, "ID\tCREATED", func(s operator.ReaderSecretLine) string {
				return s.ID + "\t" + health.LocalTime(s.CreatedAt)
			})
		},
	}
	retire := &cobra.Command{
		Use: "retire PROJECT ID", Short: "Retire a secret; tokens that it has signed are refused from then on", Args: cobra.ExactArgs(2),
		SuggestFor: []string{"remove", "delete", "revoke"},
		RunE: func(cmd *cobra.Command, args []string) error {
			p := operator.ReaderSecretParams{Project: api.ProjectID(args[0]), ID: args[1]}
			return o.Do(cmd, operator.OpReaderSecretRetire, p, map[string]string{"retired": args[1]},
				"reader secret %s is retired", args[1])
		},
	}
	cmd.AddCommand(create, list, retire)
	return cmd
}
