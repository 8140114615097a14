package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"docent/api"
	"docent/datadir"
	"docent/search"
	"docent/site"
)

// An operator runs operations on the data directory that a command's flags name.
type operator struct {
	config string
	json   bool
}

// operatorFlags adds the flags that name a data directory.
func operatorFlags(cmd *cobra.Command, o *operator) {
	flags := cmd.PersistentFlags()
	flags.String("data", DefaultConfig().Data, "data directory (DOCENT_DATA)")
	flags.String("catalog-dsn", "", "catalogue database, where it is not in the data directory (DOCENT_CATALOG_DSN)")
	flags.StringVar(&o.config, "config", os.Getenv(envPrefix+"CONFIG"), "configuration file (TOML)")
	flags.BoolVar(&o.json, "json", false, "print one JSON object (a line each in lists)")
}

// run performs one operation and reads its result, with progress on the command's standard error.
func (o *operator) run(cmd *cobra.Command, name string, params, result any) error {
	c, err := LoadConfig(o.config, os.LookupEnv, cmd.Flags())
	if err != nil {
		return err
	}
	progress, end := showProgress(cmd.ErrOrStderr(), slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil)))
	defer end()
	return flagWords(cmd, operate(cmd.Context(), c, name, params, result, progress))
}

// makesDataDir is the data directory that a command will make; empty where it is there.
func (o *operator) makesDataDir(cmd *cobra.Command) (string, error) {
	c, err := LoadConfig(o.config, os.LookupEnv, cmd.Flags())
	if err != nil {
		return "", err
	}
	if ok, err := datadir.Used(c.Data); ok || err != nil {
		return "", err
	}
	return filepath.Abs(c.Data)
}

// shownTime is a time as tables show it, in the zone of whoever reads it.
func shownTime(t time.Time) string { return t.Local().Format("2006-01-02 15:04:05 MST") }

func newProjectCommand() *cobra.Command {
	o := new(operator)
	cmd := &cobra.Command{Use: "project", Short: "Add, list, check, change and remove documentation sets"}
	operatorFlags(cmd, o)
	var gone string
	remove := &cobra.Command{
		Use: "remove NAME", Short: "Remove a project, its keys and its index; jobs, threads and its repository stay on disk", SuggestFor: []string{"delete", "rm"},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.run(cmd, opProjectRemove, projectParams{ID: api.ProjectID(gone)}, nil); err != nil {
				return err
			}
			return o.did(cmd, map[string]string{"removed": gone}, "project %s is removed, with its keys and its index", gone)
		},
	}
	named(remove, &gone, "id", "the project's NAME", false)
	cmd.AddCommand(newProjectAddCommand(o), newProjectSetCommand(o), newProjectCheckCommand(o), remove,
		&cobra.Command{
			Use: "list", Short: "List the projects", Args: cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error {
				var projects []api.Project
				if err := o.run(cmd, opProjectList, nil, &projects); err != nil {
					return err
				}
				return printRows(cmd.OutOrStdout(), o.json, projects, "ID\tDOMAIN\tHOST\tSOURCE", func(p api.Project) string {
					return fmt.Sprintf("%s\t%s\t%s\t%s", p.ID, p.Domain, p.Host, p.Source)
				})
			},
		})
	return cmd
}

// did says what was done where there is nothing else to show.
func (o *operator) did(cmd *cobra.Command, object any, format string, args ...any) error {
	if o.json {
		return printJSON(cmd.OutOrStdout(), object)
	}
	_, err := fmt.Fprintf(cmd.OutOrStdout(), format+"\n", args...)
	return err
}

