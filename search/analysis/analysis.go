// Package analysis cuts text into the terms that an index holds: words in lower case and stemmed in their language,
// names whole and in parts, runs of Chinese, Japanese and Korean characters in pairs. It knows the words that say how
// something is asked and not what about, words that are written short or in full, and the scripts and words of grammar
// that tell a language.
package analysis

import (
	"cmp"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/blevesearch/bleve/v2/analysis"
	"github.com/blevesearch/bleve/v2/registry"
	"github.com/blevesearch/snowballstem"
	"github.com/blevesearch/snowballstem/danish"
	"github.com/blevesearch/snowballstem/dutch"
	"github.com/blevesearch/snowballstem/english"
	"github.com/blevesearch/snowballstem/finnish"
	"github.com/blevesearch/snowballstem/french"
	"github.com/blevesearch/snowballstem/german"
	"github.com/blevesearch/snowballstem/hungarian"
	"github.com/blevesearch/snowballstem/italian"
	"github.com/blevesearch/snowballstem/norwegian"
	"github.com/blevesearch/snowballstem/portuguese"
	"github.com/blevesearch/snowballstem/romanian"
	"github.com/blevesearch/snowballstem/russian"
	"github.com/blevesearch/snowballstem/spanish"
	"github.com/blevesearch/snowballstem/swedish"
	"github.com/blevesearch/snowballstem/turkish"

	"docent/internal/wordset"
)

// Version names the rules of this file. An index made by other rules is rebuilt.
const Version = 6

// Analyzer is the name under which Bleve knows our analyzer. Text is cut into terms by the scanner below, once,
// for the index, for the lengths and for the closer look alike; what reaches Bleve is the terms with spaces between.
const Analyzer = "docent_terms"

// Terms is the analyzer itself.
type Terms struct{}

func (Terms) Analyze(input []byte) analysis.TokenStream {
	out := make(analysis.TokenStream, 0, len(input)/6+1)
	for start, position := 0, 1; start < len(input); position++ {
		end := start
		for end < len(input) && input[end] != ' ' {
			end++
		}
		out = append(out, &analysis.Token{Term: input[start:end], Start: start, End: end, Position: position})
		start = end + 1
	}
	return out
}

func init() {
	registry.RegisterAnalyzer(Analyzer, func(map[string]interface{}, *registry.Cache) (analysis.Analyzer, error) {
		return Terms{}, nil
	})
}

// stemmers by primary language subtag. A language that is not here is indexed as it is written.
var stemmers = map[string]func(*snowballstem.Env) bool{
	"da": danish.Stem, "de": german.Stem, "en": english.Stem, "es": spanish.Stem, "fi": finnish.Stem,
	"fr": french.Stem, "hu": hungarian.Stem, "it": italian.Stem, "nb": norwegian.Stem, "nl": dutch.Stem,
	"nn": norwegian.Stem, "no": norwegian.Stem, "pt": portuguese.Stem, "ro": romanian.Stem, "ru": russian.Stem,
	"sv": swedish.Stem, "tr": turkish.Stem,
}

// Language is the primary subtag of a language tag: "en" of "en-US", "zh" of "zh_Hans". Empty means English.
func Language(tag string) string {
	tag = strings.ToLower(tag)
	if i := strings.IndexAny(tag, "-_"); i >= 0 {
		tag = tag[:i]
	}
	if tag == "" {
		return "en"
	}
	return tag
}

// A stemmer remembers what it has stemmed. It is not for use by several goroutines at once.
type stemmer struct {
	stem   func(*snowballstem.Env) bool
	env    *snowballstem.Env
	seen   map[string]string
	single bool // a doubled letter at the end counts once
}

const stemmerRemembers = 50_000 // words; beyond it starts afresh

func newStemmer(language string) *stemmer {
	return &stemmer{stem: stemmers[language], env: snowballstem.NewEnv(""), seen: make(map[string]string),
		single: language == "en"}
}

func (s *stemmer) of(word string) string {
	if s.stem == nil || len(word) < 3 {
		return word
	}
	if stem, ok := s.seen[word]; ok {
		return stem
	}
	plain := word
	if s.single {
		plain = Regular(word)
	}
	s.env.SetCurrent(plain)
	s.stem(s.env)
	stem := cmp.Or(s.env.Current(), word)
	if s.single { // "adding" loses one d with its ending; "add" is the same word
		if n := len(stem); n > 2 && stem[n-1] == stem[n-2] && strings.IndexByte("bdfgmnprt", stem[n-1]) >= 0 {
			stem = stem[:n-1]
		}
	}
	if len(s.seen) >= stemmerRemembers {
		clear(s.seen)
	}
	s.seen[word] = stem
	return stem
}

