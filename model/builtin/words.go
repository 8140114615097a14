package builtin

import (
	"hash/maphash"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	snowball "github.com/blevesearch/snowballstem"
	"github.com/blevesearch/snowballstem/english"

	"docent/internal/wordset"
	"docent/search/analysis"
)

// stopWords carry no meaning of their own, or are the scaffolding of questions.
var stopWords = set(
	`a an the this that these those there here it its is are was were be been being am do does did doing done
	can could should would will shall may might must have has had having i me my mine we us our you your he she they them their
	what which who whom whose when where why how and or but if then else so than as at by for from in into of off on onto out over
	to up with within about above below between through during before after again also just only very too any some all each every
	both few many much more most other such own same let lets please tell explain show give want wants need needs like get gets getting
	got way ways thing things something anything someone use uses used using work works working make makes making possible able
	happen happens mean means yes no vs versus differ differs difference differences different compare compared s t re ve ll m d
	hello hi hey thanks thank because since though although however therefore already still really actually instead etc`)

// pronouns point back at something said before.
var pronouns = set(`it its they them their this that these those one ones he she his her same there`)

var set = wordset.Of

// verbs are words for what is done, with what they make with a particle: "set up" is read as one word.
func verbs(words string) map[string]bool {
	m := set(words)
	for w := range strings.FieldsSeq(words) {
		for _, particle := range []string{"up", "in", "out", "on", "off", "over", "back", "down"} {
			if closed := analysis.Compound(w, particle); closed != "" {
				m[closed] = true
			}
		}
	}
	return m
}

// A word is one word of a text with its place.
type word struct {
	text       string // as written
	start, end int
}

// split cuts a text into words: letters and digits, with the inner marks that names have.
func split(text string) []word { return appendWords(nil, text) }

func appendWords(out []word, text string) []word {
	before := len(out)
	for i := 0; i < len(text); {
		if c := text[i]; c < utf8.RuneSelf && !alphanumeric[c] {
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(text[i:])
		if !letter(r) {
			i += n
			continue
		}
		if ideograph(r) {
			out, i = appendPairs(out, text, i)
			continue
		}
		start := i
		for i < len(text) {
			if c := text[i]; c < utf8.RuneSelf && alphanumeric[c] {
				i++
				continue
			}
			r, n = utf8.DecodeRuneInString(text[i:])
			if ideograph(r) {
				break
			}
			if letter(r) {
				i += n
				continue
			}
			// A mark within a name: snake_case, kebab-case, docs.json, it's.
			if (r == '_' || r == '-' || r == '.' || r == '\'' || r == '’') && i+n < len(text) {
				if after, _ := utf8.DecodeRuneInString(text[i+n:]); letter(after) && !ideograph(after) {
					i += n
					continue
				}
			}
			break
		}
		if analysis.Scheme(text, start, i) {
			continue
		}
		out = closed(text, append(out, word{text[start:i], start, i}), before)
	}
	return out
}

// closed makes one word of the last two if they are written apart: "back up" is a backup, and so is "back it up".
func closed(text string, out []word, before int) []word {
	n := len(out)
	follows := func(i int) bool { return i > before && out[i-1].end+1 == out[i].start && text[out[i-1].end] == ' ' }
	if !follows(n - 1) {
		return out
	}
	if c := analysis.Compound(out[n-2].text, out[n-1].text); c != "" {
		out[n-2] = word{c, out[n-2].start, out[n-1].end}
		return out[:n-1]
	}
	if follows(n - 2) {
		if c := analysis.Parted(out[n-3].text, out[n-2].text, out[n-1].text); c != "" {
			out[n-3].text = c // what it is done to stays
			return out[:n-1]
		}
	}
	return out
}

var alphanumeric = func() (t [utf8.RuneSelf]bool) {
	for c := range t {
		t[c] = c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
	}
	return t
}()

func letter(r rune) bool {
	if r < utf8.RuneSelf {
		return r >= 0 && alphanumeric[r]
	}
	return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.Is(unicode.Mn, r))
}

// A term is a word as questions and passages are compared by: lower case, stemmed if it is an English word. A name
// of several parts (root_path, generateStaticParams, --dry-run) is one term, and each of its parts another. If many
// terms are compared they are told apart by their hashes.
type term struct {
	text   string
	hash   uint64
	common float32 // share of the sections of technical English that have it
}

// seed is that of all hashes: none of them outlives the process.
var seed = maphash.MakeSeed()

// appendAll appends the terms of a text, in order, without stop words.
func appendAll(out []term, text string) []term {
	var buf [64]word
	for _, w := range appendWords(buf[:0], text) {
		out = append(out, termsOf(w.text)...)
	}
	return out
}

// terms are the terms of a text.
func terms(text string) []term { return appendAll(make([]term, 0, 16), text) }

// An analyzed word is a word, as it is written, with its terms. It is shared and never changes.
type analyzed struct {
	terms       []term
	fingerprint uint64 // the same however the word is capitalized
}

// analyses keeps analyzed words: readers and documentation use the same few thousand. It starts over rather than grow
// with what readers type.
var analyses struct {
	sync.RWMutex
	words map[string]*analyzed
}