// projectFlags adds the flags that describe a project.
func projectFlags(cmd *cobra.Command, p *api.Project) {
	flags := cmd.Flags()
	flags.StringVar(&p.Domain, "domain", "", "name of the project in assistant URLs, for instance docs.example.com")
	flags.StringVar(&p.Name, "title", "", "name shown to people")
	flags.StringVar(&p.Name, "name", "", "as --title, for scripts of earlier versions")
	_ = flags.MarkHidden("name") // it is there
	flags.StringVar(&p.Source, "source", "", "where the documentation is: a folder, a git repository on disk, or a git URL; follows from --host and --repository where they are given")
	flags.StringVar(&p.Branch, "branch", "", "branch of the repository (its default branch where empty)")
	flags.StringVar(&p.DocsDir, "docs-dir", "", "sub-folder that holds the documentation")
	flags.StringVar(&p.SiteURL, "site-url", "", "where readers find the published pages; citations link there; follows from the site's configuration where it says so")
	flags.StringVar((*string)(&p.Site), "site", "", "site generator (sets the URLs of pages): plain, mintlify, docusaurus, vitepress, hugo, mkdocs, starlight or nextjs; recognised by its files where not given")
	flags.StringArrayVar(&p.Include, "include", nil, "only what this pattern matches is a page; as in .gitignore, relative to the documentation folder (repeatable; '' for none)")
	flags.StringArrayVar(&p.Exclude, "exclude", nil, "what this pattern matches is no page; as in .gitignore, where ! brings back what the site leaves out (repeatable; '' for none)")
	flags.StringVar((*string)(&p.Host), "host", string(api.HostBuiltin), "code host: builtin, github, gitlab, gitea or git")
	flags.StringVar(&p.HostURL, "host-url", "", "address of a code host that is not the public one")
	flags.StringVar(&p.Repository, "repository", "", "OWNER/NAME on the code host")
	flags.StringVar(&p.WebhookEnv, "webhook-env", "", "environment variable that holds the secret of the code host's push webhook")
	flags.StringVar(&p.TokenEnv, "token-env", "", "environment variable that holds the code host's token, or NAME where NAME_FILE names a file that does")
	flags.Int64Var(&p.AppID, "app-id", 0, "id of a GitHub App; --token-env then names the variable with the app's private key")
	flags.StringVar(&p.Labels, "labels", "", "labels for the pull requests, separated by commas")
	flags.BoolVar(&p.Direct, "direct", false, "commit to the documentation's branch itself, and open a pull request only where it is protected")
	flags.StringVar(&p.Model, "model", "", "model of this project, a name from the configuration")
	flags.StringVar(&p.Deflection, "deflection", "", "address offered when the documentation does not answer")
	flags.BoolVar(&p.Options.RequireThreadKey, "require-thread-key", false, "continue a thread only with its secret key")
	flags.BoolVar(&p.Options.SearchTool, "search-tool", false, "also show the retrieval as a tool call named search")
	flags.BoolVar(&p.Options.Suggestions, "suggestions", false, "end answers with suggested follow-up questions")
	flags.IntVar(&p.Limits.ProjectHour, "limit-project-hour", 0, "jobs and follow-ups in an hour (0 for the configured default, negative for none)")
	flags.IntVar(&p.Limits.KeyMonth, "limit-key-month", 0, "assistant messages of one key in a month")
	flags.IntVar(&p.Limits.OrgHour, "limit-org-hour", 0, "assistant messages of the organization in an hour")
	flags.IntVar(&p.Limits.IPDay, "limit-ip-day", 0, "assistant messages of one address in a day")
}

func newProjectAddCommand(o *operator) *cobra.Command {
	var p api.Project
	cmd := &cobra.Command{
		Use: "add NAME", Short: "Add a project: read its documentation and index it", SuggestFor: []string{"create", "new"},
		Long: "Add a project: read its documentation and index it. NAME is the project's name in commands and in the URLs of the agent.\n" +
			"Where there is no data directory yet, one is made.",
		Example: "  docent project add docs --domain docs.example.com --source ./my-docs",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if p = p.WithDefaults(); p.Source == "" { // that of a code host follows from its address
				if err := required(cmd, "domain", "source"); err != nil {
					return err
				}
			}
			if err := required(cmd, "domain"); err != nil {
				return err
			}
			p.Source = absoluteSource(p.Source)
			made, err := o.makesDataDir(cmd)
			if err != nil {
				return err
			}
			var added projectAdded
			if err := o.run(cmd, opProjectAdd, p, &added); err != nil {
				return err
			}
			if made != "" {
				fmt.Fprintf(cmd.ErrOrStderr(), "made the data directory %s\n", made)
			}
			return printProject(cmd, o.json, added)
		},
	}
	projectFlags(cmd, &p)
	named(cmd, (*string)(&p.ID), "id", "the project's NAME", false)
	return cmd
}

