package agent

import (
	"bytes"
	"fmt"
	"path"
	"slices"
	"strings"

	"docent/markup"
)

// fewDeletions is how many pages one change may delete without a pull request, where a project has changes committed to its branch
// directly. Each has to be named by the instruction.
const fewDeletions = 3

// A deletion is a file of the base that a change takes away, or a page that it leaves without content.
type deletion struct {
	path    string
	emptied bool
}

// deletions lists what changes delete. A move deletes nothing, however it was made: where the same bytes stand in a new file, the
// file was moved.
func (c *checker) deletions(changes []Change) ([]deletion, error) {
	moved := map[string]bool{}
	var fresh [][]byte
	for _, ch := range changes {
		switch {
		case ch.From != "":
			moved[ch.From] = true
		case !ch.Delete && !c.run.ws.had(ch.Path):
			fresh = append(fresh, ch.Content)
		}
	}
	var out []deletion
	for _, ch := range changes {
		from := ch.Path
		if ch.From != "" {
			from = ch.From
		}
		if !c.run.ws.had(from) || ch.Delete && moved[ch.Path] || !ch.Delete && !isPage(ch.Path) {
			continue
		}
		if ch.Delete && len(fresh) == 0 {
			out = append(out, deletion{path: ch.Path})
			continue
		}
		old, err := c.run.ws.original(from)
		if err != nil {
			return nil, err
		}
		switch {
		case ch.Delete:
			if i := slices.IndexFunc(fresh, func(b []byte) bool { return bytes.Equal(b, old) }); i >= 0 {
				fresh = slices.Delete(fresh, i, i+1)
				continue
			}
			out = append(out, deletion{path: ch.Path})
		case bare(ch.Path, ch.Content) && !bare(from, old):
			out = append(out, deletion{path: ch.Path, emptied: true})
		}
	}
	return out, nil
}

// bare tells whether a page says nothing: headings, comments and front matter are no content.
func bare(name string, src []byte) bool {
	p := markup.Parse(name, src)
	if len(p.Code) > 0 || len(p.Links) > 0 || len(p.Tags) > 0 {
		return false
	}
	at := p.Body.Start
	for _, h := range p.Headings {
		if h.Span.Start > at && strings.TrimSpace(p.Plain(markup.Span{Start: at, End: h.Span.Start})) != "" {
			return false
		}
		at = max(at, h.Span.End)
	}
	return at >= p.Body.End || strings.TrimSpace(p.Plain(markup.Span{Start: at, End: p.Body.End})) == ""
}

// unasked says what is wrong with the deletions among the changes, or nothing: a page is deleted or emptied only where the
// instruction says so. Both ways of editing go through here before there is a result. It also settles whether a person looks at
// the change before it is on the documentation's branch.
func (c *checker) unasked(changes []Change, base *documentation) (fault string, checked string, err error) {
	list, err := c.deletions(changes)
	if err != nil || len(list) == 0 {
		return "", "", err
	}
	c.review = len(list) > fewDeletions
	defer func() {
		if c.review && fault == "" && c.direct {
			c.run.kept("%s are deleted, so the change waits for a review, although the project has changes committed directly", count(len(list), "file"))
		}
	}()
	if c.run.undone {
		return "", "", nil
	}
	says := c.wishes()
	var left []deletion
	for _, d := range list {
		if !c.run.meant[d.path] && !names(says, base, d) {
			left = append(left, d)
		}
	}
	if len(left) == 0 {
		return "", fmt.Sprintf("the instruction names what is deleted (%s)", count(len(list), "file")), nil
	}
	if inWords(says, base, left) {
		c.review = true
		return "", fmt.Sprintf("the instruction asks in words for pages to be deleted: look whether these are meant (%s)", count(len(list), "file")), nil
	}
	return c.unnamed(left), "", nil
}