const (
	maxAnalyses     = 50_000
	longestAnalyzed = 40 // bytes of a word
)

func analyze(w string) *analyzed {
	analyses.RLock()
	r := analyses.words[w]
	analyses.RUnlock()
	if r != nil {
		return r
	}
	r = &analyzed{fingerprint: maphash.String(seed, strings.ToLower(w))}
	for _, t := range splitTerms(w) {
		r.terms = append(r.terms, term{t, maphash.String(seed, t), common(w, t)})
	}
	if len(w) > longestAnalyzed {
		return r
	}
	analyses.Lock()
	defer analyses.Unlock()
	if analyses.words == nil || len(analyses.words) >= maxAnalyses {
		analyses.words = make(map[string]*analyzed)
	}
	analyses.words[strings.Clone(w)] = r
	return r
}

// common is how common a term is in technical English: what is written for it is what counts, if it has an alias.
func common(w, term string) float32 {
	if aliased := strings.ToLower(w); aliases[aliased] == term {
		term = stem(aliased)
	}
	if n := len(term); n > 2 && term[n-1] == term[n-2] && strings.IndexByte("bdfgmnprt", term[n-1]) >= 0 {
		term = term[:n-1] // as package analysis stems
	}
	return float32(analysis.Common(analysis.Hash(term)))
}

// termsOf are the terms of one word.
func termsOf(w string) []term { return analyze(w).terms }

func splitTerms(w string) []string {
	w = strings.Clone(w) // terms are kept, the text that they stand in is not
	w = strings.TrimSuffix(strings.TrimSuffix(w, "'s"), "’s")
	lower := strings.ToLower(w)
	if stopWords[lower] {
		return nil
	}
	if first, _ := utf8.DecodeRuneInString(w); ideograph(first) {
		if grammatical(w) {
			return nil
		}
		return []string{w}
	}
	if w == "Windows" {
		return []string{lower} // has nothing to do with a window
	}
	parts := parts(w)
	if len(parts) < 2 {
		if i := strings.IndexAny(lower, "'’"); i > 0 { // don't, you're
			return nil
		}
		return []string{canonical(lower)}
	}
	out := []string{lower}
	if len(parts) == 2 && len(parts[0]) < len(lower) && lower[len(parts[0])] == '-' {
		if closed := analysis.Hyphenated(strings.ToLower(parts[0]), strings.ToLower(parts[1])); closed != "" {
			out[0] = canonical(closed)
		}
	}
	for _, p := range parts {
		if p = strings.ToLower(p); !stopWords[p] && len(p) > 1 {
			out = append(out, canonical(p))
		}
	}
	return out
}

// parts cuts a name at its marks, and where a small letter meets a capital.
func parts(w string) []string {
	var out []string
	start := 0
	var before rune
	for i, r := range w {
		switch {
		case r == '_' || r == '-' || r == '.' || r == '\'' || r == '’':
			if i > start {
				out = append(out, w[start:i])
			}
			start = i + utf8.RuneLen(r)
		case unicode.IsUpper(r) && unicode.IsLower(before):
			out = append(out, w[start:i])
			start = i
		}
		before = r
	}
	if start < len(w) {
		out = append(out, w[start:])
	}
	return out
}

// aliases are words of the trade that are written in several ways; documentation uses one, its readers another.
var aliases = map[string]string{
	"configuration": "config", "configure": "config", "configured": "config", "configuring": "config",
	"configurable": "config", "configurations": "config", "configs": "config",
	"environment": "env", "environments": "env", "envs": "env",
	"directory": "folder", "directories": "folder", "folders": "folder",
	"subfolder": "folder", "subfolders": "folder", "subdirectory": "folder",
	"documentation": "doc", "docs": "doc", "documents": "doc",
	"application": "app", "applications": "app", "apps": "app",
	"repository": "repo", "repositories": "repo", "repos": "repo",
	"authentication": "auth", "authenticate": "auth", "authorization": "auth", "authorize": "auth",
	"delete": "remov", "deleting": "remov", "deleted": "remov", "deletes": "remov",
	"parameter": "param", "parameters": "param", "params": "param",
	"javascript": "js", "typescript": "ts",
	"images": "imag", "image": "imag", "picture": "imag", "pictures": "imag",
	"several": "multipl", "retain": "keep", "retains": "keep", "retained": "keep", "retaining": "keep", "retention": "keep",
	"url": "url", "urls": "url", "uri": "url", "postgresql": "postgr", "k8s": "kubernet",
	"slowdown": "slow", "slowdowns": "slow", "speedup": "speed", "speedups": "speed", "cleanup": "clean", "warmup": "warm",
}

func canonical(lower string) string {
	if t, ok := aliases[lower]; ok {
		return t
	}
	return stem(lower)
}

func stem(lower string) string {
	env := snowball.NewEnv(analysis.Regular(lower))
	english.Stem(env)
	return env.Current()
}

// hasAny reports whether a text has one of some parts.
func hasAny(text string, parts []string) bool {
	return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(text, part) })
}
