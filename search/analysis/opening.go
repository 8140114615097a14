package analysis

import (
	"bytes"
	"math"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// An Opening is a question that everybody asks of any product first: it has hardly a word that the pages have, and is
// answered by their place and their titles.
type Opening string

// The openings.
const (
	NoOpening Opening = ""
	Start     Opening = "start"
	Install   Opening = "install"
	About     Opening = "about"
	Example   Opening = "example"
	Price     Opening = "price"
	Contact   Opening = "contact"
	License   Opening = "license"
	Changelog Opening = "changelog"
	Latest    Opening = "latest version"
)

// asks are the words around what is asked for.
var asks = setOf(`how do does did i we you one can could should would shall may is are was the a an it its this that these to for
	with of in on at by my your our me us there any some where what whats which who why get getting use using used work works
	please need want about have has and be under s so tell show explain give know find see up out here documentation docs project
	product tool thing good`)

// An opening is told by one of its words; the others may stand beside it, and nothing else.
var openings = []struct {
	kind           Opening
	needs, besides map[string]bool
	with           map[string]bool // one of these has to be there too, whatever it is; nil for none
}{
	{Latest, setOf(`latest newest current recent last`), setOf(`version release stable number`), setOf(`version release`)},
	{Changelog, setOf(`changelog changelogs changed changes new notes history`), setOf(`release releases last latest recent version
		log newest recently`), nil},
	{Start, setOf(`start started starting begin beginning quickstart tutorial introduction onboarding`), setOf(`first quick steps step
		set setup guide new user beginner`), nil},
	{Start, setOf(`first`), setOf(`step steps quick`), setOf(`step steps`)},
	{Install, setOf(`install installed installing installation download downloading`), setOf(`set setup guide`), nil},
	{Install, setOf(`set setup setting`), nil, setOf(`up setup`)},
	{Example, setOf(`example examples sample samples demo demos`), setOf(`code simple basic full complete working`), nil},
	{Price, setOf(`cost costs price prices pricing free fee fees plans expensive`), setOf(`much money month year charge plan pay
		paid`), nil},
	{License, setOf(`license licence licensed licenced licensing copyright`), setOf(`open source software`), nil},
	{License, setOf(`open`), setOf(`source`), setOf(`source`)},
	{Contact, setOf(`contact reach help`), setOf(`support team human person someone somebody email mail phone`), nil},
	{Contact, setOf(`support email mail phone talk call write`), setOf(`team human person someone somebody`),
		setOf(`you us get someone somebody team human`)},
}

// howMuch may stand beside a price for whom: "How much is it for a family?"
var howMuch = setOf(`much cost costs family team teams company people person persons user users month year student students`)

// longestOpening is how many words an opening has at most, the project's name and those around it counted.
const longestOpening = 14

// openingWords are the words of a short question in lower case. Nothing is allocated: it is asked of every question.
type openingWords struct {
	text  [128]byte
	words [longestOpening]struct{ begin, end uint8 }
	n     int
}

func (o *openingWords) at(n int) []byte { return o.text[o.words[n].begin:o.words[n].end] }

// read cuts a text into words; false if it has too many.
func (o *openingWords) read(text string) bool {
	if len(text) > len(o.text) {
		return false
	}
	o.n = 0
	begin := -1
	for i := 0; i <= len(text); i++ {
		inWord := false
		if i < len(text) {
			c := text[i]
			if 'A' <= c && c <= 'Z' {
				c += 'a' - 'A'
			}
			o.text[i] = c
			inWord = c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c >= utf8.RuneSelf
		}
		switch {
		case inWord && begin < 0:
			begin = i
		case !inWord && begin >= 0:
			if o.n == longestOpening {
				return false
			}
			o.words[o.n].begin, o.words[o.n].end = uint8(begin), uint8(i)
			o.n++
			begin = -1
		}
	}
	return o.n > 0
}

func (o *openingWords) has(w []byte) bool {
	for n := range o.n {
		if bytes.Equal(o.at(n), w) {
			return true
		}
	}
	return false
}

// among reports whether a set has one of the words.
func (o *openingWords) among(set map[string]bool) bool {
	for n := range o.n {
		if set[string(o.at(n))] {
			return true
		}
	}
	return false
}

// pointing are words for what is asked about, by a reader who asks what it is.
var (
	pointing = setOf(`it this you`)
	hows     = setOf(`how`)
	muches   = setOf(`much`)
	beings   = setOf(`is does do`)
	uses     = setOf(`use`)
	works    = setOf(`work`)
	whats    = setOf(`what whats who`)
)

var withArticle = regexp.MustCompile(`(?i)\ban? `)

// OpeningOf is the opening that a question is; NoOpening if it asks for something of its own.
func OpeningOf(question, project string) Opening {
	var all, own, left openingWords // left are those that are neither the project's name nor around a question
	if !all.read(question) {
		return NoOpening
	}
	if !own.read(project) || !all.has(own.at(0)) && withArticle.MatchString(question) { // "a budget" is not "Actual Budget"
		own.n = 0
	}
	named := false
	for n := range all.n {
		switch w := all.at(n); {
		case own.has(w):
			named = true
		case !asks[string(w)]:
			left.text, left.words[left.n] = all.text, all.words[n]
			left.n++
		}
	}
	only := func(needs, besides map[string]bool) bool {
		for n := range left.n {
			if w := left.at(n); !needs[string(w)] && !besides[string(w)] {
				return false
			}
		}
		return true
	}
	for i := range openings {
		o := &openings[i]
		if left.among(o.needs) && only(o.needs, o.besides) && (o.with == nil || all.among(o.with)) {
			return o.kind
		}
	}
	if named || all.among(pointing) {
		return all.without(left.n, only(howMuch, nil))
	}
	return NoOpening
}

// without is the opening of words that name nothing but the project: what it is, how it is used, how much it is. So many
// words are left, which may all be for whom the price is asked.
func (o *openingWords) without(left int, forWhom bool) Opening {
	is := func(n int, one map[string]bool) bool { return n < o.n && one[string(o.at(n))] }
	switch how := is(0, hows); {
	case how && is(1, muches) && is(2, beings) && forWhom:
		return Price
	case left > 0:
	case how && o.among(uses):
		return Start
	case is(0, whats) || how && o.among(works):
		return About
	}
	return NoOpening
}

// normal is a title as Fit compares it: its words in lower case, with a space before and after each.
func normal(title string) string {
	var b strings.Builder
	b.WriteByte(' ')
	between := true
	for _, r := range title {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			b.WriteRune(unicode.ToLower(r))
			between = false
		} else if !between && r != '\'' && r != '’' {
			b.WriteByte(' ')
			between = true
		}
	}
	if !between {
		b.WriteByte(' ')
	}
	return b.String()
}

