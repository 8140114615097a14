package claims

import (
	"regexp"
	"strings"
)

// A Role is what a sentence is for.
type Role uint8

// Roles.
const (
	Claims Role = iota // it says something that may be true or false
	Leads              // it leads to what follows: "Here is how:", "Yes.", a heading
	Asks               // it is a question
	Points             // it sends the reader somewhere: "See the page on keys."
	Courts             // it greets, thanks, offers help
	Admits             // it says that the documentation does not say
)

var (
	courtesies = regexp.MustCompile(`(?i)^\W*(sure|certainly|of course|absolutely|great question|good question|thanks?( you)?|you're welcome|hello|hi|` +
		`happy to help|glad to help|i hope (this|that) helps|hope (this|that) helps|let me know\b|feel free\b|if you (have|need) (any )?(more|other|further)|` +
		`let me (see|look|check|search)|i('ll| will) (look|check|search)|is there anything|good luck|` +
		`gerne|natürlich|hallo|danke|bien sûr|bonjour|merci|claro|hola|gracias|certo|ciao|grazie|olá|obrigad[oa]|当然|你好|您好|もちろん|こんにちは|물론|안녕)`)
	pointers = regexp.MustCompile(`(?i)^\W*((you can )?(see|read|refer to|check|consult|visit|have a look at|take a look at|look at|find)\b|` +
		`(for|to learn) (more|further|details|additional|the full)\b|more (about|on|details|information)\b|(further|additional) (details|information|reading)\b|` +
		`you can ask here|ask here|siehe\b|mehr (dazu|darüber|informationen)|voir\b|pour plus\b|en savoir plus|consulte\b|véase|para más|vedi\b|` +
		`per maggiori|veja\b|para mais|zie\b|详见|参见|请参阅|詳しくは|詳細は|자세한)`)
	leads = regexp.MustCompile(`(?i)^\W*((here|below)( is|'s| are|’s)\b|(do|try|run|use|follow|add|set|take) (this|it|these|the following)\b|` +
		`(in|the) (short|summary|following)\b|to summari[sz]e|for example|steps?|example|note|that is|this means|in other words|first|second|third|next|then|finally|` +
		`yes|no|correct|exactly|right|true|false|it depends|ja|nein|oui|non|sí|no|sim|não|是的?|不是|はい|いいえ|네|아니요?)\W*$`)
	// sources and silence together say that the documentation does not answer; each language in a line.
	admits = []*regexp.Regexp{
		regexp.MustCompile(`(?i)\b(documentation|docs|passages?|sections?|excerpts?|sources?|manual|context|material|pages?|information|provided|text)\b`),
		regexp.MustCompile(`(?i)\b(no|not|n't|n’t|cannot|nothing|neither|unable|without|insufficient)\b|n't\b|n’t\b`),
		regexp.MustCompile(`(?i)\b(answers?|say|says|said|mention(s|ed)?|cover(s|ed)?|contain(s|ed)?|describe[sd]?|specif(y|ies|ied)|include[sd]?|provide[sd]?|` +
			`explain(s|ed)?|find|found|address(es|ed)?|stated?|states|information|details?|discuss(es|ed)?|tell|tells|list(s|ed)?|document(ed|s)?|available|know)\b`),
	}
	admitsElsewhere = regexp.MustCompile(`(?i)(doku(mentation)?|unterlagen|handbuch|abschnitt\w*|auszüg\w*)\b.*\b(nicht|kein\w*|nichts)\b|\b(nicht|kein\w*|nichts)\b.*\b(doku(mentation)?|unterlagen|handbuch)|` +
		`(documentation|passages?|extraits?)\b.*\bne\b.*\b(pas|aucun\w*|rien)\b|\b(aucune?|pas d)\b.*\b(documentation|passages?|extraits?)|` +
		`(documentación|documentação|documentazione|pasajes|passaggi|trechos)\b.*\b(no|não|non|ningun\w*|nenhum\w*|nessun\w*)\b|` +
		`\b(no|não|non|ningun\w*|nenhum\w*|nessun\w*)\b.*\b(documentación|documentação|documentazione)|` +
		`documentatie\b.*\b(niet|geen)\b|\b(niet|geen)\b.*\bdocumentatie|` +
		`(文档|文件|資料|资料).*(没有|沒有|未|不)|(ドキュメント|文書|資料).*(ません|ない|なし)|문서.*(없|않)|документаци.*(не|нет)|(не|нет).*документаци`)
	words3 = regexp.MustCompile(`[\p{L}\p{N}]+`)
)

// RoleOf says what a sentence is for, by its words alone. The caller has to look at its numbers and names too: a
// greeting that names a port claims something.
func RoleOf(p Piece) Role {
	text := strings.TrimSpace(p.Text)
	switch p.Kind {
	case Heading, Fence, FenceEnd:
		return Leads
	case Code, Row:
		return Claims
	}
	plain := strings.TrimRight(text, ")\"'*_` ")
	switch {
	case strings.HasSuffix(plain, "?") || strings.HasSuffix(plain, "？"):
		return Asks
	case Admission(text):
		return Admits
	case leads.MatchString(text):
		return Leads
	case courtesies.MatchString(text):
		return Courts
	case pointers.MatchString(text):
		return Points
	case strings.HasSuffix(plain, ":") || strings.HasSuffix(plain, "："):
		return Leads
	case words3.FindString(text) == "":
		return Leads
	}
	return Claims
}

// longestAdmission bounds what counts as saying that the documentation does not say: a long sentence says more.
const longestAdmission = 400

// Admission reports whether a sentence says that the documentation does not answer.
func Admission(text string) bool {
	if len(text) > longestAdmission {
		return false
	}
	for _, r := range admits {
		if !r.MatchString(text) {
			return admitsElsewhere.MatchString(text)
		}
	}
	return true
}