// A Tokenizer cuts text into terms. Get gives one, for one goroutine at a time.
type Tokenizer struct {
	stemmers map[string]*stemmer
	cuts     []int
	before   plainWord // the one that stands before, if it may be the first of a compound
}

type plainWord struct {
	text       string
	start, end int    // with the pronoun behind it
	pronoun    string // which may stand within a compound: "back it up"
}

var tokenizers = sync.Pool{New: func() any { return &Tokenizer{stemmers: make(map[string]*stemmer)} }}

// Get gives a tokenizer, with the stems that it remembers. Put takes it back.
func Get() *Tokenizer { return tokenizers.Get().(*Tokenizer) }

// Put gives the tokenizer to others.
func (a *Tokenizer) Put() { tokenizers.Put(a) }

// Stem is a word's stem in a language.
func (a *Tokenizer) Stem(word, language string) string { return a.stemmer(language).of(word) }

func (a *Tokenizer) stemmer(language string) *stemmer {
	s := a.stemmers[language]
	if s == nil {
		s = newStemmer(language)
		a.stemmers[language] = s
	}
	return s
}

// A Token is one term of a text. A name of several parts (generateStaticParams, kube-apiserver, docs.json, --dry-run)
// gives one whole token, as written but in lower case, that covers its parts, and a stemmed token for each part. A
// plain word gives one stemmed token. A compound that is written open or with a hyphen (back up, re-index) also gives a
// token for its closed form, that covers both parts.
type Token struct {
	Term    string // what is indexed
	Surface string // what a reader types: the lower-case word before stemming
	At      int    // position among the parts of the text
	Covers  int    // parts covered; 0 for a part itself
	Start   int    // byte offsets of the name in the text
	End     int
}

// longVowel stands within words of Katakana, and of no script.
const longVowel = 'ー'

func isCJK(r rune) bool {
	return r >= 0x2E80 && (r == longVowel || unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul))
}

// IsWord reports whether a character is part of a word.
func IsWord(r rune) bool {
	if r < utf8.RuneSelf {
		return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '_'
	}
	return unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r)
}

// joins reports whether a rune between two word runes keeps them in one name.
func joins(r rune) bool { return r == '-' || r == '.' || r == '\'' || r == '’' || r == '@' }

// nameEnd returns the end of the name that has begun before end.
func nameEnd(text string, end int) int {
	for end < len(text) {
		r, size := utf8.DecodeRuneInString(text[end:])
		if !IsWord(r) && joins(r) {
			r, _ = utf8.DecodeRuneInString(text[end+size:])
		}
		if !IsWord(r) || isCJK(r) {
			break
		}
		end += size
	}
	return end
}

// Tokens calls emit for each token of the text, parts numbered from 0. It returns the number of parts.
func (a *Tokenizer) Tokens(text, language string, emit func(Token)) int {
	stem := a.stemmer(language)
	a.before = plainWord{}
	at := 0
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		if !IsWord(r) {
			i += size
			continue
		}
		if isCJK(r) {
			i, at = a.bigrams(text, i, at, emit)
			continue
		}
		start, end := i, nameEnd(text, i+size)
		i = end
		if Scheme(text, start, end) {
			a.before = plainWord{}
			continue
		}
		if end < len(text) && (text[end] == '+' || text[end] == '#') && end-start == 1 { // C++, C#
			for i < len(text) && (text[i] == '+' || text[i] == '#') && i-end < 2 {
				i++
			}
			if i == len(text) || !isWordByte(text[i]) {
				end = i
			} else {
				i = end
			}
		}
		begin := start
		for begin > 0 && start-begin < 2 && strings.IndexByte("-@.$", text[begin-1]) >= 0 {
			begin--
		}
		if begin > 0 && isWordByte(text[begin-1]) { // a separator, not a prefix
			begin = start
		}
		at = a.name(text, begin, start, end, at, stem, emit)
	}
	return at
}

// elided are the words of French, Italian and Catalan that lose their last letter before a vowel: l'installation is
// found as installation is.
var elided = setOf(`l d j m n s t c qu jusqu lorsqu puisqu quoiqu un all dall dell nell sull quest quell`)

func isWordByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c >= utf8.RuneSelf
}

