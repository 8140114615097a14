package agent

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// A pattern is one form of an instruction, written like this:
//
//	replace|swap [all] <a:lit> (with|instead by) <b:lit> {in code|, <more:scope>}
//
// Bars divide words, brackets hold what may be missing, parentheses hold alternatives of several words, braces hold
// alternatives that may come in any order and number, and angle brackets capture.
type pattern struct {
	root  node
	build func(c captures, m *memory) (operation, error)
}

type node interface {
	// match calls next for each way in which the node matches at pos, until one of them returns true.
	match(p *parser, pos int, c captures, next func(int, captures) bool) bool
}

type captures []capture

type capture struct {
	name, text string
	paths      []string
	token      token
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
func (c captures) has(name string) bool    { _, ok := c.get(name); return ok }

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
	for pos < len(p.toks) && (p.toks[pos].kind == newline || p.toks[pos].kind == mark && (p.toks[pos].text == "." || p.toks[pos].text == ",")) {
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
	for _, a := range n {
		if a.match(p, pos, c, next) {
			return true
		}
	}
	return false
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
	if n.kind == "rest" {
		for pos < len(p.toks) && p.toks[pos].kind == newline {
			pos++
		}
		if pos >= len(p.toks) || p.isContent(pos) && p.ends(pos+1) { // quoted or fenced, it ends where that does
			return false
		}
		return next(len(p.toks), c.with(capture{name: n.name, text: strings.TrimSpace(p.src[p.toks[pos].start:])}))
	}
	for pos < len(p.toks) && p.toks[pos].kind == newline && n.kind == "text" {
		pos++
	}
	if pos >= len(p.toks) {
		return false
	}
	t := p.toks[pos]
	one := func(text string) bool {
		return next(pos+1, c.with(capture{name: n.name, text: text, token: t}))
	}
	switch n.kind {
	case "lit":
		return t.kind == literalText && one(t.text)
	case "text":
		if t.kind == block && !p.isContent(pos) {
			return one(p.src[t.start:t.end]) // a block of code, fences and all
		}
		return (t.kind == literalText || t.kind == block) && one(t.text)
	case "val":
		return (t.kind == literalText || t.kind == word && !reserved[t.low]) && one(t.text)
	case "bare": // a value that is no path and no word of the grammar
		return (t.kind == literalText || t.kind == word && !reserved[t.low] && !pathLike(t.text)) && one(t.text)
	case "key":
		return t.kind == word && !notKeys[t.low] && keyWord.MatchString(t.text) && one(t.text)
	case "path": // must look like one
		return (t.kind == word || t.kind == literalText) && pathLike(t.text) && one(t.text)
	case "page":
		if t.kind == word && (t.low == "it" || t.low == "there") {
			return one("")
		}
		if t.kind == word && (t.low == "that" || t.low == "this" || t.low == "the") && pos+1 < len(p.toks) && p.toks[pos+1].low == "page" {
			if next(pos+2, c.with(capture{name: n.name, text: "", token: t})) {
				return true
			}
		}
		return (t.kind == literalText && !strings.Contains(t.text, "\n") || t.kind == word && !reserved[t.low]) && one(t.text)
	case "paths":
		return p.paths(pos, nil, func(to int, list []string) bool {
			return next(to, c.with(capture{name: n.name, paths: list, token: t}))
		})
	}
	panic("no such capture: " + n.kind)
}

// isContent tells whether a token is a literal or a fenced block that only wraps Markdown.
func (p *parser) isContent(pos int) bool {
	t := p.toks[pos]
	if t.kind == block {
		switch strings.ToLower(t.info) {
		case "", "md", "mdx", "markdown":
			return true
		}
		return false
	}
	return t.kind == literalText
}

// paths reads a list of paths: a.md, b.md and c/*.md. The longest comes first.
func (p *parser) paths(pos int, list []string, next func(int, []string) bool) bool {
	if pos >= len(p.toks) || len(list) >= 200 || !p.spend() {
		return false
	}
	t := p.toks[pos]
	switch {
	case t.kind == word && t.low == "it" && len(list) == 0:
		list = append(slices.Clip(list), "")
	case (t.kind == word || t.kind == literalText) && (pathLike(t.text) || len(list) == 0 && !reserved[t.low] && !strings.ContainsAny(t.text, "\n")):
		list = append(slices.Clip(list), t.text)
	default:
		return false
	}
	at := pos + 1
	q := at
	for q < len(p.toks) && (p.toks[q].kind == mark && p.toks[q].text == "," || p.toks[q].low == "and" || p.toks[q].low == "or") {
		q++
	}
	if q > at && q < len(p.toks) && (p.toks[q].kind == word || p.toks[q].kind == literalText) && pathLike(p.toks[q].text) {
		if p.paths(q, list, next) {
			return true
		}
	}
	return next(at, list)
}

var keyWord = regexp.MustCompile(`^[A-Za-z_][\w.-]*$`)

var pageExts = map[string]bool{".md": true, ".mdx": true, ".markdown": true}

var textExts = map[string]bool{
	".md": true, ".mdx": true, ".markdown": true, ".txt": true, ".json": true, ".yml": true, ".yaml": true, ".toml": true, ".rst": true, ".adoc": true,
	".html": true, ".htm": true, ".csv": true, ".xml": true, ".js": true, ".ts": true, ".jsx": true, ".tsx": true, ".vue": true, ".css": true, ".svg": true,
}

// pathLike tells whether a word can only be meant as a path.
func pathLike(s string) bool {
	if s == "" || strings.ContainsAny(s, "\n\"") || strings.Contains(s, "://") || strings.Contains(s, " ") && !textExts[strings.ToLower(path.Ext(s))] {
		return false
	}
	if textExts[strings.ToLower(path.Ext(s))] {
		return true
	}
	return strings.Contains(s, "/") && s != "/" && !strings.HasPrefix(s, "</") || strings.Contains(s, "**")
}

// Words that are part of the grammar and so cannot stand for a page or a value without quotes.
var reserved = map[string]bool{}

func init() {
	for _, w := range strings.Fields(`the a an it its this that these those them all any every each everywhere there here and or but then also too with by to into in on at of for from
		as under after before above below page pages file files section sections heading headings title titled called named link links code word words term terms text
		paragraph line sentence content group navigation nav sidebar docs documentation site folder directory only whole please same top bottom end start beginning
		front matter frontmatter broken list lists fence fences block blocks language occurrences mentions following new not everything`) {
		reserved[w] = true
	}
	for _, w := range strings.Fields(`the a an it its this that all any every heading headings section sections page pages word words link links list lists code fence fences front matter frontmatter key field`) {
		notKeys[w] = true
	}
}

// Words that name no key of a front matter.
var notKeys = map[string]bool{}

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

// scopeNode is where an operation works and how: it stands in many patterns.
var scopeNode node

type scopeRef struct{}

func (scopeRef) match(p *parser, pos int, c captures, next func(int, captures) bool) bool {
	return scopeNode.match(p, pos, c, next)
}

func init() {
	scopeNode = compile(`{
		everywhere <all>
		/ (in|on|within|inside|throughout|across|over|for) [all|every|each] [of] [the] [whole|entire|our|your|my] (docs|documentation|site|pages|page|files|file|everything|content) <all>
		/ (in|on|within|inside|throughout|across|under|from|for|to) [all|every|each] [the] [page|pages|file|files|folder|directory|everything] [in|under|of|within] [the] [folder|directory] <in:paths> [page|file|folder|directory]
		/ [,|and] [also|and] (in/including [in]) [the] (code [blocks|fences|spans|samples|examples] [too]/inline code) [as] [well] <code>
		/ [,|and] [also|and] (in/including [in]) [the] (links [too]/urls [too]/link targets [too]) <links>
		/ [,|and] [also] (including/in) [the|all] (headings [and titles]/titles [and headings]/prose/text)
		/ [,|but] [in] prose only <prose>
		/ [,|but] only in [the] (prose/text) <prose>
		/ [,] (case-insensitive/case-insensitively/ignoring case/ignore case/regardless of case/case insensitive/case insensitively/in any case) <nocase>
		/ [,] (case-sensitive/case-sensitively/matching case/match case/case sensitive/case sensitively/in exactly this case/with exact case/exact case) <case>
		/ [,] [only|as|matching] [a] (whole-word/whole-words/whole word/whole words) [only] <words>
		/ [,] (also within words/also inside words/including [parts] [of] [longer] words/partial words) <parts>
		/ [,|but] (except/excluding/but not/not) [in|for|on] [the] [page|pages|file|files] <except:paths>
		/ too/as well
	}`)
}
