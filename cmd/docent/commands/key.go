package commands

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"docent/api"
	"docent/cmd/docent/cli"
	"docent/cmd/docent/operator"
	"docent/internal/health"
)

func newKeyCommand(prog cli.Program) *cobra.Command {
	o := &cli.Operator{Prog: prog}
	cmd := &cobra.Command{Use: "key", Short: "Create, list, rotate and revoke API keys"}
	cli.OperatorFlags(cmd, o)
	var params operator.KeyParams
	var expires string
	create := &cobra.Command{
		Use: "create", Short: "Create a key; its secret is shown once", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := cli.Required(cmd, "project", "kind"); err != nil {
				return err
			}
			if expires != "" {
				at, err := parseExpiry(expires)
				if err != nil {
					return err
				}
				params.ExpiresAt = &at
			}
			return cli.Show(o, cmd, operator.OpKeyCreate, params, func(w io.Writer, made operator.KeyMade) error {
				fmt.Fprintln(cmd.ErrOrStderr(), "The key is shown once; keep it safe:")
				_, err := fmt.Fprintln(w, made.Key)
				return err
			})
		},
	}
	flags := create.Flags()
	flags.StringVar((*string)(&params.Project), "project", "", "project that the key is for")
	flags.StringVar((*string)(&params.Kind), "kind", "",
		"admin (agent and management), assistant (may be used in browsers) or server (asks as an assistant key, for your own servers:\n"+
			"secret, refused from browsers, and trusted to say who the reader is)")
	flags.StringVar(&params.Name, "name", "", "name to recognize it by")
	flags.StringVar(&expires, "expires", "",
		"when it expires: a time such as 2027-01-31T00:00:00Z, or a duration such as 720h")
	flags.StringArrayVar(&params.AllowIP, "allow-ip", nil, "address or CIDR range that may use it (repeatable)")
	flags.StringArrayVar(&params.Scopes, "scope", nil,
		"read or write, for admin keys (repeatable; default: both)")
	flags.StringArrayVar(&params.Origins, "origin", nil, "browser origin that may use it, for assistant keys (repeatable)")
	flags.StringArrayVar(&params.Groups, "group", nil,
		"group that readers of a server key are in (repeatable; default: named by each request)")

	var project string
	list := &cobra.Command{
		Use: "list", Short: "List the keys, without their secrets", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			const head = "ID\tKIND\tPROJECT\tNAME\tSECRET\tSTATE\tLAST USED"
			return cli.ShowRows(o, cmd, operator.OpKeyList, operator.ProjectParams{ID: api.ProjectID(project)}, head, func(k api.Key) string {
				last := "never"
				if k.LastUsed != nil {
					last = health.LocalTime(*k.LastUsed)
				}
				return fmt.Sprintf("%s\t%s\t%s\t%s\t%s\t%s\t%s", k.ID, k.Kind, k.Project, k.Name, k.Hint, api.KeyState(k, time.Now()),
					last)
			})
		},
	}
	list.Flags().StringVar(&project, "project", "", "only keys of this project")
	cmd.AddCommand(create, list, &cobra.Command{
		Use: "revoke ID", Short: "Revoke a key; the next request with it is refused", Args: cobra.ExactArgs(1),
		SuggestFor: []string{"remove", "delete"},
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.Do(cmd, operator.OpKeyRevoke, operator.KeyParams{ID: api.KeyID(args[0])},
				map[string]string{"revoked": args[0]}, "key %s is revoked", args[0])
		},
	})
	cmd.AddCommand(newKeyRotateCommand(o))
	return cmd
}

func newKeyRotateCommand(o *cli.Operator) *cobra.Command {
	var p operator.RotateParams
	cmd := &cobra.Command{
		Use: "rotate ID", Short: "Replace a key; the old one keeps working for a while", Args: cobra.ExactArgs(1),
		Long: "Create a key with the same permissions and lifetime as an existing one, which expires after --overlap, so that clients have\n" +
			"time to switch. No restart is needed.",
		RunE: func(cmd *cobra.Command, args []string) error {
			if p.Overlap < 0 {
				return cli.Usagef("--overlap %s is negative", p.Overlap)
			}
			p.ID = api.KeyID(args[0])
			return cli.Show(o, cmd, operator.OpKeyRotate, p, func(w io.Writer, made operator.KeyMade) error {
				fmt.Fprintf(cmd.ErrOrStderr(), "The new key %s is shown once; keep it safe. %s ends %s:\n", made.ID, args[0],
					health.LocalTime(*made.ReplacedEndsAt))
				_, err := fmt.Fprintln(w, made.Key)
				return err
			})
		},
	}
	cmd.Flags().DurationVar(&p.Overlap, "overlap", 24*time.Hour, "how long the old key keeps working")
	return cmd
}

func parseExpiry(text string) (time.Time, error) {
	if d, err := time.ParseDuration(text); err == nil {
		return time.Now().Add(d), nil
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if at, err := time.Parse(layout, text); err == nil {
			return at, nil
		}
	}
	return time.Time{}, cli.Usagef("--expires %q is neither a time such as 2027-01-31T00:00:00Z nor a duration such as 720h",
		text)
}