// unnamed says that files would be deleted which the instruction does not name.
func (c *checker) unnamed(left []deletion) string {
	var gone, empty []string
	for _, d := range left {
		if d.emptied {
			empty = append(empty, c.run.site.show(d.path))
		} else {
			gone = append(gone, c.run.site.show(d.path))
		}
	}
	var parts []string
	if len(gone) > 0 {
		parts = append(parts, fmt.Sprintf("%s would be deleted (%s)", count(len(gone), "file"), listing(gone)))
	}
	if len(empty) > 0 {
		parts = append(parts, fmt.Sprintf("%s would be left without content (%s)", count(len(empty), "page"), listing(empty)))
	}
	first := gone
	if len(gone) == 0 {
		first = empty
	}
	return strings.Join(parts, " and ") + ", and the instruction does not ask for that; to delete a page, name it, for instance “delete page " + first[0] + "”"
}

// wishes are what the instruction says about deleting.
func (c *checker) wishes() wishes {
	if c.wish == nil {
		var before []string
		for _, e := range c.run.earlier {
			before = append(before, e.Prompt)
		}
		w := readWishes(c.prompt, before)
		c.wish = &w
	}
	return *c.wish
}

// asks tells whether the instruction asks for a file of the base to be deleted.
func (c *checker) asks(file string) (bool, error) {
	base, err := c.base()
	if err != nil {
		return false, err
	}
	w, d := c.wishes(), deletion{path: file}
	return names(w, base, d) || inWords(w, base, []deletion{d}), nil
}

// wishes are what an instruction says about deleting.
type wishes struct {
	objects []deleteObject
	touched []string // named in a sentence that deletes something: what is taken out there may be all that a page has
	kept    []string // named as what is not to be deleted
}

// A deleteObject is what one word of deletion is about.
type deleteObject struct {
	paths  []string // named by path, address, folder or glob
	titles []string // what stands beside "page": a title, or words that describe
	pages  bool     // pages are spoken of at all
	many   bool     // more than one
	folder bool     // as folders
	part   bool     // what follows "page" may be a part of it as well as a title
	among  []string // "it", or what is merged: one of these
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
	return t.kind == literalText && !strings.Contains(t.text, "\n") || t.kind == word && pathLike(t.text)
}

const (
	maxWishes = 200 // words of deletion in a prompt that are looked at: what hostile input may cost is bounded
	maxObject = 500 // tokens behind one
)

// readWishes finds the words of deletion of an instruction and what each is about.
func readWishes(prompt string, earlier []string) wishes {
	var w wishes
	toks := lex(prompt)
	paths := func(list []token) (out []string) {
		for _, x := range list {
			if isName(x) && pathLike(x.text) {
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
				w.objects = append(w.objects, deleteObject{among: paths(sentence), pages: true, many: true})
			}
			continue
		}
		if told != start {
			told = start
			for _, x := range sentence {
				if isName(x) && !slices.Contains(w.touched, x.text) {
					w.touched = append(w.touched, x.text)
				}
			}
		}
		if negated(toks[start:i]) {
			for _, x := range sentenceOf(toks, i) {
				if isName(x) && !slices.Contains(w.kept, x.text) {
					w.kept = append(w.kept, x.text)
				}
			}
			continue
		}
		var o deleteObject
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
			o = deleteObject{among: named, pages: len(named) > 0, many: true}
		default:
			o, kept = readObject(toks[i+1 : min(len(toks), i+1+maxObject)])
		}
		w.kept = append(w.kept, kept...)
		if len(o.paths) > 0 || o.pages {
			w.objects = append(w.objects, o)
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
func readObject(toks []token) (o deleteObject, kept []string) {
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
				return deleteObject{}, kept // the section "X", the comma before …
			}
			switch {
			case slices.Contains(o.paths, t.text):
			case pathLike(t.text):
				o.paths = append(o.paths, t.text)
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
				return deleteObject{}, kept // everything about …
			}
			settle()
			joined = false
			o.pages, o.many = true, o.many || manyPages[t.low]
			o.folder = o.folder || strings.HasPrefix(t.low, "folder") || strings.HasPrefix(t.low, "director")
			continue
		case t.kind == word && containers[t.low]:
			if len(words) > 0 && !joined {
				return deleteObject{}, kept // the comma in a.md
			}
			if t.low == "of" && !o.pages && len(o.paths) == 0 {
				continue // get rid of …
			}
			k := i + 1
			for k < len(toks) && beside[toks[k].low] {
				k++
			}
			switch {
			case k < len(toks) && isName(toks[k]) && o.pages:
				continue // the pages in old/
			case t.low == "from" && k < len(toks) && (isName(toks[k]) || toks[k].kind == word && !wholes[toks[k].low]):
				return deleteObject{}, kept // from the navigation
			}
		case t.kind == word && !stoppers[t.low] && !joiners[t.low] && !(t.low == "that" && o.pages):
			if !beside[t.low] {
				if len(o.paths) > 0 && !o.pages && !joined {
					return deleteObject{}, kept // the a.md link
				}
				words = append(words, t.low)
			}
			continue
		}
		break
	}
	if len(words) > 0 && !joined {
		if !o.pages {
			return deleteObject{}, kept
		}
		o.part = true // page numbers, or the page Getting started
		settle()
	}
	if o.pages {
		o.titles = found
	}
	return o, kept
}

