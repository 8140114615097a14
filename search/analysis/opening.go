package analysis

import (
	"math"
	"slices"
	"strings"
	"unicode"
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

// OpeningOf is the opening that a question is; NoOpening if it asks for something of its own.
func OpeningOf(question, project string) Opening {
	if len(question) > 120 {
		return NoOpening
	}
	words := strings.FieldsFunc(strings.ToLower(strings.ReplaceAll(question, "’", "'")), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
	own := strings.Fields(normal(project))
	var left []string
	named := false
	for _, w := range words {
		switch {
		case slices.Contains(own, w):
			named = true
		case !asks[w]:
			left = append(left, w)
		}
	}
	if len(words) == 0 || len(words) > 14 {
		return NoOpening
	}
	all := func(set ...map[string]bool) bool {
		return !slices.ContainsFunc(left, func(w string) bool {
			return !slices.ContainsFunc(set, func(m map[string]bool) bool { return m[w] })
		})
	}
	for i := range openings {
		o := &openings[i]
		if slices.ContainsFunc(left, func(w string) bool { return o.needs[w] }) && all(o.needs, o.besides) &&
			(o.with == nil || slices.ContainsFunc(words, func(w string) bool { return o.with[w] })) {
			return o.kind
		}
	}
	pointed := named || slices.ContainsFunc(words, func(w string) bool { return w == "it" || w == "this" || w == "you" })
	switch first := words[0]; {
	case first == "how" && len(words) > 2 && words[1] == "much" && (words[2] == "is" || words[2] == "does" || words[2] == "do") &&
		pointed && all(howMuch):
		return Price
	case len(left) > 0 || !pointed:
	case first == "how" && slices.Contains(words, "use"):
		return Start
	case first == "what" || first == "whats" || first == "who" || first == "how" && slices.Contains(words, "work"):
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
	Start: {"getting started": 1, "get started": 1, "quickstart": 1, "quick start": 1, "start here": 1, "first steps": 1, "quick tour": 0.9,
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
	Contact: {"contact": 1, "contact us": 1, "support": 0.48, "get help": 1, "getting help": 1, "help": 0.7, "talk to us": 1, "community": 0.6,
		"feedback": 0.5},
	License: {"license": 1, "licence": 1, "licenses": 0.9, "licences": 0.9, "licensing": 0.9, "copyright": 0.8, "legal": 0.4},
	Changelog: {"changelog": 1, "change log": 1, "release notes": 1, "releases": 0.9, "what s new": 1, "whats new": 1, "history": 0.6, "changes": 0.6,
		"news": 0.5, "release": 0.6},
}

// Fit says how well a title or heading names what an opening asks for: 0 to 1, more the less else it says.
func (o Opening) Fit(title string) float64 {
	text := normal(title)
	best := 0.0
	for phrase, fit := range titled[o] {
		if fit > best && strings.Contains(text, " "+phrase+" ") {
			share := float64(strings.Count(phrase, " ")+1) / float64(max(1, strings.Count(text, " ")-1))
			best = max(best, fit*math.Sqrt(share))
		}
	}
	return best
}
