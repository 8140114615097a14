package commands

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"docent/cmd/docent/cli"
	"docent/cmd/docent/operator"
	"docent/search/sources"
)

func newProjectTokenCommand(o *cli.Operator) *cobra.Command {
	var p operator.SecretParams
	cmd := &cobra.Command{
		Use: "token NAME", Short: "Store the code host's token of a project, which is read from standard input",
		Long: "Store the token that a project's repository is reached with in the data directory, in a file that only its owner can read.\n" +
			"It is read from standard input, so that it is in no list of processes and in no shell's history. The code host is asked whether it\n" +
			"takes it. It is not shown again, and it is not in backups. With --app-id it is the private key of a GitHub App.",
		Example: `  docent project token docs <<< "$DOCS_TOKEN"`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !p.Remove {
				text, err := cli.ReadSecretText(cmd)
				if err != nil {
					return err
				}
				p.Secret = text
			}
			var set sources.Project
			if err := o.Run(cmd, operator.OpProjectToken, p, &set); err != nil {
				return err
			}
			if p.Remove {
				return o.Did(cmd, map[string]string{"removed": string(p.ID)}, "the stored token of %s is removed", p.ID)
			}
			return o.Did(cmd, map[string]string{"stored": string(p.ID)}, "the token of %s is stored, and its source was read with it", p.ID)
		},
	}
	cmd.Flags().BoolVar(&p.Remove, "remove", false, "remove the stored token")
	cmd.Flags().Int64Var(&p.AppID, "app-id", 0, "id of a GitHub App whose private key it is")
	cli.Named(cmd, (*string)(&p.ID), "id", "the project's NAME", false)
	return cmd
}

func newProjectWebhookCommand(o *cli.Operator) *cobra.Command {
	var p operator.SecretParams
	cmd := &cobra.Command{
		Use: "webhook NAME", Short: "Make a new secret for the code host's webhook of a project; it is shown once",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return cli.Show(o, cmd, operator.OpProjectHook, p, func(w io.Writer, made operator.WebhookMade) error {
				if p.Remove {
					_, err := fmt.Fprintf(w, "project %s takes no pushes any more\n", p.ID)
					return err
				}
				fmt.Fprintf(cmd.ErrOrStderr(), "The secret is shown once; the webhook's address is the server's, and behind it %s:\n", made.Address)
				_, err := fmt.Fprintln(w, made.Secret)
				return err
			})
		},
	}
	cmd.Flags().BoolVar(&p.Remove, "remove", false, "remove the secret: pushes are refused then")
	cli.Named(cmd, (*string)(&p.ID), "id", "the project's NAME", false)
	return cmd
}
