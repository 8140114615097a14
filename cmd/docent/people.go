package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"docent/api"
)

const (
	opConsoleLink  = "console.link"
	opPersonAdd    = "person.add"
	opPersonList   = "person.list"
	opPersonRole   = "person.role"
	opPersonRemove = "person.remove"
	opPersonEnable = "person.enable"
	opPersonLink   = "person.link"
	opAuditList    = "audit.list"
)

// How long one-time links are good: the operator's is opened by who has just asked for it, a person's is sent on.
const (
	operatorLink = time.Hour
	personLink   = 24 * time.Hour
)

type (
	linkMade struct {
		URL       string    `json:"url"`
		ExpiresAt time.Time `json:"expiresAt"`
		Serving   bool      `json:"serving"` // a server runs that it leads to
	}
	personParams struct {
		Email   string    `json:"email"`
		Name    string    `json:"name,omitempty"`
		Org     api.OrgID `json:"organization,omitempty"`
		Role    api.Role  `json:"role,omitempty"`
		Disable bool      `json:"disable,omitempty"`
	}
	personMade struct {
		api.Person
		Link linkMade `json:"link"`
	}
	auditParams struct {
		Org   api.OrgID `json:"organization"`
		Limit int       `json:"limit"`
	}
)

// link makes a one-time link: the operator's, or a person's.
func (o *operations) link(ctx context.Context, person api.PersonID, life time.Duration) (linkMade, error) {
	token, at := rand.Text(), time.Now().Add(life)
	l, err := o.stores.catalog.AddLink(ctx, api.Link{Person: person, ExpiresAt: at}, api.HashSecret(token))
	if err != nil {
		return linkMade{}, err
	}
	c := o.stores.config
	if o.app != nil {
		c = o.app.config
	}
	return linkMade{URL: consoleURL(c) + "/enter/" + token, ExpiresAt: l.ExpiresAt, Serving: o.app != nil}, nil
}

// consoleURL is where the console is, as far as the settings tell.
func consoleURL(c Config) string {
	if c.PublicURL != "" {
		return strings.TrimRight(c.PublicURL, "/")
	}
	host, port, err := net.SplitHostPort(c.Listen)
	if err != nil {
		return "http://" + c.Listen
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "localhost"
	}
	return "http://" + net.JoinHostPort(host, port)
}

func (o *operations) consoleLink(ctx context.Context, _ struct{}, _ Progress) (linkMade, error) {
	return o.link(ctx, "", operatorLink)
}

// personOf finds the person with an e-mail address.
func (o *operations) personOf(ctx context.Context, email string) (api.Person, error) {
	p, _, err := o.stores.catalog.PersonByEmail(ctx, email)
	if err != nil {
		return p, fmt.Errorf("person %q: %w", email, err)
	}
	return p, nil
}

func (o *operations) addPerson(ctx context.Context, p personParams, _ Progress) (personMade, error) {
	name := p.Name
	if name == "" {
		name, _, _ = strings.Cut(p.Email, "@")
	}
	made, err := o.stores.catalog.AddPerson(ctx, api.Person{Email: p.Email, Name: name,
		Roles: map[api.OrgID]api.Role{p.Org: p.Role}}, "")
	if err != nil {
		return personMade{}, err
	}
	link, err := o.link(ctx, made.ID, personLink)
	return personMade{made, link}, err
}

func (o *operations) listPeople(ctx context.Context, _ struct{}, _ Progress) ([]api.Person, error) {
	return o.stores.catalog.People(ctx)
}

func (o *operations) setRole(ctx context.Context, p personParams, _ Progress) (struct{}, error) {
	person, err := o.personOf(ctx, p.Email)
	if err != nil {
		return struct{}{}, err
	}
	return struct{}{}, o.stores.catalog.SetRole(ctx, person.ID, p.Org, p.Role)
}

func (o *operations) removePerson(ctx context.Context, p personParams, _ Progress) (struct{}, error) {
	person, err := o.personOf(ctx, p.Email)
	if err != nil {
		return struct{}{}, err
	}
	return struct{}{}, o.stores.catalog.RemoveMember(ctx, person.ID, p.Org)
}

