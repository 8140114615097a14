// Package published maps the pages of a published site to the files of the repository that they are made of. It reads
// nothing by itself: the caller has both lists.
package published

import (
	"bytes"
	"hash/maphash"
	"maps"
	"net/url"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A Page is one of the site.
type Page struct {
	Path string        // names it where it was read
	URL  string        // where readers find it
	Edit string        // where its link to edit it leads; empty if it has none
	Text func() []byte // nil if it cannot be read; asked for only where nothing else tells
}

// A File is one that the repository's generator makes a page of.
type File struct {
	Path   string // relative to the documentation folder
	URL    string // where its page is by the generator's rule
	Hidden bool   // no reader finds its page by searching
	Text   func() []byte
}

// A How says what told that a page is made of a file.
type How string

const (
	ByLink    How = "its edit link"
	ByAddress How = "its address"
	ByText    How = "its text"
)

// A Row is a page with the file that it is made of.
type Row struct {
	Page string  `json:"page"`
	URL  string  `json:"url"`
	File string  `json:"file,omitempty"` // empty if there is none: the site's generator makes it by itself
	By   How     `json:"by,omitempty"`
	Sure float64 `json:"sure,omitempty"` // from 0 to 1
	edit string  // where its link for editors leads
}

// Doubtful reports whether somebody should look at a row.
func (r Row) Doubtful() bool { return r.File != "" && r.Sure < 0.75 }

// A Map has a row for each page.
type Map struct {
	Rows   []Row
	byPage map[string]int
}

// Of is the row of a page.
func (m *Map) Of(page string) (Row, bool) {
	i, ok := m.byPage[page]
	if !ok {
		return Row{}, false
	}
	return m.Rows[i], true
}

// Files are the files by the keys of their pages' addresses, but those that are in doubt.
func (m *Map) Files() map[string]string {
	out := make(map[string]string, len(m.Rows))
	for _, row := range m.Rows {
		if key := Key(row.URL); row.File != "" && !row.Doubtful() && out[key] == "" {
			out[key] = row.File
		}
	}
	return out
}

// Key is what addresses of one page have in common: neither the host, which a site may have several of, nor what stands
// at the end by a server's rule alone.
func Key(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return address
	}
	p := strings.TrimSuffix(strings.TrimSuffix(u.Path, ".html"), ".htm")
	p = strings.TrimSuffix("/"+strings.Trim(p, "/"), "/index")
	if p == "/" {
		p = ""
	}
	if u.RawQuery != "" {
		p += "?" + u.RawQuery
	}
	return p
}

// Match maps pages to files: by where the link to edit a page leads, by the address that the generator's rule gives a
// file, and what is left by its text. DocsDir is the folder of the files in the repository.
func Match(pages []Page, files []File, docsDir string) Map {
	m := Map{Rows: make([]Row, len(pages)), byPage: make(map[string]int, len(pages))}
	byPath, byKey := make(map[string]int, len(files)), make(map[string]int, len(files))
	taken := make([]bool, len(files))
	for i, f := range files {
		byPath[f.Path] = i
		key := Key(f.URL)
		if first, ok := byKey[key]; f.URL != "" && (!ok || files[first].Hidden && !f.Hidden) {
			byKey[key] = i
		}
	}
	for i, p := range pages {
		row := Row{Page: p.Path, URL: p.URL, edit: p.Edit}
		at, linked := edited(p.Edit, byPath, docsDir)
		if linked {
			row.By, row.Sure = ByLink, 1
		} else if at, linked = byKey[Key(p.URL)]; linked {
			row.By, row.Sure = ByAddress, 0.95
		}
		if linked {
			row.File, taken[at] = files[at].Path, true
		}
		m.Rows[i], m.byPage[p.Path] = row, i
	}
	m.byText(pages, files, taken)
	return m
}

// editing are the parts of addresses behind which code hosts, and Sphinx, name a file.
var editing = map[string]bool{"edit": true, "_edit": true, "blob": true, "tree": true, "src": true, "raw": true, "_sources": true}

// mostBefore is how many parts stand between that and the path of the file: a branch, whose name may have a slash.
const mostBefore = 3

// edited is the file that an edit link leads to.
func edited(link string, files map[string]int, docsDir string) (int, bool) {
	u, err := url.Parse(link)
	if err != nil || link == "" {
		return 0, false
	}
	parts := strings.Split(strings.Trim(u.Path, "/"), "/")
	for at, part := range parts {
		if !editing[part] {
			continue
		}
		for from := at + 1; from <= at+mostBefore && from < len(parts); from++ {
			name := strings.Join(parts[from:], "/")
			below, inDocs := strings.CutPrefix(name, docsDir+"/")
			switch {
			case part == "_sources":
				name = strings.TrimSuffix(name, ".txt")
			case docsDir != "" && !inDocs:
				continue
			case docsDir != "":
				name = below
			}
			if i, ok := files[name]; ok {
				return i, true
			}
		}
	}
	return 0, false
}

