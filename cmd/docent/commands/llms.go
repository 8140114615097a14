package commands

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"docent/api"
	"docent/cmd/docent/cli"
	"docent/cmd/docent/config"
	"docent/cmd/docent/server"
	"docent/internal/brief"
	"docent/router/llms"
)

func newLLMSCommand(prog cli.Program) *cobra.Command {
	var p api.Project
	var to, base string
	cmd := &cobra.Command{
		Use: "llms", Short: "Write llms.txt, llms-full.txt and each page as Markdown, for a static site", Args: cobra.NoArgs,
		Long: "Write the published pages of a documentation set for AI tools: llms.txt, llms-full.txt, and each page as Markdown at its own\n" +
			"address plus .md (index.html.md for folders). No server is needed. A server serves the same at /llms/DOMAIN/llms.txt.",
		Example: "  docent llms --source ./docs --to ./build",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := cli.Required(cmd, "source", "to"); err != nil {
				return err
			}
			p.ID, p.Source = "docs", cli.AbsoluteSource(p.Source)
			files, err := writeLLMS(cmd.Context(), prog, p, base, to, cmd.ErrOrStderr())
			if err == nil {
				fmt.Fprintf(cmd.OutOrStdout(), "%s in %s\n", brief.Count(files, "file"), to)
			}
			return err
		},
	}
	flags := cmd.Flags()
	documentationFlags(flags, &p)
	flags.StringVar(&p.Name, "name", "", "name of the documentation (default: the site's title)")
	flags.StringVar(&to, "to", "", "folder to write the files to")
	flags.StringVar(&base, "base-url", "", "address that the files will be published under (default: the site's)")
	return cmd
}

// writeLLMS writes the files and says how many.
func writeLLMS(ctx context.Context, prog cli.Program, p api.Project, base, to string, stderr io.Writer) (files int,
	err error) {
	a, project, end, err := server.Temporary(ctx, prog.Configured(config.Default()), p, stderr)
	if err != nil {
		return 0, err
	}
	defer func() {
		if e := end(); err == nil {
			err = e
		}
	}()
	if project.SiteURL = cmp.Or(project.SiteURL, a.Stores.Library.Address(p.ID)); project.SiteURL == "" {
		return 0, errors.New("the site's configuration does not say its address; send --site-url")
	}
	base = strings.TrimRight(cmp.Or(base, project.SiteURL), "/")
	pages, err := a.Stores.Library.Published(ctx, p.ID)
	if err != nil {
		return 0, err
	}
	write := func(name string, text func(io.Writer) error) error {
		var b bytes.Buffer
		if err := text(&b); err != nil {
			return err
		}
		path := filepath.Join(to, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		files++
		return os.WriteFile(path, b.Bytes(), 0o644)
	}
	err = write("llms.txt", func(w io.Writer) error { return llms.Index(w, project, pages, base) })
	if err != nil {
		return files, err
	}
	err = write("llms-full.txt", func(w io.Writer) error { return llms.Full(ctx, w, project, a.Stores.Library) })
	if err != nil {
		return files, err
	}
	for _, info := range pages {
		page, err := a.Stores.Library.Page(ctx, p.ID, info.Path, nil)
		if err != nil {
			return files, err
		}
		if err := write(llms.File(info, project.SiteURL), func(w io.Writer) error { return llms.Page(w, page) }); err != nil {
			return files, err
		}
	}
	return files, nil
}
