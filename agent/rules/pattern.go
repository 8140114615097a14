package rules

import (
	"regexp"
	"slices"
	"strings"

	"docent/agent/edit"
	"docent/agent/workspace"
)

// A pattern is one form of an instruction, written like this:
//
//	replace|swap [all] <a:lit> (with|instead by) <b:lit> {in code|, <more:scope>}
//
// Bars divide words, brackets hold what may be missing, parentheses hold alternatives of several words, braces hold
// alternatives that may come in any order and number, and angle brackets capture.
type pattern struct {
	root  node
	build func(c captures, m *Memory) (edit.Operation, error)
	again bool // it does what was done before once more
}

type node interface {
	// match calls next for each way in which the node matches at pos, until one of them returns true.
	match(p *parser, pos int, c captures, next func(int, captures) bool) bool
}

type captures []capture

type capture struct {
	name, text string
	places     []edit.Place
	token      token
	rest       int // the token from which on the rest of the prompt was taken; 0 if it was not
}

func (c captures) all(name string) (out []capture) {
	for _, x := range c {
		if x.name == name {
			out = append(out, x)
		}
	}
	return out
}

func (c captures) get(name string) (capture, bool) {
	for _, x := range c {
		if x.name == name {
			return x, true
		}
	}
	return capture{}, false
}

func (c captures) text(name string) string { x, _ := c.get(name); return x.text }

func (c captures) has(name string) bool { _, ok := c.get(name); return ok }

func (c captures) with(x capture) captures { return append(slices.Clip(c), x) }

type (
	wordNode []string // any of these words or marks
	seqNode  []node
	altNode  []node
	optNode  struct{ node }
	loopNode struct{ node }
	capNode  struct {
		name string
		kind string
	}
	flagNode string   // captures nothing but its own name
	gapNode  struct{} // the end of a sentence or line
)

func (n gapNode) match(p *parser, pos int, c captures, next func(int, captures) bool) bool {
	from := pos
	for pos < len(p.toks) && (p.toks[pos].kind == newline || p.toks[pos].is(".") || p.toks[pos].is(",")) {
		pos++
	}
	return pos > from && next(pos, c)
}

// spend counts one step of matching and tells whether there may be more: forms with many ways to match must not let
// hostile input take long.
func (p *parser) spend() bool {
	p.steps++
	return p.within()
}

func (p *parser) within() bool { return p.steps <= maxSteps && p.spent+p.steps <= maxPromptSteps }

const (
	maxSteps       = 1_000_000    // of one operation
	maxPromptSteps = 3 * maxSteps // of all of a prompt: a hundred ordinary operations take some 200,000
)

func (n wordNode) match(p *parser, pos int, c captures, next func(int, captures) bool) bool {
	if !p.spend() {
		return false
	}
	if pos < len(p.toks) {
		t := p.toks[pos]
		if t.kind == word && slices.Contains(n, t.low) || t.kind == mark && slices.Contains(n, t.text) {
			return next(pos+1, c)
		}
	}
	return false
}

func (n seqNode) match(p *parser, pos int, c captures, next func(int, captures) bool) bool {
	if len(n) == 0 {
		return next(pos, c)
	}
	return n[0].match(p, pos, c, func(pos int, c captures) bool { return n[1:].match(p, pos, c, next) })
}

func (n altNode) match(p *parser, pos int, c captures, next func(int, captures) bool) bool {
	return slices.ContainsFunc(n, func(a node) bool { return a.match(p, pos, c, next) })
}

func (n optNode) match(p *parser, pos int, c captures, next func(int, captures) bool) bool {
	return n.node.match(p, pos, c, next) || next(pos, c)
}

func (n loopNode) match(p *parser, pos int, c captures, next func(int, captures) bool) bool {
	more := func(to int, c captures) bool { return to > pos && n.match(p, to, c, next) }
	return len(c) < 64 && n.node.match(p, pos, c, more) || next(pos, c)
}

func (n flagNode) match(p *parser, pos int, c captures, next func(int, captures) bool) bool {
	return next(pos, c.with(capture{name: string(n)}))
}

