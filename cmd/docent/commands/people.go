package commands

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"docent/api"
	"docent/cmd/docent/cli"
	"docent/cmd/docent/operator"
	"docent/internal/health"
)

func newConsoleCommand(prog cli.Program) *cobra.Command {
	o := &cli.Operator{Prog: prog}
	cmd := &cobra.Command{
		Use: "console", Short: "Print a one-time link that signs you in to the console", Args: cobra.NoArgs,
		Long: "Print a one-time link, valid for an hour, that signs you in to the console as the operator of the server: to set up the first\n" +
			"project, to create your account, or to get back in when no owner can.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return cli.Show(o, cmd, operator.OpConsoleLink, struct{}{}, func(w io.Writer, made operator.LinkMade) error {
				return printLink(cmd, w, made)
			})
		},
	}
	cli.OperatorFlags(cmd, o)
	return cmd
}

// printLink prints a link, and beside it what a person should know.
func printLink(cmd *cobra.Command, w io.Writer, made operator.LinkMade) error {
	fmt.Fprintf(cmd.ErrOrStderr(), "This link works once, until %s:\n", health.LocalTime(made.ExpiresAt))
	if !made.Serving {
		fmt.Fprintln(cmd.ErrOrStderr(), "No server runs on this data directory: start it with `docent serve`, then open the link.")
	}
	_, err := fmt.Fprintln(w, made.URL)
	return err
}

func newPersonCommand(prog cli.Program) *cobra.Command {
	o := &cli.Operator{Prog: prog}
	cmd := &cobra.Command{Use: "person", Short: "Add, list, and remove people who can use the console"}
	cli.OperatorFlags(cmd, o)
	var name string
	var role, org string
	var operates bool
	cmd.PersistentFlags().StringVar(&org, "org", string(api.DefaultOrg), "organization")
	params := func(email string) operator.PersonParams {
		return operator.PersonParams{Email: api.CleanEmail(email), Name: name, Org: api.OrgID(org), Role: api.Role(role), Operator: operates}
	}
	// did is a command for one person that has nothing to show.
	did := func(use, short, op string, change func(*operator.PersonParams), args int, format string) *cobra.Command {
		return &cobra.Command{Use: use, Short: short, Args: cobra.ExactArgs(args),
			RunE: func(cmd *cobra.Command, args []string) error {
				p := params(args[0])
				if len(args) > 1 {
					p.Role = api.Role(args[1])
				}
				change(&p)
				return o.Do(cmd, op, p, map[string]string{"done": op, "email": p.Email}, format, p.Email, p.Role)
			}}
	}
	none := func(*operator.PersonParams) {}
	add := &cobra.Command{
		Use: "add EMAIL", Short: "Add a person; prints a one-time link to choose a password", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return cli.Show(o, cmd, operator.OpPersonAdd, params(args[0]), func(w io.Writer, made operator.PersonMade) error {
				return printLink(cmd, w, made.Link)
			})
		},
	}
	add.Flags().StringVar(&name, "name", "", "display name (default: the email address up to the @)")
	add.Flags().StringVar(&role, "role", string(api.RoleViewer), "viewer, editor or owner")
	add.Flags().BoolVar(&operates, "operator", false, "also make the person an operator: see docent person operator")
	cmd.AddCommand(add,
		&cobra.Command{Use: "list", Short: "List everyone who can sign in", Args: cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error {
				const head = "EMAIL\tNAME\tROLES\tSIGNS IN BY\tSTATE\tLAST SEEN"
				return cli.ShowRows(o, cmd, operator.OpPersonList, struct{}{}, head, personLine)
			}},
		&cobra.Command{Use: "link EMAIL", Short: "Print a one-time link that lets a person choose a password",
			Args: cobra.ExactArgs(1),
			RunE: func(cmd *cobra.Command, args []string) error {
				return cli.Show(o, cmd, operator.OpPersonLink, params(args[0]), func(w io.Writer, made operator.LinkMade) error {
					return printLink(cmd, w, made)
				})
			}},
		did("role EMAIL ROLE", "Make a person viewer, editor or owner", operator.OpPersonRole, none, 2, "%s is now %s"),
		newPersonOperatorCommand(o),
		did("remove EMAIL", "Take a person out of the organization; all sessions end", operator.OpPersonRemove, none, 1,
			"%s is removed%.0s"),
		did("disable EMAIL", "Keep a person from signing in; all sessions end", operator.OpPersonEnable,
			func(p *operator.PersonParams) { p.Disable = true }, 1, "%s cannot sign in any more%.0s"),
		did("enable EMAIL", "Let a disabled person sign in again", operator.OpPersonEnable, none, 1, "%s can sign in again%.0s"),
	)
	return cmd
}

func newPersonOperatorCommand(o *cli.Operator) *cobra.Command {
	var off bool
	cmd := &cobra.Command{Use: "operator EMAIL", Short: "Make a person an operator of the server", Args: cobra.ExactArgs(1),
		Long: "Make a person an operator of the server, who can see the System page, add projects, and do what an owner can in every\n" +
			"organization. No role includes this.",
		RunE: func(cmd *cobra.Command, args []string) error {
			p := operator.PersonParams{Email: api.CleanEmail(args[0]), Operator: !off}
			format := "%s is now an operator of the server"
			if off {
				format = "%s is not an operator of the server any more"
			}
			return o.Do(cmd, operator.OpPersonMake, p, map[string]string{"done": operator.OpPersonMake, "email": p.Email}, format, p.Email)
		}}
	cmd.Flags().BoolVar(&off, "off", false, "remove the role")
	return cmd
}

// personLine is a person in the table.
func personLine(p api.Person) string {
	var roles, by []string
	for _, org := range slices.Sorted(maps.Keys(p.Roles)) {
		roles = append(roles, string(p.Roles[org])+" of "+string(org))
	}
	if p.Operator {
		roles = append(roles, "operator")
	}
	if p.HasPassword {
		by = append(by, "password")
	}
	if p.Issuer != "" {
		by = append(by, p.Issuer)
	}
	state, last := "active", "never"
	if p.DisabledAt != nil {
		state = "disabled"
	}
	if p.SeenAt != nil {
		last = health.LocalTime(*p.SeenAt)
	}
	return fmt.Sprintf("%s\t%s\t%s\t%s\t%s\t%s", p.Email, p.Name, strings.Join(roles, ", "),
		cmp.Or(strings.Join(by, ", "), "nothing yet"), state, last)
}

func newAuditCommand(prog cli.Program) *cobra.Command {
	o := &cli.Operator{Prog: prog}
	p := operator.AuditParams{Org: api.DefaultOrg, Limit: 100}
	cmd := &cobra.Command{Use: "audit", Short: "Show who did what, newest first", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return cli.ShowRows(o, cmd, operator.OpAuditList, p, "TIME\tWHO\tACTION\tOBJECT\tDETAIL\tADDRESS", func(e api.AuditEntry) string {
				return fmt.Sprintf("%s\t%s\t%s\t%s\t%s\t%s", health.LocalTime(e.At), e.Who, e.Action, e.Object, e.Detail, e.Client)
			})
		}}
	cli.OperatorFlags(cmd, o)
	cmd.Flags().StringVar((*string)(&p.Org), "org", string(p.Org), "organization")
	cmd.Flags().IntVar(&p.Limit, "limit", p.Limit, "how many entries")
	return cmd
}
