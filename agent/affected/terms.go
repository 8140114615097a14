package affected

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"docent/site"
)

// A Kind is what a name in the code is to a reader of the documentation.
type Kind string

// The kinds, as they are written in reasons.
const (
	Flag     Kind = "flag"
	Variable Kind = "environment variable"
	Endpoint Kind = "endpoint"
	Setting  Kind = "setting"
	Function Kind = "function"
	Name     Kind = "name"
)

// An Effect is what the change does to a name.
type Effect string

// The effects, the strongest first.
const (
	Removed Effect = "removed" // it stands in no line that the change leaves or adds
	Renamed Effect = "renamed"
	Revalue Effect = "value"   // a value beside it is another one now
	Added   Effect = "added"   // it is new in the code
	Changed Effect = "changed" // lines with it are changed
	Beside  Effect = "beside"  // it stands beside a changed line
)

// A term is a name that the change concerns.
type term struct {
	key    string // as the index has it
	text   string // as the code has it
	kind   Kind
	effect Effect
	to     string // the new name, or the new value
	was    string // the old value
	file   string
	line   int
	of     string // what it stands beside
	ofKind Kind
	weight float64
}

// A name is one that a line of code holds.
type name struct {
	text string
	kind Kind
}

var (
	flagForm     = regexp.MustCompile(`(^|[^\w-])(--[a-zA-Z][\w]*(?:[-.][\w]+)*)`)
	variableForm = regexp.MustCompile(`\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b`)
	quotedForm   = regexp.MustCompile("\"((?:[^\"\\\\\n]|\\\\.){1,300})\"|'((?:[^'\\\\\n]|\\\\.){1,300})'|`([^`\n]{1,300})`")
	tagForm      = regexp.MustCompile(`\b(?:yaml|json|toml|mapstructure|koanf|hcl|env|envconfig|name|long|arg|cmd|query|form|cfg|flag|rename|alias)\s*[:=]\s*\(?"([^",]+)`)
	nameForm     = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]*(?:[-_.][A-Za-z0-9]+)*\??$`)
	codeName     = regexp.MustCompile(`[A-Za-z_$][\w$]*`)
	routeForm    = regexp.MustCompile(`^(?:[A-Z]{3,7} )?(/[\w{}:.<>*$~-]+(?:/[\w{}:.<>*$~?-]+)*/?)$`)
	declared     = regexp.MustCompile(`^\s*(?:(?:export|public|static|async|pub|default|abstract|final)\s+)*(?:func(?:\s*\([^)]*\))?|def|function|fn|class|struct|enum|trait|interface|type|const|let|var|macro_rules!)\s+([A-Za-z_$][\w$]*)`)
	keyForm      = regexp.MustCompile(`^\s*(?:-\s+)?["']?(/?[A-Za-z_$][\w$./{}-]*)["']?\s*\??\s*:(?:\s|$|[^:=])`)
	definesFlag  = regexp.MustCompile(`(?i)flag|\bopt(ion)?s?\b|Var(P|N)?\(|\barg(ument)?s?\b|\.(String|Bool|Int|Duration)\(`)
)

// namesIn lists the names in a line of code, each once, those that readers see before those that only the code has.
func namesIn(text string) []name {
	var out []name
	add := func(text string, kind Kind) {
		if len(text) >= 3 && len(text) <= 120 && !slices.ContainsFunc(out, func(n name) bool { return n.text == text }) {
			out = append(out, name{text, kind})
		}
	}
	for _, m := range flagForm.FindAllStringSubmatch(text, 20) {
		add(m[2], Flag)
	}
	for _, m := range tagForm.FindAllStringSubmatch(text, 20) {
		if nameForm.MatchString(m[1]) {
			add(m[1], Setting)
		} else if variableForm.MatchString(m[1]) {
			add(m[1], Variable)
		}
	}
	flags := definesFlag.MatchString(text)
	for _, m := range quotedForm.FindAllStringSubmatch(text, 40) {
		s := m[1] + m[2] + m[3]
		switch route := routeForm.FindStringSubmatch(s); {
		case route != nil && strings.Count(strings.Trim(route[1], "/"), "/") > 0:
			add(route[1], Endpoint)
		case variableForm.FindString(s) == s && s != "":
			add(s, Variable)
		case nameForm.MatchString(s) && flags:
			add(s, Flag)
		case nameForm.MatchString(s):
			add(s, Setting)
		}
	}
	if m := keyForm.FindStringSubmatch(text); m != nil {
		if strings.HasPrefix(m[1], "/") {
			add(m[1], Endpoint)
		} else {
			add(m[1], Setting)
		}
	}
	for _, s := range variableForm.FindAllString(text, 20) {
		add(s, Variable)
	}
	if m := declared.FindStringSubmatch(text); m != nil {
		add(m[1], Function)
	}
	for _, s := range codeName.FindAllString(text, 60) {
		if len(words(s)) > 1 {
			add(s, Name)
		}
	}
	return out
}

