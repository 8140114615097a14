package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"docent/api"
	"docent/ingest"
	"docent/search"
	"docent/uploads"
)

const (
	opSourceAdd    = "source.add"
	opSourceSet    = "source.set"
	opSourceList   = "source.list"
	opSourceRemove = "source.remove"
	opSourceRead   = "source.read"
	opSourceUpload = "source.upload"
)

type sourceParams struct {
	ID     api.ProjectID `json:"id"`
	Name   string        `json:"name,omitempty"` // the label, as the audit log names it
	Source api.Source    `json:"source,omitzero"`
	Upload string        `json:"upload,omitempty"` // one upload, which comes in pieces
	Data   []byte        `json:"data,omitempty"`
	Last   bool          `json:"last,omitempty"`
}

func (o *operations) addSource(ctx context.Context, p sourceParams, progress Progress) (ingest.Source, error) {
	return o.stores.source.AddSource(ctx, p.ID, p.Source, progress)
}

func (o *operations) setSource(ctx context.Context, p sourceParams, progress Progress) (ingest.Source, error) {
	return o.stores.source.SetSource(ctx, p.ID, p.Source, progress)
}

func (o *operations) listSources(ctx context.Context, p sourceParams, _ Progress) ([]ingest.Source, error) {
	return o.stores.source.Sources(ctx, p.ID)
}

func (o *operations) removeSource(ctx context.Context, p sourceParams, _ Progress) (struct{}, error) {
	return struct{}{}, o.stores.source.RemoveSource(ctx, p.ID, p.Name)
}

func (o *operations) readSource(ctx context.Context, p sourceParams, progress Progress) (search.Report, error) {
	part, err := o.stores.source.Part(ctx, sourceID(p.ID, p.Name))
	if err != nil {
		return search.Report{}, err
	}
	o.stores.source.Forget(part.ID)
	return o.stores.source.Refresh(ctx, part, progress)
}

// sourceID is how a source is read: by the project's own id where no label is given.
func sourceID(project api.ProjectID, label string) api.ProjectID {
	if label == "" {
		return project
	}
	return api.SourceID(project, label)
}

// uploadSource takes the next piece of an upload; with the last one it is checked, kept and indexed.
func (o *operations) uploadSource(ctx context.Context, p sourceParams, progress Progress) (ingest.Source, error) {
	part, err := o.stores.uploadTo(ctx, p.ID, p.Name)
	if err != nil {
		return ingest.Source{}, err
	}
	incoming, err := o.stores.uploads.Take(p.Upload, p.Data)
	if err != nil || !p.Last {
		return ingest.Source{}, err
	}
	return o.stores.uploaded(ctx, part, incoming, progress)
}

// uploadTo is a source that zips are uploaded to, as it is read.
func (s *stores) uploadTo(ctx context.Context, project api.ProjectID, label string) (api.Project, error) {
	p, err := s.catalog.Project(ctx, project)
	if err != nil {
		return api.Project{}, err
	}
	part := p.Of(label)
	switch {
	case part.ID == "":
		return part, &api.StateError{Kind: api.ErrNotFound, Reason: fmt.Sprintf(
			"project %s has no source %.40q: add it with `docent source add %s %s --kind zip`", project, label, project,
			cmp.Or(label, "LABEL"))}
	case part.Kind != api.SourceZip:
		return part, &api.StateError{Kind: api.ErrConflict, Reason: fmt.Sprintf(
			"the source %s of project %s is %s: zips are uploaded to a source of the kind zip", part.FirstLabel(), project,
			part.Kind.Said())}
	}
	return part, nil
}

// uploaded keeps an upload that has come whole, and reads it. What is kept is read again after a crash.
func (s *stores) uploaded(ctx context.Context, part api.Project, incoming uploads.Incoming, progress Progress) (
	ingest.Source, error) {
	if _, err := incoming.Keep(ctx, s.source.CollectedDir(part.ID)); err != nil {
		return ingest.Source{}, err
	}
	s.source.Forget(part.ID)
	if _, err := s.source.Refresh(ctx, part, progress); err != nil {
		return ingest.Source{}, err
	}
	project, label := api.SplitSource(part.ID)
	list, err := s.source.Sources(ctx, project)
	if err != nil {
		return ingest.Source{}, err
	}
	for _, one := range list {
		if one.First == (label == "") && (label == "" || one.Label == label) {
			return one, nil
		}
	}
	return ingest.Source{}, api.Missing("source")
}

