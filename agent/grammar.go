package agent

import (
	"fmt"
	"slices"
	"strings"
)

// A memory is what earlier instructions were about, for "it" and "the same".
type memory struct {
	page string      // the page that was named last
	term [2]string   // the term that was renamed last, and to what
	ops  []operation // of the last instruction that was understood

	guide   guide    // to the pages; nil where there is none
	context []string // what the prompt says that is no instruction
}

// An operation is one thing that the rules can do.
type operation interface {
	todo() string // what is to be done, in one line
	run(r *run) error
}

// A scope is where a text operation works, and how it compares.
type scope struct {
	in, except         []string
	all                bool
	code, links, prose bool
	words, parts       bool
	nocase, exactCase  bool
}

func readScope(c captures, m *memory) scope {
	s := scope{
		all: c.has("all"), code: c.has("code"), links: c.has("links"), prose: c.has("prose"),
		words: c.has("words"), parts: c.has("parts"), nocase: c.has("nocase"), exactCase: c.has("case"),
	}
	for _, x := range c.all("in") {
		for _, p := range x.paths {
			if p == "" {
				p = m.page
			}
			s.in = append(s.in, p)
		}
	}
	for _, x := range c.all("except") {
		s.except = append(s.except, x.paths...)
	}
	return s
}

func (s scope) String() string {
	if len(s.in) == 0 {
		return "everywhere"
	}
	return "in " + strings.Join(s.in, ", ")
}

// Example instructions, one for each thing that the rules can do.
var examples = []string{
	`replace "log in" with "sign in" in guides/*.md`,
	`rename "Old Name" to "New Name" everywhere`,
	`add "Some text." after heading "Install" in quickstart.md`,
	`append "Some text." to quickstart.md`,
	`add a section "Limits" with content "There are none." to quickstart.md`,
	`delete section "Old things" from quickstart.md`,
	`delete the paragraph containing "deprecated" from quickstart.md`,
	`create page guides/new.md titled "New" with content: Some text.`,
	`move guides/old.md to guides/new.md`,
	`delete page guides/old.md and unlink it`,
	`fix broken links`,
	`set description of quickstart.md to "Start here"`,
	`remove keywords from the front matter of quickstart.md`,
	`add guides/new.md to navigation under "Guides"`,
	`fix typos in guides/`,
	`change heading "Setup" to "Installation" in quickstart.md`,
	`use "-" for lists in quickstart.md`,
	`add language "bash" to bare code fences in quickstart.md`,
	`undo that`,
}

// there is the scope behind a negation, with a blank before it: nothing where it is the whole documentation.
func (s scope) there() string {
	if len(s.in) == 0 {
		return ""
	}
	return " " + s.String()
}

// nowhere is the scope behind "does not occur".
func (s scope) nowhere() string {
	if len(s.in) == 0 {
		return "anywhere"
	}
	return s.String()
}

// Examples are instructions that the built-in agent carries out, one of each form.
func Examples() []string { return slices.Clone(examples) }

const (
	beforeAfter = `(before|above <before>/after|below|under|beneath|underneath|following <after>)`
	ofPage      = `[,] (in|of|on|to|into|from|within) [the] [page|file] <page:page>`
)

var patterns []pattern

func form(s string, build func(c captures, m *memory) (operation, error)) {
	patterns = append(patterns, pattern{compile(s), build})
}

// page settles which page a capture means.
func (m *memory) pageOf(c captures, name string) (string, error) {
	x, ok := c.get(name)
	if ok && x.text != "" {
		m.page = x.text
		return x.text, nil
	}
	if m.page == "" {
		if !ok {
			return "", fmt.Errorf("it does not say which page is meant")
		}
		return "", fmt.Errorf("nothing before it says which page %q is", x.token.text)
	}
	return m.page, nil
}

// optional is as pageOf, but a page need not be named.
func (m *memory) optional(c captures, name string) string {
	p, err := m.pageOf(c, name)
	if err != nil {
		return ""
	}
	return p
}