func (n capNode) match(p *parser, pos int, c captures, next func(int, captures) bool) bool {
	if !p.spend() {
		return false
	}
	for pos < len(p.toks) && p.toks[pos].kind == newline && (n.kind == "text" || n.kind == "rest" || n.kind == "lines") {
		pos++
	}
	if pos >= len(p.toks) {
		return false
	}
	t := p.toks[pos]
	switch n.kind {
	case "rest": // quoted or fenced, it ends where that does
		return !(t.isContent() && p.ends(pos+1)) &&
			next(len(p.toks), c.with(capture{name: n.name, text: strings.TrimSpace(p.src[t.start:]), rest: pos}))
	case "paths", "places": // with "paths", a bare word must look like a path
		return p.places(pos, nil, n.kind == "paths", func(to int, list []edit.Place) bool {
			return next(to, c.with(capture{name: n.name, places: list, token: t}))
		})
	case "page":
		this := t.low == "that" || t.low == "this" || t.low == "the"
		if this && pos+1 < len(p.toks) && p.toks[pos+1].low == "page" &&
			next(pos+2, c.with(capture{name: n.name, token: t})) {
			return true
		}
	}
	text, ok := captureKinds[n.kind](p.src, t)
	return ok && next(pos+1, c.with(capture{name: n.name, text: text, token: t}))
}

// captureKinds are the kinds of captures of one token: whether a token is one, and its text.
var captureKinds = map[string]func(src string, t token) (text string, ok bool){
	"lit": func(_ string, t token) (string, bool) { return t.text, t.kind == literalText },
	"text": func(src string, t token) (string, bool) {
		if t.kind == block && !t.isContent() {
			return src[t.start:t.end], true // a block of code, fences and all
		}
		return t.text, t.kind == literalText || t.kind == block
	},
	"lines": func(_ string, t token) (string, bool) { return t.text, t.kind == block },
	"val":   func(_ string, t token) (string, bool) { return t.text, t.isFree() },
	"bare": func(_ string, t token) (string, bool) { // a value that is no path and no word of the grammar
		return t.text, t.isFree() && !(t.kind == word && workspace.PathLike(t.text))
	},
	"key": func(_ string, t token) (string, bool) {
		return t.text, t.kind == word && !notKeys[t.low] && keyWord.MatchString(t.text)
	},
	"path": func(_ string, t token) (string, bool) { // must look like one
		return t.text, (t.kind == word || t.kind == literalText) && workspace.PathLike(t.text)
	},
	"page": func(_ string, t token) (string, bool) {
		if t.low == "it" || t.low == "there" {
			return "", true
		}
		return t.text, t.isFree() && !(t.kind == literalText && strings.Contains(t.text, "\n"))
	},
	"rest": nil, "paths": nil, "places": nil, // more than one token
}

// isFree reports whether a token is no word of the grammar.
func (t token) isFree() bool { return t.kind == literalText || t.kind == word && !reserved[t.low] }

// isContent reports whether a token is a literal or a fenced block that only wraps Markdown.
func (t token) isContent() bool {
	if t.kind == block {
		switch strings.ToLower(t.info) {
		case "", "md", "mdx", "markdown":
			return true
		}
	}
	return t.kind == literalText
}

var placeNouns = map[string]edit.PlaceKind{"page": edit.PagePlace, "file": edit.PagePlace, "folder": edit.FolderPlace,
	"directory": edit.FolderPlace}

// places reads a list of pages and folders: a.md, the folder b and c/*.md. The longest comes first.
func (p *parser) places(pos int, list []edit.Place, paths bool, next func(int, []edit.Place) bool) bool {
	if pos >= len(p.toks) || len(list) >= 200 || !p.spend() {
		return false
	}
	at := pos
	if low := p.low(at); low == "the" || low == "this" || low == "that" {
		at++
	}
	kind, noun := placeNouns[p.low(at)]
	if noun {
		at++
	}
	thePage := noun && kind == edit.PagePlace && len(list) == 0
	if at >= len(p.toks) {
		return thePage && next(at, []edit.Place{{Kind: edit.PagePlace}})
	}
	if t := p.toks[at]; isPlace(t, noun) {
		to := at + 1
		after, named := placeNouns[p.low(to)]
		if named && !noun {
			to, kind = to+1, after
		}
		if (len(list) == 0 && !paths || workspace.PathLike(t.text) || noun || named) &&
			p.morePlaces(to, append(slices.Clip(list), edit.Place{Name: t.text, Kind: kind}), next) {
			return true
		}
	}
	switch {
	case len(list) > 0:
		return false
	case p.low(pos) == "it":
		at, thePage = pos+1, true
	}
	return thePage && p.morePlaces(at, []edit.Place{{Kind: edit.PagePlace}}, next) // "the page"
}

