package claims

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

type tokenKind uint8

const (
	plain  tokenKind = iota // a word
	number                  // 8080, 30s, 1.24, four
	code                    // a flag, an identifier, a path, an address, and what stands in code
	name                    // a word that is written as a name
	ideas                   // two signs of a script without spaces
	pause                   // what ends a part of a sentence
)

// A token is a word of a text, in small letters.
type token struct {
	kind tokenKind
	text string
	unit unit // of a number; zero if it has none
}

// A scanner reads the tokens of a sentence.
type scanner struct {
	text  string
	coded bool // all of it is code
	nouns bool // a capital makes no name
	take  func(token)

	span  bool
	begun bool // a word of the sentence was read
	wide  rune // the last sign of a script without spaces
	held  token
	holds bool // a number that may still get its unit
}

// scan calls take for each token of a sentence. In some languages words that are no names are written with a capital.
func scan(text, language string, coded bool, take func(token)) {
	s := scanner{text: text, coded: coded, nouns: language != "" && language != "en", take: take}
	s.run()
}

func isToken(r rune) bool {
	return unicode.IsLetter(r) && !wide(r) || unicode.IsDigit(r) || unicode.Is(unicode.Mn, r) || strings.ContainsRune("_.-/:@+'’$%~=&#", r)
}

func (s *scanner) run() {
	for i := 0; i < len(s.text); {
		r, n := utf8.DecodeRuneInString(s.text[i:])
		switch {
		case wide(r):
			s.widely(r)
		case isToken(r):
			end := s.tokenEnd(i + n)
			s.wide = 0
			s.word(s.text[i:end], i > 0 && !strings.ContainsRune(" `\"(\n", rune(s.text[i-1])))
			i = end
			continue
		case r == '`':
			s.span = !s.span
		case r == ']' && i+1 < len(s.text) && s.text[i+1] == '(' && !s.coded:
			i = s.addressEnd(i + 1)
			continue
		case r == '\n':
			s.span = false
		case strings.ContainsRune(",;()|—–，、；：", r):
			s.put(token{kind: pause})
		}
		if !wide(r) {
			s.wide = 0
		}
		i += n
	}
	s.flush()
}

// tokenEnd is where the token that goes on at a place ends.
func (s *scanner) tokenEnd(end int) int {
	digit := func(i int) bool { return i < len(s.text) && s.text[i] >= '0' && s.text[i] <= '9' }
	for end < len(s.text) {
		r, n := utf8.DecodeRuneInString(s.text[end:])
		if !isToken(r) && (r != ',' || !digit(end-1) || !digit(end+1)) {
			break
		}
		end += n
	}
	return end
}

// addressEnd is where the address of a link ends: it is none of the words.
func (s *scanner) addressEnd(i int) int {
	if n := strings.IndexAny(s.text[i:], ") \n"); n >= 0 {
		return i + n
	}
	return len(s.text)
}

// widely reads a sign of a script without spaces: words there are known by two signs each.
func (s *scanner) widely(r rune) {
	if s.holds {
		if u, ok := units[string(r)]; ok {
			s.held.unit = u
			s.flush()
			s.wide = 0
			return
		}
	}
	if s.wide != 0 {
		s.put(token{kind: ideas, text: string([]rune{s.wide, r})})
	}
	s.wide, s.begun = r, true
}

func (s *scanner) flush() {
	if s.holds {
		s.holds = false
		s.take(s.held)
	}
}

func (s *scanner) put(t token) {
	if s.holds && t.kind == plain {
		if u, ok := units[t.text]; ok {
			s.held.unit = u
			s.flush()
			return
		}
	}
	s.flush()
	if t.kind == number && t.unit.kind == 0 {
		s.held, s.holds = t, true
		return
	}
	s.take(t)
}

// word reads what stands between two spaces.
func (s *scanner) word(w string, attached bool) {
	w = strings.TrimRight(w, ".:-/'’+=&#~@")
	w = strings.TrimLeft(w, "'’:=+~&#")
	if !attached && len(w) > 1 && w[0] == '.' && !(w[1] >= 'a' && w[1] <= 'z') || attached {
		w = strings.TrimLeft(w, ".")
	}
	if attached {
		w = strings.TrimLeft(w, "-")
	}
	if w == "" || w == "%" {
		if w == "%" {
			s.put(token{kind: plain, text: w})
		}
		return
	}
	if strings.Contains(w, "=") {
		for part := range strings.SplitSeq(w, "=") {
			if part != "" {
				s.word(strings.Trim(part, "="), false)
			}
		}
		return
	}
	s.classify(w)
	s.begun = true
}

