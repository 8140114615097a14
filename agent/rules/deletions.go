package rules

import (
	"slices"
	"strings"

	"docent/agent/workspace"
	"docent/internal/wordset"
)

// Deletions are what an instruction says about deleting.
type Deletions struct {
	Objects []Object
	Touched []string // named in a sentence that deletes something: what is taken out there may be all that a page has
	Kept    []string // named as what is not to be deleted
}

// A Object is what one word of deletion is about.
type Object struct {
	Paths  []string // named by path, address, folder or glob
	Titles []string // what stands beside "page": a title, or words that describe
	Pages  bool     // pages are spoken of at all
	Many   bool     // more than one
	Folder bool     // as folders
	Part   bool     // what follows "page" may be a part of it as well as a title
	Among  []string // "it", or what is merged: one of these
}

var (
	deleteVerbs = wordSet(
		`delete deletes deleting remove removes removing drop dropping erase erasing purge purging prune pruning discard discarding retire retiring scrap scrapping trash trashing`)
	deletePast = wordSet(`deleted removed dropped erased purged pruned discarded retired scrapped`)
	joinVerbs  = wordSet(
		`merge merging combine combining consolidate consolidating unify fold folding split splitting join joining`)
	onePage   = wordSet(`page file document article guide tutorial chapter`)
	manyPages = wordSet(
		`pages files documents docs articles guides tutorials chapters folder folders directory directories everything`)
	beside = wordSet(
		`the a an this that these those all both every each any of whole entire following titled called named entitled just also please`)
	joiners    = wordSet(`and or plus & also as well`)
	containers = wordSet(`in under below within inside of from`)
	negations  = wordSet(`not don't dont don’t never without no cannot can't can’t avoid`)
	exceptions = wordSet(`except excluding but keep keeping not without besides`)
	stoppers   = wordSet(
		`because since so if unless which where when whose while with by after before to into as instead about for on at near between then mentioning containing using`)
	auxiliaries = wordSet(`be is are get should can could must may shall needs need to will`)
	wholes      = wordSet(`docs documentation site website repository repo project here disk`)
)

var wordSet = wordset.Of

func isName(t token) bool {
	return t.kind == literalText && !strings.Contains(t.text, "\n") || t.kind == word && workspace.PathLike(t.text)
}

const (
	maxWishes = 200 // words of deletion in a prompt that are looked at: what hostile input may cost is bounded
	maxObject = 500 // tokens behind one
)

// ReadDeletions finds the words of deletion of an instruction and what each is about.
func ReadDeletions(prompt string, earlier []string) Deletions {
	r := &deletionReader{toks: lex(prompt), earlier: earlier, noted: -1}
	for i, n := 0, 0; i < len(r.toks) && n < maxWishes; i++ {
		t := r.toks[i]
		switch {
		case t.ends():
			r.start = i + 1
		case t.kind != word:
		case joinVerbs[t.low]:
			n++
			r.join()
		case r.asks(i):
			n++
			r.delete(i, false)
		case deletePast[t.low] && i > r.start && (r.toks[i-1].low == "be" || r.toks[i-1].low == "get"):
			n++
			r.delete(i, true)
		}
	}
	return r.out
}

// A deletionReader goes through an instruction.
type deletionReader struct {
	toks    []token
	earlier []string // instructions
	start   int      // where the sentence begins
	noted   int      // the last sentence whose names were noted
	out     Deletions
}

// asks reports whether the word at i asks for something to be deleted.
func (r *deletionReader) asks(i int) bool {
	low := r.toks[i].low
	return deleteVerbs[low] || i > 0 &&
		(low == "rid" && strings.HasPrefix(r.toks[i-1].low, "get") || low == "away" && strings.HasPrefix(r.toks[i-1].low,
			"throw"))
}

// join notes what is merged or split, which may go.
func (r *deletionReader) join() {
	if r.noted != r.start {
		r.noted = r.start
		r.out.Objects = append(r.out.Objects, Object{Among: pathsIn(sentenceOf(r.toks, r.start)), Pages: true, Many: true})
	}
}

// delete notes what the word of deletion at i is about.
func (r *deletionReader) delete(i int, passive bool) {
	if r.noted != r.start {
		r.noted = r.start
		r.out.Touched = addNames(r.out.Touched, sentenceOf(r.toks, r.start))
	}
	if negated(r.toks[r.start:i]) {
		r.out.Kept = addNames(r.out.Kept, sentenceOf(r.toks, i))
		return
	}
	var o Object
	var kept []string
	switch next := i + 1; {
	case passive:
		end := i
		for end > r.start && auxiliaries[r.toks[end-1].low] {
			end--
		}
		o, kept = readObject(r.toks[max(r.start, end-maxObject):end])
	case next < len(r.toks) && (r.toks[next].low == "it" || r.toks[next].low == "them"):
		named := r.namedBefore(i)
		if len(named) > 0 && r.toks[next].low == "it" {
			named = named[len(named)-1:]
		}
		o = Object{Among: named, Pages: len(named) > 0, Many: true}
	default:
		o, kept = readObject(r.toks[next:min(len(r.toks), next+maxObject)])
	}
	r.out.Kept = append(r.out.Kept, kept...)
	if len(o.Paths) > 0 || o.Pages {
		r.out.Objects = append(r.out.Objects, o)
	}
}