func init() {
	replace := func(c captures, m *memory) (operation, error) {
		op := &replaceOp{from: c.text("a"), to: c.text("b"), scope: readScope(c, m)}
		m.term = [2]string{op.from, op.to}
		return op, nil
	}
	const noun = `[the] [word|words|phrase|text|term|string|terms|expression|url|link]`
	const many = `[all|every|each|any] [of] [the] [occurrences|occurrence|instances|instance|mentions|mention|uses|use|references] [of|to]`
	form(`replace|substitute|swap|exchange `+many+` `+noun+` <a:val> (with|by|→) `+noun+` <b:lit> <:scope>`, replace)
	form(`find `+many+` `+noun+` <a:lit> and replace (it/them) (with|by) `+noun+` <b:lit> <:scope>`, replace)
	form(`replace|substitute|swap|exchange `+many+` `+noun+` <a:bare> (with|by) `+noun+` <b:bare> <:scope>`, replace)
	form(`change|convert|update|turn `+many+` `+noun+` <a:lit> (to|into|with) `+noun+` <b:lit> <:scope>`, replace)
	form(`use <b:lit> instead of <a:lit> <:scope>`, replace)
	form(`(remove|delete|drop|strip) `+many+` `+noun+` <a:lit> (from/in) [the] [page|pages|file|files] <in:paths> <:scope>`, func(c captures, m *memory) (operation, error) {
		return &replaceOp{from: c.text("a"), scope: readScope(c, m)}, nil
	})
	rename := func(c captures, m *memory) (operation, error) {
		a := c.text("a")
		if a == "it" {
			a = ""
		}
		op := &renameOp{from: a, to: c.text("b"), scope: readScope(c, m)}
		m.term = [2]string{op.from, op.to}
		if pathLike(op.from) && pathLike(op.to) { // a page, where there is one
			m.page = op.to
		}
		return op, nil
	}
	const termNoun = `[the] [term|word|product|name|phrase|feature|brand|company|word]`
	form(`rename `+many+` `+termNoun+` <a:bare> (to|into|as) `+termNoun+` <b:lit> <:scope>`, rename)
	form(`rename `+many+` `+termNoun+` <a:bare> (to|into|as) `+termNoun+` <b:bare> <:scope>`, rename)
	form(`(change/update) [all|every] [the] (mentions|references|occurrences) (of|to) `+termNoun+` <a:bare> (to|into) <b:bare> <:scope>`, rename)
	form(`rename|change it (to|into|as) <b:bare> <:scope>`, func(c captures, m *memory) (operation, error) {
		if m.term[1] == "" {
			return nil, fmt.Errorf("nothing before it says what %q is", "it")
		}
		op := &renameOp{from: m.term[1], to: c.text("b"), scope: readScope(c, m)}
		m.term = [2]string{op.from, op.to}
		return op, nil
	})

	insert := func(c captures, m *memory) (operation, error) {
		op := &insertOp{text: c.text("t"), heading: c.text("h"), before: c.has("before"), section: c.has("wholesection"), page: m.optional(c, "page")}
		return op, nil
	}
	const textNoun = `[the|a|this] [following|new] [text|paragraph|line|note|sentence|content|block|words|list|table|warning|tip] [:]`
	form(`insert|add|put|place|write `+textNoun+` <t:text> [directly|right|immediately] `+beforeAfter+` [the] [heading|title] <h:lit> [heading] [`+ofPage+`]`, insert)
	form(`insert|add|put|place|write `+textNoun+` <t:text> `+beforeAfter+` [the] (section <h:lit> / <h:lit> section) <wholesection> [`+ofPage+`]`, insert)
	form(`(insert|add) `+beforeAfter+` [the] [heading] <h:lit> [heading] `+ofPage+` `+textNoun+` [:] (<t:text>/<t:rest>)`, insert)
	form(`(insert|add) `+textNoun+` `+beforeAfter+` [the] [heading] <h:lit> [heading] `+ofPage+` : (<t:text>/<t:rest>)`, insert)

	section := func(c captures, m *memory) (operation, error) {
		return &sectionOp{title: c.text("title"), text: c.text("t"), near: c.text("h"), before: c.has("before"), page: m.optional(c, "page")}, nil
	}
	form(`insert|add|create|write|append|make [a|the] [new] section [titled|called|named] [with] [the] [heading|title] <title:lit> {
		[with|and] [the] (content|text|body) [:] <t:text> / (saying/containing/that says) [:] <t:text>
		/ `+beforeAfter+` [the] [section|heading] <h:lit> [section|heading]
		/ [at] [the] [end] [,] (in|of|on|to|at) [the] [end] [of] [the] [page|file] <page:page> / , / and
	} [[~] [with|and] [the|this] [following] [content|text|body] : (<t:text>/<t:rest>)]`, section)
	form(`insert|add|create|write|append|make [a|the] [new] <title:lit> section {
		[with|and] [the] (content|text|body) [:] <t:text> / (saying/containing/that says) [:] <t:text>
		/ `+beforeAfter+` [the] [section|heading] <h:lit> [section|heading]
		/ (in|of|on|to|at) [the] [end] [of] [the] [page|file] <page:page> / ,
	} [[~] [with|and] [the|this] [following] [content|text|body] : (<t:text>/<t:rest>)]`, section)

	appendTo := func(c captures, m *memory) (operation, error) {
		page, err := m.pageOf(c, "page")
		if err != nil {
			return nil, err
		}
		return &appendOp{text: c.text("t"), section: c.text("h"), top: c.has("top"), page: page}, nil
	}
	const where = `{[at|to|in] [the] [very] (end|bottom) / [at|to|in] [the] [very] (start|beginning|top) <top>}`
	const sectionOf = `[the] (section|heading) <h:lit> / [the] <h:lit> (section|heading)`
	form(`append|add|insert|put|write `+textNoun+` <t:text> `+where+` (to|of|in|at|on|into) `+where+` [of] [the] [page|file] <page:page> [[,] [in|under|to|at|within] (`+sectionOf+`)]`, appendTo)
	form(`append|add|insert|put|write `+textNoun+` <t:text> `+where+` (to|of|in|at|on|into) `+where+` [of] (`+sectionOf+`) [,] (in|of|on|to|from) [the] [page|file] <page:page>`, appendTo)
	form(`prepend `+textNoun+` <t:text> (to|on|in) [the] [start|beginning|top] [of] [the] [page|file] <page:page> <top>`, appendTo)
	form(`prepend `+textNoun+` <t:text> (to|on|in) [the] [start|beginning|top] [of] (`+sectionOf+`) [,] (in|of|on|to) [the] [page|file] <page:page> <top>`, appendTo)
	form(`append|add|insert|put `+textNoun+` (to|in) [the] [end] [of] [the] [page|file] <page:page> [[,] (in|under|to|below) (`+sectionOf+` / <h:lit>)] : (<t:text>/<t:rest>)`, appendTo)
	form(`append|add (to|at) [the] [end] [of] [the] [page|file] <page:page> [the] [following] [text] : (<t:text>/<t:rest>)`, appendTo)

	form(`delete|remove|drop [the] [whole|entire] ([section] [titled|called|named|under|with] [the] [heading] <h:lit> [section] <sec> / section <h:lit> / <h:lit> section) [`+ofPage+`]`,
		func(c captures, m *memory) (operation, error) {
			return &deleteSectionOp{heading: c.text("h"), page: m.optional(c, "page")}, nil
		})
	form(`delete|remove|drop [the] (paragraph <para>/line <line>/list item <line>/item <line>/bullet [point] <line>) (containing/with/that contains/that says/which contains/including/saying) [the] [text|phrase|word|words] <x:lit> [`+ofPage+`]`,
		func(c captures, m *memory) (operation, error) {
			return &deleteTextOp{text: c.text("x"), line: c.has("line"), page: m.optional(c, "page")}, nil
		})

	create := func(c captures, m *memory) (operation, error) {
		op := &createOp{page: c.text("path"), title: c.text("title"), description: c.text("d"), group: c.text("g"), content: c.text("t")}
		m.page = op.page
		return op, nil
	}
	const pageWords = `{ [,] [and] [with] [the|a] (titled|title|called|named|entitled) [:] <title:lit>
		/ [,] [with|and] [a|the] description [:] <d:lit> / [,] [and] described as <d:lit>
		/ [,] [and] (in|under|to) [the] [navigation|nav|sidebar] [group|section] <g:lit> [group] [in the navigation]
		/ [,] [and] add it to [the] [navigation|nav] [group] [under|in] [the] [group] <g:lit> [group]
		/ [,] [and] [with] [the] (content|text|body) <t:text> / [,] [and] (containing|saying/that says/that contains) <t:text> }
		[[,] [with|and|containing] [the|this] [following] [content|text|body] : (<t:text>/<t:rest>) / ~ [the] [page] content|text|body : (<t:text>/<t:rest>)]`
	form(`create|add|make|write|start [a|the|another] [new] (page|file|guide|document) [at|as|in] <path:path> `+pageWords, create)
	form(`create|add|make|write|start [a|the|another] [new] (page|file|guide|document) (titled|called|named) <title:lit> (at|in|as|under) <path:path> `+pageWords, create)
	form(`create <path:path> `+pageWords, create)

	move := func(c captures, m *memory) (operation, error) {
		from, err := m.pageOf(c, "page")
		if err != nil {
			return nil, err
		}
		op := &moveOp{from: from, to: c.text("to")}
		m.page = op.to
		return op, nil
	}
	form(`move|relocate [the] [page|file] <page:page> (to|into|under|as) [the] [folder|directory] <to:path>`, move)
	form(`rename [the] [page|file] <page:path> (to|into|as) <to:path>`, move)
	form(`rename [the] (page|file) <page:page> (to|into|as) <to:path>`, move)
	form(`rename it (to|into|as) <to:path>`, func(c captures, m *memory) (operation, error) {
		return move(c.with(capture{name: "page"}), m)
	})
	remove := func(c captures, m *memory) (operation, error) {
		page, err := m.pageOf(c, "page")
		if err != nil {
			return nil, err
		}
		return &deletePageOp{page: page, unlink: c.has("unlink")}, nil
	}
	const unlink = `[[,] (and/while/by) (unlink|unlinking (it/[all] [the] [inbound] links [to it]/[all] [the] pages that link to it) / (remove|removing|drop) [all] [the|its] [inbound] links [to it] / (replace|replacing) [the] links [to it] with [their] text) <unlink>]`
	form(`delete|remove|drop [the] (page|file) <page:page> `+unlink, remove)
	form(`delete|remove|drop <page:path> `+unlink, remove)
	form(`delete|remove it `+unlink, func(c captures, m *memory) (operation, error) { return remove(c.with(capture{name: "page"}), m) })

	form(`fix|repair|correct|resolve [all] [of] [the|any] [broken|dead|invalid] [internal|relative] links <:scope>`, func(c captures, m *memory) (operation, error) {
		return &fixLinksOp{scope: readScope(c, m)}, nil
	})
	form(`fix|repair|correct [all] [of] [the|any] broken [internal] links and [the|all] (typos/spelling/misspellings) <:scope>`, func(c captures, m *memory) (operation, error) {
		return manyOps{&fixLinksOp{readScope(c, m)}, &typosOp{readScope(c, m)}}, nil
	})
	form(`fix|correct [all] [of] [the|any] (typos/typo/spelling/misspellings/spelling mistakes/spelling errors/misspelled words/common misspellings) <:scope>`, func(c captures, m *memory) (operation, error) {
		return &typosOp{scope: readScope(c, m)}, nil
	})

	set := func(c captures, m *memory) (operation, error) {
		op := &frontOp{key: c.text("key"), value: c.text("v"), was: c.text("was"), scope: readScope(c, m)}
		if len(op.scope.in) == 0 && !op.scope.all {
			if m.page == "" {
				return nil, fmt.Errorf("it does not say which page's %s is meant", op.key)
			}
			op.scope.in = []string{m.page}
		}
		if len(op.scope.in) == 1 {
			m.page = op.scope.in[0]
		}
		return op, nil
	}
	const fmPages = `([all|every] [the] [page|pages|file|files] <in:paths>)`
	form(`set|change|update|make [the] [front] [matter|frontmatter] [key|field] <key:key> [key|field] (of|in|on|for) `+fmPages+` (to|as|=|:|be) <v:val>`, set)
	form(`change|update|set [the] <key:key> (of|in|on) `+fmPages+` from <was:lit> to <v:lit>`, set)
	form(`set [the] [front] [matter|frontmatter] [key|field] <key:key> (to|=|:) <v:val> (in|on|for|of) [the front matter of] `+fmPages, set)
	form(`set [the] [front] [matter|frontmatter] [key|field] <key:key> [:] <v:lit> (in|on|for|of) [the front matter of] `+fmPages, set)
	form(`set|change|update its [front matter] <key:key> (to|as) <v:val>`, set)
	form(`set [the] [front] [matter|frontmatter] [key|field] <key:key> (to|=|:) <v:val>`, set)
	form(`add [a|the] [front] [matter|frontmatter] [key|field] <key:key> [:] <v:lit> (to|in) [the] [front matter of] `+fmPages, set)
	form(`add [a|the] [front] [matter|frontmatter] [key|field] <key:key> [with] [the] [value] [of|=|:] <v:val> (to|in) [the] front matter (of|in) `+fmPages, set)
	form(`give `+fmPages+` (the/a) [new] <key:key> <v:lit>`, set)
	form(`retitle `+fmPages+` (to|as) <v:lit> <retitle>`, func(c captures, m *memory) (operation, error) {
		return set(c.with(capture{name: "key", text: "title"}), m)
	})
	unset := func(c captures, m *memory) (operation, error) {
		return &frontOp{key: c.text("key"), remove: true, scope: readScope(c, m)}, nil
	}
	form(`remove|delete|drop|unset|clear [the] [front] [matter|frontmatter] [key|field] <key:key> [key|field] (from|in|of) [the] [front] [matter|frontmatter] [of|in] `+fmPages, unset)

	nav := func(c captures, m *memory) (operation, error) {
		page, err := m.pageOf(c, "page")
		if err != nil {
			return nil, err
		}
		return &navOp{page: page, group: c.text("g"), after: c.text("after"), before: c.text("before"), top: c.has("top"), remove: c.has("gone")}, nil
	}
	const navPlace = `{ (under|in|into|to) [the] [group|section|tab] <g:lit> [group|section]
		/ [directly|right] after [the] [page] <after:page> / [directly|right] before [the] [page] <before:page> / at the end / at the (top|start|beginning) <top> / , }`
	form(`add|put|list|include [the] [page] <page:page> (to|in|into) [the] [site] (navigation|nav|sidebar|menu) `+navPlace, nav)
	form(`add|put|list|move [the] [page] <page:path> (to|in|into|under) [the] (group <g:lit> / <g:lit> group) [(in|of) [the] (navigation|nav|sidebar)] `+navPlace, nav)
	form(`remove|drop|delete|hide [the] [page] <page:page> from [the] (navigation|nav|sidebar|menu) <gone>`, nav)

	heading := func(c captures, m *memory) (operation, error) {
		return &headingOp{from: c.text("a"), to: c.text("b"), page: m.optional(c, "page")}, nil
	}
	form(`change|rename|replace|update|edit [the] [section] (heading|title) <a:lit> (to|with|as|into|by) <b:lit> [`+ofPage+`]`, heading)
	form(`change|rename|replace|update|edit [the] <a:lit> (heading/section heading) (to|with|as|into|by) <b:lit> [`+ofPage+`]`, heading)
	form(`rename [the] section <a:lit> (to|as|into) <b:lit> [`+ofPage+`]`, heading)
	form(`change|rename|update [the] heading <a:lit> `+ofPage+` (to|into|as) <b:lit>`, heading)

	lists := func(c captures, m *memory) (operation, error) {
		marks := map[string]byte{"*": '*', "asterisks": '*', "asterisk": '*', "stars": '*', "-": '-', "dashes": '-', "dash": '-', "hyphens": '-', "hyphen": '-', "+": '+', "plus": '+', "pluses": '+'}
		mk, ok := marks[strings.ToLower(c.text("m"))]
		if !ok {
			return nil, fmt.Errorf("%q is no list marker: *, - and + are", oneLine(c.text("m"), 20))
		}
		return &listsOp{marker: mk, scope: readScope(c, m)}, nil
	}
	form(`use|prefer <m:val> (for|as) [the|all] [bullet|unordered] [list] (lists|list|markers|marker|bullets|bullet|items) <:scope>`, lists)
	form(`normalise|normalize|change|convert [all] [the] [bullet|unordered] (list markers/lists/bullets) (to|into) [use] <m:val> <:scope>`, lists)
	fences := func(c captures, m *memory) (operation, error) {
		if !keyWord.MatchString(strings.NewReplacer("+", "p", "#", "s", "-", "_").Replace(c.text("l"))) {
			return nil, fmt.Errorf("%q is no name of a language", oneLine(c.text("l"), 20))
		}
		return &fencesOp{lang: c.text("l"), scope: readScope(c, m)}, nil
	}
	form(`add|set [the] language <l:val> (to|on|for) [all] [the] [bare|plain|unlabelled|unlabeled|untagged] [code] (fences|fence|blocks|block) [without [a] language] <:scope>`, fences)
	form(`label|mark|tag [all] [the] [bare|plain|unlabelled|unlabeled|untagged] [code] (fences|fence|blocks|block) [without [a] language] (as|with) <l:val> <:scope>`, fences)

	form(`undo|revert [all] [of] [that|it|this|everything|your] [the] [last|previous|latest] [change|changes|edit|edits|instruction|commit|step]`, func(c captures, m *memory) (operation, error) {
		return &undoOp{}, nil
	})
	again := func(c captures, m *memory) (operation, error) {
		s := readScope(c, m)
		if len(s.in) == 0 && !s.all {
			return nil, fmt.Errorf("it does not say where to do the same")
		}
		if len(m.ops) == 0 {
			return nil, fmt.Errorf("nothing before it could be done again")
		}
		var list manyOps
		for _, op := range m.ops {
			w, ok := op.(scoped)
			if !ok {
				return nil, fmt.Errorf("%q cannot be done in another place by itself", op.todo())
			}
			list = append(list, w.within(s))
		}
		if len(list) == 1 {
			return list[0], nil
		}
		return list, nil
	}
	form(`[do|make|apply|repeat] [the|exactly] [the] same [change|changes|edit|thing|replacement|rename|fix|instruction] [again] <:scope>`, again)
	form(`[do|repeat] (it|this|that) [again] <:scope>`, again)
	form(`<:scope>`, again)
}

