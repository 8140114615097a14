package topics

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"docent/internal/brief"
	"docent/search/analysis"
)

// longest is how many bytes of a question are looked at: what it is about is said early.
const longest = 600

// maxTerms is how many terms of a question are kept.
const maxTerms = 24

// Words are the terms of a question, cut and stemmed: what it is about, without how it is asked.
type Words []Word

// A Word is a term, and how the reader wrote it.
type Word struct{ Term, Surface string }

// Read cuts a question into its words. They can be kept: they depend on the text alone.
func Read(text string) Words {
	text = brief.Bytes(text, longest, "")
	language := cmp.Or(analysis.LanguageOf(text), "en")
	grammar := analysis.Grammar(language)
	a := analysis.Get()
	defer a.Put()
	var words, spare Words
	add := func(to *Words, term, surface string) {
		term = concept(term)
		if len(*to) < maxTerms && !slices.ContainsFunc(*to, func(w Word) bool { return w.Term == term }) {
			*to = append(*to, Word{term, surface})
		}
	}
	a.Tokens(text, language, func(t analysis.Token) {
		switch {
		case t.Covers > 0 && strings.Contains(text[t.Start:t.End], " "): // "set up" as one word tells topics apart no better than "set"
		case t.Covers > 0: // a name of parts is also the word without what joins them: sign-in, dark-mode
			if joined := joints.Replace(t.Term); utf8.RuneCountInString(joined) > 2 {
				add(&words, a.Stem(joined, language), t.Surface)
			}
		case analysis.Dropped(t.Surface) || grammar[t.Surface]:
			add(&spare, t.Term, t.Surface)
		case len(t.Surface) > 1 || t.Surface >= "\x80":
			add(&words, t.Term, t.Surface)
		}
	})
	if len(words) == 0 { // "what is this about"
		return spare
	}
	return words
}

var joints = strings.NewReplacer("-", "", ".", "", "_", "", "@", "", "'", "", "’", "", "$", "", "/", "")

// Words that readers of documentation use for one another. Each line is one concept; the first word names it.
var concepts = func() map[string]string {
	a := analysis.Get()
	defer a.Put()
	m := map[string]string{}
	for line := range strings.Lines(alike) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		name := a.Stem(words[0], "en")
		for _, w := range words {
			m[a.Stem(w, "en")] = name
		}
	}
	return m
}()

// concept is the term that stands for all that mean the same.
func concept(term string) string {
	if name, ok := concepts[term]; ok {
		return name
	}
	return term
}

const alike = `
delete remove erase drop purge wipe
add create make insert new
change edit modify update alter
show display view see
error fail failure failed fails crash broken exception
price pricing cost costs billing paid plan fee
login signin sign authentication authenticate auth password sso saml credentials
private restrict protect
install setup installation
configuration config configure settings setting option
directory dir folder
repository repo
database db
application app
parameter param argument arg
environment env
development dev
production prod
message msg
library lib
package pkg
image img picture screenshot photo
documentation docs doc
kubernetes k8s
javascript js
typescript ts
javascript js
stop disable off
start enable on activate
mail email smtp
silence mute suppress
notification notify
quantile percentile p99 p95 p90
memory ram oom
https tls ssl certificate x509
translate translation language localization localisation i18n l10n
version versions versioned versioning
equation formula math latex katex
backup snapshot
keep retention retain
metric metrics
self-hosted selfhosted onprem onpremise
download export
user member colleague people
redirect redirection 301 302
speed fast slow performance latency
`

// weak words say what is done, and are said of everything.
var weak = func() map[string]bool {
	a := analysis.Get()
	defer a.Put()
	m := map[string]bool{}
	for w := range strings.FieldsSeq(`
		use using work works get set make add create change show find run give take put support possible work working
		example examples problem issue question way many much long best correct right different same several some any all
		not no without only more less between from after before again first one two own other another old new
		need want does happen mean change edit update delete install configure
		page thing everything nothing anything something please thanks hello hi`) {
		m[concept(a.Stem(w, "en"))] = true
	}
	return m
}()