// namedBefore lists the paths that were named last.
func (r *deletionReader) namedBefore(i int) []string {
	named := pathsIn(r.toks[:i])
	if len(named) == 0 {
		for _, e := range r.earlier {
			named = append(named, pathsIn(lex(e))...)
		}
	}
	return named
}

func pathsIn(toks []token) (out []string) {
	for _, t := range toks {
		if isName(t) && workspace.PathLike(t.text) {
			out = append(out, t.text)
		}
	}
	return out
}

// addNames adds the names among tokens to a list that has each once.
func addNames(list []string, toks []token) []string {
	for _, t := range toks {
		if isName(t) && !slices.Contains(list, t.text) {
			list = append(list, t.text)
		}
	}
	return list
}

// negated reports whether the last words before a verb turn it around.
func negated(before []token) bool {
	for k := len(before) - 1; k >= 0 && k >= len(before)-3 && before[k].kind == word; k-- {
		if negations[before[k].low] {
			return true
		}
	}
	return false
}

// sentenceOf is the sentence or line that begins at a token.
func sentenceOf(toks []token, at int) []token {
	if n := slices.IndexFunc(toks[at:], token.ends); n >= 0 {
		return toks[at : at+n]
	}
	return toks[at:]
}

// readObject reads what stands behind a word of deletion: names of pages, pages in words, or something else, which is
// no deletion of a page and gives an empty object. It also gives what is not to be deleted.
func readObject(toks []token) (Object, []string) {
	r := &objectReader{toks: toks}
	for i := range toks {
		switch r.take(i) {
		case otherThing:
			return Object{}, r.kept
		case objectEnds:
			return r.object(), r.kept
		}
	}
	return r.object(), r.kept
}

// An objectReader reads one object of a word of deletion, token by token.
type objectReader struct {
	toks   []token
	o      Object
	words  []string // since the last name or mark: a title, a description or some part of a page
	found  []string // titles, or such words
	joined bool     // the words follow an "and"
	kept   []string // what is not to be deleted
}

type objectStep uint8

const (
	objectGoesOn objectStep = iota
	objectEnds
	otherThing // it is about something else than pages
)

func (r *objectReader) settle() {
	if len(r.words) > 0 {
		r.found, r.words = append(r.found, strings.Join(r.words, " ")), nil
	}
}

func (r *objectReader) object() Object {
	if len(r.words) > 0 && !r.joined {
		if !r.o.Pages {
			return Object{}
		}
		r.o.Part = true // page numbers, or the page Getting started
		r.settle()
	}
	if r.o.Pages {
		r.o.Titles = r.found
	}
	return r.o
}

func (r *objectReader) take(i int) objectStep {
	t, next := r.toks[i], token{kind: newline}
	if i+1 < len(r.toks) {
		next = r.toks[i+1]
	}
	switch {
	case isName(t):
		return r.name(t)
	case t.kind == newline && next.is("•"): // a list of pages may follow
	case t.is("•") && isName(next), t.is(","), t.is(":"), t.kind == word && joiners[t.low] && !verbs[next.low] &&
		!deleteVerbs[next.low]:
		r.settle()
		r.joined = true
	case t.kind != word:
		return objectEnds
	case exceptions[t.low]:
		for _, x := range sentenceOf(r.toks, i) {
			if isName(x) {
				r.kept = append(r.kept, x.text)
			}
		}
		return objectEnds
	case onePage[t.low] || manyPages[t.low]:
		return r.pages(t, next)
	case containers[t.low]:
		return r.container(i)
	case stoppers[t.low] || joiners[t.low] || t.low == "that" && r.o.Pages:
		return objectEnds
	case beside[t.low]:
	case len(r.o.Paths) > 0 && !r.o.Pages && !r.joined:
		return otherThing // the a.md link
	default:
		r.words = append(r.words, t.low)
	}
	return objectGoesOn
}

func (r *objectReader) name(t token) objectStep {
	switch {
	case len(r.words) > 0:
		return otherThing // the section "X", the comma before …
	case slices.Contains(r.o.Paths, t.text):
	case workspace.PathLike(t.text):
		r.o.Paths = append(r.o.Paths, t.text)
	default:
		r.found = append(r.found, t.text)
	}
	r.joined = false
	return objectGoesOn
}

// pages takes a word for pages or folders.
func (r *objectReader) pages(t, next token) objectStep {
	if t.low == "everything" && next.kind == word && !containers[next.low] && !exceptions[next.low] {
		return otherThing // everything about …
	}
	r.settle()
	r.joined = false
	r.o.Pages, r.o.Many = true, r.o.Many || manyPages[t.low]
	r.o.Folder = r.o.Folder || strings.HasPrefix(t.low, "folder") || strings.HasPrefix(t.low, "director")
	return objectGoesOn
}

// container takes a word like "in" and "of".
func (r *objectReader) container(i int) objectStep {
	low := r.toks[i].low
	switch {
	case len(r.words) > 0 && !r.joined:
		return otherThing // the comma in a.md
	case low == "of" && !r.o.Pages && len(r.o.Paths) == 0:
		return objectGoesOn // get rid of …
	}
	k := i + 1
	for k < len(r.toks) && beside[r.toks[k].low] {
		k++
	}
	switch {
	case k == len(r.toks):
	case isName(r.toks[k]) && r.o.Pages:
		return objectGoesOn // the pages in old/
	case low == "from" && (isName(r.toks[k]) || r.toks[k].kind == word && !wholes[r.toks[k].low]):
		return otherThing // from the navigation
	}
	return objectEnds
}
