package rules

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"docent/agent/edit"
	"docent/agent/say"
	"docent/agent/workspace"
)

// Example instructions, one for each thing that the rules can do.
var examples = []string{
	`replace "log in" with "sign in" in guides/*.md`,
	`rename "Old Name" to "New Name" everywhere`,
	`add "Some text." after heading "Install" in quickstart.md`,
	`append "Some text." to quickstart.md`,
	`add a section "Limits" with content "There are none." to quickstart.md`,
	`delete section "Old things" from quickstart.md`,
	`delete the paragraph containing "deprecated" from quickstart.md`,
	`delete the table row containing "deprecated" from quickstart.md`,
	`delete the list item containing "deprecated" from quickstart.md`,
	`remove "very" from quickstart.md`,
	`create page guides/new.md titled "New" with content: Some text.`,
	`move guides/old.md to guides/new.md`,
	`move the folder guides to howto`,
	`delete page guides/old.md and unlink it`,
	`fix broken links`,
	`point the links to guides/old.md to guides/new.md`,
	`set description of quickstart.md to "Start here"`,
	`remove keywords from the front matter of quickstart.md`,
	`add guides/new.md to navigation under "Guides"`,
	`fix typos in guides/`,
	`change heading "Setup" to "Installation" in quickstart.md`,
	`use "-" for lists in quickstart.md`,
	`add language "bash" to bare code fences in quickstart.md`,
	`undo that`,
}

// Examples are instructions that the built-in agent carries out, one of each form.
func Examples() []string { return slices.Clone(examples) }

const (
	beforeAfter = `(before|above <before>/after|below|under|beneath|underneath|following <after>)`
	ofPage      = `[,] (in|of|on|to|into|from|within) [the] [page|file] <page:page>`
	noun        = `[[the] (word|words|term|terms|phrase|expression <words> / text|string|sentence / url|link|address <address>)]`
	many        = `[all|every|each|any] [of] [the] [occurrences|occurrence|instances|instance|mentions|mention|uses|use|references] [of|to]`
	termNoun    = `[the] [term|word|product|name|phrase|feature|brand|company|word]`
	textNoun    = `[the|a|this] [following|new] [text|paragraph|line|note|sentence|content|block|words|list|table|warning|tip] [:]`
	where       = `{[at|to|in] [the] [very] (end|bottom) / [at|to|in] [the] [very] (start|beginning|top) <top>}`
	sectionOf   = `[the] (section|heading) <h:lit> / [the] <h:lit> (section|heading)`
	pageWords   = `{ [,] [and] [with] [the|a] (titled|title|called|named|entitled) [:] <title:lit>
		/ [,] [with|and] [a|the] description [:] <d:lit> / [,] [and] described as <d:lit>
		/ [,] [and] (in|under|to) [the] [navigation|nav|sidebar] [group|section] <g:lit> [group] [in the navigation]
		/ [,] [and] add it to [the] [navigation|nav] [group] [under|in] [the] [group] <g:lit> [group]
		/ [,] [and] [with] [the] (content|text|body) <t:text> / [,] [and] (containing|saying/that says/that contains)
		<t:text> }
		[[,] [with|and|containing] [the|this] [following] [content|text|body] : (<t:text>/<t:rest>) / ~ [the] [page] content|text|body : (<t:text>/<t:rest>)]`
	unlink   = `[[,] (and/while/by) (unlink|unlinking (it/[all] [the] [inbound] links [to it]/[all] [the] pages that link to it) / (remove|removing|drop) [all] [the|its] [inbound] links [to it] / (replace|replacing) [the] links [to it] with [their] text) <unlink>]`
	fmPages  = `([all|every|each] [of] [the] [page|pages|file|files] [in|under|of|within] <in:places>)`
	navPlace = `{ (under|in|into|to) [the] [group|section|tab] <g:lit> [group|section]
		/ [directly|right] after [the] [page] <after:page> / [directly|right] before [the] [page] <before:page> / at the end / at the (top|start|beginning) <top> / , }`
)

var patterns []pattern

func form(s string, build func(c captures, m *Memory) (edit.Operation, error)) {
	patterns = append(patterns, pattern{root: compile(s), build: build})
}