func newProjectSetCommand(o *operator) *cobra.Command {
	var p api.Project
	cmd := &cobra.Command{
		Use: "set NAME", Short: "Change settings of a project; flags that are not given keep their value", SuggestFor: []string{"update", "change", "edit"},
		Example: "  docent project set docs --site-url https://docs.example.com",
		RunE: func(cmd *cobra.Command, _ []string) error {
			var projects []api.Project
			if err := o.run(cmd, opProjectList, nil, &projects); err != nil {
				return err
			}
			for _, old := range projects {
				if old.ID != p.ID {
					continue
				}
				mergeFlags(cmd, &old, p)
				if cmd.Flags().Changed("source") {
					old.Source = absoluteSource(old.Source)
				}
				var set projectAdded
				if err := o.run(cmd, opProjectSet, old, &set); err != nil {
					return err
				}
				return printProject(cmd, o.json, set)
			}
			return fmt.Errorf("there is no project %q; `docent project list` lists them", p.ID)
		},
	}
	projectFlags(cmd, &p)
	named(cmd, (*string)(&p.ID), "id", "the project's NAME", false)
	return cmd
}

// mergeFlags sets in old what was given on the command line.
func mergeFlags(cmd *cobra.Command, old *api.Project, given api.Project) {
	set := map[string]func(){
		"domain": func() { old.Domain = given.Domain },
		"title":  func() { old.Name = given.Name }, "name": func() { old.Name = given.Name },
		"source": func() { old.Source = given.Source }, "branch": func() { old.Branch = given.Branch },
		"docs-dir": func() { old.DocsDir = given.DocsDir }, "site-url": func() { old.SiteURL = given.SiteURL },
		"site":    func() { old.Site = given.Site },
		"include": func() { old.Include = given.Include }, "exclude": func() { old.Exclude = given.Exclude },
		"host": func() { old.Host = given.Host }, "host-url": func() { old.HostURL = given.HostURL },
		"repository": func() { old.Repository = given.Repository }, "token-env": func() { old.TokenEnv = given.TokenEnv },
		"webhook-env": func() { old.WebhookEnv = given.WebhookEnv },
		"app-id":      func() { old.AppID = given.AppID }, "labels": func() { old.Labels = given.Labels },
		"direct": func() { old.Direct = given.Direct },
		"model":  func() { old.Model = given.Model }, "deflection": func() { old.Deflection = given.Deflection },
		"require-thread-key": func() { old.Options.RequireThreadKey = given.Options.RequireThreadKey },
		"search-tool":        func() { old.Options.SearchTool = given.Options.SearchTool },
		"suggestions":        func() { old.Options.Suggestions = given.Options.Suggestions },
		"limit-project-hour": func() { old.Limits.ProjectHour = given.Limits.ProjectHour },
		"limit-key-month":    func() { old.Limits.KeyMonth = given.Limits.KeyMonth },
		"limit-org-hour":     func() { old.Limits.OrgHour = given.Limits.OrgHour },
		"limit-ip-day":       func() { old.Limits.IPDay = given.Limits.IPDay },
	}
	for flag, apply := range set {
		if cmd.Flags().Changed(flag) {
			apply()
		}
	}
}