func newSourceCommand(prog program) *cobra.Command {
	o := &operator{prog: prog}
	cmd := &cobra.Command{Use: "source", Short: "Further sources of a project: an API reference, a blog, a web site, issues",
		Long: "Further sources of a project, beside the documentation that it was added with. Readers are answered from all of them; each\n" +
			"has a label, a weight, and an audience where it is not for everybody. The agent edits the project's own source."}
	operatorFlags(cmd, o)
	cmd.AddCommand(newSourceAddCommand(o), newSourceSetCommand(o), newSourceListCommand(o), newSourceUploadCommand(o),
		&cobra.Command{
			Use: "remove PROJECT LABEL", Short: "Remove a source with its index and what was read of it", Args: cobra.ExactArgs(2),
			SuggestFor: []string{"delete", "rm"},
			RunE: func(cmd *cobra.Command, args []string) error {
				p := sourceParams{ID: api.ProjectID(args[0]), Name: args[1]}
				if err := o.run(cmd, opSourceRemove, p, nil); err != nil {
					return err
				}
				return o.did(cmd, map[string]string{"removed": args[1]}, "the source %s of %s is removed", args[1], args[0])
			},
		},
		&cobra.Command{
			Use: "read PROJECT LABEL", Short: "Read a source again now and index what changed", Args: cobra.ExactArgs(2),
			RunE: func(cmd *cobra.Command, args []string) error {
				p := sourceParams{ID: api.ProjectID(args[0]), Name: args[1]}
				return show(o, cmd, opSourceRead, p, printIndexed)
			},
		},
		&cobra.Command{
			Use: "check PROJECT LABEL", Short: "List which pages of a source are public and why, and what is left out",
			Args: cobra.ExactArgs(2),
			RunE: func(cmd *cobra.Command, args []string) error {
				id := sourceID(api.ProjectID(args[0]), args[1])
				return show(o, cmd, opProjectCheck, projectParams{ID: id}, printCheck)
			},
		})
	return cmd
}

// sourceFlags adds the flags that describe a source.
func sourceFlags(cmd *cobra.Command, s *api.Source) {
	flags := cmd.Flags()
	flags.StringVar((*string)(&s.Kind), "kind", "", "web, zip or issues; a folder or a git repository where not given")
	flags.StringVar(&s.Address, "address", "",
		"where it is: a folder, a git URL, the address of a web site, or OWNER/NAME for issues; a zip has none")
	flags.StringVar(&s.Name, "title", "", "name shown to people (the label where empty)")
	flags.Float64Var(&s.Weight, "weight", 0, "how much it counts beside the project's own source, which has 1 (0 for 1, of issues 0.6)")
	flags.StringArrayVar(&s.Groups, "group", nil, "only readers with one of these groups are answered from it (repeatable; '' for everybody)")
	flags.StringVar(&s.Every, "every", "", "how often it is read, such as 6h (as often as poll_interval; a web site every 6h, issues every hour)")
	flags.StringVar(&s.Branch, "branch", "", "branch of the repository (its default branch where empty)")
	flags.StringVar(&s.DocsDir, "docs-dir", "", "sub-folder that holds the pages")
	flags.StringVar(&s.SiteURL, "site-url", "", "where readers find the pages; citations link there")
	flags.StringVar((*string)(&s.Site), "site", "", "site generator; recognised by its files where not given")
	flags.StringArrayVar(&s.Include, "include", nil, "only what this pattern matches is a page (repeatable; '' for none)")
	flags.StringArrayVar(&s.Exclude, "exclude", nil, "what this pattern matches is no page (repeatable; '' for none)")
	flags.StringVar((*string)(&s.Host), "host", "", "code host of a private repository, whose token is used: github, gitlab or gitea")
	flags.StringVar(&s.HostURL, "host-url", "", "address of a code host that is not the public one")
	flags.StringVar(&s.Repository, "repository", "", "OWNER/NAME on the code host")
	flags.StringVar(&s.TokenEnv, "token-env", "",
		"environment variable that holds a token (of the project's own host, the project's where not given)")
	flags.Int64Var(&s.AppID, "app-id", 0, "id of a GitHub App; --token-env then names the variable with the app's private key")
	webFlags(cmd, &s.Collect.Web)
	o := &s.Collect.Issues
	flags.StringArrayVar(&o.Labels, "issue-label", nil, "only issues and discussions with this label (repeatable; '' for none)")
	flags.StringArrayVar(&o.Without, "without-label", nil, "none with this label (repeatable; '' for none)")
	flags.BoolVar(&o.Open, "open", false, "also issues that are open and discussions without an answer")
	flags.BoolVar(&o.Discussions, "discussions", false, "discussions too, which need a token")
	flags.BoolVar(&o.OnlyDiscussions, "only-discussions", false, "discussions and no issues")
}

func newSourceAddCommand(o *operator) *cobra.Command {
	p := sourceParams{}
	cmd := &cobra.Command{
		Use: "add PROJECT LABEL", Short: "Add a source: read it and index it", Args: cobra.ExactArgs(2),
		SuggestFor: []string{"create", "new"},
		Example: "  docent source add docs api --address ./openapi --weight 1.2\n" +
			"  docent source add docs manual --kind zip\n" +
			"  docent source add docs blog --kind web --address https://www.example.com/blog/\n" +
			"  docent source add docs issues --kind issues --address acme/product --token-env GITHUB_TOKEN",
		RunE: func(cmd *cobra.Command, args []string) error {
			p.ID, p.Name, p.Source.Label = api.ProjectID(args[0]), args[1], args[1]
			if p.Source.Kind == api.SourceFiles && p.Source.Address != "" {
				p.Source.Address = absoluteSource(p.Source.Address)
			}
			return o.runSource(cmd, opSourceAdd, p)
		},
	}
	sourceFlags(cmd, &p.Source)
	return cmd
}