// low is the word at i, in lower case.
func (p *parser) low(i int) string {
	if i < len(p.toks) {
		return p.toks[i].low
	}
	return ""
}

// isPlace reports whether a token may name a page or a folder, behind one of these nouns or not.
func isPlace(t token, noun bool) bool {
	if t.kind != word && t.kind != literalText {
		return false
	}
	return workspace.PathLike(t.text) || noun && t.kind == literalText ||
		!reserved[t.low] && !notPlaces[t.low] && !strings.Contains(t.text, "\n")
}

// morePlaces goes on with a list of places, or ends it.
func (p *parser) morePlaces(at int, list []edit.Place, next func(int, []edit.Place) bool) bool {
	q := at
	for q < len(p.toks) && (p.toks[q].is(",") || p.toks[q].low == "and" || p.toks[q].low == "or") {
		q++
	}
	return q > at && p.places(q, list, false, next) || next(at, list)
}

// Words after "for" and "in" that name no page.
var notPlaces = map[string]bool{"me": true, "us": true, "general": true, "case": true, "addition": true}

var keyWord = regexp.MustCompile(`^[A-Za-z_][\w.-]*$`)

// Words that are part of the grammar and so cannot stand for a page or a value without quotes.
var reserved = wordSet(
	`the a an it its this that these those them all any every each everywhere there here and or but then also too with by to into in on at of for from
	as under after before above below page pages file files section sections heading headings title titled called named
	link links code word words term terms text
	paragraph line sentence content group navigation nav sidebar docs documentation site folder directory only whole
	please same top bottom end start beginning
	front matter frontmatter broken list lists fence fences block blocks language occurrences mentions following new not everything`)

// Words that name no key of a front matter.
var notKeys = wordSet(
	`the a an it its this that all any every heading headings section sections page pages word words link links list lists code fence fences front matter frontmatter key field`)

// compile reads the notation of a pattern. A mistake in it is a mistake in this package.
func compile(s string) node {
	r := &patternReader{s: s}
	n := r.alternatives("")
	if r.i != len(s) {
		panic("pattern: " + s + " at " + s[r.i:])
	}
	return n
}

type patternReader struct {
	s string
	i int
}

func (r *patternReader) alternatives(closer string) node {
	var alts altNode
	var seq seqNode
	for r.i < len(r.s) {
		c := r.s[r.i]
		switch {
		case c == ' ' || c == '\n' || c == '\t':
			r.i++
		case closer != "" && c == closer[0]:
			alts = append(alts, seq)
			return alts
		case c == '/' && closer != "": // divides alternatives of several words
			r.i++
			alts = append(alts, seq)
			seq = nil
		case c == '[' || c == '(' || c == '{':
			cl := map[byte]string{'[': "]", '(': ")", '{': "}"}[c]
			r.i++
			inner := r.alternatives(cl)
			if r.i >= len(r.s) {
				panic("pattern is not closed: " + r.s)
			}
			r.i++
			switch c {
			case '[':
				inner = optNode{inner}
			case '{':
				inner = loopNode{inner}
			}
			seq = append(seq, inner)
		case c == '~':
			r.i++
			seq = append(seq, gapNode{})
		case c == '<':
			e := strings.IndexByte(r.s[r.i:], '>')
			name, kind, ok := strings.Cut(r.s[r.i+1:r.i+e], ":")
			r.i += e + 1
			switch {
			case !ok:
				seq = append(seq, flagNode(name))
			case kind == "scope":
				seq = append(seq, scopeRef{})
			default:
				if _, ok := captureKinds[kind]; !ok {
					panic("pattern: no capture is called " + kind)
				}
				seq = append(seq, capNode{name, kind})
			}
		default:
			j := r.i
			for j < len(r.s) && !strings.ContainsRune(" \n\t[](){}<>/", rune(r.s[j])) {
				j++
			}
			seq = append(seq, wordNode(strings.Split(r.s[r.i:j], "|")))
			r.i = j
		}
	}
	if len(alts) == 0 {
		return seq
	}
	return append(alts, seq)
}

// scopeNode is where an operation works and how: it stands in many patterns, and before instructions.
var scopeNode, leadNode node

type scopeRef struct{}

func (scopeRef) match(p *parser, pos int, c captures, next func(int, captures) bool) bool {
	return scopeNode.match(p, pos, c, next)
}

