package commands

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"docent/api"
	"docent/cmd/docent/cli"
	"docent/cmd/docent/operator"
	"docent/internal/brief"
	"docent/search"
	"docent/search/sources"
	"docent/site"
	"docent/site/published"
)

func newProjectCommand(prog cli.Program) *cobra.Command {
	o := &cli.Operator{Prog: prog}
	cmd := &cobra.Command{Use: "project", Short: "Add, list, check, change and remove documentation sets"}
	cli.OperatorFlags(cmd, o)
	var gone string
	remove := &cobra.Command{
		Use: "remove NAME", Short: "Remove a project, its keys and its index; jobs, threads and its repository stay on disk",
		SuggestFor: []string{"delete", "rm"},
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.Do(cmd, operator.OpProjectRemove, operator.ProjectParams{ID: api.ProjectID(gone)},
				map[string]string{"removed": gone}, "project %s is removed, with its keys and its index", gone)
		},
	}
	cli.Named(remove, &gone, "id", "the project's NAME", false)
	cmd.AddCommand(newProjectAddCommand(o), newProjectSetCommand(o), newProjectCheckCommand(o),
		newProjectTokenCommand(o), newProjectWebhookCommand(o), newProjectChatCommand(o), remove,
		&cobra.Command{
			Use: "list", Short: "List the projects", Args: cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error {
				return cli.ShowRows(o, cmd, operator.OpProjectList, nil, "ID\tDOMAIN\tHOST\tSOURCE", func(p api.Project) string {
					return fmt.Sprintf("%s\t%s\t%s\t%s", p.ID, p.Domain, p.Host, p.Source)
				})
			},
		})
	return cmd
}

// projectFlags adds the flags that describe a project.
func projectFlags(cmd *cobra.Command, p *api.Project) {
	flags := cmd.Flags()
	flags.StringVar(&p.Domain, "domain", "", "name of the project in assistant URLs, for instance docs.example.com")
	flags.StringVar(&p.Name, "title", "", "name of the product in answers (default when adding: from the site's configuration)")
	flags.StringVar(&p.Name, "name", "", "as --title, for scripts of earlier versions")
	_ = flags.MarkHidden("name") // it is there
	flags.StringVar(&p.Source, "source", "",
		"where the documentation is: a folder, a git repository on disk, or a git URL; by default, from --host and --repository")
	flags.StringVar((*string)(&p.Kind), "kind", "",
		"web, zip, or issues, none of which the agent can edit; default: a folder or a git repository")
	flags.StringVar(&p.Every, "every", "", "how often to read the source, such as 6h (default: poll_interval)")
	webFlags(cmd, &p.Collect.Web)
	flags.StringVar(&p.Branch, "branch", "", "branch of the repository (default: its default branch)")
	flags.StringVar(&p.DocsDir, "docs-dir", "", "sub-folder that holds the documentation")
	flags.StringVar(&p.SiteURL, "site-url",
		"", "address of the published site, which citations link to (default: from the site's configuration)")
	flags.StringVar((*string)(&p.AnswersFrom), "answers-from", "",
		"for a project with a source and --site-url, what answers are drawn from: auto (the site where it has the pages of the source, the default), site, source, or source-only, which does not read the site")
	flags.StringVar((*string)(&p.Site), "site", "",
		"site generator (sets the URLs of pages): plain, mintlify, docusaurus, vitepress, hugo, mkdocs, starlight, nextjs, mdbook, gitbook, jekyll, sphinx, antora, fern, quarto or wiki; default: recognized by its files")
	flags.StringArrayVar(&p.Include, "include", nil,
		"include only pages that match this pattern, as in .gitignore, relative to the documentation folder (repeatable; '' for none)")
	flags.StringArrayVar(&p.Exclude, "exclude", nil,
		"exclude pages that match this pattern, as in .gitignore; ! includes what the site itself leaves out (repeatable; '' for none)")
	flags.StringVar((*string)(&p.Host), "host", string(api.HostBuiltin),
		"code host: builtin, github, gitlab, gitea or git")
	flags.StringVar(&p.HostURL, "host-url", "", "address of a self-hosted code host")
	flags.StringVar(&p.Repository, "repository", "", "OWNER/NAME on the code host")
	flags.StringVar(&p.WebhookEnv, "webhook-env", "",
		"environment variable that holds the secret of the code host's push webhook")
	flags.StringVar(&p.TokenEnv, "token-env", "",
		"environment variable that holds the code host's token (or NAME, if NAME_FILE names a file with it)")
	flags.StringVar(&p.ReaderJWKS, "reader-jwks", "",
		"https address of the JSON Web Key Set whose ES256 keys sign reader tokens, for private documentation")
	flags.StringVar(&p.ReaderSignIn, "reader-sign-in", "",
		"https address where your site signs in readers who connect an MCP client to private documentation")
	flags.Int64Var(&p.AppID, "app-id",
		0, "id of a GitHub App; --token-env then names the variable with the app's private key")
	flags.StringVar(&p.Labels, "labels", "", "labels for the pull requests, separated by commas")
	pullFlags(cmd, &p.Pulls)
	flags.BoolVar(&p.Direct, "direct", false,
		"commit to the documentation's branch itself, and open a pull request only where it is protected")
	flags.StringVar((*string)(&p.Review), "review", "",
		"which pull request comments the agent follows: mention (those that name it; the default), lines (also every comment on a line), or off")
	flags.StringVar(&p.Handle, "handle", "", "name that comments mention the agent by, without the @ (default: docent)")
	flags.StringVar(&p.Model, "model", "", "model for this project, by its name in the configuration")
	flags.StringVar(&p.AgentModel, "agent-model", "", "model for this project's jobs (default: --model)")
	flags.StringVar(&p.TimeZone, "time-zone", "", "time zone of weekly reports, such as Europe/Berlin (default: UTC)")
	flags.StringVar(&p.Deflection, "deflection", "", "contact address offered when the documentation has no answer")
	flags.BoolVar(&p.Options.RequireThreadKey, "require-thread-key", false, "require a thread's secret key to continue it")
	flags.BoolVar(&p.Options.SearchTool, "search-tool", false, "also stream the retrieval as a tool call named search")
	flags.BoolVar(&p.Options.Suggestions, "suggestions", false, "end answers with suggested follow-up questions")
	flags.BoolVar(&p.Options.Public, "public", false,
		"allow anyone to read the published Markdown, and to ask over MCP, without a key")
	flags.StringVar(&p.Options.PublicOrigins, "public-origins", "",
		"with --public: other origins allowed to do so from a browser, separated by commas (* for all); the site's own always is")
	flags.IntVar(&p.Options.ProofOfWork, "proof-of-work", 0,
		"difficulty of the proof of work that browsers do before each question; 200000 takes a phone about half a second (0 for none)")
	flags.IntVar(&p.Limits.ProjectHour, "limit-project-hour", 0,
		"jobs and follow-ups per hour (0 for the configured default, negative for none)")
	flags.IntVar(&p.Limits.KeyMonth, "limit-key-month", 0, "assistant messages per key and month")
	flags.IntVar(&p.Limits.OrgHour, "limit-org-hour", 0, "assistant messages per hour for the whole organization")
	flags.IntVar(&p.Limits.IPDay, "limit-ip-day", 0, "assistant messages per IP address and day")
}

