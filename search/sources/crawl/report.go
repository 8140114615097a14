package crawl

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"docent/persistence/datadir"
)

const reportFile = "report.json"

// A Report is what a crawl has found.
type Report struct {
	Start     string    `json:"start"`
	Prefix    string    `json:"prefix"` // what the addresses of pages begin with
	Method    string    `json:"method"` // how pages were found
	Found     int       `json:"found"`  // addresses that the site lists; 0 if links were followed
	Began     time.Time `json:"began"`
	Ended     time.Time `json:"ended"`
	Complete  bool      `json:"complete"` // nothing stopped it before all was read
	Pages     int       `json:"pages"`
	New       int       `json:"new"`
	Changed   int       `json:"changed"`
	Gone      int       `json:"gone"`
	LeftOut   int       `json:"leftOut"`
	Failed    int       `json:"failed"`    // could not be asked for now: what was read before stays
	Requests  int       `json:"requests"`  // also for robots.txt, sitemaps and what was not there
	Unchanged int       `json:"unchanged"` // answers that said so, without the page
	Skipped   int       `json:"skipped"`   // pages that were not asked for, since the sitemap says that they are unchanged
	Bytes     int64     `json:"bytes"`
	Notes     []string  `json:"notes,omitempty"`
	Problems  []Problem `json:"problems,omitempty"` // the first of those that failed or are left out
	Read      []Page    `json:"read,omitempty"`     // the first pages
}

// A Problem is an address that is no page, or could not be asked for.
type Problem struct {
	URL  string `json:"url"`
	Why  string `json:"why"`
	Kept bool   `json:"kept,omitempty"` // what was read of it before is still there
}

// A Page is one that was read.
type Page struct {
	URL   string   `json:"url"`
	File  string   `json:"file"`
	Title string   `json:"title"`
	Words int      `json:"words"`
	Trail []string `json:"trail,omitempty"`
	By    string   `json:"by"` // what told which part of it is its text
}

// String sums a report up in a line.
func (r Report) String() string {
	text := fmt.Sprintf("%d pages by %s: %d new, %d changed, %d gone, %d left out, %d failed; %d requests, %.1f MB", r.Pages, r.Method,
		r.New, r.Changed, r.Gone, r.LeftOut, r.Failed, r.Requests, float64(r.Bytes)/1e6)
	if !r.Complete {
		text += "; not all of the site was read"
	}
	return text
}

const readShown = 100 // pages that a report names

// report sums up what the state says of this round.
func (r *run) report() Report {
	out := r.sum
	out.Start, out.Prefix = r.scope.start.String(), r.scope.origin+r.scope.prefix
	out.Began, out.Ended = r.state.head.Began, r.crawler.o.Now().UTC()
	out.Complete, out.Notes = r.complete(), r.notes
	round := r.state.head.Round
	for _, rec := range r.state.all() {
		switch {
		case rec.Kind == isPage:
			out.Pages++
			if rec.Since == round {
				out.New++
			} else if rec.Changed == round {
				out.Changed++
			}
			if len(out.Read) < readShown {
				out.Read = append(out.Read, Page{rec.URL, rec.File, rec.Title, rec.Words, rec.Trail, rec.By})
			}
			if rec.Why != "" {
				out.Failed++
				out.Problems = append(out.Problems, Problem{rec.URL, rec.Why, true})
			}
		case rec.Kind == isFailed:
			out.Failed++
			out.Problems = append(out.Problems, Problem{URL: rec.URL, Why: rec.Why})
		case rec.Kind == isLeftOut:
			out.LeftOut++
			out.Problems = append(out.Problems, Problem{URL: rec.URL, Why: rec.Why})
		}
	}
	slices.SortStableFunc(out.Problems, func(a, b Problem) int { return cmp.Compare(order(a), order(b)) })
	out.Problems = out.Problems[:min(len(out.Problems), maxProblems)]
	return out
}

// order puts pages first that are old.
func order(p Problem) int {
	if p.Kept {
		return 0
	}
	return 1
}

// keepReport leaves the report beside the state, for the server's operator.
func (r *run) keepReport(out Report) error {
	raw, err := json.MarshalIndent(out, "", " ")
	if err != nil {
		return err
	}
	return datadir.WriteFile(filepath.Join(r.at.State, reportFile), raw, 0o600)
}