func init() {
	const (
		in    = `(in|on|within|inside|throughout|across|under|from|for|to|of|over)`
		only  = `[,] [[but] only|just <only>] `
		parts = `(headings|headers <part-headings> / heading <one> <part-headings> / titles|title <part-titles> / descriptions|description <part-descriptions>
			/ front matter|frontmatter <part-front-matter> / frontmatter <part-front-matter>
			/ (link texts|text/texts of [the] links/link titles) <part-link-texts> / (link
				targets|target|destinations|destination|urls|addresses/targets of [the] links/urls|addresses) <part-link-targets>
			/ links|hyperlinks <part-links> / link|hyperlink <one> <part-links>
			/ code (blocks|fences|samples|examples|snippets) <part-code-blocks> / code (block|fence|sample|example|snippet)
				<one> <part-code-blocks>
			/ inline code [spans] <part-inline-code> / code spans <part-inline-code> / code <part-code>
			/ tables <part-tables> / table <one> <part-tables> / lists|bullets <part-lists> / list items|bullets <part-lists> / list <one> <part-lists>)`
	)
	scopeNode = compile(`{
		[,|and|but] also [in|within|inside] [the] (code [blocks|fences|spans|samples|examples] / inline code) [too] <code>
		/ [,] [and] including [in] [the] (code [blocks|fences|spans|samples|examples] / inline code) <code>
		/ [,|and] in [the] (code [blocks|fences|spans|samples|examples] / inline code) (too/as well) <code>
		/ [,|and|but] also [in|within|inside] [the] (links/urls/link targets) [too] <links>
		/ [,] [and] including [in] [the] (links/urls/link targets) <links>
		/ [,|and] in [the] (links/urls/link targets) (too/as well) <links>
		/ [,] [and] (including/also in/also) [the|all] <also> (headings <part-headings> [and titles <part-titles>]/titles
			<part-titles> [and headings <part-headings>]/prose|text <part-text>)
		/ [,] (case-insensitive/case-insensitively/ignoring case/ignore case/regardless of case/case insensitive/case
			insensitively/in any case) <nocase>
		/ [,] (case-sensitive/case-sensitively/matching case/match case/case sensitive/case sensitively/in exactly this
			case/with exact case/exact case) <case>
		/ [,] [only|as|matching] [a] (whole-word/whole-words/whole word/whole words) [only] <words>
		/ [,] (also within words/also inside words/including [parts] [of] [longer] words/partial words) <within>
		/ [,] in all <places:val> places
		/ [,] [and] in [the|all] <also> (headings <part-headings> / titles <part-titles> / tables <part-tables> / lists
			<part-lists>) (too/as well)
		/ ` + only + ` everywhere|anywhere <all> [but [in|for|on] [the] <except:places>]
		/ ` + only + in + ` [all|every|each] [of] [the] [whole|entire|our|your|my] (docs|documentation|site|everything|content) <all>
		/ ` + only + in + ` (all|every|each) [of] [the|our|your|my] (pages|page|files|file) <all> [but [in|for|on] [the] <except:places>]
		/ ` + only + in + ` [the|our|your|my] (pages|files) <all>
		/ [,|but] [in] prose only <parts> <part-text>
		/ [,|but] only in [the] (prose/text) <parts> <part-text>
		/ ` + only + in + ` [only] [all|every|each] [of] [the|their|its] <parts> ` + parts + ` { (, / and / or / , and / , or) [in] [the] ` + parts + ` } [only]
		/ ` + only + in + ` [only] [all|every|each] [of] [the] [pages|files|page|file|everything] (in|under|within|inside|throughout|across|below|on <in:places> / of|from <in:paths>)
		/ ` + only + ` (in|on|within|inside|throughout|across|under) [only] <in:places> [only <only>]
		/ ` + only + ` (from|for|to|of|over) [only] <in:paths>
		/ ` + only + in + ` [only] [the] (section|chapter <section:lit> / <section:lit> section|chapter)
		/ ` + only + ` under|beneath|below [the] (heading|title|section <below:lit> / <below:lit> heading|title|section)
		/ [,|but] (except/excluding/but not/not/other than/apart from) [in|for|on] [the] [page|pages|file|files]
			<except:places>
		/ too/as well
	}`)
	leadNode = compile(`[only|just] (<:scope> / [the] [page|file] <page:path> :)`)
}
