package rules

import (
	"slices"
	"strings"

	"docent/agent/workspace"
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
	deleteVerbs = wordSet(`delete deletes deleting remove removes removing drop dropping erase erasing purge purging prune pruning discard discarding retire retiring scrap scrapping trash trashing`)
	deletePast  = wordSet(`deleted removed dropped erased purged pruned discarded retired scrapped`)
	joinVerbs   = wordSet(`merge merging combine combining consolidate consolidating unify fold folding split splitting join joining`)
	onePage     = wordSet(`page file document article guide tutorial chapter`)
	manyPages   = wordSet(`pages files documents docs articles guides tutorials chapters folder folders directory directories everything`)
	beside      = wordSet(`the a an this that these those all both every each any of whole entire following titled called named entitled just also please`)
	joiners     = wordSet(`and or plus & also as well`)
	containers  = wordSet(`in under below within inside of from`)
	negations   = wordSet(`not don't dont don’t never without no cannot can't can’t avoid`)
	exceptions  = wordSet(`except excluding but keep keeping not without besides`)
	stoppers    = wordSet(`because since so if unless which where when whose while with by after before to into as instead about for on at near between then mentioning containing using`)
	auxiliaries = wordSet(`be is are get should can could must may shall needs need to will`)
	wholes      = wordSet(`docs documentation site website repository repo project here disk`)
)

func wordSet(list string) map[string]bool {
	set := map[string]bool{}
	for _, w := range strings.Fields(list) {
		set[w] = true
	}
	return set
}

func isName(t token) bool {
	return t.kind == literalText && !strings.Contains(t.text, "\n") || t.kind == word && workspace.PathLike(t.text)
}

const (
	maxWishes = 200 // words of deletion in a prompt that are looked at: what hostile input may cost is bounded
	maxObject = 500 // tokens behind one
)

// ReadDeletions finds the words of deletion of an instruction and what each is about.
func ReadDeletions(prompt string, earlier []string) Deletions {
	var w Deletions
	toks := lex(prompt)
	paths := func(list []token) (out []string) {
		for _, x := range list {
			if isName(x) && workspace.PathLike(x.text) {
				out = append(out, x.text)
			}
		}
		return out
	}
	start, told := 0, -1 // where the sentence begins, and the last whose names were noted
	for i, n := 0, 0; i < len(toks) && n < maxWishes; i++ {
		t := toks[i]
		if t.kind == mark && strings.Contains(".;!?•", t.text) || t.kind == newline {
			start = i + 1
			continue
		}
		if t.kind != word {
			continue
		}
		asks := deleteVerbs[t.low] || t.low == "rid" && i > 0 && strings.HasPrefix(toks[i-1].low, "get") || t.low == "away" && i > 0 && strings.HasPrefix(toks[i-1].low, "throw")
		passive := deletePast[t.low] && i > start && (toks[i-1].low == "be" || toks[i-1].low == "get")
		if !asks && !passive && !joinVerbs[t.low] {
			continue
		}
		n++
		sentence := sentenceOf(toks, start)
		if joinVerbs[t.low] { // what is merged or split may go
			if told != start {
				told = start
				w.Objects = append(w.Objects, Object{Among: paths(sentence), Pages: true, Many: true})
			}
			continue
		}
		if told != start {
			told = start
			for _, x := range sentence {
				if isName(x) && !slices.Contains(w.Touched, x.text) {
					w.Touched = append(w.Touched, x.text)
				}
			}
		}
		if negated(toks[start:i]) {
			for _, x := range sentenceOf(toks, i) {
				if isName(x) && !slices.Contains(w.Kept, x.text) {
					w.Kept = append(w.Kept, x.text)
				}
			}
			continue
		}
		var o Object
		var kept []string
		switch {
		case passive:
			end := i
			for end > start && auxiliaries[toks[end-1].low] {
				end--
			}
			o, kept = readObject(toks[max(start, end-maxObject):end])
		case i+1 < len(toks) && (toks[i+1].low == "it" || toks[i+1].low == "them"): // what was named last
			named := paths(toks[:i])
			if len(named) == 0 {
				for _, e := range earlier {
					named = append(named, paths(lex(e))...)
				}
			}
			if len(named) > 0 && toks[i+1].low == "it" {
				named = named[len(named)-1:]
			}
			o = Object{Among: named, Pages: len(named) > 0, Many: true}
		default:
			o, kept = readObject(toks[i+1 : min(len(toks), i+1+maxObject)])
		}
		w.Kept = append(w.Kept, kept...)
		if len(o.Paths) > 0 || o.Pages {
			w.Objects = append(w.Objects, o)
		}
	}
	return w
}