// pullFlags adds the flags that say how pull requests and commits look.
func pullFlags(cmd *cobra.Command, f *api.PullForm) {
	flags := cmd.Flags()
	flags.StringVar(&f.Author, "author", "",
		"author of commits, 'Name <name@example.com>' (the account of the GitHub App if there is one)")
	flags.BoolVar(&f.SignOff, "sign-off", false, "end commits with the author's Signed-off-by, as the DCO asks")
	flags.StringVar(&f.Title, "pull-title", "",
		"pattern of pull request titles, such as 'docs({scope}): {title}'; {scope} is the folder that holds all changes ('"+api.DefaultTitle+"' if empty)")
	flags.StringVar(&f.Body, "pull-body", "",
		"text of pull requests, instead of the repository's template; {report} is replaced by the report")
	flags.BoolVar(&f.Draft, "draft", false, "open pull requests as drafts")
	flags.IntVar(&f.Most, "most-pulls", 0, "maximum number of open pull requests from the project's automations (0 for 10)")
	flags.StringVar(&f.Reviewers, "reviewers", "",
		"reviewers of pull requests, separated by commas: accounts, teams as OWNER/TEAM, codeowners, code-authors")
}

func newProjectAddCommand(o *cli.Operator) *cobra.Command {
	var p api.Project
	var file string
	cmd := &cobra.Command{
		Use: "add NAME", Short: "Add a project: read its documentation and index it", SuggestFor: []string{"create", "new"},
		Long: "Add a project: read its documentation and index it. NAME is the project's name in commands and in the URLs of the agent.\n" +
			"If there is no data directory yet, one is created.",
		Example: "  docent project add docs --domain docs.example.com --source ./my-docs",
		RunE: func(cmd *cobra.Command, _ []string) error {
			settings := p
			if err := readSettings(cmd, file, &settings); err != nil {
				return err
			}
			if p = settings.WithDefaults(); p.Source == "" && p.Kind != api.SourceZip { // that of a code host follows from its address
				if err := cli.Required(cmd, "domain", "source"); err != nil {
					return err
				}
			}
			if err := cli.Required(cmd, "domain"); err != nil {
				return err
			}
			if p.Kind == api.SourceFiles {
				p.Source = cli.AbsoluteSource(p.Source)
			}
			made, err := o.MakesDataDir(cmd)
			if err != nil {
				return err
			}
			var added sources.Project
			if err := o.Run(cmd, operator.OpProjectAdd, p, &added); err != nil {
				return err
			}
			if made != "" {
				fmt.Fprintf(cmd.ErrOrStderr(), "made the data directory %s\n", made)
			}
			return printProject(cmd, o.JSON, added)
		},
	}
	projectFlags(cmd, &p)
	fileFlag(cmd, &file)
	cli.Named(cmd, (*string)(&p.ID), "id", "the project's NAME", false)
	return cmd
}