// words are the parts of a name, in lower case: "--log-level", LOG_LEVEL and logLevel have the same.
func words(s string) []string {
	var out []string
	var b strings.Builder
	flush := func() {
		if b.Len() > 0 {
			out = append(out, strings.ToLower(b.String()))
			b.Reset()
		}
	}
	runes := []rune(s)
	for i, r := range runes {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			flush()
			continue
		case unicode.IsUpper(r) && i > 0 && (unicode.IsLower(runes[i-1]) || unicode.IsDigit(runes[i-1]) ||
			unicode.IsUpper(runes[i-1]) && i+1 < len(runes) && unicode.IsLower(runes[i+1])):
			flush()
		}
		b.WriteRune(r)
	}
	flush()
	return out
}

// keyOf is what a name is looked up by. A name of one word is another key than that word in a longer name.
func keyOf(text string, kind Kind) string {
	if kind == Endpoint {
		return routeKey(text)
	}
	w := words(text)
	if len(w) == 1 {
		return "1:" + w[0]
	}
	return strings.Join(w, "")
}

var parameter = regexp.MustCompile(`\{[^}]*\}|<[^>]*>|:[A-Za-z_]\w*|\$\{?\w+\}?`)

// routeKey is an endpoint's path without the names of its parameters.
func routeKey(s string) string {
	return "/" + strings.ToLower(strings.Trim(parameter.ReplaceAllString(s, "{}"), "/"))
}

// How much it says of a page that a name stands there.
var (
	kindWeight   = map[Kind]float64{Flag: 1, Variable: 1, Endpoint: 1, Setting: 0.8, Function: 0.8, Name: 0.5}
	effectWeight = map[Effect]float64{Removed: 1, Renamed: 1, Revalue: 1, Added: 1, Changed: 0.8, Beside: 0.3}
)

const alike = 2 // times Beside, if what is changed is of the same kind: a flag among flags, an endpoint among endpoints

const singleWeight = 0.35 // of a name of one word, which may be any word

// IsCode reports whether what a file says is for the program itself: it is no page and no test.
func IsCode(p string) bool { return !site.IsPage(p) && !isTest(p) }

var secretName = regexp.MustCompile(`(?i)^(?:(?:.*\.)?env(?:\.(?:local|dev|prod|test|stag)[^.]*)?|\.env.*|.*\.(?:pem|key|ppk|p12|pfx|jks|keystore|kdbx|gpg|tfstate|tfvars)|kubeconfig|service[-_]?account.*\.json|id_(?:rsa|dsa|ecdsa|ed25519).*|\.(?:netrc|npmrc|pypirc|htpasswd|git-credentials|dockercfg)|(?:secrets?|credentials?)(?:\.[a-z]+)?)$`)

// Secret reports whether a file's name is one that secrets are kept in. What it says goes to no model.
func Secret(p string) bool { return secretName.MatchString(path.Base(p)) }

// isTest reports whether a file belongs to tests, which readers do not see.
func isTest(p string) bool {
	for _, part := range strings.Split(path.Dir(strings.ToLower(p)), "/") {
		switch part {
		case "test", "tests", "testdata", "__tests__", "fixtures", "e2e", "spec", "mocks", "vendor", "node_modules":
			return true
		}
	}
	base := strings.ToLower(path.Base(p))
	return strings.Contains(base, "_test.") || strings.Contains(base, ".test.") || strings.Contains(base, ".spec.") ||
		strings.HasPrefix(base, "test_") || strings.HasSuffix(base, ".lock") || strings.HasSuffix(base, ".sum") ||
		strings.HasSuffix(base, "-lock.json") || strings.HasSuffix(base, "-lock.yaml") || strings.HasSuffix(base, ".snap")
}