// name emits the tokens of one name: text[start:end], with its prefix from begin on.
func (a *Tokenizer) name(text string, begin, start, end, at int, stem *stemmer, emit func(Token)) int {
	word := strings.TrimRight(strings.TrimLeft(text[start:end], "_"), "_")
	if word == "" {
		return at
	}
	if cut := strings.IndexAny(word, "'’"); cut > 0 && !strings.ContainsAny(word[:cut], "-.@_") {
		// Possessives lose their ending, elided articles go, contractions lose their apostrophe.
		rest := strings.Trim(word[cut:], "'’")
		if rest == "s" || rest == "S" {
			word = word[:cut]
		} else if len(rest) > 2 && elided[strings.ToLower(word[:cut])] {
			word = rest
		} else {
			word = strings.NewReplacer("'", "", "’", "").Replace(word)
		}
	}
	a.cuts = cutName(a.cuts[:0], word)
	if len(a.cuts) == 2 && begin == start && a.cuts[1] == len(word) {
		low := Fold(word)
		emit(Token{Term: stem.of(low), Surface: low, At: at, Start: start, End: end})
		a.compound(text, plainWord{text: low, start: start, end: end}, at, stem, emit)
		return at + 1
	}
	a.before = plainWord{}
	parts := len(a.cuts) / 2
	whole := Fold(text[begin:end])
	emit(Token{Term: whole, Surface: whole, At: at, Covers: parts, Start: start, End: end})
	// A dotted or dashed name holds smaller names: ToInt in cast.ToInt.
	for from := 0; from < parts; {
		to := from + 1
		for to < parts && a.cuts[2*to] == a.cuts[2*to-1] {
			to++
		}
		if inner := Fold(word[a.cuts[2*from]:a.cuts[2*to-1]]); to-from > 1 && inner != whole {
			emit(Token{Term: inner, Surface: inner, At: at + from, Covers: to - from, Start: start, End: end})
		}
		from = to
	}
	if closed := a.hyphenated(word, stem); closed != "" && begin == start {
		emit(Token{Term: stem.of(closed), Surface: closed, At: at, Covers: 2, Start: start, End: end})
	}
	for k := range parts {
		low := Fold(word[a.cuts[2*k]:a.cuts[2*k+1]])
		emit(Token{Term: stem.of(low), Surface: low, At: at + k, Start: start, End: end})
	}
	return at + parts
}

// compound emits the closed form of a word and the one before it, if these make one.
func (a *Tokenizer) compound(text string, word plainWord, at int, stem *stemmer, emit func(Token)) {
	if b := a.before; stem.single && b.end+1 == word.start && b.end > 0 && text[b.end] == ' ' {
		covers := 2
		if b.pronoun != "" {
			covers = 3
		} else if pronouns[word.text] {
			a.before.end, a.before.pronoun = word.end, word.text
			return
		}
		if closed := Parted(b.text, b.pronoun, word.text); closed != "" {
			emit(Token{Term: stem.of(closed), Surface: closed, At: at + 1 - covers, Covers: covers, Start: b.start, End: word.end})
		}
	}
	a.before = word
}

// hyphenated is the closed form of a name that was cut; empty if it has none.
func (a *Tokenizer) hyphenated(word string, stem *stemmer) string {
	if len(a.cuts) != 4 || !stem.single || word[a.cuts[1]] != '-' {
		return ""
	}
	return Hyphenated(Fold(word[:a.cuts[1]]), Fold(word[a.cuts[2]:]))
}

// cutName appends the start and end of each part of a name: at separators and where a capital begins a new word.
func cutName(cuts []int, word string) []int {
	begin := -1
	var before rune
	for i, r := range word {
		if r == '_' || joins(r) || r == '+' || r == '#' {
			if begin >= 0 && r != '+' && r != '#' {
				cuts = append(cuts, begin, i)
				begin = -1
			}
			before = 0
			continue
		}
		if begin >= 0 && unicode.IsUpper(r) {
			next, _ := utf8.DecodeRuneInString(word[i+utf8.RuneLen(r):])
			if !unicode.IsUpper(before) || unicode.IsLower(next) && !pluralOfCapitals(word[i:], begin, i) {
				cuts = append(cuts, begin, i)
				begin = i
			}
		}
		if begin < 0 {
			begin = i
		}
		before = r
	}
	if begin >= 0 {
		end := len(word)
		for end > begin+1 && (word[end-1] == '+' || word[end-1] == '#') {
			end--
		}
		cuts = append(cuts, begin, end)
	}
	return cuts
}

// pluralOfCapitals tells APIs and URLs from HTTPServer: rest is one capital and a lone s.
func pluralOfCapitals(rest string, begin, at int) bool {
	if at == begin || len(rest) < 2 || rest[1] != 's' {
		return false
	}
	return len(rest) == 2 || !isWordByte(rest[2])
}

