package builtin

import (
	"regexp"
	"strings"
)

// A message of a program is known by its form if nobody has put it in quotation marks. It is searched for by itself,
// and the page that has it word for word goes first.

// A messageForm is a form of messages. A question that has none of the parts is not matched with it: the expressions are
// slow.
type messageForm struct {
	parts []string // any, if there are none
	form  *regexp.Regexp
}

// formed matches messages by their forms, the most telling first.
var formed = []messageForm{
	{[]string{"rror", "RROR", "xception", "arning", "anic", "PANIC", "atal", "FATAL"}, regexp.MustCompile(`\b(?:[A-Z]\w*(?:Error|Exception|Warning)|[Ee]rror|ERROR|panic|PANIC|[Ff]atal|FATAL)(?: \[?[A-Z]\w+\]?)?: ` +
		`[^\n?]{8,200}`)},
	{nil, regexp.MustCompile(`\bERR_[A-Z0-9_]{3,60}\b|\b(?:TS|CS|CA|SC|BC|E|C|W|F)\d{3,5}\b|\bE(?:NOENT|CONN[A-Z]+|ADDR[A-Z]+|ACCES|PERM|NOSPC|MFILE|` +
		`TIMEDOUT|EXIST|PIPE|RESOLVE|INTEGRITY|PEERINVALID|BADENGINE|NOTEMPTY|ISDIR|NOTDIR)\b`)},
	{[]string{"Error", "Exception"}, regexp.MustCompile(`\b[A-Z][a-z]\w*[a-z](?:Error|Exception)\b`)},
	{[]string{"xit"}, regexp.MustCompile(`\b[Ee]xit(?:s|ed)?(?: with)? (?:code|status) \d{1,3}\b`)},
	{nil, regexp.MustCompile(`\b[45]\d\d (?:Bad|Unauthorized|Payment|Forbidden|Not|Method|Proxy|Request|Conflict|Gone|Length|` +
		`Precondition|Payload|Content|URI|Unsupported|Range|Expectation|Unprocessable|Locked|Failed|Too|Upgrade|Internal|` +
		`Service|Gateway|HTTP|Variant|Insufficient|Loop|Network)\b(?: [A-Z][a-z]+\b){0,4}`)},
}

// mayHaveCode reports whether a text may have the code of an error: digits in a row, or a word that begins with E in capital
// letters.
func mayHaveCode(text string) bool {
	digits := 0
	for i := range len(text) {
		switch c := text[i]; {
		case '0' <= c && c <= '9':
			if digits++; digits == 3 {
				return true
			}
			continue
		case c == 'E' && i+1 < len(text) && 'A' <= text[i+1] && text[i+1] <= 'Z':
			return true
		}
		digits = 0
	}
	return false
}

// ends are where a message ends and the reader's own words go on.
var ends = regexp.MustCompile(`[.!] |[,;] (?:how|what|why|when|but|and)\b| (?:when|whenever|while|after|how|what|why) | (?:in|on|with) my `)

// messageOf is the message that a question has, quoted or not; empty if it has none.
func messageOf(question string) string {
	if m := quotedMessage(question); m != "" {
		return m
	}
	code := mayHaveCode(question)
	for n, f := range formed {
		if f.parts == nil && !code || f.parts != nil && !hasAny(question, f.parts) {
			continue
		}
		m := f.form.FindString(question)
		if n == 0 && m != "" {
			if at := ends.FindStringIndex(m); at != nil && at[0] > 8 {
				m = m[:at[0]]
			}
		}
		if m = strings.Trim(m, " .:;,"); m != "" && len(m) < len(question)-2 {
			return m
		}
	}
	return ""
}

// literally is what of a message a page has word for word, in small letters: its longest stretch without names, paths
// and numbers of the reader's own, or all of it if it is a code; empty if too little is left.
func literally(message string) string {
	if !strings.Contains(message, " ") || numbered.MatchString(message) {
		return strings.ToLower(message)
	}
	longest := ""
	for _, part := range variable.Split(message, -1) {
		if part = strings.Trim(part, " .:;,'\"`"); len(part) > len(longest) {
			longest = part
		}
	}
	if len(strings.Fields(longest)) < 3 {
		return ""
	}
	return strings.ToLower(longest)
}

var (
	variable = regexp.MustCompile(`["'` + "`][^\"'`]*[\"'`" + `]|\S*[/\\]\S+|\b\d+\b|^\w*[Ee]rror: `)
	numbered = regexp.MustCompile(`^[45]\d\d [A-Z]|^[Ee]xit\w* `)
)
