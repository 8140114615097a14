package affected

import (
	"cmp"
	"fmt"
	"math"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"docent/internal/brief"
	"docent/internal/wordset"
	"docent/site"
)

// A Level says how sure it is that a page is to be changed.
type Level string

// The levels.
const (
	Outdated Level = "outdated" // the page says what the change takes away, renames, or gives another value
	Related  Level = "related"  // the page describes what is changed, or where what is new belongs
)

// A Finding is a page that the change concerns.
type Finding struct {
	Page   string  `json:"page"`
	Title  string  `json:"title"`
	Level  Level   `json:"level"`
	Score  float64 `json:"score"` // comparable within one result
	Places []Place `json:"places"`
	// The page says that a program writes it: run that.
	Generated bool `json:"generated,omitempty"`
	Changed   bool `json:"changed,omitempty"` // the same change edits the page
}

// A Place is a line of a page, and why it is named.
type Place struct {
	Line   int    `json:"line"` // from 1
	Text   string `json:"text"`
	Name   string `json:"name"`
	Why    string `json:"why"`
	Source string `json:"source,omitempty"` // FILE:LINE of the code
	Level  Level  `json:"level"`
}

// A Result is what a change means for the documentation.
type Result struct {
	Findings []Finding `json:"findings"` // the most concerned page first
	More     int       `json:"more"`     // pages that are concerned and not among them
	Names    int       `json:"names"`    // that the change concerns
	Pages    int       `json:"pages"`    // that were looked at
	Cut      bool      `json:"cut"`      // the change has more than was looked at
}

// Options of Find.
type Options struct {
	Most int // pages that are named; MostNamed if zero
	// Docs is the folder of the documentation as the change names it: what changes there is no code.
	Docs    string
	Message string // what the change's author says of it, beside the messages in the diff
	// Alive reports whether a name that the change removes somewhere still stands in the code after it, in files that are no
	// pages. It is asked for a few names. If it is nil, what the change alone shows counts.
	Alive func(name string) bool
}

// MostNamed is how many pages are named if nothing else is said. Of 37 behind them in 66 real changes, 2 were changed.
const MostNamed = 3

const maxAlive = 60 // names that Alive is asked for

// The bounds of a finding. Where they come from: docs/measurements/2026-11-follow-code.md.
const (
	least      = 3.0  // score of a page that is named
	nearBest   = 0.35 // of the best page's score
	topicWidth = 0.6  // what a word says that page and change are both about
	certain    = 1.0  // added to the score of a page that is outdated
	mostShown  = 6    // places of a page
	rarest     = 5.0  // what it says that something stands on one page alone
	mostPages  = 0.25 // of the pages may hold a name that says something
)

// Find looks a change up in the documentation.
func (x *Index) Find(d Diff, o Options) Result {
	r := Result{Pages: len(x.pages), Cut: d.Cut, Findings: []Finding{}}
	var code []File
	edited := map[string]bool{}
	for _, f := range d.Files {
		switch p := f.Path(); {
		case site.IsPage(p) || within(o.Docs, p):
			edited[p] = true
		case !isTest(p):
			code = append(code, f)
		}
	}
	if len(code) == 0 {
		return r
	}
	terms := termsOf(code)
	r.Names = len(terms)
	x.settle(terms, o.Alive)
	topics := x.topics(code, d.Message+"\n"+o.Message)
	var all []Finding
	for i := range x.pages {
		p := &x.pages[i]
		f := x.judge(p, terms, topics)
		if f.Score <= 0 {
			continue
		}
		f.Changed = edited[p.path]
		if f.Changed && f.Level != Outdated {
			continue // the same change takes care of it
		}
		all = append(all, f)
	}
	slices.SortFunc(all, byScore)
	for i, f := range all {
		if f.Score < max(least, nearBest*all[0].Score) {
			all = all[:i]
			break
		}
	}
	most := cmp.Or(o.Most, MostNamed)
	r.More = max(len(all)-most, 0)
	r.Findings = append(r.Findings, all[:min(len(all), most)]...)
	return r
}

// settle has what is removed in one place and stands in another be changed only.
func (x *Index) settle(terms []term, alive func(string) bool) {
	asked := 0
	for i := range terms {
		t := &terms[i]
		if alive == nil || t.effect != Removed && t.effect != Renamed || x.in[t.key] == 0 || asked >= maxAlive {
			continue
		}
		if asked++; alive(t.text) {
			t.effect = Changed
			t.weight *= effectWeight[Changed]
		}
	}
}

