// Package anchor makes the anchors of headings as the generators of documentation sites do.
package anchor

import (
	"cmp"
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v4"
	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"

	"docent/api"
	"docent/site/markup"
)

// A Rule is how a generator names the headings of a page in addresses.
type Rule struct {
	Name  string // two rules of one name give the same anchors
	slug  func(text string) string
	again func(slug string, n int, a *anchors) string // the anchor of a heading whose slug is taken
	first bool                                        // explicit anchors are taken before any slug is made
	// a heading without a slug gets an anchor as one does whose slug is taken
	unnamed bool
	// hyphens of prose are dashes before a slug is made
	typeset bool
	slugged bool // of explicit ids slugs are made too
	// what pages make of a slug that is unique; nil if that is it
	shown func(slug string) string
}

// Settings are what a configuration says of anchors.
type Settings struct {
	HugoType string // Hugo's autoHeadingIDType
	KeepCase bool   // Docusaurus's maintainCase
	Slugged  bool   // Nextra makes slugs of explicit ids
	Untyped  bool   // Hugo's typographer or Astro's smartypants is off
	Toc      Toc
}

// Of is the rule of a generator.
func Of(kind api.SiteKind, s Settings) Rule {
	rule := Rule{Name: "github", slug: markup.Slug, again: numbered1}
	switch kind {
	case api.SiteNext:
		if s.Slugged {
			rule.Name, rule.slugged = "nextra", true
		}
	case api.SiteDocusaurus:
		if s.KeepCase {
			rule.Name, rule.slug = "github, case kept", markup.SlugInCase
		}
	case api.SiteVitePress:
		rule.Name, rule.slug = "vitepress", vitePressSlug
	case api.SiteStarlight:
		rule.Name, rule.slug = "astro", func(text string) string { return strings.TrimSuffix(markup.Slug(text), "-") }
		rule.typeset = !s.Untyped
	case api.SiteMintlify:
		rule.Name, rule.slug, rule.again, rule.shown = "mintlify", mintlifySlug, numbered2, mintlifyShown
	case api.SiteHugo:
		rule.Name, rule.slug = "hugo "+s.HugoType, func(text string) string { return hugoSlug(s.HugoType, text) }
		rule.typeset = !s.Untyped
	case api.SiteJekyll: // kramdown, which knows GitHub's Markdown by default
		rule.Name, rule.typeset = "kramdown", true
	case api.SiteQuarto:
		rule.Name, rule.slug = "pandoc", pandocSlug
	case api.SiteSphinx:
		rule = Rule{Name: "docutils", slug: markup.DocutilsID, again: func(_ string, _ int, a *anchors) string { return a.free("id", 1) }, unnamed: true}
	case api.SiteMkDocs:
		rule = Rule{Name: fmt.Sprintf("mkdocs %+v", s.Toc), slug: s.Toc.slug, again: underscored1, first: true, unnamed: true}
	}
	if rule.typeset {
		rule.Name += ", typeset"
	}
	return rule
}

var pandocGone = regexp.MustCompile(`[^\pL\pM\p{N}_.\s-]+`)

// pandocSlug is Pandoc's identifier of a heading.
func pandocSlug(text string) string {
	text = strings.Join(strings.Fields(pandocGone.ReplaceAllString(text, "")), "-")
	return cmp.Or(strings.TrimLeftFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) }), "section")
}

// Anchors are the anchors of the headings of one page, in their order: explicit ones as they are, and of each other
// heading its slug, made unique.
func (r Rule) Anchors(headings []markup.Heading) []string {
	out, _ := r.anchors(headings)
	return out
}