// Scheme reports whether a word is the http or https that an address begins with: each page with a link would have the word.
func Scheme(text string, start, end int) bool {
	return strings.HasPrefix(text[end:], "://") && end-start <= len("https") && (text[start:end] == "http" || text[start:end] == "https")
}

// bigrams emits each two neighboring characters of a run of Chinese, Japanese or Korean text, which has no spaces.
func (a *Tokenizer) bigrams(text string, i, at int, emit func(Token)) (int, int) {
	run := i
	for run < len(text) {
		r, size := utf8.DecodeRuneInString(text[run:])
		if !isCJK(r) {
			break
		}
		run += size
	}
	for j := i; j < run; {
		_, first := utf8.DecodeRuneInString(text[j:])
		if j+first >= run {
			if j == i { // a lone character
				emit(Token{Term: text[j:run], Surface: text[j:run], At: at, Start: j, End: run})
				at++
			}
			break
		}
		_, second := utf8.DecodeRuneInString(text[j+first:])
		pair := text[j : j+first+second]
		emit(Token{Term: pair, Surface: pair, At: at, Start: j, End: j + first + second})
		at++
		j += first
	}
	return run, at
}

// Fold writes a word in lower case and Latin letters without their accents.
func Fold(word string) string {
	plain := true
	for i := range len(word) {
		if c := word[i]; c >= utf8.RuneSelf || 'A' <= c && c <= 'Z' {
			plain = false
			break
		}
	}
	if plain {
		return word
	}
	return strings.Map(func(r rune) rune {
		r = unicode.ToLower(r)
		if r < 0xC0 {
			return r
		}
		if r >= '！' && r <= '～' { // as wide as a Chinese character
			return unicode.ToLower(r - '！' + '!')
		}
		if unicode.Is(unicode.Mn, r) {
			return -1
		}
		if base, ok := unaccented[r]; ok {
			return base
		}
		return r
	}, word)
}

var unaccented = func() map[rune]rune {
	m := make(map[rune]rune)
	for base, accented := range map[rune]string{
		'a': "àáâãäåāăą", 'c': "çćĉċč", 'd': "ďđ", 'e': "èéêëēĕėęě", 'g': "ĝğġģ", 'h': "ĥħ", 'i': "ìíîïĩīĭįı", 'j': "ĵ",
		'k': "ķ", 'l': "ĺļľŀł", 'n': "ñńņňŉ", 'o': "òóôõöøōŏő", 'r': "ŕŗř", 's': "śŝşš", 't': "ţťŧ", 'u': "ùúûüũūŭůűų",
		'w': "ŵ", 'y': "ýÿŷ", 'z': "źżž", '’': "'",
	} {
		for _, r := range accented {
			m[r] = base
		}
	}
	return m
}()

// Hash names a term in four bytes. It is stored, so it must not change with the process: FNV-1a.
func Hash(term string) uint32 {
	h := uint32(2166136261)
	for i := range len(term) {
		h = (h ^ uint32(term[i])) * 16777619
	}
	return h
}

// dropped words say how something is asked, not what about. They are left out of a query that holds other words.
// Words that change what is meant stay: not, without, get, set, after, from, all, no.
var dropped = setOf(`
	a an the and or of to in on at by for with is are was were be been being am do does did doing done has have had
	having i me my mine we us our you your it its this that these those there here how what which who whom whose
	when where why whether can could should would will shall may might must if so as than then but too very just
	also about into want need like trying try way ways possible please help know tell explain im ive id dont doesnt
	cant isnt
`)

var setOf = wordset.Of

// Dropped reports whether a word says how something is asked.
func Dropped(word string) bool {
	if first, _ := utf8.DecodeRuneInString(word); isCJK(first) {
		return asksInCJK(word)
	}
	return dropped[word]
}

// droppedPairs are pairs of characters that only say how something is asked, in Chinese and Korean, and askingSigns are
// characters that make a pair one.
var (
	droppedPairs = setOf(`可以 是否 能否 为什 為什 多少 关于 關於 了解 我的 你的 您的 方法 する した して
		방법 하는 하기 하나 하려 려면 어떻 떻게 나요 까요 세요 보세 습니 니다 합니 인가 가요 에서 으로 에게 싶어 어요 해요 무엇 수있`)
	askingSigns = "何怎么麼吗嗎呢哪请請"
)

// asksInCJK reports whether a pair of characters says how something is asked: so does one of Hiragana alone, the script
// of Japanese grammar.
func asksInCJK(pair string) bool {
	grammar := true
	for _, r := range pair {
		if strings.ContainsRune(askingSigns, r) {
			return true
		}
		grammar = grammar && unicode.Is(unicode.Hiragana, r)
	}
	return grammar || droppedPairs[pair]
}