func within(dir, p string) bool {
	dir = strings.Trim(path.Clean(dir), "/")
	return dir != "" && dir != "." && strings.HasPrefix(p, dir+"/")
}

// rarity is what it says of a page that something stands there, if it does on so many pages: the same in a small
// documentation as in a large one.
func (x *Index) rarity(on int) float64 {
	n := float64(len(x.pages))
	if on == 0 || n > 20 && float64(on) > mostPages*n {
		return 0
	}
	return rarest * math.Log(1+n/float64(on)) / math.Log(1+n)
}

// judge is how much a page is concerned, and where.
func (x *Index) judge(p *page, terms []term, topics []topic) Finding {
	f := Finding{Page: p.path, Title: p.title, Level: Related, Generated: p.generated, Places: []Place{}}
	for _, t := range terms {
		places, worth := p.names[t.key], x.rarity(x.in[t.key])
		weight := t.weight
		if len(places) == 0 && t.effect != Beside {
			places, worth = x.beginning(p, t)
			weight *= 0.5
			t.of = t.text
			t.effect = Beside
		}
		if len(places) == 0 || worth == 0 {
			continue
		}
		if slices.ContainsFunc(places, func(at place) bool { return t.spelledOut(p.lines[at.line-1]) }) {
			weight /= singleWeight
		}
		s := weight * worth * (1 + 0.3*math.Log(float64(len(places))))
		if places[0].strong {
			s *= 1.3
		}
		f.Score += s
		f.Places = append(f.Places, p.shown(t, places)...)
	}
	words := []string{}
	for _, t := range topics {
		if p.about[t.word] {
			f.Score += t.weight * x.rarity(x.about[t.word])
			words = append(words, t.word)
		}
	}
	if len(f.Places) == 0 && f.Score > 0 {
		f.Places = append(f.Places, Place{Line: 1, Text: p.title, Level: Related, Name: strings.Join(words, ", "),
			Why: "the page is about " + strings.Join(words[:min(len(words), 4)], ", ") + ", as the changed code is"})
	}
	f.settle()
	if f.Level == Outdated {
		f.Score += certain
	}
	return f
}

// beginning are the places of names that begin as a longer one does: those of the same group of settings.
func (x *Index) beginning(p *page, t term) ([]place, float64) {
	w := words(t.text)
	for n := len(w) - 1; n >= 2; n-- {
		key := strings.Join(w[:n], " ")
		if places := p.heads[key]; len(places) > 0 {
			return places, x.rarity(x.heads[key])
		}
	}
	return nil, 0
}

// shown are the lines in which a page has a name, with the reason.
func (p *page) shown(t term, places []place) []Place {
	var out []Place
	source := t.file
	if t.line > 0 {
		source = fmt.Sprintf("%s:%d", t.file, t.line)
	}
	for _, at := range places[:min(len(places), 40)] {
		level, why := Related, ""
		text := p.lines[at.line-1]
		switch t.effect {
		case Removed:
			why = fmt.Sprintf("the %s %s is removed", t.kind, quoted(t.text))
			if t.kind != Name && (!strings.HasPrefix(t.key, "1:") || t.spelledOut(text)) {
				level = Outdated
			}
		case Renamed:
			level, why = Outdated, fmt.Sprintf("the %s %s is now %s", t.kind, quoted(t.text), quoted(t.to))
		case Revalue:
			if strings.HasPrefix(t.key, "1:") && !t.spelledOut(text) { // a word alone may be another one's
				why = fmt.Sprintf("code with the %s %s is changed", t.kind, quoted(t.text))
				break
			}
			why = fmt.Sprintf("%s was %s and is now %s", quoted(t.text), quoted(t.was), quoted(t.to))
			if holds(text, t.was) || at.line < len(p.lines) && holds(p.lines[at.line], t.was) {
				level = Outdated
			}
		case Added:
			why = fmt.Sprintf("the %s %s is new in the code", t.kind, quoted(t.text))
		case Changed:
			why = fmt.Sprintf("code with the %s %s is changed", t.kind, quoted(t.text))
		case Beside:
			why = "it stands beside what is changed"
			if t.of != "" && t.of != t.text {
				why = fmt.Sprintf("%s stands beside %s, which is changed", quoted(t.text), quoted(t.of))
			} else if t.of != "" {
				why = fmt.Sprintf("names that begin as %s does stand here", quoted(t.of))
			}
		}
		out = append(out, Place{at.line, brief.Bytes(strings.TrimSpace(text), 200, "…"), t.text, why, source, level})
		if len(out) == 3 && level == Related {
			break
		}
	}
	slices.SortStableFunc(out, func(a, b Place) int { return cmp.Compare(a.Level, b.Level) }) // "outdated" < "related"
	return out[:min(len(out), 4)]
}