func (r Rule) anchors(headings []markup.Heading) (out []string, a *anchors) {
	out = make([]string, len(headings))
	a = &anchors{used: make(map[string]bool, len(headings))}
	for _, h := range headings {
		if h.Custom && r.first {
			a.used[h.Anchor] = true
		}
	}
	counts := make(map[string]int)
	for i, h := range headings {
		anchor := h.Anchor
		if !h.Custom || r.slugged {
			text := cmp.Or(h.Named, h.Text)
			if h.Custom {
				text = h.Anchor
			}
			if r.typeset && h.Typeset != "" {
				text = h.Typeset
			}
			slug := r.slug(text)
			if anchor = slug; a.used[anchor] || anchor == "" && r.unnamed {
				anchor = r.again(slug, counts[slug], a)
			}
			counts[slug]++
		}
		out[i], a.used[anchor] = anchor, true
		if r.shown != nil && !h.Custom {
			out[i] = r.shown(anchor)
		}
	}
	return out, a
}

// anchors are those of a page that are taken.
type anchors struct {
	used map[string]bool
	// by what numbers stand behind, and by numbers that are taken: one below which no other is free
	next  map[string]map[int]int
	steps int // that were needed to find free numbers
}

// free is the first number from n on that makes an anchor that is not taken. A number that was found taken is passed over
// from then on: finding many takes as many steps as there are anchors.
func (a *anchors) free(stem string, n int) string {
	if a.next == nil {
		a.next = map[string]map[int]int{}
	}
	next := a.next[stem]
	if next == nil {
		next = map[int]int{}
		a.next[stem] = next
	}
	var passed []int
	for {
		a.steps++
		to, known := next[n]
		if !known {
			out := stem + strconv.Itoa(n)
			if !a.used[out] {
				for _, p := range passed {
					next[p] = n
				}
				return out
			}
			to = n + 1
		}
		passed = append(passed, n)
		n = to
	}
}

// numbered1 counts from 1: a, a-1, a-2.
func numbered1(slug string, _ int, a *anchors) string { return a.free(slug+"-", 1) }

// numbered2 counts from 2: a, a-2, a-3.
func numbered2(slug string, n int, a *anchors) string { return a.free(slug+"-", n+1) }

var counted = regexp.MustCompile(`^(.*)_([0-9]{1,9})$`)

// underscored1 counts on from a number that is there: a, a_1; a_2, a_3.
func underscored1(slug string, _ int, a *anchors) string {
	n := 1
	if m := counted.FindStringSubmatch(slug); m != nil {
		n, _ = strconv.Atoi(m[2])
		slug, n = m[1], n+1
	}
	return a.free(slug+"_", n)
}

var (
	vitePressGone    = regexp.MustCompile(`[\x{0300}-\x{036F}\x00-\x1f]`)
	vitePressSpecial = regexp.MustCompile("[\\s\\p{Z}\\x{feff}~`!@#$%^&*()\\-_+=[\\]{}|\\\\;:\"'“”‘’<>,.?/]+")
	emojiName        = regexp.MustCompile(`(^|\s):[a-z][a-z0-9_+-]*:`)
)

// vitePressSlug is slugify of @mdit-vue/shared.
func vitePressSlug(text string) string {
	text = emojiName.ReplaceAllString(text, "$1")
	text = vitePressGone.ReplaceAllString(norm.NFKD.String(text), "")
	text = strings.Trim(vitePressSpecial.ReplaceAllString(text, "-"), "-")
	if text != "" && text[0] >= '0' && text[0] <= '9' {
		text = "_" + text
	}
	return markup.Lower(text)
}

// hugoSlug is Hugo's for autoHeadingIDType, which is "github" if it is not set.
func hugoSlug(kind, text string) string {
	var b strings.Builder
	if kind == "blackfriday" {
		dash := false
		for _, r := range text {
			if !unicode.IsLetter(r) && !unicode.IsNumber(r) {
				dash = true
				continue
			}
			if dash && b.Len() > 0 {
				b.WriteByte('-')
			}
			dash = false
			b.WriteRune(unicode.ToLower(r))
		}
	} else {
		if kind == "github-ascii" {
			text = WithoutAccents(text)
		}
		for _, r := range strings.TrimSpace(text) {
			switch {
			case kind == "github-ascii" && r >= 0x80:
			case r == '-' || r == ' ':
				b.WriteByte('-')
			case r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
				b.WriteRune(unicode.ToLower(r))
			}
		}
	}
	if b.Len() == 0 {
		return "heading"
	}
	return b.String()
}

