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

func newProjectChatCommand(o *cli.Operator) *cobra.Command {
	var p operator.ChatParams
	cmd := &cobra.Command{
		Use: "chat NAME", Short: "Have the assistant of a project answer in Slack or Discord, with the app's tokens from standard input",
		Long: "Have the assistant of a project answer in a workspace of Slack or on servers of Discord. Everybody who may write there reads what the\n" +
			"project's documentation says to everybody, also if the project is private otherwise.\n\n" +
			"The app's tokens are read from standard input, one a line, checked, and stored as the code host's token is: for slack the app-level\n" +
			"token (xapp-…) and the bot token (xoxb-…), for discord the bot token.",
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
