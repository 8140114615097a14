package stores

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"docent/api"
	"docent/internal/cell"
	"docent/search/sources"
	website "docent/search/sources/crawl"
)

// WebSites collects the sources that are web sites.
type WebSites struct{ Crawler *website.Crawler }

// newWebSites has a scratch folder of its own: a container need not have one for temporary files.
func newWebSites(log *slog.Logger, apart *cell.Pool, scratch string) WebSites {
	return WebSites{website.New(website.Options{Log: log, Cell: apart.Do, Scratch: scratch})}
}

// SiteSettings is what a project says of the site that it is read from.
func SiteSettings(p api.Project) website.Settings {
	o := p.Collect.Web
	return website.Settings{Start: p.Source, Prefix: o.Prefix, Include: p.Include, Exclude: p.Exclude, Sitemap: o.Sitemap,
		MaxPages: o.MaxPages, AllowPrivate: o.AllowPrivate}
}

// Collect implements sources.Collector.
func (w WebSites) Collect(ctx context.Context, p api.Project, dir string, progress sources.Progress) (
	sources.Collected, error) {
	at := website.Place{Pages: filepath.Join(dir, sources.PagesDir), State: dir}
	report, err := w.Crawler.Crawl(ctx, SiteSettings(p), at, progress)
	var file *fs.PathError
	var link *os.LinkError
	if err != nil && ctx.Err() == nil && !errors.As(err, &file) && !errors.As(err, &link) { // the site's fault, and no secret of this machine
		err = &api.StateError{Kind: api.ErrUnavailable, Reason: err.Error()}
	}
	if err != nil {
		return sources.Collected{}, err
	}
	out := sources.Collected{Pages: report.Pages, Changed: report.New + report.Changed + report.Gone, Notes: []string{report.String()},
		Site: &sources.SiteCounts{New: report.New, Changed: report.Changed, Gone: report.Gone, LeftOut: report.LeftOut,
			Failed: report.Failed}}
	out.Notes = append(out.Notes, report.Notes...)
	for i, problem := range report.Problems {
		if i == mostSiteNotes {
			out.Notes = append(out.Notes, fmt.Sprintf("and %d more pages like that", len(report.Problems)-i))
			break
		}
		out.Notes = append(out.Notes, SayProblem(problem))
	}
	return out, nil
}

const mostSiteNotes = 50 // pages that are named among the notes of a source

// SayProblem says in one line why a page was not read.
func SayProblem(p website.Problem) string {
	if p.Kept {
		return p.URL + ": " + p.Why + " (what was read of it before still answers)"
	}
	return p.URL + ": " + p.Why
}