// printProject says what was read of a project, and loudly what its readers would miss.
func printProject(cmd *cobra.Command, asJSON bool, p projectAdded) error {
	out, loud := cmd.OutOrStdout(), cmd.ErrOrStderr()
	if p.Address == "" {
		fmt.Fprintf(loud, "WARNING: it is not known where readers find the pages, so that sources in answers are paths without an address.\n"+
			"  Say it with: docent project set %s --site-url https://...\n", p.ID)
	}
	for _, w := range p.Warnings {
		fmt.Fprintf(loud, "WARNING: %s: %s\n", w.File, w.Text)
	}
	if p.Open != "" {
		fmt.Fprintf(loud, "NOTE: %s\n", p.Open)
	}
	if p.Pages == 0 {
		fmt.Fprintf(loud, "WARNING: no page is public. `docent project check %s` says why.\n", p.ID)
	}
	if asJSON {
		return printJSON(out, p)
	}
	fmt.Fprintf(out, "project %s: %d pages, %d sections at %.12s\n", p.ID, p.Pages, p.Sections, p.Commit)
	if p.Address != "" {
		fmt.Fprintf(out, "Readers find the pages at %s (%s).\n", p.Address, p.AddressFrom)
	}
	if p.LeftOut > 0 {
		fmt.Fprintf(out, "%d files are no pages of the site; `docent project check %s` lists what is public and what is not.\n", p.LeftOut, p.ID)
	}
	return nil
}

func newProjectCheckCommand(o *operator) *cobra.Command {
	var name string
	cmd := &cobra.Command{
		Use: "check NAME", Short: "List what of a project is public and why, what is left out, and links that lead nowhere",
		Long: "Reads the project's documentation as it is now and lists every page that readers can be answered from, with its URL and the rule that\n" +
			"makes it public; every file that is left out, with the rule and the file that says so; links between pages that lead to no public page;\n" +
			"where readers find the site; and what of the site's configuration could not be read.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			var c search.Check
			if err := o.run(cmd, opProjectCheck, projectParams{ID: api.ProjectID(name)}, &c); err != nil {
				return err
			}
			if o.json {
				return printJSON(cmd.OutOrStdout(), c)
			}
			return printCheck(cmd.OutOrStdout(), c)
		},
	}
	named(cmd, &name, "id", "the project's NAME", false)
	return cmd
}

func printCheck(out io.Writer, c search.Check) error {
	w := bufio.NewWriter(out)
	made := string(c.Site)
	if c.Config != "" {
		made += " (" + c.Config + ")"
	}
	fmt.Fprintf(w, "project %s at %.12s, made by: %s\n", c.Project, c.Commit, made)
	if c.Address != "" {
		fmt.Fprintf(w, "address: %s (%s)\n", c.Address, c.AddressFrom)
	} else {
		fmt.Fprintf(w, "address: not known, so that sources are paths only; set --site-url\n")
	}
	reason := func(why, file string) string {
		if file != "" {
			return why + " (" + file + ")"
		}
		return why
	}
	rows := func(title string, n int, row func(i int) []string) {
		if n == 0 {
			return
		}
		fmt.Fprintf(w, "\n%s: %d\n", title, n)
		table := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
		for i := range n {
			fmt.Fprintln(table, "  "+strings.Join(row(i), "\t"))
		}
		table.Flush()
	}
	var found, direct []search.CheckedPage
	for _, p := range c.Pages {
		if p.State == site.Unlisted {
			direct = append(direct, p)
		} else {
			found = append(found, p)
		}
	}
	page := func(list []search.CheckedPage) func(int) []string {
		return func(i int) []string { return []string{list[i].URL, list[i].Path, reason(list[i].Why, list[i].File)} }
	}
	rows("Public pages", len(found), page(found))
	rows("Public pages that are not found by searching", len(direct), page(direct))
	rows("Left out", len(c.LeftOut), func(i int) []string {
		l := c.LeftOut[i]
		return []string{l.Path, string(l.State), reason(l.Why, l.File)}
	})
	rows("Links that lead to no public page", len(c.DeadLinks), func(i int) []string {
		l := c.DeadLinks[i]
		return []string{l.Path, l.Link, l.Why}
	})
	rows("Warnings", len(c.Warnings), func(i int) []string { return []string{c.Warnings[i].File, c.Warnings[i].Text} })
	fmt.Fprintln(w)
	if len(c.Pages) == 0 {
		fmt.Fprintln(w, "No page is public.")
	}
	if len(c.DeadLinks)+len(c.Warnings) == 0 && c.Address != "" && len(c.Pages) > 0 {
		fmt.Fprintln(w, "Nothing wrong was found.")
	}
	return w.Flush()
}

