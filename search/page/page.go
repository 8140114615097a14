// Package page provides the pages and sections of a documentation site to an index: it reads one file, in Markdown,
// MDX, HTML or as the description of an API, and makes the record that the index keeps of it and a document
// for each section. What other files add to a page, its place in the navigation or the text of links that lead to it,
// comes with its Source.
package page

import (
	"encoding/binary"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"docent/site"
	"docent/site/expand"
)

// A Record is what the index knows of one file.
type Record struct {
	_           struct{} `cbor:",toarray"`
	UID         uint32   // names the file's sections in Bleve, for as long as the path exists
	Path        string   // relative to the documentation folder; below the file's if it holds several pages
	File        string   // that holds the page, if it holds others too: operations of an API
	Hash        string
	Kind        Kind
	Offset      int64 // of the content in the text file
	Size        int64
	CRC         uint32
	Body        int64 // offset in the content of what follows the front matter
	Title       string
	Titles      []string // other names of the page: in navigation, in the sidebar
	Description string
	Version     string   // of the front matter
	Language    string   // of the front matter
	Versions    []string // names of the version that it belongs to, the one that is shown first; of all that share it
	Current     bool     // found by readers who name no version
	Locale      string   // its language; empty for the site's default if nothing names that
	Docs        string   // which docs of the site it belongs to, if several have versions of their own
	Same        string   // names the page in all versions and languages
	Tags        []string
	Keywords    []string
	Groups      []string
	Slug        string   // last part of the page's address, or all of it, if the front matter sets it
	ID          string   // the same by Docusaurus's older rule
	Address     string   // the whole address if the front matter sets that
	Aliases     []string // earlier addresses
	Renders     string   // the operation of an API that the page is about: "GET /pets"
	Shown       string   // path of the page on the site, by the rule of its generator
	Crumbs      []string // titles of the groups or folders above it
	Order       uint8    // place in the navigation, from 1, of its first pages; 0 for any other
	Hidden      bool     // found by its path, not by searching
	Front       site.Front
	Boost       float32
	Links       []Link   // to other pages, in the order of the text
	Imports     []string // files whose text a reader sees in this page, or would if they were there
	Made        uint64   // digest of what they and the site's settings gave to its text; 0 if nothing does
	Derived     uint64   // digest of what other files contributed to the documents of this one
	TitleWords  WordList
	PageLen     [Fields]uint16 // lengths of the fields that the page's first document holds
	Sections    []Section
}

// A Kind is what a file is to the index.
type Kind uint8

const (
	KindPage       Kind = iota + 1
	KindNavigation      // names and orders pages
	KindPart            // seen only within the pages that import it
	KindIgnored         // read and found to be nothing to index
	KindLeftOut         // could be a page, and the site does not show it
	KindGone            // is there no more: the end of what was known of a path
)

// A Link leads from a page to another one.
type Link struct {
	_    struct{} `cbor:",toarray"`
	To   string   // path as far as it can be told from the link alone, without extension
	Text string
}

// A Section is what the index knows of a stretch of a page, from one heading to the next.
type Section struct {
	_       struct{} `cbor:",toarray"`
	Anchor  string
	Heading string
	Level   int
	Trail   []string
	Start   int64 // of the content
	End     int64
	Len     [SectionFields]uint16
	Head    WordList // of the heading
	Body    WordList // of heading and body, for proximity
}

// A WordList holds the hashes of the stemmed words of a text in their order, four bytes each, and after them, if the
// text is a title or heading, the names that cover several of them.
type WordList struct {
	_     struct{} `cbor:",toarray"`
	Words []byte   // 4 bytes a word, little-endian
	Names []Name
}

// A Name is a name of several parts among the words of a list: N of them from At on.
type Name struct {
	_    struct{} `cbor:",toarray"`
	Hash uint32
	At   uint16
	N    uint16
}

// Len is how many words there are, and At the hash of one.
func (w WordList) Len() int         { return len(w.Words) / 4 }
func (w WordList) At(i int) uint32  { return binary.LittleEndian.Uint32(w.Words[4*i:]) }
func (w *WordList) add(hash uint32) { w.Words = binary.LittleEndian.AppendUint32(w.Words, hash) }

// Origin is the path of the file that holds the page.
func (r *Record) Origin() string {
	if r.File != "" {
		return r.File
	}
	return r.Path
}

// SourceName is the name that says how the record's text is read.
func (r *Record) SourceName() string {
	if IsData(r.Origin()) || site.IsPDF(r.Path) || expand.Markup(r.Path) && r.Made != 0 {
		return r.Path + ".md" // see Texts
	}
	return r.Path
}

// Page is what the record's file says of its own address.
func (r *Record) Page() site.Page {
	return site.Page{Path: r.Origin(), Title: r.Title, Slug: r.Slug, ID: r.ID, Address: r.Address, Date: r.Front.Date,
		Categories: r.Front.Categories}
}

// URL is the address of the page for readers, or of one of its anchors.
func (r *Record) URL(siteURL, anchor string) string {
	out := (&url.URL{Path: "/" + r.Shown}).EscapedPath()
	if strings.Contains(r.Shown, "://") { // a page that was collected elsewhere than on the site
		out = r.Shown
	} else if base := strings.TrimRight(siteURL, "/"); base != "" {
		if out == "/" {
			out = ""
		}
		out = base + out
	}
	if anchor != "" {
		out += "#" + anchor
	}
	return out
}

// HasVersion reports whether the page belongs to a version.
func (r *Record) HasVersion(version string) bool {
	return slices.ContainsFunc(r.Versions, func(v string) bool { return strings.EqualFold(v, version) })
}

// VersionShown is the name of the page's version that a reader of this version sees.
func (r *Record) VersionShown(version string) string {
	for _, v := range r.Versions {
		if strings.EqualFold(v, version) {
			return v
		}
	}
	if len(r.Versions) > 0 {
		return r.Versions[0]
	}
	return ""
}

// TakesFrom reports whether all who may read the page may read another one, so that it may hold what that one says.
func (r *Record) TakesFrom(other *Record) bool { return expand.Open(r.Groups, other.Groups) }

// Allowed reports whether a caller with these groups may see the page.
func (r *Record) Allowed(groups []string) bool {
	return len(r.Groups) == 0 || slices.ContainsFunc(r.Groups, func(g string) bool { return slices.Contains(groups, g) })
}

// SectionID names the document of a page's section in Bleve.
func SectionID(uid uint32, n int) string {
	return strconv.FormatUint(uint64(uid), 36) + "." + strconv.Itoa(n)
}

// ParseSectionID reads what SectionID wrote.
func ParseSectionID(id string) (uid uint32, n int, ok bool) {
	a, b, found := strings.Cut(id, ".")
	u, err1 := strconv.ParseUint(a, 36, 32)
	n, err2 := strconv.Atoi(b)
	return uint32(u), n, found && err1 == nil && err2 == nil
}