// A scoped operation can be done again in another place.
type scoped interface {
	operation
	within(s scope) operation
}

type manyOps []operation

func (l manyOps) todo() string {
	var out []string
	for _, op := range l {
		out = append(out, op.todo())
	}
	return strings.Join(out, "; ")
}

func (l manyOps) run(r *run) error {
	for _, op := range l {
		if err := op.run(r); err != nil {
			return err
		}
	}
	return nil
}

// A parser reads the instructions of one prompt.
type parser struct {
	src   string
	toks  []token
	steps int // spent on matching an operation; bounds what hostile input may cost
	spent int // on the operations before

	formed bool // the last operation that was not understood had the words of a form
}

// A misunderstanding says which part of a prompt was not understood, and why where that is known.
type misunderstanding struct {
	part, why string
	nearest   string // the form that comes nearest, with the prompt's own words
	detail    bool   // all but a detail was understood
	others    bool   // other parts were understood
}

func (e *misunderstanding) Error() string {
	s := "I did not understand " + quote(e.part)
	if e.detail {
		s = "More detail is needed for " + quote(e.part)
	}
	if e.why != "" {
		s += ": " + e.why
	}
	return s + "."
}

const (
	maxPrompt     = 100_000
	maxOperations = 100
)

// parse reads a prompt as a list of operations, or says what it did not understand. It changes nothing but the memory.
func parse(prompt string, m *memory) ([]operation, error) {
	if len(prompt) > maxPrompt {
		return nil, &misunderstanding{part: prompt, why: "it is too long"}
	}
	p := &parser{src: prompt, toks: lex(prompt)}
	var ops []operation
	m.context = nil
	pos := p.skip(0)
	for pos < len(p.toks) {
		if len(ops) == maxOperations {
			return nil, &misunderstanding{part: p.sentence(pos), why: fmt.Sprintf("more than %d operations in one instruction", maxOperations)}
		}
		begin := pos
		if to, ok := p.inPage(pos, m); ok {
			pos = to
		}
		op, to, why := p.operation(pos, m)
		if op == nil {
			if end, said := p.aside(pos); end > pos {
				if said != "" {
					m.context = append(m.context, said)
				}
				pos = p.skip(end)
				continue
			}
			var mis *misunderstanding
			if op, to, mis = p.byTitle(pos, m); op == nil {
				if mis == nil {
					mis = &misunderstanding{part: p.sentence(begin), why: why, nearest: p.nearest(begin, p.sentenceEnd(pos), "PAGE"), detail: p.formed}
				}
				mis.others = len(ops) > 0
				return nil, mis
			}
		}
		ops = append(ops, op)
		m.ops = []operation{op}
		pos = p.skip(to)
	}
	if len(ops) == 0 {
		return nil, &misunderstanding{part: prompt, why: "it asks for nothing"}
	}
	m.ops = ops
	return ops, nil
}

