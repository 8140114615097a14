package commands

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"docent/api"
	"docent/cmd/docent/cli"
	"docent/cmd/docent/operator"
	"docent/internal/brief"
	"docent/search/sources"
)

func newSourceCommand(prog cli.Program) *cobra.Command {
	o := &cli.Operator{Prog: prog}
	cmd := &cobra.Command{Use: "source", Short: "Add more sources to a project: an API reference, a blog, a web site, issues",
		Long: "Add sources to a project, besides the documentation that it was created with. Answers draw on all of them; each has\n" +
			"a label and a weight, and can be restricted to some readers. The agent edits only the project's own source."}
	cli.OperatorFlags(cmd, o)
	cmd.AddCommand(newSourceAddCommand(o), newSourceSetCommand(o), newSourceListCommand(o), newSourceUploadCommand(o),
		&cobra.Command{
			Use: "remove PROJECT LABEL", Short: "Remove a source and its index", Args: cobra.ExactArgs(2),
			SuggestFor: []string{"delete", "rm"},
			RunE: func(cmd *cobra.Command, args []string) error {
				p := operator.SourceParams{ID: api.ProjectID(args[0]), Name: args[1]}
				return o.Do(cmd, operator.OpSourceRemove, p, map[string]string{"removed": args[1]},
					"the source %s of %s is removed", args[1], args[0])
			},
		},
		&cobra.Command{
			Use: "read PROJECT LABEL", Short: "Re-index one source", Args: cobra.ExactArgs(2),
			RunE: func(cmd *cobra.Command, args []string) error {
				p := operator.SourceParams{ID: api.ProjectID(args[0]), Name: args[1]}
				return cli.Show(o, cmd, operator.OpSourceRead, p, printIndexed)
			},
		},
		&cobra.Command{
			Use: "check PROJECT LABEL", Short: "List which pages of a source are public and why, and what is left out",
			Args: cobra.ExactArgs(2),
			RunE: func(cmd *cobra.Command, args []string) error {
				id := operator.SourceID(api.ProjectID(args[0]), args[1])
				return cli.Show(o, cmd, operator.OpProjectCheck, operator.ProjectParams{ID: id}, printCheck)
			},
		})
	return cmd
}

// sourceFlags adds the flags that describe a source.
func sourceFlags(cmd *cobra.Command, s *api.Source) {
	flags := cmd.Flags()
	flags.StringVar((*string)(&s.Kind), "kind", "", "web, zip, issues, or code, which automations tell jobs of; default: a folder or a git repository")
	flags.StringVar(&s.Address, "address", "",
		"where it is: a folder, a git URL, the address of a web site, or OWNER/NAME for issues; a zip has none")
	flags.StringVar(&s.Name, "title", "", "name shown to people (default: the label)")
	flags.Float64Var(&s.Weight, "weight", 0, "weight beside the project's own source, which has 1 (0 for the default: 1, or 0.6 for issues)")
	flags.StringArrayVar(&s.Groups, "group", nil, "restrict it to readers in one of these groups (repeatable; '' for everyone)")
	flags.StringVar(&s.Every, "every", "", "how often to read it, such as 6h (default: poll_interval; 6h for a web site, 1h for issues)")
	flags.StringVar(&s.Branch, "branch", "", "branch of the repository (default: its default branch)")
	flags.StringVar(&s.DocsDir, "docs-dir", "", "sub-folder that holds the pages")
	flags.StringVar(&s.SiteURL, "site-url", "", "address of the published pages, which citations link to")
	flags.StringVar((*string)(&s.Site), "site", "", "site generator; default: recognized by its files")
	flags.StringArrayVar(&s.Include, "include", nil, "include only pages that match this pattern (repeatable; '' for none)")
	flags.StringArrayVar(&s.Exclude, "exclude", nil, "exclude pages that match this pattern (repeatable; '' for none)")
	flags.StringVar((*string)(&s.Host), "host", "", "code host of a private repository, whose token is used: github, gitlab or gitea")
	flags.StringVar(&s.HostURL, "host-url", "", "address of a self-hosted code host")
	flags.StringVar(&s.Repository, "repository", "", "OWNER/NAME on the code host")
	flags.StringVar(&s.TokenEnv, "token-env", "",
		"environment variable that holds a token (default: the project's, on the project's own host)")
	flags.Int64Var(&s.AppID, "app-id", 0, "id of a GitHub App; --token-env then names the variable with the app's private key")
	webFlags(cmd, &s.Collect.Web)
	o := &s.Collect.Issues
	flags.StringArrayVar(&o.Labels, "issue-label", nil, "only issues and discussions with this label (repeatable; '' for none)")
	flags.StringArrayVar(&o.Without, "without-label", nil, "skip issues and discussions with this label (repeatable; '' for none)")
	flags.BoolVar(&o.Open, "open", false, "also read open issues and unanswered discussions")
	flags.BoolVar(&o.Discussions, "discussions", false, "also read discussions, which need a token")
	flags.BoolVar(&o.OnlyDiscussions, "only-discussions", false, "discussions only, no issues")
}