// absoluteSource makes a path independent of where the command was started; a URL stays as it is.
func absoluteSource(source string) string {
	if strings.Contains(source, "://") || (strings.Contains(source, ":") && !pathExists(source)) {
		return source // a URL, or host:path as git writes it
	}
	if abs, err := filepath.Abs(source); err == nil {
		return abs
	}
	return source
}

func pathExists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func newKeyCommand() *cobra.Command {
	o := new(operator)
	cmd := &cobra.Command{Use: "key", Short: "Make, list and revoke API keys"}
	operatorFlags(cmd, o)
	var params keyParams
	var expires string
	create := &cobra.Command{
		Use: "create", Short: "Make a key; its secret is shown once", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := required(cmd, "project", "kind"); err != nil {
				return err
			}
			if expires != "" {
				at, err := parseExpiry(expires)
				if err != nil {
					return err
				}
				params.ExpiresAt = &at
			}
			var made keyMade
			if err := o.run(cmd, opKeyCreate, params, &made); err != nil {
				return err
			}
			if o.json {
				return printJSON(cmd.OutOrStdout(), made)
			}
			fmt.Fprintln(cmd.ErrOrStderr(), "The key is shown once; keep it safe:")
			fmt.Fprintln(cmd.OutOrStdout(), made.Key)
			return nil
		},
	}
	flags := create.Flags()
	flags.StringVar((*string)(&params.Project), "project", "", "project that the key is for")
	flags.StringVar((*string)(&params.Kind), "kind", "", "admin (agent and management) or assistant (may be used in browsers)")
	flags.StringVar(&params.Name, "name", "", "name to recognise it by")
	flags.StringVar(&expires, "expires", "", "when it ends: a time such as 2027-01-31T00:00:00Z, or a duration such as 720h")
	flags.StringArrayVar(&params.AllowIP, "allow-ip", nil, "address or CIDR range that may use it (repeatable)")
	flags.StringArrayVar(&params.Scopes, "scope", nil, "read or write, for admin keys (repeatable; both where none is given)")
	flags.StringArrayVar(&params.Origins, "origin", nil, "browser origin that may use it, for assistant keys (repeatable)")

	var project string
	list := &cobra.Command{
		Use: "list", Short: "List the keys, without their secrets", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var keys []api.Key
			if err := o.run(cmd, opKeyList, projectParams{ID: api.ProjectID(project)}, &keys); err != nil {
				return err
			}
			return printRows(cmd.OutOrStdout(), o.json, keys, "ID\tKIND\tPROJECT\tNAME\tSECRET\tSTATE\tLAST USED", func(k api.Key) string {
				last := "never"
				if k.LastUsed != nil {
					last = shownTime(*k.LastUsed)
				}
				return fmt.Sprintf("%s\t%s\t%s\t%s\t%s\t%s\t%s", k.ID, k.Kind, k.Project, k.Name, k.Hint, keyState(k, time.Now()), last)
			})
		},
	}
	list.Flags().StringVar(&project, "project", "", "only keys of this project")
	cmd.AddCommand(create, list, &cobra.Command{
		Use: "revoke ID", Short: "Revoke a key, from the next request on", Args: cobra.ExactArgs(1), SuggestFor: []string{"remove", "delete"},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.run(cmd, opKeyRevoke, keyParams{ID: api.KeyID(args[0])}, nil); err != nil {
				return err
			}
			return o.did(cmd, map[string]string{"revoked": args[0]}, "key %s is revoked", args[0])
		},
	})
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
	return time.Time{}, usagef("--expires %q is neither a time such as 2027-01-31T00:00:00Z nor a duration such as 720h", text)
}

