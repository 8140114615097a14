// Package search finds sections of the documentation. Pages are cut at their headings, indexed with Bleve and ranked
// by BM25F over sections and whole pages, computed from Bleve's postings.
//
// A query sees one state of a project's documentation, whole: the one before an update or the one after it, never both.
// What is on disk is checked before it answers, and what cannot be trusted answers ErrNotIndexed until Update has
// rebuilt it. An index that was updated many times answers exactly as one that was built at once.
package search

import (
	"errors"

	"docent/search/analysis"
	"docent/search/index"
)

// A Query asks for the sections that answer Text best.
type Query struct {
	Text        string
	Limit       int     // pages; default 5
	Sections    int     // of one page at most; its best one alone if zero
	Threshold   float64 // leave out what scores less; 0 to 1
	Filter      Filter
	CurrentPath string // page that the reader is on; its version and its language are searched, its neighbors come first
	Box         bool   // typed in a search box: slips are forgiven, the last word may be unfinished
	// Everywhere looks in all versions and languages, which readers never see side by side, and in no published site.
	Everywhere bool `cbor:"-"`
	// Asked are the reader's own words, the newest first, if Text is not: they tell which language is wanted if
	// neither the filter nor the current page does.
	Asked []string `cbor:"-"`
	// Meaning says whether sections are found by what they mean as well, if the library has an embedder.
	Meaning SemanticMode `cbor:"-"`
	// Degraded receives what had no part in the search, and why: "meaning: …". It may be nil.
	Degraded func(why string) `cbor:"-"`
	// Weights are tried in place of the library's own, by the names of TrialWeights. They are for operators alone.
	Weights map[string]float64 `cbor:",omitempty"`
	// Opening is what a question asks that everybody asks first: the pages that the site puts there come before others.
	Opening analysis.Opening `cbor:",omitempty"`
}

// pages is how many a query finds at the most.
func (q *Query) pages() int {
	if q.Limit <= 0 {
		return 5
	}
	return q.Limit
}

// A Filter leaves out pages of other kinds. If Version or Language is empty, the reader's are meant: see Query.
type Filter struct {
	Version  string   `json:"version,omitempty"`
	Language string   `json:"language,omitempty"`
	Tag      string   `json:"tag,omitempty"`
	Groups   []string `json:"groups,omitempty"`                    // pages restricted to groups are found only with one of them
	Sources  []string `json:"sources,omitempty" cbor:",omitempty"` // labels of the project's sources; all if empty
}

// A Hit is one section, best first. If a query asks for several sections of a page, each has the score that its page
// would have by it alone, and none repeats what one before it holds.
type Hit struct {
	// of the page, relative to the documentation folder, with its extension; behind @label/ if it is in a further source
	Path    string
	File    string // that holds the page: another one than Path if it holds several, as operations of an API
	Anchor  string // of the section; empty for the text before the first heading
	URL     string // its address for readers
	Title   string // of the page
	Heading string
	Trail   []string // headings above it
	Crumbs  []string // titles of the groups or folders above the page
	Content string   // the section in Markdown
	Score   float64
	// Facets of the page.
	Description string
	Version     string
	Language    string
	Tags        []string
	Opens       bool   // the site has it where what the query's Opening asks for belongs
	Source      string // label of the project's source that the page is in; empty if it has only one
}

// A Page is a whole page, without what its readers do not see: comments, and what the site's generator replaces.
type Page struct {
	Path    string
	Title   string
	URL     string
	Content string // the file without its front matter
	Groups  []string
}

// What an update takes and gives, and what a check does.
type (
	Tree        = index.Tree
	Report      = index.Report
	Check       = index.Check
	CheckedPage = index.CheckedPage
	LeftOut     = index.LeftOut
	DeadLink    = index.DeadLink
)

// ErrNotIndexed says that a project has no index that can be used: none was made yet, or the one on disk is damaged or
// of another version. Update makes one.
var ErrNotIndexed = errors.New("the documentation is not indexed yet")