// termsOf lists what a change does to names, one term for each key: that with the strongest effect.
func termsOf(files []File) []term {
	gone, come := map[string]bool{}, map[string]bool{}
	for _, f := range files {
		for _, h := range f.hunks {
			for i := range h.lines {
				l := &h.lines[i]
				l.names = namesIn(l.text)
				for _, n := range l.names {
					switch l.sign {
					case '-':
						gone[keyOf(n.text, n.kind)] = true
					default:
						come[keyOf(n.text, n.kind)] = true
						if l.sign == ' ' {
							gone[keyOf(n.text, n.kind)] = true
						}
					}
				}
			}
		}
	}
	c := collector{gone: gone, come: come, terms: map[string]*term{}, pairs: maxPairs}
	for _, f := range files {
		for _, h := range f.hunks {
			c.hunk(f.Path(), h)
		}
	}
	out := make([]term, 0, len(c.order))
	for _, k := range c.order {
		out = append(out, *c.terms[k])
	}
	return out
}

const (
	maxTerms = 4000
	maxPairs = 300_000
	maxBlock = 60 // lines of a block that are paired
)

type collector struct {
	gone, come map[string]bool
	terms      map[string]*term
	order      []string
	pairs      int // of lines that may still be compared
}

func (c *collector) add(t term) {
	t.key = keyOf(t.text, t.kind)
	if len(t.key) < 4 {
		return
	}
	t.weight = kindWeight[t.kind] * effectWeight[t.effect]
	if t.effect == Beside && t.ofKind == t.kind && t.kind != Name && t.kind != Setting {
		t.weight *= alike
	}
	if strings.HasPrefix(t.key, "1:") {
		if t.kind == Name || usual[t.key[2:]] || len(t.key) < 6 {
			return
		}
		t.weight *= singleWeight
	}
	was, ok := c.terms[t.key]
	switch {
	case ok && was.weight >= t.weight:
	case ok:
		*was = t
	case len(c.order) < maxTerms:
		c.terms[t.key] = &t
		c.order = append(c.order, t.key)
	}
}

// usual are words that each program has as names; none says what a page is about.
var usual = map[string]bool{}

func init() {
	for w := range strings.FieldsSeq("name type value path file string bool true false null none error errors return default " +
		"data text list item items index test tests main self this args options option config context result results " +
		"response request status code description title message object number integer float array string boolean key keys " +
		"url size time date user users required version properties schema content const func function class import export " +
		"with from into have that when then else case break string info debug warn help usage example examples get set " +
		"post put delete patch head json yaml html http https id ids") {
		usual[w] = true
	}
}

// hunk adds what one hunk does. Names in changed lines come first; those beside them say where the change is.
func (c *collector) hunk(file string, h hunk) {
	var main name // one that the hunk changes, to say what others stand beside
	for i := 0; i < len(h.lines); {
		if h.lines[i].sign == ' ' {
			i++
			continue
		}
		j := i
		var old, now []line
		for ; j < len(h.lines) && h.lines[j].sign != ' '; j++ {
			if h.lines[j].sign == '-' {
				old = append(old, h.lines[j])
			} else {
				now = append(now, h.lines[j])
			}
		}
		if m := c.block(file, old, now, h.lines[:i]); m.text != "" && main.text == "" {
			main = m
		}
		i = j
	}
	for _, l := range h.lines {
		if l.sign == ' ' {
			for _, n := range l.names {
				c.add(term{text: n.text, kind: n.kind, effect: Beside, file: file, line: l.number, of: main.text, ofKind: main.kind})
			}
		}
	}
	for _, n := range namesIn(h.around) {
		c.add(term{text: n.text, kind: n.kind, effect: Beside, file: file, of: main.text, ofKind: main.kind})
	}
}