func keyState(k api.Key, now time.Time) string {
	switch {
	case k.RevokedAt != nil:
		return "revoked"
	case k.ExpiresAt != nil && !now.Before(*k.ExpiresAt):
		return "expired"
	default:
		return "active"
	}
}

func newIndexCommand() *cobra.Command {
	o := new(operator)
	var project string
	cmd := &cobra.Command{
		Use: "index PROJECT", Short: "Read a project's documentation again now and index what changed",
		RunE: func(cmd *cobra.Command, _ []string) error {
			var report search.Report
			if err := o.run(cmd, opIndex, projectParams{ID: api.ProjectID(project)}, &report); err != nil {
				return err
			}
			if o.json {
				return printJSON(cmd.OutOrStdout(), report)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%d pages, %d sections at %.12s: %d added, %d modified, %d removed\n",
				report.Pages, report.Sections, report.Commit, len(report.Added), len(report.Modified), len(report.Removed))
			return nil
		},
	}
	operatorFlags(cmd, o)
	named(cmd, &project, "project", "a PROJECT", false)
	return cmd
}

func newPullCommand() *cobra.Command {
	o := new(operator)
	cmd := &cobra.Command{Use: "pull", Short: "Pull requests of the built-in code host"}
	operatorFlags(cmd, o)
	show := func(cmd *cobra.Command, p api.PullRequest) error {
		if o.json {
			return printJSON(cmd.OutOrStdout(), p)
		}
		fmt.Fprintf(cmd.OutOrStdout(), "#%d %s  %s\n", p.Number, p.State, p.Title)
		return nil
	}
	var project, state string
	list := &cobra.Command{
		Use: "list", Short: "List pull requests, newest first", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := required(cmd, "project"); err != nil {
				return err
			}
			var pulls []api.PullRequest
			if err := o.run(cmd, opPullList, pullParams{Project: api.ProjectID(project), State: api.PullState(state)}, &pulls); err != nil {
				return err
			}
			return printRows(cmd.OutOrStdout(), o.json, pulls, "NUMBER\tSTATE\tID\tTITLE", func(p api.PullRequest) string {
				return fmt.Sprintf("#%d\t%s\t%s\t%s", p.Number, p.State, p.ID, p.Title)
			})
		},
	}
	list.Flags().StringVar(&project, "project", "", "project")
	list.Flags().StringVar(&state, "state", "", "open, merged or closed; all where empty")
	act := func(verb, op, short string) *cobra.Command {
		return &cobra.Command{
			Use: verb + " ID", Short: short, Args: cobra.ExactArgs(1),
			RunE: func(cmd *cobra.Command, args []string) error {
				var p api.PullRequest
				if err := o.run(cmd, op, pullParams{ID: pullID(args[0])}, &p); err != nil {
					return err
				}
				return show(cmd, p)
			},
		}
	}
	diff := &cobra.Command{
		Use: "diff ID", Short: "Print what a pull request changes", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var text string
			if err := o.run(cmd, opPullDiff, pullParams{ID: pullID(args[0])}, &text); err != nil {
				return err
			}
			_, err := io.WriteString(cmd.OutOrStdout(), text)
			return err
		},
	}
	cmd.AddCommand(list, diff,
		act("merge", opPullMerge, "Merge a pull request into its base branch; a folder that is the source is updated"),
		act("close", opPullClose, "Close a pull request without merging it"))
	return cmd
}

// pullID takes an id, or the link of a pull request's page.
func pullID(text string) string {
	if i := strings.LastIndex(text, "/pulls/"); i >= 0 {
		return text[i+len("/pulls/"):]
	}
	return text
}

// printRows prints a list: a JSON object a line, or a table.
func printRows[T any](w io.Writer, asJSON bool, rows []T, head string, row func(T) string) error {
	if asJSON {
		var errs []error
		for _, r := range rows {
			errs = append(errs, printJSON(w, r))
		}
		return errors.Join(errs...)
	}
	table := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintln(table, head)
	for _, r := range rows {
		fmt.Fprintln(table, row(r))
	}
	return table.Flush()
}