// names tells whether the instruction names a file as one to delete.
func names(w wishes, base *documentation, d deletion) bool {
	is := func(name string) bool { return base.called(name, d.path) }
	if slices.ContainsFunc(w.kept, is) {
		return false
	}
	if d.emptied && slices.ContainsFunc(w.touched, is) {
		return true
	}
	return slices.ContainsFunc(w.objects, func(o deleteObject) bool {
		return slices.ContainsFunc(o.paths, is) ||
			slices.ContainsFunc(o.titles, func(title string) bool { return base.titled(title, d.path) || o.folder && is(title+"/") })
	})
}

// inWords tells whether the instruction asks for pages to be deleted that it describes and does not name.
func inWords(w wishes, base *documentation, list []deletion) bool {
	if slices.ContainsFunc(list, func(d deletion) bool {
		return !isPage(d.path) || slices.ContainsFunc(w.kept, func(name string) bool { return base.called(name, d.path) })
	}) {
		return false
	}
	all := base.list()
	return slices.ContainsFunc(w.objects, func(o deleteObject) bool {
		if !o.pages || o.part || len(o.paths) > 0 || !o.many && len(list) > 1 {
			return false
		}
		if len(o.among) > 0 {
			return !slices.ContainsFunc(list, func(d deletion) bool {
				return !slices.ContainsFunc(o.among, func(name string) bool { return !strings.HasSuffix(name, "/") && base.called(name, d.path) })
			})
		}
		return !slices.ContainsFunc(o.titles, func(title string) bool { // a title of some page is no description
			return slices.ContainsFunc(all, func(f string) bool { return base.titled(title, f) || o.folder && base.called(title+"/", f) })
		})
	})
}

// called tells whether a name means a file: its path or address, a folder that it is in, or a glob.
func (s *documentation) called(name, file string) bool {
	name = strings.TrimPrefix(strings.TrimPrefix(strings.TrimSpace(name), "./"), "/")
	if own := strings.TrimSuffix(s.project.SiteURL, "/"); own != "" {
		name = strings.TrimPrefix(name, strings.TrimPrefix(own, "/")+"/")
	}
	shown := s.show(file)
	if name == "" || name == "." {
		return false
	}
	if globbed(name, file) || globbed(name, shown) {
		return true
	}
	f, err := s.find(name)
	if err == nil && !strings.HasSuffix(name, "/") {
		return f == file
	}
	folder := strings.TrimSuffix(name, "/")
	if strings.HasPrefix(file, folder+"/") || strings.HasPrefix(shown, folder+"/") || strings.HasSuffix(name, "/") && !strings.Contains(folder, "/") && slices.Contains(strings.Split(path.Dir(shown), "/"), folder) {
		return true
	}
	return s.titled(name, file)
}

// titled tells whether a name is the title of a page, or what its file is called.
func (s *documentation) titled(name, file string) bool {
	if sameFold(humanise(stem(path.Base(file))), name) || sameFold(stem(path.Base(file)), name) {
		return true
	}
	if !isPage(file) {
		return false
	}
	p, err := s.page(file)
	return err == nil && sameFold(p.Title(), name)
}