// WithoutAccents is a text without the marks of its letters.
func WithoutAccents(text string) string {
	var b strings.Builder
	for _, r := range norm.NFD.String(text) {
		if !unicode.Is(unicode.Mn, r) {
			b.WriteRune(r)
		}
	}
	return norm.NFC.String(b.String())
}

// A Toc is how the extension toc of Python-Markdown makes anchors, with the functions of PyMdown.
type Toc struct {
	Separator string
	Pymdown   bool   // spaces become separators one by one
	Unicode   bool   // letters other than ASCII stay
	Case      string // of PyMdown: none, lower, lower-ascii, fold
	Encode    bool   // letters other than ASCII are written with percent signs
	Normalize string
}

var tags = regexp.MustCompile(`</?[^>]*>`)

func (t Toc) slug(text string) string {
	separator := cmp.Or(t.Separator, "-")
	if t.Pymdown {
		return t.pymdownSlug(text, separator)
	}
	var b strings.Builder
	if !t.Unicode {
		text = norm.NFKD.String(text)
	}
	for _, r := range text {
		if (t.Unicode || r < 0x80) && (r == '-' || isWord(r) || unicode.IsSpace(r)) {
			b.WriteRune(r)
		}
	}
	text = markup.Lower(strings.TrimSpace(b.String()))
	b.Reset()
	between := false // a run of separators and blanks is one separator
	for _, r := range text {
		if unicode.IsSpace(r) || strings.ContainsRune(separator, r) {
			between = true
			continue
		}
		if between {
			b.WriteString(separator)
		}
		between = false
		b.WriteRune(r)
	}
	if between {
		b.WriteString(separator)
	}
	return b.String()
}

func isWord(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsNumber(r) }

var forms = map[string]norm.Form{"NFD": norm.NFD, "NFKC": norm.NFKC, "NFKD": norm.NFKD} // NFC is the default

// pymdownSlug is slugify of PyMdown's slugs.
func (t Toc) pymdownSlug(text, separator string) string {
	text = strings.TrimSpace(tags.ReplaceAllString(forms[t.Normalize].String(text), ""))
	switch t.Case {
	case "lower":
		text = markup.Lower(text)
	case "lower-ascii":
		text = strings.Map(func(r rune) rune {
			if r >= 'A' && r <= 'Z' {
				r += 'a' - 'A'
			}
			return r
		}, text)
	case "fold":
		text = cases.Fold().String(text)
	}
	var b strings.Builder
	for _, r := range text {
		switch {
		case r == ' ':
			b.WriteString(separator)
		case r == '-' || isWord(r):
			b.WriteRune(r)
		}
	}
	if t.Encode {
		return strings.NewReplacer("+", "%20", "%7E", "~").Replace(url.QueryEscape(b.String()))
	}
	return b.String()
}

// ReadToc reads how the extension toc is set among the extensions of Markdown.
func ReadToc(n yaml.Node) Toc {
	var t Toc
	Each(n, func(name string, options yaml.Node) {
		if name != "toc" && name != "markdown.extensions.toc" {
			return
		}
		Each(options, func(key string, v yaml.Node) {
			switch key {
			case "separator":
				t.Separator = v.Value
			case "slugify":
				t.read(v)
			}
		})
	})
	return t
}