// spelledOut reports whether a line has a flag of one word with its dashes, and its old value if that is what the change is
// about: then the word alone is not another one's.
func (t term) spelledOut(line string) bool {
	if t.kind != Flag || !strings.HasPrefix(t.key, "1:") || !holds(line, "--"+t.text) {
		return false
	}
	return t.effect == Removed || t.effect == Renamed || t.effect == Revalue && holds(line, t.was)
}

// holds reports whether a value stands in a text as a whole.
func holds(text, value string) bool {
	for at := 0; value != ""; {
		i := strings.Index(text[at:], value)
		if i < 0 {
			return false
		}
		i += at
		at = i + len(value)
		before, _ := utf8.DecodeLastRuneInString(text[:i])
		if !partOfValue(before) && !goesOn(text[at:]) {
			return true
		}
	}
	return false
}

// partOfValue reports whether a character belongs to the value that it stands beside.
func partOfValue(r rune) bool {
	return r == '_' || r == '.' || r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r))
}

// goesOn reports whether a value does not end before rest. A period may end the sentence.
func goesOn(rest string) bool {
	r, n := utf8.DecodeRuneInString(rest)
	if r == '.' {
		r, _ = utf8.DecodeRuneInString(rest[n:])
	}
	return n > 0 && partOfValue(r)
}

func quoted(s string) string {
	return "`" + strings.ReplaceAll(brief.Bytes(s, 80, "…"), "`", "'") + "`"
}

const longestWhy = 300 // bytes after which no further reason is added

// settle keeps the places that say most, one a line, in the order of the page, and tells the finding's level.
func (f *Finding) settle() {
	slices.SortStableFunc(f.Places, func(a, b Place) int { return cmp.Compare(a.Level, b.Level) })
	var kept []Place
	for _, p := range f.Places {
		at := slices.IndexFunc(kept, func(k Place) bool { return k.Line == p.Line })
		switch {
		case at < 0:
			kept = append(kept, p)
		case p.Level == Outdated && kept[at].Name != p.Name && len(kept[at].Why) < longestWhy:
			kept[at].Why += "; " + p.Why
		}
	}
	f.Places = kept
	f.Places = f.Places[:min(len(f.Places), mostShown)]
	if len(f.Places) > 0 {
		f.Level = f.Places[0].Level
	}
	sortPlaces(f.Places)
}

// A topic is a word that says what a change is about.
type topic struct {
	word   string
	weight float64
}

var scopeForm = regexp.MustCompile(`^(?i)(?:feat|fix|perf|refactor|chore|build|ci|style|revert)!?(?:\(([^)]+)\))?!?: *`)

// topics are what the names of the changed files and the commits' subjects speak of.
func (x *Index) topics(code []File, message string) []topic {
	weights := map[string]float64{}
	add := func(text string, weight float64) {
		for _, w := range words(text) {
			if w = stem(w); len(w) > 2 && !usual[w] && !common[w] {
				weights[w] = max(weights[w], weight)
			}
		}
	}
	for _, f := range code[:min(len(code), 100)] {
		p := f.Path()
		share := 1 / math.Sqrt(float64(min(len(code), 100)))
		add(strings.TrimSuffix(path.Base(p), path.Ext(p)), share)
		add(path.Base(path.Dir(p)), share)
	}
	subjects := 0
	for l := range strings.Lines(message) {
		l = strings.TrimSpace(l)
		if m := scopeForm.FindStringSubmatch(l); m != nil {
			add(m[1], 1)
			l = l[len(m[0]):]
		}
		if l != "" && !strings.Contains(l, ": ") && subjects < 20 && len(l) < 120 {
			subjects++
			add(l, 0.8/float64(subjects))
		}
	}
	out := []topic{}
	for w, weight := range weights {
		if x.about[w] > 0 {
			out = append(out, topic{w, topicWidth * weight})
		}
	}
	slices.SortFunc(out, func(a, b topic) int { return cmp.Or(cmp.Compare(b.weight, a.weight), cmp.Compare(a.word, b.word)) })
	return out[:min(len(out), 40)]
}

// common are words of files and commit messages that tell no page from others.
var common = wordset.Of("src pkg lib internal cmd main app core common util utils types mod init the and for not " +
	"add added adds remove removed fix fixed support allow make use using change changed update updated new feature commit " +
	"author merge pull branch docs doc documentation")