func (s *scanner) classify(w string) {
	low := strings.ToLower(strings.ReplaceAll(w, "’", "'"))
	inCode := s.coded || s.span
	if t, ok := numeral(low); ok {
		s.put(t)
		return
	}
	if s.hyphened(low) {
		return
	}
	switch {
	case functional[low] || negations[low]:
		s.put(token{kind: plain, text: low})
	case strings.HasPrefix(low, "-"):
		if bare := strings.TrimLeft(low, "-"); bare != "" {
			s.put(token{kind: code, text: low[:min(2, len(low)-len(bare))] + bare})
		}
	case inCode:
		s.put(token{kind: code, text: bareCode(low)})
	case strings.ContainsAny(low, "_.:@$#"):
		s.put(token{kind: code, text: bareCode(low)})
	case strings.Contains(low, "/"):
		if low == w && eitherOr(low) {
			s.each(w, "/")
			return
		}
		s.put(token{kind: code, text: bareCode(low)})
	case strings.Contains(low, "-"):
		s.each(w, "-")
	default:
		s.put(token{kind: s.written(w, low), text: strings.TrimSuffix(low, "'s")})
	}
}

// eitherOr reports whether words are written as in "and/or".
func eitherOr(w string) bool {
	return w[0] != '/' && strings.Count(w, "/") <= 2 &&
		strings.TrimFunc(w, func(r rune) bool { return r == '/' || unicode.IsLetter(r) }) == ""
}

// each reads the parts of what is written together.
func (s *scanner) each(w, sign string) {
	for part := range strings.SplitSeq(w, sign) {
		if part != "" {
			s.classify(part)
		}
	}
}

// hyphened reads a number and what a hyphen ties to it, such as 1-50 and 64-bit.
func (s *scanner) hyphened(low string) bool {
	first, rest, ok := strings.Cut(low, "-")
	if !ok || first == "" || rest == "" || strings.ContainsAny(low, "_/:@$#") || strings.Contains(rest, "-") {
		return false
	}
	t, is := numeral(first)
	if is {
		s.put(t)
		s.flush()
		s.begun = true
		s.classify(rest)
	}
	return is
}

// bareCode is an identifier without what it may be written with or without.
func bareCode(w string) string {
	return strings.TrimRight(strings.TrimPrefix(strings.TrimLeft(w, "/"), "./"), "/%")
}

// written tells names from words.
func (s *scanner) written(w, low string) tokenKind {
	if w == low && strings.IndexFunc(w, unicode.IsDigit) < 0 {
		return plain
	}
	upper, lower, digits, inner := 0, 0, 0, false
	for i, r := range w {
		switch {
		case unicode.IsUpper(r):
			upper++
			inner = inner || i > 0 && lower > 0
		case unicode.IsDigit(r):
			digits++
		default:
			lower++
		}
	}
	switch {
	case common[strings.TrimSuffix(low, "s")]:
		return plain
	case inner || digits > 0 && upper+lower > 0:
		return code
	case upper > 1 || upper == 1 && s.begun && !s.nouns:
		return name
	}
	return plain
}

// common are abbreviations that explanations have without any passage having them.
var common = set("api url uri http https json yaml toml xml html css ui id ip cli os ok faq tl dr sdk ai rest ci cd qa ide db pdf pr seo ssl tls")

// numeral reads a number, with its unit if that is written to it.
func numeral(w string) (token, bool) {
	if n, ok := numerals[w]; ok {
		return token{kind: number, text: n}, true
	}
	bare := strings.TrimPrefix(w, "v")
	if bare == "" || bare[0] < '0' || bare[0] > '9' {
		return token{}, false
	}
	digits := bare
	if at := strings.IndexFunc(bare, func(r rune) bool { return (r < '0' || r > '9') && r != '.' && r != ',' }); at >= 0 {
		digits = bare[:at]
	}
	t := token{kind: number, text: strings.TrimSuffix(strings.TrimRight(strings.ReplaceAll(digits, ",", ""), "."), ".0")}
	switch rest := bare[len(digits):]; rest {
	case "", "st", "nd", "rd", "th", "x", "+":
		return t, true
	default:
		u, ok := units[rest]
		t.unit = u
		return t, ok
	}
}

// amount is what a number with a unit comes to, so that 60 seconds are a minute.
func (t *token) amount() string {
	v, err := strconv.ParseFloat(t.text, 64)
	if err != nil {
		return t.text
	}
	return string(t.unit.kind) + strconv.FormatFloat(v*t.unit.to, 'g', 12, 64)
}

// parts are the words that an identifier is made of.
func parts(w string, take func(string)) {
	start := 0
	for i, r := range w {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			if i > start {
				take(w[start:i])
			}
			start = i + utf8.RuneLen(r)
		}
	}
	if start < len(w) {
		take(w[start:])
	}
}