// operation reads the longest form that matches at pos.
func (p *parser) operation(pos int, m *memory) (operation, int, string) {
	type found struct {
		form int
		to   int
		c    captures
	}
	var best found
	p.formed = false
	p.spent += p.steps
	p.steps = 0
	for i, f := range patterns {
		f.root.match(p, pos, nil, func(to int, c captures) bool {
			if to > pos && to > best.to && p.ends(to) {
				best = found{i, to, c}
			}
			return false // go on: the longest counts
		})
	}
	if !p.within() {
		return nil, 0, "it is too tangled"
	}
	if best.to == 0 {
		return nil, 0, ""
	}
	saved := *m
	op, err := patterns[best.form].build(best.c, m)
	if err != nil {
		*m = saved
		p.formed = true
		return nil, 0, err.Error()
	}
	return op, best.to, ""
}

// ends tells whether an operation may end before the token at pos.
func (p *parser) ends(pos int) bool {
	if pos >= len(p.toks) {
		return true
	}
	t := p.toks[pos]
	switch t.kind {
	case mark:
		return strings.Contains(".;!,?•)", t.text)
	case newline:
		return true
	case word:
		return slices.Contains([]string{"and", "then", "also", "please", "thanks", "thank", "finally", "next", "but", "&", "because", "since", "—", "–"}, t.low)
	}
	return false
}

