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
		Use: "token NAME", Short: "Store a project's code host token, read from standard input",
		Long: "Store the token for a project's repository in the data directory, in a file that only its owner can read. It is read from\n" +
			"standard input, so that it appears in no process listing and no shell history, and checked with the code host. It is never\n" +
			"shown again and is not included in backups. With --app-id, it is the private key of a GitHub App.",
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
		Use: "webhook NAME", Short: "Create a new secret for a project's code host webhook; it is shown once",
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

func newProjectChatCommand(o *cli.Operator) *cobra.Command {
	var p operator.ChatParams
	cmd := &cobra.Command{
		Use: "chat NAME", Short: "Let a project's assistant answer in Slack or Discord, with the app's tokens from standard input",
		Long: "Let a project's assistant answer in a Slack workspace or on Discord servers. Anyone who can write there can read what the\n" +
			"project's documentation says to everyone, even if the project is otherwise private.\n\n" +
			"The app's tokens are read from standard input, one per line, checked, and stored like the code host's token: for slack, the\n" +
			"app-level token (xapp-…) and the bot token (xoxb-…); for discord, the bot token.",
		Example: `  printf '%s\n' "$SLACK_APP_TOKEN" "$SLACK_BOT_TOKEN" | docent project chat docs --app slack`,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if !p.Remove {
				if p.Secret, err = cli.ReadSecretText(cmd); err != nil {
					return err
				}
			}
			return cli.Show(o, cmd, operator.OpProjectChat, p, func(w io.Writer, made operator.ChatMade) error {
				said := fmt.Sprintf("%s answers in %s: %s\n", p.ID, made.App, made.Name)
				switch {
				case p.Remove:
					said = fmt.Sprintf("%s does not answer in %s any more\n", p.ID, made.App)
				case made.Address != "":
					said += fmt.Sprintf("Set the app's Interactions Endpoint URL to the server's public address, and behind it %s\n", made.Address)
				}
				_, err := io.WriteString(w, said)
				return err
			})
		},
	}
	cmd.Flags().StringVar((*string)(&p.App), "app", "", "slack or discord")
	cmd.Flags().BoolVar(&p.Remove, "remove", false, "remove the app and its tokens")
	cli.Named(cmd, (*string)(&p.ID), "id", "the project's NAME", false)
	return cmd
}
