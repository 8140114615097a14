package sidebar

import (
	"cmp"
	"path"
	"regexp"
	"slices"
	"strings"

	"docent/internal/glob"
)

// compareMkDocs orders what a folder holds: as its .pages lists it, else its index, its other files and then its folders.
func (t *tree) compareMkDocs(of *node) func(a, b *node) int {
	f := t.rules.folders[of.path]
	rank := func(n *node) int { // of MkDocs itself
		switch stem := strings.ToLower(n.stem()); {
		case n.folder:
			return 2
		case stem == "index" || stem == "readme":
			return 0
		}
		return 1
	}
	byRule := func(a, b *node) int { return cmp.Or(cmp.Compare(rank(a), rank(b)), strings.Compare(a.name, b.name)) }
	if f.sorted {
		name := func(n *node) string {
			if f.byTitle && !n.folder {
				return n.title
			}
			return n.name
		}
		byRule = func(a, b *node) int {
			c := strings.Compare(name(a), name(b))
			if f.natural {
				c = natural(name(a), name(b))
			}
			if f.reversed {
				c = -c
			}
			return c
		}
	}
	// What the list does not name stands where a pattern or "..." does, or else at the end.
	named := map[string]int{}
	var rests []int
	for i, e := range f.list {
		if e.rest != nil {
			rests = append(rests, i)
		} else {
			named[e.name] = i
		}
	}
	place := make(map[*node]int, len(of.kids))
	for _, n := range of.kids {
		at, ok := named[n.name]
		if !ok {
			at, ok = named[n.stem()]
		}
		if !ok {
			at = len(f.list)
			if i := slices.IndexFunc(rests, func(i int) bool { return f.list[i].rest(n.name) }); i >= 0 {
				at = rests[i]
			}
		}
		place[n] = at
	}
	return func(a, b *node) int { return cmp.Or(cmp.Compare(place[a], place[b]), byRule(a, b)) }
}

// maxPatterns bounds the patterns of a list: each is held against each name.
const maxPatterns = 20

// rest is the rest of a folder that a pattern matches: a glob, or with regex= before it a regular expression.
func rest(pattern string) func(name string) bool {
	if text, ok := strings.CutPrefix(pattern, "regex="); ok {
		re, err := regexp.Compile(text)
		if err != nil {
			return func(string) bool { return false }
		}
		return re.MatchString
	}
	if pattern == "" {
		return anything
	}
	return glob.Globs(strings.TrimPrefix(pattern, "glob="))[0].Match
}

var digits = regexp.MustCompile(`\d+|\D+`)

// natural compares numbers within texts as numbers.
func natural(a, b string) int {
	x, y := digits.FindAllString(a, -1), digits.FindAllString(b, -1)
	for i := range min(len(x), len(y)) {
		n, isNumber := number(x[i])
		m, too := number(y[i])
		c := strings.Compare(x[i], y[i])
		if isNumber && too {
			c = cmp.Compare(n, m)
		}
		if c != 0 {
			return c
		}
	}
	return cmp.Compare(len(x), len(y))
}

// readPages reads the .pages of awesome-pages, and the .nav.yml of awesome-nav, which came after it.
func readPages(doc map[string]any) (f folder) {
	f.label = word(doc["title"])
	f.hidden = doc["hide"] == true
	f.reversed = word(doc["order"]) == "desc"
	f.natural = word(doc["sort_type"]) == "natural"
	f.byTitle = word(doc["order_by"]) == "title"
	f.sorted = doc["order"] != nil || doc["sort_type"] != nil || doc["order_by"] != nil
	list, written := doc["nav"].([]any)
	if !written {
		list, _ = doc["arrange"].([]any)
	}
	patterns := 0
	add := func(to, title string) {
		pattern, isRest := strings.CutPrefix(to, "...")
		if isRest {
			pattern = strings.Trim(strings.TrimPrefix(strings.Trim(pattern, "| "), "flat"), "| ")
		}
		switch {
		case isRest || strings.Contains(to, "*"): // awesome-nav has the pattern alone
			if patterns++; patterns <= maxPatterns {
				f.list = append(f.list, entry{rest: rest(pattern)})
			}
		default:
			f.list = append(f.list, entry{name: path.Clean(to), title: title})
		}
	}
	for _, v := range list[:min(len(list), maxEntries)] {
		switch v := v.(type) {
		case string:
			add(v, "")
		case map[string]any:
			for title, x := range v {
				if to, ok := x.(string); ok {
					add(to, title)
				} else if below, ok := x.([]any); ok { // a group that is no folder
					for _, x := range below[:min(len(below), maxEntries)] {
						if to, ok := x.(string); ok {
							add(to, "")
						}
					}
				}
			}
		}
	}
	return f
}