func newProjectSetCommand(o *cli.Operator) *cobra.Command {
	var p api.Project
	var file string
	cmd := &cobra.Command{
		Use: "set NAME", Short: "Change settings of a project; settings without a flag keep their value",
		SuggestFor: []string{"update", "change", "edit"},
		Example:    "  docent project set docs --site-url https://docs.example.com",
		RunE: func(cmd *cobra.Command, _ []string) error {
			var projects []api.Project
			if err := o.Run(cmd, operator.OpProjectList, nil, &projects); err != nil {
				return err
			}
			for _, old := range projects {
				if old.ID != p.ID {
					continue
				}
				if err := readSettings(cmd, file, &old); err != nil {
					return err
				}
				if cmd.Flags().Changed("source") && old.Kind == api.SourceFiles {
					old.Source = cli.AbsoluteSource(old.Source)
				}
				var set sources.Project
				if err := o.Run(cmd, operator.OpProjectSet, old, &set); err != nil {
					return err
				}
				return printProject(cmd, o.JSON, set)
			}
			return fmt.Errorf("there is no project %q; `docent project list` lists them", p.ID)
		},
	}
	projectFlags(cmd, &p)
	fileFlag(cmd, &file)
	cli.Named(cmd, (*string)(&p.ID), "id", "the project's NAME", false)
	return cmd
}

// fileFlag adds the flag for all that has no flag of its own.
func fileFlag(cmd *cobra.Command, file *string) {
	cmd.Flags().StringVar(file, "file", "", "JSON `file` with settings, as \"project list --json\" prints them, or - for standard input; settings that it leaves out keep their value, and flags override it")
}

// readSettings sets in p what a file says, and over that what was given on the command line.
func readSettings(cmd *cobra.Command, file string, p *api.Project) error {
	if file != "" {
		var text []byte
		var err error
		if file == "-" {
			text, err = io.ReadAll(cmd.InOrStdin())
		} else {
			text, err = os.ReadFile(file)
		}
		if err != nil {
			return fmt.Errorf("read the settings: %w", err)
		}
		own := *p
		d := json.NewDecoder(bytes.NewReader(text))
		d.DisallowUnknownFields()
		if err := d.Decode(p); err != nil {
			return fmt.Errorf("read the settings in %s: %w", file, err)
		}
		// These are no settings: other commands change them.
		p.ID, p.Org, p.Label, p.Sources, p.CreatedAt = own.ID, own.Org, own.Label, own.Sources, own.CreatedAt
		p.TokenFile, p.WebhookFile, p.ReaderSecrets, p.Chats = own.TokenFile, own.WebhookFile, own.ReaderSecrets, own.Chats
	}
	mergeFlags(cmd, p)
	return nil
}

// mergeFlags sets in old what was given on the command line.
func mergeFlags(cmd *cobra.Command, old *api.Project) {
	kept := *old
	overlay(cmd, func(onto *cobra.Command) { projectFlags(onto, old) }, func() { *old = kept })
}

// printProject says what was read of a project, and loudly what its readers would miss.
func printProject(cmd *cobra.Command, asJSON bool, p sources.Project) error {
	out, loud := cmd.OutOrStdout(), cmd.ErrOrStderr()
	if p.Address == "" {
		fmt.Fprintf(loud, "WARNING: the address of the published site is not known, so sources in answers are paths without a host.\n"+
			"  Set it with: docent project set %s --site-url https://...\n", p.ID)
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
		return cli.PrintJSON(out, p)
	}
	fmt.Fprintf(out, "project %s: %s, %s at %.12s\n", p.ID, brief.Count(p.Pages, "page"), brief.Count(p.Sections, "section"), p.Commit)
	if p.Name != "" {
		fmt.Fprintf(out, "Answers call the product %s (--title changes this).\n", p.Name)
	}
	if p.Address != "" {
		fmt.Fprintf(out, "Readers find the pages at %s (%s).\n", p.Address, p.AddressFrom)
	}
	if p.Answers != "" {
		fmt.Fprintln(out, p.Answers)
	}
	if p.LeftOut > 0 {
		fmt.Fprintf(out, "%s left out: not part of the site. `docent project check %s` says why.\n",
			brief.Count(p.LeftOut, "file"), p.ID)
	}
	return nil
}