var fillers = [][]string{
	{"please"}, {"kindly"}, {"could", "you"}, {"can", "you"}, {"would", "you"}, {"will", "you"}, {"i", "want", "you", "to"}, {"i", "would", "like", "you", "to"},
	{"i'd", "like", "you", "to"}, {"i", "need", "you", "to"}, {"you", "should"}, {"we", "should"}, {"let's"}, {"let", "us"}, {"then"}, {"and"}, {"also"}, {"next"}, {"finally"},
	{"first"}, {"second"}, {"third"}, {"after", "that"}, {"afterwards"}, {"now"}, {"just"}, {"docent"}, {"do", "the", "following"},
	{"make", "the", "following", "changes"}, {"make", "these", "changes"}, {"apply", "the", "following", "changes"}, {"do", "this"}, {"for", "me"}, {"ok"}, {"okay"}, {"but"}, {"&"}, {"afterward"}, {"lastly"},
	{"do", "these", "things"}, {"in", "addition"}, {"search", "and"}, {"find", "and"}, {"in", "the", "docs"}, {"in", "our", "docs"}, {"throughout", "the", "docs"}, {"in", "the", "documentation"}, {"additionally"}, {"—"}, {"–"}, {"could", "someone"}, {"can", "someone"},
}

// skip passes over what stands between operations: marks, line ends and words of courtesy.
func (p *parser) skip(pos int) int {
next:
	for pos < len(p.toks) {
		t := p.toks[pos]
		if t.kind == newline || t.kind == mark {
			pos++
			continue
		}
		if t.kind == word {
			for _, f := range fillers {
				if pos+len(f) <= len(p.toks) && func() bool {
					for i, w := range f {
						if p.toks[pos+i].low != w {
							return false
						}
					}
					return true
				}() {
					pos += len(f)
					continue next
				}
			}
		}
		return pos
	}
	return pos
}

var inPageForm = compile(`in|on|for [the] [page|file] <page:path> [,|:] [please]`)

// inPage reads "In guides/a.md, …", which names the page for what follows.
func (p *parser) inPage(pos int, m *memory) (int, bool) {
	end := 0
	inPageForm.match(p, pos, nil, func(to int, c captures) bool {
		if to < len(p.toks) && p.toks[to].kind == word && verbs[p.toks[to].low] {
			end = to
			m.page = c.text("page")
			return true
		}
		return false
	})
	return end, end > 0
}

var verbs = map[string]bool{}

func init() {
	for _, v := range strings.Fields("replace substitute swap exchange change convert update turn use remove delete drop rename insert add put place write append prepend create make move fix correct set give undo edit label mark list normalise normalize") {
		verbs[v] = true
	}
}

// sentence is the part of the prompt that begins at a token, up to the end of its sentence or line.
func (p *parser) sentence(pos int) string {
	if pos >= len(p.toks) {
		return p.src
	}
	end := len(p.src)
	for _, t := range p.toks[pos:] {
		if t.kind == newline || t.kind == mark && strings.Contains(".;!•", t.text) {
			end = t.start
			break
		}
	}
	return strings.TrimSpace(p.src[p.toks[pos].start:end])
}