func newSourceAddCommand(o *cli.Operator) *cobra.Command {
	p := operator.SourceParams{}
	cmd := &cobra.Command{
		Use: "add PROJECT LABEL", Short: "Add a source: read it and index it", Args: cobra.ExactArgs(2),
		SuggestFor: []string{"create", "new"},
		Example: "  docent source add docs api --address ./openapi --weight 1.2\n" +
			"  docent source add docs code --kind code --address https://github.com/acme/api --repository acme/api --host github\n" +
			"  docent source add docs manual --kind zip\n" +
			"  docent source add docs blog --kind web --address https://www.example.com/blog/\n" +
			"  docent source add docs issues --kind issues --address acme/product --token-env GITHUB_TOKEN",
		RunE: func(cmd *cobra.Command, args []string) error {
			p.ID, p.Name, p.Source.Label = api.ProjectID(args[0]), args[1], args[1]
			if !p.Source.Kind.Collected() && p.Source.Address != "" {
				p.Source.Address = cli.AbsoluteSource(p.Source.Address)
			}
			return runSource(o, cmd, operator.OpSourceAdd, p)
		},
	}
	sourceFlags(cmd, &p.Source)
	return cmd
}

// runSource adds or changes a source and says what was read of it.
func runSource(o *cli.Operator, cmd *cobra.Command, name string, p operator.SourceParams) error {
	var s sources.Source
	if err := o.Run(cmd, name, p, &s); err != nil {
		return err
	}
	if o.JSON {
		return cli.PrintJSON(cmd.OutOrStdout(), s)
	}
	return printSource(cmd, s)
}

func printSource(cmd *cobra.Command, s sources.Source) error {
	out, loud := cmd.OutOrStdout(), cmd.ErrOrStderr()
	fmt.Fprintf(out, "source %s of %s: %s, %s at %.12s\n", s.Label, s.Project, brief.Count(s.Pages, "page"), brief.Count(s.Sections, "section"), s.Commit)
	if len(s.Groups) > 0 {
		fmt.Fprintf(out, "Only readers with one of these groups are answered from it: %s\n", strings.Join(s.Groups, ", "))
	}
	if s.Collection != nil {
		for _, note := range s.Collection.Notes {
			fmt.Fprintf(loud, "NOTE: %s\n", note)
		}
	}
	switch {
	case s.Kind == api.SourceCode:
		fmt.Fprintln(out, "It is code: jobs read it and are told of its changes, and readers are not answered from it.")
	case s.Kind == api.SourceZip && s.Pages == 0:
		fmt.Fprintf(out, "Upload its pages with: docent source upload %s %s FILE.zip\n", s.Project, s.Label)
	case s.Pages == 0:
		fmt.Fprintf(loud, "WARNING: no page is public. `docent source check %s %s` says why.\n", s.Project, s.Label)
	}
	return nil
}