// each is for an operation that does the same all over its scope.
func (m *Memory) each(c captures, build func(l edit.Located) edit.Operation) (edit.Operation, error) {
	s := readScope(c, m)
	if s.Manner != (edit.Manner{}) {
		return nil, fmt.Errorf("what it says of code, links, words or case has no meaning for this")
	}
	return build(edit.Located{Scope: s}), nil
}

// page settles which page a capture means.
func (m *Memory) pageOf(c captures, name string) (string, error) {
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

// at is where an operation on one page works: the page that it names, otherwise the one that was named last. It has no
// use for words that say how to compare.
func (m *Memory) at(c captures) (edit.Located, error) {
	s := readScope(c, m)
	if s.Manner != (edit.Manner{}) {
		return edit.Located{}, fmt.Errorf("what it says of code, links, words or case has no meaning for this")
	}
	if x, ok := c.get("page"); ok && x.text != "" {
		m.page = x.text
	}
	if len(s.In) == 0 && !s.All && m.lead == nil && m.page != "" {
		s.In = [][]edit.Place{{{Name: m.page, Kind: edit.PagePlace}}}
	}
	return edit.Located{Scope: s}, nil
}

func init() {
	form(`replace [the] (line <to:val> / lines <from:val> to <to:val>) [:] <a:lines> [~] with [:] <b:lines>`, buildLines)
	form(`replace|substitute|swap|exchange `+many+` `+noun+` <a:val> (with|by|→) `+noun+` <b:lit> <:scope>`,
		buildReplace)
	form(`replace|substitute|swap|exchange <a:lit> (with|by) <b:lit> (, / and / , and) <a:lit> (with|by) <b:lit> { (, / and / , and) <a:lit> (with|by) <b:lit> } <:scope>`, buildReplaceEach)
	form(`change|update|replace|point|set [all|every|any] [the] (link|links) to <a:val> (to|with|by|into) <b:val> <:scope>`, buildPointLinks)
	form(`change|update|set [the] (url|target|address|destination) of [the] link <a:lit> [(in|on) [the] [page|file] <page:page>] (to|into) <b:val> <:scope>`, buildPointLink)
	form(`point [the] link <a:lit> [(in|on) [the] [page|file] <page:page>] (to|at) <b:val> <:scope>`, buildPointLink)
	form(`find `+many+` `+noun+` <a:lit> and replace (it/them) (with|by) `+noun+` <b:lit> <:scope>`, buildReplace)
	form(`replace|substitute|swap|exchange `+many+` `+noun+` <a:bare> (with|by) `+noun+` <b:bare> <:scope>`, buildReplace)
	form(`change|convert|update|turn|correct|spell `+many+` `+noun+` <a:lit> (to|into|with) `+noun+` <b:lit> <:scope>`,
		buildReplace)
	form(`use <b:lit> instead of <a:lit> <:scope>`, buildUse)
	form(`(remove|delete|drop|strip) `+many+` `+noun+` <a:lit> <:scope>`, buildRemoveText)
	form(`rename `+many+` `+termNoun+` <a:bare> (to|into|as) `+termNoun+` <b:lit> <:scope>`, buildRename)
	form(`rename `+many+` `+termNoun+` <a:bare> (to|into|as) `+termNoun+` <b:bare> <:scope>`, buildRename)
	form(`(change/update) [all|every] [the] (mentions|references|occurrences) (of|to) `+termNoun+
		` <a:bare> (to|into) <b:bare> <:scope>`, buildRename)
	form(`rename|change it (to|into|as) <b:bare> <:scope>`, buildRenameIt)

	form(`insert|add|put|place|write `+textNoun+` <t:text> [directly|right|immediately] `+beforeAfter+
		` [the] [heading|title] <h:lit> [heading] [`+ofPage+`]`, buildInsert)
	form(`insert|add|put|place|write `+textNoun+` <t:text> `+beforeAfter+
		` [the] (section <h:lit> / <h:lit> section) <wholesection> [`+ofPage+`]`, buildInsert)
	form(`(insert|add) `+beforeAfter+` [the] [heading] <h:lit> [heading] `+ofPage+` `+textNoun+` [:] (<t:text>/<t:rest>)`,
		buildInsert)
	form(`(insert|add) `+textNoun+` `+beforeAfter+` [the] [heading] <h:lit> [heading] `+ofPage+` : (<t:text>/<t:rest>)`,
		buildInsert)

	form(`insert|add|create|write|append|make [a|the] [new] section [titled|called|named] [with] [the] [heading|title] <title:lit> {
		[with|and] [the] (content|text|body) [:] <t:text> / (saying/containing/that says) [:] <t:text>
		/ `+beforeAfter+` [the] [section|heading] <h:lit> [section|heading]
		/ [at] [the] [end] [,] (in|of|on|to|at) [the] [end] [of] [the] [page|file] <page:page> / , / and
	} [[~] [with|and] [the|this] [following] [content|text|body] : (<t:text>/<t:rest>)]`, buildSection)
	form(`insert|add|create|write|append|make [a|the] [new] <title:lit> section {
		[with|and] [the] (content|text|body) [:] <t:text> / (saying/containing/that says) [:] <t:text>
		/ `+beforeAfter+` [the] [section|heading] <h:lit> [section|heading]
		/ (in|of|on|to|at) [the] [end] [of] [the] [page|file] <page:page> / ,
	} [[~] [with|and] [the|this] [following] [content|text|body] : (<t:text>/<t:rest>)]`, buildSection)

	form(`append|add|insert|put|write `+textNoun+` <t:text> `+where+` (to|of|in|at|on|into) `+where+
		` [of] [the] [page|file] <page:page> [[,] [in|under|to|at|within] (`+sectionOf+`)]`, buildAppend)
	form(`append|add|insert|put|write `+textNoun+` <t:text> `+where+` (to|of|in|at|on|into) `+where+` [of] (`+sectionOf+
		`) [,] (in|of|on|to|from) [the] [page|file] <page:page>`, buildAppend)
	form(`append|add|insert|put|write `+textNoun+` <t:text> `+where+` (to|of|in|at|on|into) `+where+` [of] (`+sectionOf+
		`)`, buildAppend)
	form(`prepend `+textNoun+` <t:text> (to|on|in) [the] [start|beginning|top] [of] [the] [page|file] <page:page> <top>`,
		buildAppend)
	form(`prepend `+textNoun+` <t:text> (to|on|in) [the] [start|beginning|top] [of] (`+sectionOf+
		`) [,] (in|of|on|to) [the] [page|file] <page:page> <top>`, buildAppend)
	form(`append|add|insert|put `+textNoun+
		` (to|in) [the] [end] [of] [the] [page|file] <page:page> [[,] (in|under|to|below) (`+sectionOf+
		` / <h:lit>)] : (<t:text>/<t:rest>)`, buildAppend)
	form(`append|add (to|at) [the] [end] [of] [the] [page|file] <page:page> [the] [following] [text] : (<t:text>/<t:rest>)`, buildAppend)

	form(`delete|remove|drop [the] [whole|entire] (section [titled|called|named|under|with] [the] [heading] (<h:lit>/<h:bare>) / <h:lit> section) <:scope>`, buildDeleteSection)
	form(`delete|remove|drop [the] (heading <h:lit> / <h:lit> heading) <:scope>`, buildDeleteHeading)
	form(`delete|remove|drop [the] (paragraph <paragraph>/line <line>/row <row>/table row <row>/list item <item>/item <item>/bullet [point] <item>) (containing/with/that contains/that says/which contains/including/saying) [the] [text|phrase|word|words] <x:lit> <:scope>`, buildDeleteText)

	form(`create|add|make|write|start [a|the|another] [new] (page|file|guide|document) [at|as|in] <path:path> `+pageWords,
		buildCreate)
	form(`create|add|make|write|start [a|the|another] [new] (page|file|guide|document) (titled|called|named) <title:lit> (at|in|as|under) <path:path> `+pageWords, buildCreate)
	form(`create <path:path> `+pageWords, buildCreate)

	form(`move|relocate [the] [page|file] <page:page> (to|into|under|as) [the] [folder|directory] <to:path>`, buildMove)
	form(`rename [the] [page|file] <page:path> (to|into|as) <to:path>`, buildMove)
	form(`rename [the] (page|file) <page:page> (to|into|as) <to:path>`, buildMove)
	form(`move|relocate|rename [the] (folder|directory <dir:val> / <dir:val> folder|directory) (to|into|as) [the] [folder|directory] <to:val>`, buildMoveFolder)
	form(`rename it (to|into|as) <to:path>`, func(c captures, m *Memory) (edit.Operation, error) {
		return buildMove(c.with(capture{name: "page"}), m)
	})
	form(`delete|remove|drop [the] (page|file) <page:page> `+unlink, buildDeletePage)
	form(`delete|remove|drop <page:path> `+unlink, buildDeletePage)
	form(`delete|remove it `+unlink, func(c captures, m *Memory) (edit.Operation, error) {
		return buildDeletePage(c.with(capture{name: "page"}), m)
	})

	form(`fix|repair|correct|resolve [all] [of] [the|any] [broken|dead|invalid] [internal|relative] links <:scope>`,
		buildFixLinks)
	form(`fix|repair|correct [all] [of] [the|any] broken [internal] links and [the|all] (typos/spelling/misspellings) <:scope>`, buildFixLinksAndTypos)
	form(`fix|correct [all] [of] [the|any] (typos/typo/spelling/misspellings/spelling mistakes/spelling errors/misspelled words/common misspellings) <:scope>`, buildFixTypos)

	form(`set|change|update|make [the] [front] [matter|frontmatter] [key|field] <key:key> [key|field] (of|in|on|for) `+
		fmPages+` (to|as|=|:|be) <v:val>`, buildSetFront)
	form(`change|update|set [the] <key:key> (of|in|on) `+fmPages+` from <was:lit> to <v:lit>`, buildSetFront)
	form(`set [the] [front] [matter|frontmatter] [key|field] <key:key> (to|=|:) <v:val> (in|on|for|of) [the front matter of] `+fmPages, buildSetFront)
	form(`set [the] [front] [matter|frontmatter] [key|field] <key:key> [:] <v:lit> (in|on|for|of) [the front matter of] `+
		fmPages, buildSetFront)
	form(`set|change|update its [front matter] <key:key> (to|as) <v:val>`, buildSetFront)
	form(`set [the] [front] [matter|frontmatter] [key|field] <key:key> (to|=|:) <v:val>`, buildSetFront)
	form(`add [a|the] [front] [matter|frontmatter] [key|field] <key:key> [:] <v:lit> (to|in) [the] [front matter of] `+
		fmPages, buildSetFront)
	form(`add [a|the] [front] [matter|frontmatter] [key|field] <key:key> [with] [the] [value] [of|=|:] <v:val> (to|in) [the] front matter (of|in) `+fmPages, buildSetFront)
	form(`give `+fmPages+` (the/a) [new] <key:key> <v:lit>`, buildSetFront)
	for _, key := range []string{"title", "description"} {
		form(`change|update [the|its] `+key+` (to|as) <v:lit> <:scope>`, func(c captures, m *Memory) (edit.Operation, error) {
			return buildSetFront(c.with(capture{name: "key", text: key}), m)
		})
	}
	form(`retitle `+fmPages+` (to|as) <v:lit> <retitle>`, func(c captures, m *Memory) (edit.Operation, error) {
		return buildSetFront(c.with(capture{name: "key", text: "title"}), m)
	})
	form(`remove|delete|drop|unset|clear [the] [front] [matter|frontmatter] [key|field] <key:key> [key|field] (from|in|of) [the] [front] [matter|frontmatter] [of|in] `+fmPages, buildRemoveFront)

	form(`add|put|list|include [the] [page] <page:page> (to|in|into) [the] [site] (navigation|nav|sidebar|menu) `+navPlace,
		buildNavEntry)
	form(`add|put|list|move [the] [page] <page:path> (to|in|into|under) [the] (group <g:lit> / <g:lit> group) [(in|of) [the] (navigation|nav|sidebar)] `+navPlace, buildNavEntry)
	form(`remove|drop|delete|hide [the] [page] <page:page> from [the] (navigation|nav|sidebar|menu) <gone>`, buildNavEntry)

	form(`change|rename|replace|update|edit [the] [section] (heading|title) <a:lit> (to|with|as|into|by) <b:lit> <:scope>`,
		buildHeading)
	form(`change|rename|replace|update|edit [the] <a:lit> (heading/section heading) (to|with|as|into|by) <b:lit> <:scope>`,
		buildHeading)
	form(`rename [the] section <a:lit> (to|as|into) <b:lit> <:scope>`, buildHeading)
	form(`change|rename|update [the] heading <a:lit> `+ofPage+` (to|into|as) <b:lit>`, buildHeading)

	form(`use|prefer <m:val> (for|as) [the|all] [bullet|unordered] [list] (lists|list|markers|marker|bullets|bullet|items) <:scope>`, buildListMarkers)
	form(`normalise|normalize|change|convert [all] [the] [bullet|unordered] (list markers/lists/bullets) (to|into) [use] <m:val> <:scope>`, buildListMarkers)
	form(`add|set [the] language <l:val> (to|on|for) [all] [the] [bare|plain|unlabelled|unlabeled|untagged] [code] (fences|fence|blocks|block) [without [a] language] <:scope>`, buildFences)
	form(`label|mark|tag [all] [the] [bare|plain|unlabelled|unlabeled|untagged] [code] (fences|fence|blocks|block) [without [a] language] (as|with) <l:val> <:scope>`, buildFences)

	form(`undo|revert [all] [of] [that|it|this|everything|your] [the] [last|previous|latest] [change|changes|edit|edits|instruction|commit|step]`, buildUndo)
	form(`undo|revert [the] (commit|merge) <commit:val>`, buildUndo)
	before := len(patterns)
	form(`[do|make|apply|repeat] [the|exactly] [the] same [change|changes|edit|thing|replacement|rename|fix|instruction] [again] <:scope>`, buildAgain)
	form(`[do|repeat] (it|this|that) [again] <:scope>`, buildAgain)
	form(`<:scope>`, buildAgain)
	for i := range patterns[before:] {
		patterns[before+i].again = true
	}
}

func buildReplace(c captures, m *Memory) (edit.Operation, error) {
	op := &edit.Replace{From: c.text("a"), To: c.text("b"), Located: edit.Located{Scope: readScope(c, m)}}
	if c.has("address") && !edit.AddressLike(op.From) {
		return nil, fmt.Errorf(
			"it does not say whether the text of links or their target is meant: say “in link texts” or “in link targets”")
	}
	m.term = [2]string{op.From, op.To}
	return op, nil
}

// buildUse is a replacement in what is named; without that, of the one place where the text stands: an ordinary word means
// something else elsewhere.
func buildUse(c captures, m *Memory) (edit.Operation, error) {
	s := readScope(c, m)
	if m.lead == nil && !s.All && s.Places == 0 && len(s.In)+len(s.Except)+len(s.Parts) == 0 && s.Manner == (edit.Manner{}) {
		return &edit.Correct{Readings: []edit.Reading{{Pairs: []edit.Pair{{Old: c.text("a"), New: c.text("b")}}, Cue: edit.Should, Literal: true}}}, nil
	}
	return buildReplace(c, m)
}

// buildLines is for what a reviewer suggests: these lines in place of those.
func buildLines(c captures, m *Memory) (edit.Operation, error) {
	at, err := m.at(c)
	if err != nil {
		return nil, err
	}
	to, err := strconv.Atoi(c.text("to"))
	if err != nil || to < 1 {
		return nil, fmt.Errorf("%s is no number of a line", say.Quote(c.text("to")))
	}
	return &edit.Lines{To: to, Old: c.text("a"), New: c.text("b"), Located: at}, nil
}

func buildReplaceEach(c captures, m *Memory) (edit.Operation, error) {
	var list edit.Many
	from, to := c.all("a"), c.all("b")
	for i := range from {
		for _, before := range to[:i] {
			if strings.Contains(before.text, from[i].text) {
				return nil, fmt.Errorf(
					"%s is in what another part puts in: say them in two instructions, in the order in which they are meant",
					say.Quote(from[i].text))
			}
		}
		list = append(list, &edit.Replace{From: from[i].text, To: to[i].text, Located: edit.Located{Scope: readScope(c, m)}})
	}
	return &list, nil
}

func buildPointLinks(c captures, m *Memory) (edit.Operation, error) {
	return m.each(c, func(l edit.Located) edit.Operation {
		return &edit.PointLinks{Dest: c.text("a"), To: c.text("b"), Located: l}
	})
}

func buildPointLink(c captures, m *Memory) (edit.Operation, error) {
	return m.each(c, func(l edit.Located) edit.Operation {
		return &edit.PointLinks{Text: c.text("a"), To: c.text("b"), Located: l}
	})
}

func buildRemoveText(c captures, m *Memory) (edit.Operation, error) {
	op, err := buildReplace(c, m)
	if op, ok := op.(*edit.Replace); err == nil && ok && len(op.Scope.In)+len(op.Scope.Parts) == 0 && !op.Scope.All &&
		m.lead == nil {
		return nil, fmt.Errorf("it does not say from where: name the page, or say “everywhere”")
	}
	return op, err
}

func buildRename(c captures, m *Memory) (edit.Operation, error) {
	a := c.text("a")
	if a == "it" {
		a = ""
	}
	op := &edit.Rename{From: a, To: c.text("b"), Located: edit.Located{Scope: readScope(c, m)}}
	m.term = [2]string{op.From, op.To}
	if workspace.PathLike(op.From) && workspace.PathLike(op.To) { // a page, if there is one
		m.page = op.To
	}
	return op, nil
}

func buildRenameIt(c captures, m *Memory) (edit.Operation, error) {
	if m.term[1] == "" {
		return nil, fmt.Errorf("nothing before it says what %q is", "it")
	}
	op := &edit.Rename{From: m.term[1], To: c.text("b"), Located: edit.Located{Scope: readScope(c, m)}}
	m.term = [2]string{op.From, op.To}
	return op, nil
}

func buildInsert(c captures, m *Memory) (edit.Operation, error) {
	at, err := m.at(c)
	return &edit.Insert{Text: c.text("t"), Heading: c.text("h"), Before: c.has("before"), Section: c.has("wholesection"),
		Located: at}, err
}

func buildSection(c captures, m *Memory) (edit.Operation, error) {
	at, err := m.at(c)
	return &edit.AddSection{Title: c.text("title"), Text: c.text("t"), Near: c.text("h"), Before: c.has("before"),
		Located: at}, err
}

func buildAppend(c captures, m *Memory) (edit.Operation, error) {
	at, err := m.at(c)
	if err == nil && len(at.Scope.In) == 0 && m.lead == nil {
		err = fmt.Errorf("nothing before it says which page is meant")
	}
	return &edit.Append{Text: c.text("t"), Section: c.text("h"), Top: c.has("top"), Located: at}, err
}

func buildDeleteSection(c captures, m *Memory) (edit.Operation, error) {
	at, err := m.at(c)
	return &edit.DeleteSection{Heading: c.text("h"), Located: at}, err
}

func buildDeleteHeading(c captures, m *Memory) (edit.Operation, error) {
	at, err := m.at(c)
	return &edit.DeleteSection{Heading: c.text("h"), Line: true, Located: at}, err
}

func buildDeleteText(c captures, m *Memory) (edit.Operation, error) {
	at, err := m.at(c)
	op := &edit.DeleteText{Text: c.text("x"), Located: at}
	for _, unit := range []string{"paragraph", "line", "row", "item"} {
		if c.has(unit) {
			op.Unit = unit
		}
	}
	return op, err
}

func buildCreate(c captures, m *Memory) (edit.Operation, error) {
	op := &edit.Create{Page: c.text("path"), Title: c.text("title"), Description: c.text("d"), Group: c.text("g"),
		Content: c.text("t")}
	m.page = op.Page
	return op, nil
}

func buildMove(c captures, m *Memory) (edit.Operation, error) {
	from, err := m.pageOf(c, "page")
	if err != nil {
		return nil, err
	}
	op := &edit.Move{From: from, To: c.text("to")}
	m.page = op.To
	return op, nil
}

func buildMoveFolder(c captures, m *Memory) (edit.Operation, error) {
	return &edit.Move{From: c.text("dir"), To: c.text("to"), Folder: true}, nil
}

func buildDeletePage(c captures, m *Memory) (edit.Operation, error) {
	page, err := m.pageOf(c, "page")
	if err != nil {
		return nil, err
	}
	return &edit.DeletePage{Page: page, Unlink: c.has("unlink")}, nil
}

func buildFixLinks(c captures, m *Memory) (edit.Operation, error) {
	if s := readScope(c, m); s.Manner == (edit.Manner{IgnoreCase: true}) { // of anchors
		return &edit.FixLinks{Located: edit.Located{Scope: s}}, nil
	}
	return m.each(c, func(l edit.Located) edit.Operation { return &edit.FixLinks{Located: l} })
}

func buildFixLinksAndTypos(c captures, m *Memory) (edit.Operation, error) {
	return m.each(c, func(l edit.Located) edit.Operation {
		return &edit.Many{&edit.FixLinks{Located: l}, &edit.FixTypos{Located: l}}
	})
}

func buildFixTypos(c captures, m *Memory) (edit.Operation, error) {
	return m.each(c, func(l edit.Located) edit.Operation { return &edit.FixTypos{Located: l} })
}

func buildSetFront(c captures, m *Memory) (edit.Operation, error) {
	at, err := m.at(c)
	op := &edit.SetFront{Key: c.text("key"), Value: c.text("v"), Was: c.text("was"), Located: at}
	if err == nil && !op.Scope.Placed() && m.lead == nil {
		err = fmt.Errorf("it does not say which page's %s is meant", op.Key)
	}
	if len(op.Scope.In) == 1 && len(op.Scope.In[0]) == 1 {
		m.page = op.Scope.In[0][0].Name
	}
	return op, err
}

func buildRemoveFront(c captures, m *Memory) (edit.Operation, error) {
	at, err := m.at(c)
	return &edit.SetFront{Key: c.text("key"), Remove: true, Located: at}, err
}

func buildNavEntry(c captures, m *Memory) (edit.Operation, error) {
	page, err := m.pageOf(c, "page")
	if err != nil {
		return nil, err
	}
	return &edit.NavEntry{Page: page, Group: c.text("g"), After: c.text("after"), Before: c.text("before"),
		Top: c.has("top"), Remove: c.has("gone")}, nil
}

func buildHeading(c captures, m *Memory) (edit.Operation, error) {
	at, err := m.at(c)
	return &edit.ChangeHeading{From: c.text("a"), To: c.text("b"), Located: at}, err
}

func buildListMarkers(c captures, m *Memory) (edit.Operation, error) {
	marks := map[string]byte{"*": '*', "asterisks": '*', "asterisk": '*', "stars": '*', "-": '-', "dashes": '-',
		"dash": '-', "hyphens": '-', "hyphen": '-', "+": '+', "plus": '+', "pluses": '+'}
	mk, ok := marks[strings.ToLower(c.text("m"))]
	if !ok {
		return nil, fmt.Errorf("%q is no list marker: *, - and + are", say.OneLine(c.text("m"), 20))
	}
	return m.each(c, func(l edit.Located) edit.Operation { return &edit.ListMarkers{Marker: mk, Located: l} })
}

func buildFences(c captures, m *Memory) (edit.Operation, error) {
	if !keyWord.MatchString(strings.NewReplacer("+", "p", "#", "s", "-", "_").Replace(c.text("l"))) {
		return nil, fmt.Errorf("%q is no name of a language", say.OneLine(c.text("l"), 20))
	}
	return m.each(c, func(l edit.Located) edit.Operation { return &edit.LabelFences{Lang: c.text("l"), Located: l} })
}

func buildUndo(c captures, m *Memory) (edit.Operation, error) {
	return &edit.Undo{Commit: c.text("commit")}, nil
}

func buildAgain(c captures, m *Memory) (edit.Operation, error) {
	s := readScope(c, m)
	if !s.Placed() && m.lead == nil {
		return nil, fmt.Errorf("it does not say where to do the same")
	}
	if s.Only {
		return nil, errors.New(narrows)
	}
	if len(m.ops) == 0 {
		return nil, fmt.Errorf("nothing before it could be done again")
	}
	var list edit.Many
	for _, done := range m.ops {
		for _, op := range edit.Members(done) {
			w, ok := op.(edit.Scoped)
			if !ok {
				return nil, fmt.Errorf("%q cannot be done in another place by itself", op.Todo())
			}
			list = append(list, w.Within(s))
		}
	}
	if len(list) == 1 {
		return list[0], nil
	}
	return &list, nil
}
