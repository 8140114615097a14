package published

import (
	"fmt"
	"slices"
	"strings"

	"docent/internal/brief"
)

// A Shown is a page as an index has it.
type Shown struct {
	Path, URL string
	Hidden    bool // no reader finds it by searching
	Anchors   []string
}

// A Comparison says where a published site and its repository differ.
type Comparison struct {
	Summary string `json:"summary"`
	Answers string `json:"answers"` // what readers are answered from, and why
	Site    bool   `json:"site"`    // it is the site
	Pages   int    `json:"pages"`   // of the site
	Files   int    `json:"files"`   // of the repository that its generator's rules make pages of
	Mapped  int    `json:"mapped"`  // of them, that are on the site

	Made      []Row        `json:"made,omitempty"`      // pages that no file of the repository is known for
	Silent    []string     `json:"silent,omitempty"`    // files that are not on the site
	Addresses []Difference `json:"addresses,omitempty"` // pages that are elsewhere than the rule says
	Anchors   []Difference `json:"anchors,omitempty"`   // that the rule makes and the site does not have
	Withheld  []Difference `json:"withheld,omitempty"`  // pages of the site that nobody is answered from
	Excluded  []Row        `json:"excluded,omitempty"`  // pages that are answered, of files that the repository leaves out
	Doubtful  []Row        `json:"doubtful,omitempty"`
	Unread    []string     `json:"unread,omitempty"` // what the crawl says of pages that it could not read
}

// A Difference is one between a page on the site and what is known of its file.
type Difference struct {
	File string `json:"file,omitempty"`
	URL  string `json:"url"`
	Says string `json:"says"`
}

const mostAnchors = 5 // that are named of one page

// Compare says where the pages of a site differ from those of the files that it is made of. Out are the files that the
// repository leaves out; withheld says why nobody is answered from a page.
func Compare(m *Map, pages, files []Shown, out []string, docsDir string, withheld map[string]string) Comparison {
	c := Comparison{Pages: len(m.Rows)}
	byPath, byPage, left := map[string]Shown{}, map[string]Shown{}, map[string]int{}
	for _, f := range files {
		byPath[f.Path] = f
		if !f.Hidden {
			c.Files++
		}
	}
	for _, p := range pages {
		byPage[p.Path] = p
	}
	for i, f := range out {
		left[f] = i
	}
	mapped, there := map[string]bool{}, m.there(byPath)
	for _, row := range m.Rows {
		file, known := byPath[row.File]
		why, kept := withheld[row.Page]
		if kept {
			c.Withheld = append(c.Withheld, Difference{row.File, row.URL, why})
		}
		if row.File == "" {
			if at, found := edited(row.edit, left, docsDir); found && !kept {
				row.File, row.By = out[at], ByLink
				c.Excluded = append(c.Excluded, row)
			} else {
				c.Made = append(c.Made, row)
			}
			continue
		}
		first := known && !mapped[row.File]
		if page, ok := there[row.File]; ok {
			first = page == row.Page
		}
		if mapped[row.File] = true; first && !file.Hidden {
			c.Mapped++
		}
		if row.Doubtful() {
			c.Doubtful = append(c.Doubtful, row)
			continue
		}
		if first && Key(row.URL) != Key(file.URL) {
			c.Addresses = append(c.Addresses, Difference{row.File, row.URL, file.URL})
		}
		if page, read := byPage[row.Page]; read && first {
			if missing := lacks(page.Anchors, file.Anchors); len(missing) > 0 {
				c.Anchors = append(c.Anchors, Difference{row.File, row.URL, strings.Join(missing, " ")})
			}
		}
	}
	for _, f := range files {
		if !f.Hidden && !mapped[f.Path] {
			c.Silent = append(c.Silent, f.Path)
		}
	}
	silent := "1 file publishes nothing"
	if len(c.Silent) != 1 {
		silent = fmt.Sprintf("%d files publish nothing", len(c.Silent))
	}
	c.Summary = fmt.Sprintf("%s on the site, %s; %d mapped, %s, %s generated",
		brief.Count(c.Pages, "page"), brief.Count(c.Files, "file"), c.Mapped, silent, brief.Count(len(c.Made), "page"))
	return c
}

// lacks are the anchors that a page does not have.
func lacks(has, wants []string) (out []string) {
	for _, a := range wants {
		if a == "" || slices.Contains(has, a) {
			continue
		}
		if len(out) == mostAnchors {
			return append(out, "…")
		}
		out = append(out, "#"+a)
	}
	return out
}

// there are the pages that stand at the addresses of their files, by the files: what copies one is not it.
func (m *Map) there(files map[string]Shown) map[string]string {
	out := map[string]string{}
	for _, row := range m.Rows {
		if file, known := files[row.File]; known && Key(row.URL) == Key(file.URL) {
			out[row.File] = row.Page
		}
	}
	return out
}