func newSourceSetCommand(o *cli.Operator) *cobra.Command {
	var s api.Source
	cmd := &cobra.Command{
		Use: "set PROJECT LABEL", Short: "Change settings of a source; settings without a flag keep their value",
		Args: cobra.ExactArgs(2), SuggestFor: []string{"update", "change", "edit"},
		Example: "  docent source set docs blog --weight 0.5 --group staff",
		RunE: func(cmd *cobra.Command, args []string) error {
			p := operator.SourceParams{ID: api.ProjectID(args[0]), Name: args[1]}
			var list []sources.Source
			if err := o.Run(cmd, operator.OpSourceList, p, &list); err != nil {
				return err
			}
			for _, old := range list {
				if old.Label != args[1] {
					continue
				}
				if old.First {
					return cli.Usagef("%s is the project's own source: change it with `docent project set %s`", args[1], args[0])
				}
				p.Source = old.Source
				overlay(cmd, func(onto *cobra.Command) { sourceFlags(onto, &p.Source) }, func() { p.Source = old.Source })
				if cmd.Flags().Changed("address") && p.Source.Kind == api.SourceFiles {
					p.Source.Address = cli.AbsoluteSource(p.Source.Address)
				}
				return runSource(o, cmd, operator.OpSourceSet, p)
			}
			return fmt.Errorf("project %s has no source %q; `docent source list %s` lists them", args[0], args[1], args[0])
		},
	}
	sourceFlags(cmd, &s)
	return cmd
}

// overlay sets in something what was given on the command line: flags binds it to a command's flags, which sets their
// defaults, and restore takes those back.
func overlay(cmd *cobra.Command, flags func(*cobra.Command), restore func()) {
	onto := new(cobra.Command)
	flags(onto)
	restore()
	cmd.Flags().Visit(func(given *pflag.Flag) {
		flag := onto.Flags().Lookup(given.Name)
		if flag == nil {
			return
		}
		if list, ok := given.Value.(pflag.SliceValue); ok {
			_ = flag.Value.(pflag.SliceValue).Replace(list.GetSlice())
		} else {
			_ = flag.Value.Set(given.Value.String())
		}
	})
}

const sourceHead = "LABEL\tKIND\tWEIGHT\tAUDIENCE\tAGENT\tPAGES\tADDRESS\tSTATE"

func sourceRow(s sources.Source) string {
	edits := "reads"
	if s.Editable {
		edits = "edits"
	}
	return fmt.Sprintf("%s\t%s\t%g\t%s\t%s\t%d\t%s\t%s", s.Label, cmp.Or(string(s.Kind), "files"), s.Counts,
		cmp.Or(strings.Join(s.Groups, ","), "everybody"), edits, s.Pages, cmp.Or(s.Address, "-"), cmp.Or(s.Error, "good"))
}

func newSourceListCommand(o *cli.Operator) *cobra.Command {
	return &cobra.Command{
		Use: "list PROJECT", Short: "List a project's sources, its own first, and the result of their last read", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return cli.ShowRows(o, cmd, operator.OpSourceList, operator.SourceParams{ID: api.ProjectID(args[0])}, sourceHead, sourceRow)
		},
	}
}

func newSourceUploadCommand(o *cli.Operator) *cobra.Command {
	return &cobra.Command{
		Use: "upload PROJECT LABEL FILE.zip", Short: "Replace the pages of a zip source", Args: cobra.ExactArgs(3),
		Long: "Replace the pages of a zip source with those of a new ZIP file. The file is checked first and replaces the old one\n" +
			"completely or not at all. Uploading the same file again changes nothing. Use - to read from standard input.",
		Example: "  docent source upload docs blog ./blog.zip",
		RunE: func(cmd *cobra.Command, args []string) error {
			from := cmd.InOrStdin()
			if args[2] != "-" {
				file, err := os.Open(args[2])
				if err != nil {
					return err
				}
				defer file.Close()
				from = file
			}
			p := operator.SourceParams{ID: api.ProjectID(args[0]), Name: args[1], Upload: strings.ToLower(rand.Text())}
			piece := make([]byte, operator.UploadPiece)
			for !p.Last {
				n, err := io.ReadFull(from, piece)
				if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
					return fmt.Errorf("read %s: %w", args[2], err)
				}
				p.Data, p.Last = piece[:n], err != nil
				if !p.Last {
					if err := o.Run(cmd, operator.OpSourceUpload, p, nil); err != nil {
						return err
					}
				}
			}
			return runSource(o, cmd, operator.OpSourceUpload, p)
		},
	}
}