// IsEdit reports whether an address may be that of a file in a repository.
func IsEdit(link string) bool {
	u, err := url.Parse(link)
	return err == nil && slices.ContainsFunc(strings.Split(u.Path, "/"), func(part string) bool { return editing[part] })
}

const (
	mostPhrases  = 3000      // of one text
	allPhrases   = 2_000_000 // of all files that are left
	mostHolders  = 100       // files with one phrase: what more have tells none from another
	leastPhrases = 12        // by which a text is told from another
	leastAlike   = 0.5
	clearly      = 0.1 // by which the likest file is ahead of the next one
)

// byText maps the pages that are left to the files that are left, each to the likest. If two are as like, it is the one
// whose path has more words of the page's address, such as a version, or else the one in the folder of the page before,
// since sites list what belongs together side by side.
func (m *Map) byText(pages []Page, files []File, taken []bool) {
	seed := maphash.MakeSeed()
	holds := map[uint64][]int{} // files by phrase
	sizes := make([]int, len(files))
	passed := func(i int) bool { return taken[i] || files[i].Hidden || files[i].Text == nil }
	left := 0
	for i := range files {
		if !passed(i) {
			left++
		}
	}
	most := min(mostPhrases, max(allPhrases/max(left, 1), leastPhrases))
	for i, f := range files {
		if passed(i) {
			continue
		}
		all := phrases(f.Text(), seed, most)
		if sizes[i] = len(all); sizes[i] < leastPhrases {
			continue
		}
		for h := range all {
			holds[h] = append(holds[h], i)
		}
	}
	if len(holds) == 0 {
		return
	}
	before := ""
	for n := range m.Rows {
		row := &m.Rows[n]
		if row.File != "" || pages[n].Text == nil {
			before = row.File
			continue
		}
		all := phrases(pages[n].Text(), seed, most)
		hits := map[int]int{}
		for h := range all {
			if in := holds[h]; len(in) <= mostHolders {
				for _, i := range in {
					hits[i]++
				}
			}
		}
		at, best, next := likeliest(hits, len(all), pages[n].URL, before, files, sizes, taken)
		if at < 0 || best < leastAlike {
			continue
		}
		row.File, row.By, row.Sure, taken[at] = files[at].Path, ByText, min(0.9, best), true
		if best-next < clearly {
			row.Sure = min(row.Sure, 0.6)
		}
		before = row.File
	}
}

// likeliest is the file that has most of a page's phrases, how much of the file these are, and the same of the next one,
// whether or not that file is taken; -1 if there is none. Before is the file of the page before.
func likeliest(hits map[int]int, of int, address, before string, files []File, sizes []int, taken []bool) (at int, best, next float64) {
	at = -1
	named, beside := 0, false
	words := wordsOf(address)
	for _, i := range slices.Sorted(maps.Keys(hits)) {
		score := float64(hits[i]) / float64(sizes[i])
		if hits[i]*10 < of { // what a page takes in from elsewhere
			continue
		}
		if taken[i] {
			next = max(next, score)
			continue
		}
		has, there := 0, before != "" && path.Dir(files[i].Path) == path.Dir(before)
		for word := range wordsOf(files[i].Path) {
			if words[word] {
				has++
			}
		}
		nearer := has > named || has == named && there && !beside
		switch {
		case at < 0 || score > best+clearly || score >= best-clearly && nearer,
			score > best && has == named && there == beside:
			at, best, next, named, beside = i, score, max(best, next), has, there
		default:
			next = max(next, score)
		}
	}
	return at, best, next
}

// wordsOf are the words of a path, among which are numbers of versions.
func wordsOf(p string) map[string]bool {
	out := map[string]bool{}
	for word := range strings.FieldsFuncSeq(strings.ToLower(p), func(r rune) bool { return r == '/' || r == '-' || r == '_' || r == ' ' }) {
		out[word] = true
	}
	return out
}

// phrases are the hashes of the first three words in a row, so many, whatever marks stand between them.
func phrases(text []byte, seed maphash.Seed, most int) map[uint64]bool {
	out := map[uint64]bool{}
	var last [3][]byte
	n := 0
	for word := range bytes.FieldsFuncSeq(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		if r, size := utf8.DecodeRune(word); size == len(word) && r > unicode.MaxASCII {
			continue // a mark that counts as a letter
		}
		last[0], last[1], last[2] = last[1], last[2], word
		if n++; n < len(last) {
			continue
		}
		out[maphash.Bytes(seed, bytes.ToLower(bytes.Join(last[:], []byte{' '})))] = true
		if len(out) == most {
			break
		}
	}
	return out
}
