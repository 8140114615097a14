package page

import (
	"path"
	"strings"

	"docent/search/analysis"
)

// FileName is what a page's path says as a title: the name of its file, without numbers that order it.
func (r *Record) FileName() string {
	name := strings.TrimSuffix(path.Base(r.Path), path.Ext(r.Path))
	return strings.TrimLeft(name, "0123456789-_. ")
}

// Fit says how well a page's titles name what an opening asks for. The name of its file is short for its title: it counts if it says
// nothing else, or if the title has nothing of it.
func (r *Record) Fit(kind analysis.Opening) float64 {
	fit, name := kind.Fit(r.Title), r.FileName()
	if fit == 0 || strings.Count(name, "-") < 2 {
		fit = max(fit, 0.9*kind.Fit(name))
	}
	for _, title := range r.Titles {
		fit = max(fit, kind.Fit(title))
	}
	return fit
}

// FitOf says how well a heading of the page does: "Installation" of a page about something else is how to install that.
func (r *Record) FitOf(kind analysis.Opening, heading string) float64 {
	if r.Begins() || kind.Fit(r.Title) > 0 {
		return kind.Fit(heading)
	}
	return kind.Fit(r.Title + " " + heading)
}

// Begins reports whether what a page's headings say is said of the whole project: it is where readers begin.
func (r *Record) Begins() bool {
	return r.AtRoot() || r.Order == 1 || analysis.Start.Fit(r.Title) >= 0.9 && strings.Count(strings.Trim(r.Shown, "/"), "/") <= 1
}

// AtRoot reports whether a page is the one that a site begins with.
func (r *Record) AtRoot() bool {
	if r.Shown == "" {
		return true
	}
	below := strings.Count(strings.Trim(r.Shown, "/"), "/")
	switch strings.ToLower(r.FileName()) {
	case "readme", "index":
		return below == 0 && strings.EqualFold(strings.TrimSuffix(r.Shown, path.Ext(r.Shown)), r.FileName())
	case "home", "introduction", "intro", "overview", "welcome":
		return below == 0
	}
	return false
}

// A Release is a section about a version.
type Release struct {
	Section int
	Version []int
}

// Releases are a page's sections about releases; the first one if the page is about one.
func (r *Record) Releases() (out []Release) {
	name := strings.ToLower(r.Path)
	version := analysis.ReleaseIn(r.Title)
	if version == nil {
		version = analysis.ReleaseIn(strings.TrimSuffix(path.Base(r.Path), path.Ext(r.Path)))
	}
	switch {
	case analysis.Changelog.Fit(r.Title) < 0.5 && analysis.Changelog.Fit(r.FileName()) < 0.5 && !strings.Contains(name, "releases/") &&
		!strings.Contains(name, "changelog") && !strings.Contains(name, "changes"):
		return nil
	case version != nil:
		return []Release{{0, version}}
	}
	for n := range r.Sections {
		if v := analysis.ReleaseIn(r.Sections[n].Heading); v != nil && r.Sections[n].Level <= 3 {
			out = append(out, Release{n, v})
		}
	}
	return out
}