// runSource adds or changes a source and says what was read of it.
func (o *operator) runSource(cmd *cobra.Command, name string, p sourceParams) error {
	var s ingest.Source
	if err := o.run(cmd, name, p, &s); err != nil {
		return err
	}
	if o.json {
		return printJSON(cmd.OutOrStdout(), s)
	}
	return printSource(cmd, s)
}

func printSource(cmd *cobra.Command, s ingest.Source) error {
	out, loud := cmd.OutOrStdout(), cmd.ErrOrStderr()
	fmt.Fprintf(out, "source %s of %s: %d pages, %d sections at %.12s\n", s.Label, s.Project, s.Pages, s.Sections, s.Commit)
	if len(s.Groups) > 0 {
		fmt.Fprintf(out, "Only readers with one of these groups are answered from it: %s\n", strings.Join(s.Groups, ", "))
	}
	if s.Collection != nil {
		for _, note := range s.Collection.Notes {
			fmt.Fprintf(loud, "NOTE: %s\n", note)
		}
	}
	switch {
	case s.Kind == api.SourceZip && s.Pages == 0:
		fmt.Fprintf(out, "Upload its pages with: docent source upload %s %s FILE.zip\n", s.Project, s.Label)
	case s.Pages == 0:
		fmt.Fprintf(loud, "WARNING: no page is public. `docent source check %s %s` says why.\n", s.Project, s.Label)
	}
	return nil
}

func newSourceSetCommand(o *operator) *cobra.Command {
	var s api.Source
	cmd := &cobra.Command{
		Use: "set PROJECT LABEL", Short: "Change settings of a source; settings without a flag keep their value",
		Args: cobra.ExactArgs(2), SuggestFor: []string{"update", "change", "edit"},
		Example: "  docent source set docs blog --weight 0.5 --group staff",
		RunE: func(cmd *cobra.Command, args []string) error {
			p := sourceParams{ID: api.ProjectID(args[0]), Name: args[1]}
			var list []ingest.Source
			if err := o.run(cmd, opSourceList, p, &list); err != nil {
				return err
			}
			for _, old := range list {
				if old.Label != args[1] {
					continue
				}
				if old.First {
					return usagef("%s is the project's own source: change it with `docent project set %s`", args[1], args[0])
				}
				p.Source = old.Source
				overlay(cmd, func(onto *cobra.Command) { sourceFlags(onto, &p.Source) }, func() { p.Source = old.Source })
				if cmd.Flags().Changed("address") && p.Source.Kind == api.SourceFiles {
					p.Source.Address = absoluteSource(p.Source.Address)
				}
				return o.runSource(cmd, opSourceSet, p)
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

func sourceRow(s ingest.Source) string {
	edits := "reads"
	if s.Editable {
		edits = "edits"
	}
	return fmt.Sprintf("%s\t%s\t%g\t%s\t%s\t%d\t%s\t%s", s.Label, cmp.Or(string(s.Kind), "files"), s.Counts,
		cmp.Or(strings.Join(s.Groups, ","), "everybody"), edits, s.Pages, cmp.Or(s.Address, "-"), cmp.Or(s.Error, "good"))
}

func newSourceListCommand(o *operator) *cobra.Command {
	return &cobra.Command{
		Use: "list PROJECT", Short: "List a project's sources, its own first, and how their last reading went", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return showRows(o, cmd, opSourceList, sourceParams{ID: api.ProjectID(args[0])}, sourceHead, sourceRow)
		},
	}
}

// uploadPiece is how much of a zip goes to the server at once.
const uploadPiece = 512 << 10

func newSourceUploadCommand(o *operator) *cobra.Command {
	return &cobra.Command{
		Use: "upload PROJECT LABEL FILE.zip", Short: "Replace the pages of a source of the kind zip", Args: cobra.ExactArgs(3),
		Long: "Replace the pages of a source of the kind zip by those of a zip. It is checked first, and takes the place of the one before\n" +
			"whole or not at all. The same zip again changes nothing. FILE - is standard input.",
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
			p := sourceParams{ID: api.ProjectID(args[0]), Name: args[1], Upload: strings.ToLower(rand.Text())}
			piece := make([]byte, uploadPiece)
			for !p.Last {
				n, err := io.ReadFull(from, piece)
				if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
					return fmt.Errorf("read %s: %w", args[2], err)
				}
				p.Data, p.Last = piece[:n], err != nil
				if !p.Last {
					if err := o.run(cmd, opSourceUpload, p, nil); err != nil {
						return err
					}
				}
			}
			return o.runSource(cmd, opSourceUpload, p)
		},
	}
}
