package slack

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"docent/api/client"
	"docent/internal/brief"
	"docent/router/chatapp"
)

// What a message of Slack may have.
const (
	maxSection  = 3000 // characters of a section
	maxSections = 4
	maxFallback = 300 // characters of what notifications show
)

var (
	escaper   = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")
	unescaper = strings.NewReplacer("&amp;", "&", "&lt;", "<", "&gt;", ">")
	control   = regexp.MustCompile(`<([^<>|]*)(?:\|([^<>]*))?>`) // what Slack makes of links, people, and channels
	fence     = regexp.MustCompile("^\\s*(?:```|~~~)")
	heading   = regexp.MustCompile(`^#{1,6}\s+(.*?)\s*#*$`)
	bullet    = regexp.MustCompile(`^(\s*)[-*+]\s+`)
	spans     = regexp.MustCompile("`[^`]+`|!?\\[([^\\]]*)\\]\\(([^()\\s]+(?:\\([^()\\s]*\\)[^()\\s]*)*)(?:\\s+\"[^\"]*\")?\\)|\\*\\*([^*]+)\\*\\*|__([^_]+)__|~~([^~]+)~~|\\*([^*\\s][^*]*)\\*")
)

// asked is the text of a message as its writer sees it, without the name of who is asked.
func asked(text string) string {
	text = control.ReplaceAllStringFunc(text, func(s string) string {
		m := control.FindStringSubmatch(s)
		switch {
		case strings.HasPrefix(m[1], "@"), strings.HasPrefix(m[1], "!"):
			return ""
		case strings.HasPrefix(m[1], "#"):
			return "#" + m[2]
		case m[2] == "" || strings.HasSuffix(m[1], m[2]):
			return m[1]
		}
		return m[2] + " (" + m[1] + ")"
	})
	return strings.TrimSpace(unescaper.Replace(text))
}

// mrkdwn is Markdown in Slack's own form. Nothing in it calls anybody: what Slack would take for a name is escaped.
func mrkdwn(markdown string) string {
	var out []string
	code := false
	for line := range strings.SplitSeq(markdown, "\n") {
		switch {
		case fence.MatchString(line):
			code = !code
			line = "```"
		case code:
			line = escaper.Replace(line)
		case heading.MatchString(line):
			line = "*" + strings.ReplaceAll(inline(heading.FindStringSubmatch(line)[1]), "*", "") + "*"
		default:
			line = inline(bullet.ReplaceAllString(line, "$1• "))
		}
		out = append(out, line)
	}
	if code { // it is being written
		out = append(out, "```")
	}
	return strings.Join(out, "\n")
}

// inline is mrkdwn for one line.
func inline(line string) string {
	var b strings.Builder
	at := 0
	for _, m := range spans.FindAllStringSubmatchIndex(line, -1) {
		b.WriteString(escaper.Replace(line[at:m[0]]))
		at = m[1]
		group := func(n int) string {
			if m[2*n] < 0 {
				return ""
			}
			return line[m[2*n]:m[2*n+1]]
		}
		switch {
		case m[4] >= 0:
			b.WriteString(link(group(2), group(1)))
		case m[6] >= 0, m[8] >= 0:
			b.WriteString("*" + inline(group(3)+group(4)) + "*")
		case m[10] >= 0:
			b.WriteString("~" + inline(group(5)) + "~")
		case m[12] >= 0:
			b.WriteString("_" + inline(group(6)) + "_")
		default: // code
			b.WriteString(escaper.Replace(line[m[0]:m[1]]))
		}
	}
	return b.String() + escaper.Replace(line[at:])
}

// link leads to a page. Where pages have no address it is the title alone.
func link(address, title string) string {
	title = escaper.Replace(strings.NewReplacer("|", "¦", "`", "").Replace(brief.Line(title)))
	if !strings.HasPrefix(address, "https://") && !strings.HasPrefix(address, "http://") {
		return title
	}
	address = strings.NewReplacer("&", "&amp;", "<", "%3C", ">", "%3E", "|", "%7C").Replace(address)
	if title == "" {
		return "<" + address + ">"
	}
	return "<" + address + "|" + title + ">"
}

// pieces cuts a text where lines end, each within a section's characters. Code that is cut goes on as code.
func pieces(text string) (list []string) {
	var piece strings.Builder
	size, code := 0, false
	end := func() {
		if code {
			piece.WriteString("```")
		}
		if s := strings.TrimSpace(piece.String()); s != "" {
			list = append(list, s)
		}
		piece.Reset()
		if size = 0; code {
			piece.WriteString("```\n")
			size = 4
		}
	}
	for line := range strings.Lines(text) {
		const maxPiece = maxSection - 8 // of code the ends
		for line != "" {
			n := utf8.RuneCountInString(line)
			if size > 4 && size+n > maxPiece {
				end()
			}
			head := brief.Runes(line, maxPiece, "")
			if head == line && strings.HasPrefix(line, "```") {
				code = !code
			}
			piece.WriteString(head)
			size += utf8.RuneCountInString(head)
			line = line[len(head):]
		}
	}
	end()
	return list
}

type object = map[string]any

func section(text string) object {
	return object{"type": "section", "text": object{"type": "mrkdwn", "text": text, "verbatim": true}}
}

func plain(text string) object { return object{"type": "plain_text", "text": text} }

// message is a text as chat.postMessage and chat.update take it.
func message(text string) object {
	blocks := []object{}
	for i, piece := range pieces(text) {
		if i == maxSections {
			blocks = append(blocks, section("…"))
			break
		}
		blocks = append(blocks, section(piece))
	}
	return object{"text": escaper.Replace(brief.Runes(asked(text), maxFallback, "…")), "blocks": blocks, "unfurl_links": false, "unfurl_media": false}
}

// answered is a whole answer: its text, the pages that it is from, and two buttons.
func answered(a client.Answer, buttons bool) object {
	m := message(mrkdwn(a.Text))
	blocks := m["blocks"].([]object)
	var lines []string
	for i, s := range a.Sources {
		lines = append(lines, fmt.Sprintf("[%d] %s", i+1, link(s.URL, cmp.Or(s.Title, s.URL))))
	}
	for _, c := range a.Cards {
		lines = append(lines, "See also "+link(c.URL, cmp.Or(c.Title, c.URL)))
	}
	if list := pieces(strings.Join(lines, "\n")); len(list) > 0 {
		blocks = append(blocks, section(list[0]))
	}
	if buttons {
		blocks = append(blocks, object{"type": "actions", "elements": []object{
			{"type": "button", "action_id": "docent_up", "text": plain("Helpful"), "value": chatapp.Rated(true, a)},
			{"type": "button", "action_id": "docent_down", "text": plain("Not helpful"), "value": chatapp.Rated(false, a)}}})
	}
	m["blocks"] = blocks
	return m
}
