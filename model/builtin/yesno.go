package builtin

import (
	"regexp"
	"strings"
)

// A question for yes or no begins with the sentence that states it. "Yes." or "No." comes before it only if that
// sentence cannot mean anything else: it has all that is asked, in the same order, one plain verb, and no condition.

var (
	asksYesNo = caseless(`^\W*(?:(?:hi|hello|hey)\W+)?(?:so\W+)?(?:can|could|may|must|should|do|does|is|are|will)\b`)
	// notYesNo matches a request, and a question of which one of two is so.
	notYesNo = caseless(`^\W*(?:can|could|will) you\b.{0,12}\b(?:tell|explain|show|help|give|describe|list|say|write|`,
		`suggest)\b|\bor\b`)
	asksNeed = caseless(`\b(?:need|needed|needs|required?|requires|mandatory|necessary|must|have to|has to|obligatory)\b`)
	asksMay  = caseless(`^\W*(?:can|could|may)\b|\b(?:possible|supports?|supported|allows?|allowed|way|able)\b`)

	// statesMay and statesAny match what says that something is so or is not, for these and for other questions.
	statesMay = caseless(`\b(?:can|may|cannot|can't|can’t|allows?|allowed|enables? you|lets? you|supports?|supported|`,
		`unsupported|possible|impossible|not|never)\b|^(?:yes|no)\b`)
	statesAny  = caseless(`\b(?:is|are|has|have|does|do|will|not|never|can|cannot|must|may)\b|^(?:yes|no)\b`)
	afterwards = caseless(`^\W*(?:then|so|next|finally|now|for example)\b`)

	negative = caseless(`\b(?:not|cannot|no|never|none|neither|nor|without|unsupported|impossible|nothing|hardly|lacks?)\b|`,
		`n't\b|n’t\b`)
	// doubts are conditions, exceptions, and words of degree and of time.
	doubts = caseless(`\b(?:if|unless|only|may|might|could|would|should|except|but|however|although|though|while|whether|`,
		`when|where|until|once|depend\w*|some|sometimes|often|usually|typically|generally|normally|mostly|partly|partial\w*|`,
		`experimental\w*|limited|currently|yet|beta|alpha|preview|deprecated|planned|future|soon|instead|rather|than|`,
		`provided|assuming|most|few|certain|almost|theoretically|technically|in theory|outside|before|after|previously|`,
		`since|was|were|historically|used to|had|no longer|anymore|other|another|paid|enterprise|plugins?|third-party|`,
		`community)\b|\?|:$`)
	// changes are words of a question that turn what it asks, and that no line is compared by.
	changes = caseless(`\b(?:not|without|never|no|before|after|instead|outside|off|out|between|during|while|other|another|`,
		`less|than|all|every|each|always|only|both|same|if|when|still|just|also)\b|n't\b|n’t\b`)

	canDo = caseless(`^(?:\W*(?:yes|also)\W+)?(?:in addition, |additionally, )?(?:you can|it is (?:also )?possible to|`,
		`it's possible to)\b`)
	cannotDo = caseless(`^(?:you (?:cannot|can't|can’t|can not)|it is (?:not possible|impossible) to|it's not possible to)\b`)
	supports = caseless(`^(?:[\w.]+ ){1,4}(?:also |fully )?(?:supports?|allows?)\b|\b(?:is|are) (?:also |fully )?supported\b`)

	unsupports = caseless(`\b(?:does not|doesn't|doesn’t|do not|don't|don’t) (?:support|allow)\b|`,
		`\b(?:is|are) (?:not supported|unsupported)\b`)
	isOrAre  = caseless(`\b(?:is|are) `)
	requires = caseless(`\b(?:is|are) (?:required|mandatory|necessary)\b|^(?:[\w.]+ ){1,3}requires\b|^you must\b`)
	needless = caseless(`\b(?:is|are) (?:not required|not necessary|not mandatory|optional)\b|`,
		`^you (?:do not|don't|don’t) (?:need|have) to\b`)

	asksMayI    = caseless(`^\W*(?:can (?:i|we|you|one)|is it possible(?: to| for)?)\b`)
	asksSupport = caseless(`^\W*(?:do|does|is|are)\b.*\b(?:supports?|supported|allows?|allowed)\b`)
	asksRequire = caseless(`^\W*(?:(?:is|are)\b.*\b(?:required|mandatory|necessary)\b|(?:do|must) (?:i|we|you)\b|`,
		`does\b.*\brequire\b)`)

	aroundYesNo = set(`support supports supported allow allows allowed possible require requires required need needs needed
		necessary mandatory must way able available optional use using used`)
)

func caseless(parts ...string) *regexp.Regexp {
	return regexp.MustCompile(`(?i)` + strings.Join(parts, ""))
}

// longPlain is how many words a sentence has at most that is an answer without doubt.
const longPlain = 20

// yesNo is what a question for yes or no wants a line to say, and the words of its form; nil if it is none.
func yesNo(question, project string) (*lineAsked, map[string]bool) {
	if !asksYesNo.MatchString(question) || notYesNo.MatchString(question) || strings.Count(question, "?") > 1 {
		return nil, nil
	}
	need := asksNeed.MatchString(question)
	may := asksMay.MatchString(question)
	a := &lineAsked{}
	a.says = func(line string) float64 {
		switch {
		case strings.HasSuffix(line, "?") || afterwards.MatchString(line):
			return 0
		case need && (asksNeed.MatchString(line) || strings.Contains(line, "optional")), may && statesMay.MatchString(line):
			return 1
		case !need && !may && statesAny.MatchString(line):
			return 0.5
		}
		return 0
	}
	if !changes.MatchString(question) {
		a.answer = func(line string) string { return plainly(question, project, line) }
	}
	return a, aroundYesNo
}

// plainly is "Yes." or "No." if a line that has all of a question says so without doubt, otherwise empty.
func plainly(question, project, line string) string {
	line = strings.TrimLeft(line, " -*+>")
	if begins(line) != "" || countWords(line) > longPlain || doubts.MatchString(line) {
		return ""
	}
	var yes, no *regexp.Regexp
	switch {
	case asksRequire.MatchString(question):
		if yes, no = requires, needless; strings.Contains(line, " to ") && !strings.Contains(question, " to ") ||
			strings.Contains(line, "requires") && !names(line, project) {
			return ""
		}
	case asksMayI.MatchString(question):
		yes, no = canDo, cannotDo
	case asksSupport.MatchString(question):
		yes, no = supports, unsupports
		if names(question, project) && !names(line, project) && !isOrAre.MatchString(line) {
			return "" // it may be of something else that it supports it
		}
	default:
		return ""
	}
	switch n := len(negative.FindAllString(line, -1)); {
	case n == 0 && yes.MatchString(line) && !no.MatchString(line):
		return "Yes."
	case n == 0 && no == needless && no.MatchString(line) && !yes.MatchString(line):
		return "No." // "is optional"
	case n == 1 && no.MatchString(line) && !strings.Contains(strings.ToLower(line), "optional"):
		return "No."
	}
	return ""
}

// names reports whether a text names the project.
func names(text, project string) bool {
	return project != "" && strings.Contains(strings.ToLower(text), strings.ToLower(project))
}

// begins is the yes or no that a line begins with.
func begins(line string) string {
	first, _, _ := strings.Cut(strings.TrimLeft(line, " *_"), " ")
	switch first = strings.ToLower(strings.Trim(first, ".,:;!*_—–")); first {
	case "yes", "no", "yep", "nope", "yeah":
		return first
	}
	return ""
}