func (o *operations) enablePerson(ctx context.Context, p personParams, _ Progress) (struct{}, error) {
	person, err := o.personOf(ctx, p.Email)
	if err != nil {
		return struct{}{}, err
	}
	return struct{}{}, o.stores.catalog.DisablePerson(ctx, person.ID, p.Disable)
}

func (o *operations) linkPerson(ctx context.Context, p personParams, _ Progress) (linkMade, error) {
	person, err := o.personOf(ctx, p.Email)
	if err != nil {
		return linkMade{}, err
	}
	return o.link(ctx, person.ID, personLink)
}

func (o *operations) listAudit(ctx context.Context, p auditParams, _ Progress) ([]api.AuditEntry, error) {
	var all []api.AuditEntry
	for len(all) < p.Limit {
		q := api.AuditQuery{Org: p.Org, Limit: min(p.Limit-len(all), 1000)}
		if len(all) > 0 {
			q.After = all[len(all)-1].ID
		}
		page, err := o.stores.catalog.AuditLog(ctx, q)
		if err != nil {
			return nil, err
		}
		all = append(all, page...)
		if len(page) < q.Limit {
			break
		}
	}
	return all, nil
}

// audited are the operations that change something, which the audit log names.
var audited = []string{
	opConsoleLink, opPersonAdd, opPersonRole, opPersonRemove, opPersonEnable, opPersonLink,
	opProjectAdd, opProjectSet, opProjectRemove, opSourceAdd, opSourceSet, opSourceRemove, opKeyCreate, opKeyRevoke, opKeyRotate,
	opAutomationAdd, opAutomationRemove, opAutomationRun, opPullMerge, opPullClose, opThreadDelete, opCatalogAccept,
}

// note writes into the audit log what was done by command. Of the parameters it takes what names something: the others
// may be secrets.
func (o *operations) note(ctx context.Context, name string, params json.RawMessage) {
	if !slices.Contains(audited, name) {
		return
	}
	var p struct {
		ID, Project, Email, Name, Kind, Role string
		Organization                         api.OrgID
	}
	_ = json.Unmarshal(params, &p) // what is not there stays empty
	entry := api.AuditEntry{Org: p.Organization, Project: api.ProjectID(p.Project),
		Action: name, Object: cmp.Or(p.Email, p.ID, p.Name, p.Project), Detail: cmp.Or(p.Role, p.Kind)}
	if strings.HasPrefix(name, "project.") || strings.HasPrefix(name, "source.") {
		entry.Project = api.ProjectID(p.ID)
	}
	o.audit(ctx, entry)
}

// audit writes into the audit log what was done by command.
func (o *operations) audit(ctx context.Context, entry api.AuditEntry) {
	entry.WhoID, entry.Who = "command line", "command line"
	if project, err := o.stores.catalog.Project(ctx, entry.Project); err == nil {
		entry.Org = project.Org
	}
	if err := o.stores.catalog.Audit(context.WithoutCancel(ctx), entry); err != nil {
		log := slog.Default()
		if o.app != nil {
			log = o.app.log
		}
		log.Error("the audit log lacks an entry", "error", err, "action", entry.Action)
	}
}

func newConsoleCommand(prog program) *cobra.Command {
	o := &operator{prog: prog}
	cmd := &cobra.Command{
		Use: "console", Short: "Print a link that lets you into the console once", Args: cobra.NoArgs,
		Long: "Print a link that lets you into the console once, within an hour, as the operator of the server: to set up the first\n" +
			"project, to make yourself an account, or to get in again when no owner can.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return show(o, cmd, opConsoleLink, struct{}{}, func(w io.Writer, made linkMade) error {
				return printLink(cmd, w, made)
			})
		},
	}
	operatorFlags(cmd, o)
	return cmd
}

// printLink prints a link, and beside it what a person should know.
func printLink(cmd *cobra.Command, w io.Writer, made linkMade) error {
	fmt.Fprintf(cmd.ErrOrStderr(), "This link works once, until %s:\n", shownTime(made.ExpiresAt))
	if !made.Serving {
		fmt.Fprintln(cmd.ErrOrStderr(), "No server runs on this data directory: start it with `docent serve`, then open the link.")
	}
	_, err := fmt.Fprintln(w, made.URL)
	return err
}