// read takes a function that makes slugs, by its name in Python.
func (t *Toc) read(v yaml.Node) {
	name := v.Value
	if _, tagged, ok := strings.Cut(v.Tag, "python/"); ok {
		if _, of, ok := strings.Cut(tagged, ":"); ok {
			name = of
		}
	}
	switch name[strings.LastIndexByte(name, '.')+1:] {
	case "slugify_unicode":
		t.Unicode = true
	case "uslugify":
		t.Pymdown, t.Case = true, "lower"
	case "uslugify_encoded":
		t.Pymdown, t.Case, t.Encode = true, "lower", true
	case "uslugify_cased":
		t.Pymdown = true
	case "uslugify_cased_encoded":
		t.Pymdown, t.Encode = true, true
	case "gfm":
		t.Pymdown, t.Case = true, "lower-ascii"
	case "gfm_encoded":
		t.Pymdown, t.Case, t.Encode = true, "lower-ascii", true
	case "slugify":
		if !strings.Contains(name, "pymdownx") {
			return
		}
		t.Pymdown = true
		set := func(key string, v yaml.Node) {
			switch key {
			case "case":
				t.Case = v.Value
			case "percent_encode":
				t.Encode = strings.EqualFold(v.Value, "true")
			case "normalize":
				t.Normalize = v.Value
			}
		}
		Each(v, func(key string, v yaml.Node) {
			if key == "kwds" {
				Each(v, set)
			}
			set(key, v)
		})
	}
}

// Each visits what a mapping has, or a list of names and of mappings.
func Each(n yaml.Node, visit func(key string, value yaml.Node)) {
	if n.Kind == yaml.AliasNode && n.Alias != nil {
		n = *n.Alias
	}
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			visit(n.Content[i].Value, *n.Content[i+1])
		}
	case yaml.SequenceNode:
		for _, entry := range n.Content {
			if entry.Kind == yaml.AliasNode && entry.Alias != nil {
				entry = entry.Alias
			}
			if entry.Kind == yaml.ScalarNode {
				visit(entry.Value, yaml.Node{})
				continue
			}
			if entry.Kind == yaml.MappingNode {
				Each(*entry, visit)
			}
		}
	}
}

var (
	blanks       = regexp.MustCompile(`[\s\p{Z}\x{feff}]+`)
	encodedByte  = regexp.MustCompile(`%[0-9A-F]{2}`)
	slugGone     = regexp.MustCompile(`[^a-z0-9_]+`)
	encodedGone  = regexp.MustCompile(`[^a-zA-Z0-9%_]+`)
	contraction  = regexp.MustCompile(`([a-zA-Z0-9]+)-([ts])(-|$)`)
	severalDash  = regexp.MustCompile(`-{2,}`)
	unencoded    = strings.NewReplacer("+", "%20", "%21", "!", "%27", "'", "%28", "(", "%29", ")", "%2A", "*", "%7E", "~")
	mintlifyGone = strings.NewReplacer("?", "", ",", "", ";", "", ":", "", "!", "", "'", "", `"`, "", "(", "", ")",
		"", "[", "", "]", "", "{", "", "}", "")
)

// mintlifySlug is slugify of @mintlify/common: other characters than ASCII are encoded before the words are joined.
func mintlifySlug(text string) string {
	text = unencoded.Replace(url.QueryEscape(blanks.ReplaceAllString(strings.TrimSpace(markup.Lower(text)), "-")))
	if encodedByte.MatchString(text) {
		text = encodedGone.ReplaceAllString(text, "-")
	} else {
		text = slugGone.ReplaceAllString(text, "-")
	}
	text = contraction.ReplaceAllString(text, "$1$2$3")
	text = severalDash.ReplaceAllString(text, "-")
	return strings.TrimSuffix(strings.TrimPrefix(text, "-"), "-")
}

// mintlifyShown is a slug as the anchor on a page: decoded, without punctuation and pictures.
func mintlifyShown(text string) string {
	if plain, err := url.PathUnescape(text); err == nil {
		text = plain
	}
	return strings.Map(func(r rune) rune {
		if unicode.Is(unicode.So, r) || r >= 0x1f3fb && r <= 0x1f3ff || r == 0x200d || r == 0xfe0e || r == 0xfe0f {
			return -1 // a picture
		}
		return r
	}, mintlifyGone.Replace(text))
}
