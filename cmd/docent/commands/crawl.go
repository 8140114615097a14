package commands

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"docent/api"
	"docent/cmd/docent/cli"
	"docent/cmd/docent/stores"
	website "docent/search/sources/crawl"
)

// webFlags adds the flags that describe what is read of a web site.
func webFlags(cmd *cobra.Command, o *api.WebOptions) {
	flags := cmd.Flags()
	flags.StringVar(&o.Prefix, "prefix", "", "for a web site: read only pages below this path (default: the path of the address)")
	flags.StringVar(&o.Sitemap, "sitemap", "",
		"for a web site: address of its sitemap, or none to follow links (default: llms.txt, then sitemaps, then links)")
	flags.IntVar(&o.MaxPages, "max-pages", 0, "for a web site: maximum number of pages (0 for 5000)")
	flags.BoolVar(&o.AllowPrivate, "allow-private", false, "allow a web site on this machine or a private network")
}

func newCrawlCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "crawl", Short: "Preview how a web site would be indexed"}
	var s api.Source
	var pages int
	var asJSON bool
	preview := &cobra.Command{
		Use: "preview URL", Short: "Read the first pages of a web site and show them, without storing anything", Args: cobra.ExactArgs(1),
		Long: "Read the first pages of a web site the way a web source is read, and show how its pages are found, their titles and lengths,\n" +
			"and what is left out and why. It needs neither a data directory nor a server, and stores nothing.",
		Example: "  docent crawl preview https://docs.example.com --pages 20",
		RunE: func(cmd *cobra.Command, args []string) error {
			p := api.Project{Source: args[0], Include: s.Include, Exclude: s.Exclude, Collect: s.Collect}
			if !strings.Contains(p.Source, "://") {
				p.Source = "https://" + p.Source
			}
			cells := stores.NewCells(slog.New(slog.DiscardHandler))
			defer cells.Close()
			crawler := website.New(website.Options{Cell: cells.Reading.Do})
			report, err := crawler.Preview(cmd.Context(), stores.SiteSettings(p), pages, func(string, int, int) {})
			if err != nil {
				return err
			}
			if asJSON {
				return cli.PrintJSON(cmd.OutOrStdout(), report)
			}
			return printPreview(cmd.OutOrStdout(), report)
		},
	}
	flags := preview.Flags()
	flags.IntVar(&pages, "pages", 10, "number of pages to read")
	flags.BoolVar(&asJSON, "json", false, "print JSON")
	flags.StringArrayVar(&s.Include, "include", nil, "read only addresses that match this pattern (repeatable)")
	flags.StringArrayVar(&s.Exclude, "exclude", nil, "skip addresses that match this pattern (repeatable)")
	webFlags(preview, &s.Collect.Web)
	_ = flags.MarkHidden("max-pages") // --pages is meant
	cmd.AddCommand(preview)
	return cmd
}

func printPreview(out io.Writer, r website.Report) error {
	w := bufio.NewWriter(out)
	fmt.Fprintf(w, "%s is read by %s; pages begin with %s\n\n", r.Start, r.Method, r.Prefix)
	table := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintln(table, "ADDRESS\tTITLE\tWORDS\tTEXT FOUND BY")
	for _, p := range r.Read {
		fmt.Fprintf(table, "%s\t%s\t%d\t%s\n", p.URL, strings.Join(append(p.Trail, cmp.Or(p.Title, "-")), " > "), p.Words, p.By)
	}
	table.Flush()
	if len(r.Problems) > 0 {
		fmt.Fprintln(w, "\nLeft out:")
		for _, p := range r.Problems {
			fmt.Fprintf(w, "  %s\n", stores.SayProblem(p))
		}
	}
	for _, n := range r.Notes {
		fmt.Fprintf(w, "NOTE: %s\n", n)
	}
	return w.Flush()
}