func newPersonCommand(prog program) *cobra.Command {
	o := &operator{prog: prog}
	cmd := &cobra.Command{Use: "person", Short: "Add, list and remove people who may use the console"}
	operatorFlags(cmd, o)
	var name string
	var role, org string
	cmd.PersistentFlags().StringVar(&org, "org", string(api.DefaultOrg), "organization")
	params := func(email string) personParams {
		return personParams{Email: api.CleanEmail(email), Name: name, Org: api.OrgID(org), Role: api.Role(role)}
	}
	// did is a command for one person that has nothing to show.
	did := func(use, short, op string, change func(*personParams), args int, format string) *cobra.Command {
		return &cobra.Command{Use: use, Short: short, Args: cobra.ExactArgs(args),
			RunE: func(cmd *cobra.Command, args []string) error {
				p := params(args[0])
				if len(args) > 1 {
					p.Role = api.Role(args[1])
				}
				change(&p)
				if err := o.run(cmd, op, p, nil); err != nil {
					return err
				}
				return o.did(cmd, map[string]string{"done": op, "email": p.Email}, format, p.Email, p.Role)
			}}
	}
	none := func(*personParams) {}
	add := &cobra.Command{
		Use: "add EMAIL", Short: "Add a person; prints a link by which the person chooses a password", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return show(o, cmd, opPersonAdd, params(args[0]), func(w io.Writer, made personMade) error {
				return printLink(cmd, w, made.Link)
			})
		},
	}
	add.Flags().StringVar(&name, "name", "", "how others call the person (the address before the @ where it is not given)")
	add.Flags().StringVar(&role, "role", string(api.RoleViewer), "viewer, editor or owner")
	cmd.AddCommand(add,
		&cobra.Command{Use: "list", Short: "List everybody who may sign in", Args: cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error {
				const head = "E-MAIL\tNAME\tROLES\tSIGNS IN BY\tSTATE\tLAST SEEN"
				return showRows(o, cmd, opPersonList, struct{}{}, head, personLine)
			}},
		&cobra.Command{Use: "link EMAIL", Short: "Print a link by which a person gets in once and chooses a password",
			Args: cobra.ExactArgs(1),
			RunE: func(cmd *cobra.Command, args []string) error {
				return show(o, cmd, opPersonLink, params(args[0]), func(w io.Writer, made linkMade) error {
					return printLink(cmd, w, made)
				})
			}},
		did("role EMAIL ROLE", "Make a person viewer, editor or owner", opPersonRole, none, 2, "%s is now %s"),
		did("remove EMAIL", "Take a person out of the organization; all sessions end", opPersonRemove, none, 1,
			"%s is removed%.0s"),
		did("disable EMAIL", "Keep a person from signing in; all sessions end", opPersonEnable,
			func(p *personParams) { p.Disable = true }, 1, "%s cannot sign in any more%.0s"),
		did("enable EMAIL", "Let a disabled person sign in again", opPersonEnable, none, 1, "%s can sign in again%.0s"),
	)
	return cmd
}

// personLine is a person in the table.
func personLine(p api.Person) string {
	var roles, by []string
	for _, org := range slices.Sorted(maps.Keys(p.Roles)) {
		roles = append(roles, string(p.Roles[org])+" of "+string(org))
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
		last = shownTime(*p.SeenAt)
	}
	return fmt.Sprintf("%s\t%s\t%s\t%s\t%s\t%s", p.Email, p.Name, strings.Join(roles, ", "),
		cmp.Or(strings.Join(by, ", "), "nothing yet"), state, last)
}

func newAuditCommand(prog program) *cobra.Command {
	o := &operator{prog: prog}
	p := auditParams{Org: api.DefaultOrg, Limit: 100}
	cmd := &cobra.Command{Use: "audit", Short: "Show who did what, the newest first", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return showRows(o, cmd, opAuditList, p, "TIME\tWHO\tACTION\tOBJECT\tDETAIL\tADDRESS", func(e api.AuditEntry) string {
				return fmt.Sprintf("%s\t%s\t%s\t%s\t%s\t%s", shownTime(e.At), e.Who, e.Action, e.Object, e.Detail, e.Client)
			})
		}}
	operatorFlags(cmd, o)
	cmd.Flags().StringVar((*string)(&p.Org), "org", string(p.Org), "organization")
	cmd.Flags().IntVar(&p.Limit, "limit", p.Limit, "how many entries")
	return cmd
}