// block adds what a run of changed lines does. It returns the name that best says what it is about.
func (c *collector) block(file string, old, now, before []line) (main name) {
	c.renamed(file, old, now, before)
	note := func(lines []line, onOtherSide map[string]bool, alone Effect) {
		for _, l := range lines {
			for _, n := range l.names {
				effect := Changed
				if !onOtherSide[keyOf(n.text, n.kind)] {
					effect = alone
				}
				c.add(term{text: n.text, kind: n.kind, effect: effect, file: file, line: l.number})
				if main.text == "" && n.kind != Name {
					main = n
				}
			}
		}
	}
	note(old, c.come, Removed)
	note(now, c.gone, Added)
	return main
}

var valueForm = regexp.MustCompile("\"[^\"\n]*\"|'[^'\n]*'|`[^`\n]*`|\\b\\d[\\w.]*\\b|\\b(?:true|false|True|False|null|nil|None)\\b")

// renamed finds lines of which one takes the other's place with one name or one value changed.
func (c *collector) renamed(file string, old, now, before []line) {
	old, now = old[:min(len(old), maxBlock)], now[:min(len(now), maxBlock)]
	if c.pairs -= len(old) * len(now); c.pairs < 0 {
		return
	}
	used, parts := map[int]bool{}, make([][]string, len(now))
	for j, b := range now {
		parts[j] = codeName.FindAllString(b.text, 80)
	}
	for _, a := range old {
		best, score := -1, 0.5
		own := codeName.FindAllString(a.text, 80)
		for j := range now {
			if s := likeness(own, parts[j]); !used[j] && s > score {
				best, score = j, s
			}
		}
		if best < 0 {
			continue
		}
		used[best] = true
		b := now[best]
		lost, won := difference(a.names, b.names)
		if len(lost) == 1 && len(won) == 1 && lost[0].kind == won[0].kind {
			if k := keyOf(lost[0].text, lost[0].kind); !c.come[k] && k != keyOf(won[0].text, won[0].kind) {
				c.add(term{text: lost[0].text, kind: lost[0].kind, effect: Renamed, to: won[0].text, file: file, line: b.number})
				continue
			}
		}
		was, is := otherValue(a.text, b.text)
		if was == "" {
			continue
		}
		for _, n := range ownerOf(b, before) {
			c.add(term{text: n.text, kind: n.kind, effect: Revalue, was: was, to: is, file: file, line: b.number})
		}
	}
}

// ownerOf are the names that a value belongs to: those of its line, or of the last line before that has any.
func ownerOf(l line, before []line) []name {
	own := slices.DeleteFunc(slices.Clone(l.names), func(n name) bool {
		return n.kind == Name
	})
	for i := len(before) - 1; i >= 0 && i >= len(before)-3 && len(own) == 0; i-- {
		if before[i].sign != '-' {
			own = before[i].names[:min(1, len(before[i].names))]
		}
	}
	return own
}

// likeness is how many of the words of two lines both have.
func likeness(x, y []string) float64 {
	if len(x)+len(y) == 0 {
		return 0
	}
	count := map[string]int{}
	for _, w := range x {
		count[w]++
	}
	common := 0
	for _, w := range y {
		if count[w] > 0 {
			count[w]--
			common++
		}
	}
	return 2 * float64(common) / float64(len(x)+len(y))
}

func difference(a, b []name) (lost, won []name) {
	lost = slices.DeleteFunc(slices.Clone(a), func(n name) bool { return slices.Contains(b, n) })
	won = slices.DeleteFunc(slices.Clone(b), func(n name) bool { return slices.Contains(a, n) })
	return lost, won
}

// otherValue is the one value in which two lines differ; empty if they differ in more.
func otherValue(a, b string) (was, is string) {
	x, y := valueForm.FindAllString(a, 20), valueForm.FindAllString(b, 20)
	if len(x) != len(y) || valueForm.ReplaceAllString(a, "\x00") != valueForm.ReplaceAllString(b, "\x00") {
		return "", ""
	}
	for i := range x {
		if x[i] == y[i] {
			continue
		}
		if was != "" {
			return "", ""
		}
		was, is = x[i], y[i]
	}
	was, is = strings.Trim(was, "\"'`"), strings.Trim(is, "\"'`")
	if strings.ContainsAny(was, " \t") || len(was) > 60 || len(is) > 60 { // a sentence is no value
		return "", ""
	}
	return was, is
}