func newProjectCheckCommand(o *cli.Operator) *cobra.Command {
	var name string
	cmd := &cobra.Command{
		Use: "check NAME", Short: "List which pages of a project are public and why, what is left out, and dead links",
		Long: "Read the project's documentation as it is now and list what readers are answered from: each public page, with its URL and the rule\n" +
			"that makes it public; each file that is left out, and why; links to pages or anchors that don't exist; the address of the site, and\n" +
			"how its pages differ from the files; and settings of the site that can't be read.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := cli.Show(o, cmd, operator.OpProjectCheck, operator.ProjectParams{ID: api.ProjectID(name)}, printCheck); err != nil || o.JSON {
				return err
			}
			var list []sources.Source
			if err := o.Run(cmd, operator.OpSourceList, operator.SourceParams{ID: api.ProjectID(name)}, &list); err != nil {
				return err
			}
			for _, s := range list {
				if state := s.Health(); state != "" {
					fmt.Fprintf(cmd.OutOrStdout(), "source %s (%s): %s\n", s.Label, s.Kind, state)
				}
			}
			if len(list) < 2 {
				return nil
			}
			fmt.Fprintf(cmd.OutOrStdout(), "\nFurther sources: %d (`docent source check %s LABEL` lists the pages of one)\n", len(list)-1, name)
			return cli.PrintRows(cmd.OutOrStdout(), false, list[1:], sourceHead, sourceRow)
		},
	}
	cli.Named(cmd, &name, "id", "the project's NAME", false)
	return cmd
}

// printComparison says where the published site and the repository differ.
func printComparison(w io.Writer, c *published.Comparison, rows func(title string, n int, row func(i int) []string)) {
	mapped := func(list []published.Row) func(int) []string {
		return func(i int) []string {
			r := list[i]
			if r.File == "" {
				return []string{r.URL}
			}
			return []string{r.URL, r.File, fmt.Sprintf("by %s (%.0f %%)", r.By, 100*r.Sure)}
		}
	}
	differ := func(list []published.Difference) func(int) []string {
		return func(i int) []string { return []string{list[i].URL, list[i].File, list[i].Says} }
	}
	rows("On the site, without a known file", len(c.Made), mapped(c.Made))
	rows("Files that are not on the site", len(c.Silent), func(i int) []string { return []string{c.Silent[i]} })
	rows("On the site at another address than the generator's rule says", len(c.Addresses), differ(c.Addresses))
	rows("Anchors by the generator's rule that the site does not have", len(c.Anchors), differ(c.Anchors))
	rows("Answered from the site, though the repository leaves it out", len(c.Excluded), mapped(c.Excluded))
	rows("On the site, and never answered", len(c.Withheld), differ(c.Withheld))
	rows("Doubtful: of which file a page is", len(c.Doubtful), mapped(c.Doubtful))
	rows("Not read of the site", len(c.Unread), func(i int) []string { return []string{c.Unread[i]} })
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
	if c.Published != nil {
		fmt.Fprintf(w, "published site: %s\n%s\n", c.Published.Summary, c.Published.Answers)
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
	rows("Dead links", len(c.DeadLinks), func(i int) []string {
		l := c.DeadLinks[i]
		return []string{l.Path, l.Link, l.Why}
	})
	if s := c.Published; s != nil {
		printComparison(w, s, rows)
	}
	rows("Warnings", len(c.Warnings), func(i int) []string { return []string{c.Warnings[i].File, c.Warnings[i].Text} })
	fmt.Fprintln(w)
	switch {
	case c.Withheld != "":
		fmt.Fprintln(w, "NOTHING IS ANSWERED from what is there now. "+c.Withheld)
	case len(c.Pages) == 0:
		fmt.Fprintln(w, "No page is public.")
	}
	if len(c.DeadLinks)+len(c.Warnings) == 0 && c.Address != "" && len(c.Pages) > 0 {
		fmt.Fprintln(w, "Nothing wrong was found.")
	}
	return w.Flush()
}
