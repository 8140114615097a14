package main

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"docent/api"
	website "docent/crawl"
	"docent/ingest"
)

// webSites collects the sources that are web sites.
type webSites struct{ crawler *website.Crawler }

// newWebSites has a scratch folder of its own: a container need not have one for temporary files.
func newWebSites(log *slog.Logger, scratch string) webSites {
	return webSites{website.New(website.Options{Log: log, Scratch: scratch})}
}

// siteSettings is what a project says of the site that it is read from.
func siteSettings(p api.Project) website.Settings {
	o := p.Collect.Web
	return website.Settings{Start: p.Source, Prefix: o.Prefix, Include: p.Include, Exclude: p.Exclude, Sitemap: o.Sitemap,
		MaxPages: o.MaxPages, AllowPrivate: o.AllowPrivate}
}

// Collect implements ingest.Collector.
func (w webSites) Collect(ctx context.Context, p api.Project, dir string, progress ingest.Progress) (
	ingest.Collected, error) {
	at := website.Place{Pages: filepath.Join(dir, ingest.PagesDir), State: dir}
	report, err := w.crawler.Crawl(ctx, siteSettings(p), at, progress)
	if err != nil {
		return ingest.Collected{}, err
	}
	out := ingest.Collected{Pages: report.Pages, Changed: report.New + report.Changed + report.Gone, Notes: []string{report.String()},
		Site: &ingest.SiteCounts{New: report.New, Changed: report.Changed, Gone: report.Gone, LeftOut: report.LeftOut,
			Failed: report.Failed}}
	out.Notes = append(out.Notes, report.Notes...)
	for i, problem := range report.Problems {
		if i == mostSiteNotes {
			out.Notes = append(out.Notes, fmt.Sprintf("and %d more pages like that", len(report.Problems)-i))
			break
		}
		out.Notes = append(out.Notes, sayProblem(problem))
	}
	return out, nil
}

const mostSiteNotes = 50 // pages that are named among the notes of a source

func sayProblem(p website.Problem) string {
	if p.Kept {
		return p.URL + ": " + p.Why + " (what was read of it before still answers)"
	}
	return p.URL + ": " + p.Why
}

// webFlags adds the flags that describe what is read of a web site.
func webFlags(cmd *cobra.Command, o *api.WebOptions) {
	flags := cmd.Flags()
	flags.StringVar(&o.Prefix, "prefix", "", "of a web site: only pages whose address begins with this path (that of the address where empty)")
	flags.StringVar(&o.Sitemap, "sitemap", "",
		"of a web site: address of its sitemap, or none to follow links (llms.txt, its sitemaps or links where empty)")
	flags.IntVar(&o.MaxPages, "max-pages", 0, "of a web site: pages that are read at most (0 for 5000)")
	flags.BoolVar(&o.AllowPrivate, "allow-private", false, "the web site may be on this machine or in a private network")
}

func newCrawlCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "crawl", Short: "See how a web site would be read"}
	var s api.Source
	var pages int
	var asJSON bool
	preview := &cobra.Command{
		Use: "preview URL", Short: "Read the first pages of a web site and show them; nothing is kept", Args: cobra.ExactArgs(1),
		Long: "Reads the first pages of a web site as a source of the kind web is read, and shows how its pages are found, what they are called,\n" +
			"how long they are, and what is left out and why. It needs neither a data directory nor a server, and keeps nothing.",
		Example: "  docent crawl preview https://docs.example.com --pages 20",
		RunE: func(cmd *cobra.Command, args []string) error {
			p := api.Project{Source: args[0], Include: s.Include, Exclude: s.Exclude, Collect: s.Collect}
			if !strings.Contains(p.Source, "://") {
				p.Source = "https://" + p.Source
			}
			crawler := website.New(website.Options{})
			report, err := crawler.Preview(cmd.Context(), siteSettings(p), pages, func(string, int, int) {})
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(cmd.OutOrStdout(), report)
			}
			return printPreview(cmd.OutOrStdout(), report)
		},
	}
	flags := preview.Flags()
	flags.IntVar(&pages, "pages", 10, "pages that are read")
	flags.BoolVar(&asJSON, "json", false, "print JSON")
	flags.StringArrayVar(&s.Include, "include", nil, "only what this pattern matches is read (repeatable)")
	flags.StringArrayVar(&s.Exclude, "exclude", nil, "what this pattern matches is not read (repeatable)")
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
			fmt.Fprintf(w, "  %s\n", sayProblem(p))
		}
	}
	for _, n := range r.Notes {
		fmt.Fprintf(w, "NOTE: %s\n", n)
	}
	return w.Flush()
}