// negated tells whether the last words before a verb turn it around.
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
	for i := at; i < len(toks); i++ {
		if toks[i].kind == mark && strings.Contains(".;!?•", toks[i].text) || toks[i].kind == newline {
			return toks[at:i]
		}
	}
	return toks[at:]
}

// readObject reads what stands behind a word of deletion: names of pages, pages in words, or something else, which is no
// deletion of a page and gives an empty object.
func readObject(toks []token) (o Object, kept []string) {
	var words, found []string // words: since the last name or mark, a title, a description or some part of a page
	joined := false           // they follow an "and"
	settle := func() {
		if len(words) > 0 {
			found = append(found, strings.Join(words, " "))
			words = nil
		}
	}
	for i := 0; i < len(toks); i++ {
		t := toks[i]
		next := token{kind: newline}
		if i+1 < len(toks) {
			next = toks[i+1]
		}
		switch {
		case isName(t):
			if len(words) > 0 {
				return Object{}, kept // the section "X", the comma before …
			}
			switch {
			case slices.Contains(o.Paths, t.text):
			case workspace.PathLike(t.text):
				o.Paths = append(o.Paths, t.text)
			default:
				found = append(found, t.text)
			}
			joined = false
			continue
		case t.kind == newline && next.kind == mark && next.text == "•": // a list of pages may follow
			continue
		case t.kind == mark && t.text == "•" && isName(next), t.kind == mark && (t.text == "," || t.text == ":"),
			t.kind == word && joiners[t.low] && !verbs[next.low] && !deleteVerbs[next.low]:
			settle()
			joined = true
			continue
		case t.kind == word && exceptions[t.low]:
			for _, x := range sentenceOf(toks, i) {
				if isName(x) {
					kept = append(kept, x.text)
				}
			}
		case t.kind == word && (onePage[t.low] || manyPages[t.low]):
			if t.low == "everything" && next.kind == word && !containers[next.low] && !exceptions[next.low] {
				return Object{}, kept // everything about …
			}
			settle()
			joined = false
			o.Pages, o.Many = true, o.Many || manyPages[t.low]
			o.Folder = o.Folder || strings.HasPrefix(t.low, "folder") || strings.HasPrefix(t.low, "director")
			continue
		case t.kind == word && containers[t.low]:
			if len(words) > 0 && !joined {
				return Object{}, kept // the comma in a.md
			}
			if t.low == "of" && !o.Pages && len(o.Paths) == 0 {
				continue // get rid of …
			}
			k := i + 1
			for k < len(toks) && beside[toks[k].low] {
				k++
			}
			switch {
			case k < len(toks) && isName(toks[k]) && o.Pages:
				continue // the pages in old/
			case t.low == "from" && k < len(toks) && (isName(toks[k]) || toks[k].kind == word && !wholes[toks[k].low]):
				return Object{}, kept // from the navigation
			}
		case t.kind == word && !stoppers[t.low] && !joiners[t.low] && !(t.low == "that" && o.Pages):
			if !beside[t.low] {
				if len(o.Paths) > 0 && !o.Pages && !joined {
					return Object{}, kept // the a.md link
				}
				words = append(words, t.low)
			}
			continue
		}
		break
	}
	if len(words) > 0 && !joined {
		if !o.Pages {
			return Object{}, kept
		}
		o.Part = true // page numbers, or the page Getting started
		settle()
	}
	if o.Pages {
		o.Titles = found
	}
	return o, kept
}