// titled says how well a phrase in a title fits an opening.
var titled = map[Opening]map[string]float64{
	Start: {"getting started": 1, "get started": 1, "quickstart": 1, "quick start": 1, "start here": 1, "first steps": 1, "where to begin": 1, "where to start": 1, "quick tour": 0.9,
		"five minutes": 0.9, "5 minutes": 0.9, "begin": 0.8, "beginning": 0.8, "beginners": 0.8, "first": 0.45, "your first": 0.9, "tutorial": 0.75, "tutorials": 0.6, "start": 0.6,
		"getting it running": 0.8, "setup": 0.65, "set up": 0.65, "setting up": 0.65, "installation": 0.6, "install": 0.6, "installing": 0.6,
		"usage": 0.5, "introduction": 0.55, "intro": 0.5, "welcome": 0.5, "overview": 0.45, "guide": 0.4, "hello world": 0.6, "basics": 0.5},
	Install: {"installation": 1, "install": 1, "installing": 1, "download": 0.8, "downloads": 0.7, "setup": 0.7, "set up": 0.7, "setting up": 0.7,
		"getting it running": 0.7, "getting started": 0.6, "get started": 0.6, "quickstart": 0.6, "quick start": 0.6, "running": 0.4},
	About: {"what is": 1, "about": 0.6, "introduction": 0.8, "intro": 0.7, "overview": 0.7, "welcome": 0.6, "home": 0.4, "features": 0.4,
		"what": 0.2, "why": 0.3, "readme": 0.4},
	Example: {"example": 1, "examples": 1, "sample": 0.8, "samples": 0.8, "demo": 0.8, "showcase": 0.6, "quickstart": 0.5, "quick start": 0.5,
		"getting started": 0.5, "tutorial": 0.5, "usage": 0.45, "cookbook": 0.6, "recipes": 0.5},
	Price: {"pricing": 1, "price": 1, "prices": 1, "cost": 0.8, "costs": 0.8, "plans": 0.9, "plan": 0.6, "billing": 0.7, "fees": 0.9,
		"subscription": 0.6, "editions": 0.5},
	Contact: {"contact": 1, "contact us": 1, "support": 0.48, "get help": 1, "getting help": 1, "help": 0.7, "talk to us": 1, "community": 0.6},
	License: {"license": 1, "licence": 1, "licenses": 0.9, "licences": 0.9, "licensing": 0.9, "copyright": 0.8, "legal": 0.4},
	Changelog: {"changelog": 1, "change log": 1, "release notes": 1, "releases": 0.9, "what s new": 1, "whats new": 1, "history": 0.6, "changes": 0.6,
		"news": 0.5, "release": 0.6},
}

// Fit says how well a title or heading names what an opening asks for: 0 to 1, more the less else it says.
func (o Opening) Fit(title string) float64 {
	text := normal(title)
	best := 0.0
	for phrase, fit := range titled[o] {
		if fit > best && strings.Contains(text, " "+phrase+" ") &&
			(!strings.HasPrefix(phrase, "download") || strings.Count(text, " ") == 2) { // "Download invoices"
			share := float64(strings.Count(phrase, " ")+1) / float64(max(1, strings.Count(text, " ")-1))
			best = max(best, fit*math.Sqrt(share))
		}
	}
	return best
}
