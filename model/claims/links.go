package claims

import (
	"net/url"
	"regexp"
	"strings"
	"unicode"
)

// Places are where an answer may lead.
type Places struct {
	addresses map[string]bool // as they stand in passages
	sites     map[string]bool // hosts of the site
	paths     map[string]bool // of the site's pages
}

var addressed = regexp.MustCompile(`(?i)\b(?:https?://|www\.|mailto:)[^\s<>"'` + "`" + `\\\]]+`)
var targets = regexp.MustCompile(`\]\(\s*<?([^\s)>]+)`)
var mails = regexp.MustCompile(`[\p{L}\p{N}._%+-]+@[\p{L}\p{N}-]+(?:\.[\p{L}\p{N}-]+)+`)

// Page allows links to a page of the site, and to all of its host.
func (p *Places) Page(address string) {
	p.init()
	u, err := url.Parse(address)
	if err != nil || address == "" {
		return
	}
	if u.Host != "" {
		p.sites[strings.ToLower(u.Host)] = true
	}
	p.paths[strings.TrimRight(u.Path, "/")] = true
	p.addresses[bareAddress(address)] = true
}

// Text allows links to the addresses that a text has, each as it stands.
func (p *Places) Text(text string) {
	p.init()
	for _, a := range addressed.FindAllString(text, -1) {
		p.addresses[bareAddress(a)] = true
	}
	for _, m := range targets.FindAllStringSubmatch(text, -1) {
		p.addresses[bareAddress(m[1])] = true
	}
	for _, m := range mails.FindAllString(text, -1) {
		p.addresses[bareAddress("mailto:"+m)] = true
	}
}

func (p *Places) init() {
	if p.addresses == nil {
		p.addresses, p.sites, p.paths = map[string]bool{}, map[string]bool{}, map[string]bool{}
	}
}

// bareAddress is an address without what it may have or lack.
func bareAddress(a string) string {
	a = strings.TrimRight(strings.Trim(a, "<>"), ".,;:!?)*_")
	a, _, _ = strings.Cut(a, "#")
	if i := strings.Index(a, "://"); i > 0 {
		rest := a[i+3:]
		host, path, _ := strings.Cut(rest, "/")
		a = strings.ToLower(a[:i]+"://"+host) + "/" + path
	} else if strings.HasPrefix(strings.ToLower(a), "mailto:") || strings.HasPrefix(strings.ToLower(a), "www.") {
		a = strings.ToLower(a)
	}
	return strings.TrimRight(a, "/")
}

// link reports whether the answer may lead to an address.
func (p *Places) link(address string) bool {
	p.init()
	if strings.ContainsFunc(address, func(r rune) bool { return unicode.IsControl(r) || r == '\\' }) {
		return false
	}
	u, err := url.Parse(strings.Trim(address, "<>"))
	if err != nil || u.User != nil {
		return false
	}
	if p.addresses[bareAddress(address)] && !program(address) {
		return true
	}
	switch strings.ToLower(u.Scheme) {
	case "http", "https":
		return p.sites[strings.ToLower(u.Host)] && u.RawQuery == ""
	case "":
		return u.Host == "" && u.RawQuery == "" && u.Path != "" && p.paths[strings.TrimRight(u.Path, "/")]
	}
	return false
}

// program reports whether an address is none that leads somewhere, but does something.
func program(address string) bool {
	low := strings.ToLower(strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || unicode.IsControl(r) {
			return -1
		}
		return r
	}, address))
	return strings.HasPrefix(low, "javascript:") || strings.HasPrefix(low, "data:") || strings.HasPrefix(low, "vbscript:")
}

var (
	tags       = regexp.MustCompile(`(?is)<!--.*?(?:-->|$)|</?[a-z][a-z0-9-]*(?:\s[^<>]*)?/?>|<[a-z][a-z0-9-]*\s[^<>]*=[^<>]*$`)
	reference  = regexp.MustCompile(`^\s*\[[^\]]+\]:\s*\S+`)
	elements   = set("a abbr area article aside audio b base blockquote body br button canvas caption center code details div dl dt dd em embed fieldset font footer form frame frameset h1 h2 h3 h4 h5 h6 head header hr html i iframe img input kbd label li link main map marquee math meta nav noscript object ol option p param picture pre s script section select small source span strong style sub summary sup svg table tbody td template textarea tfoot th thead title tr track u ul video")
	autolinked = regexp.MustCompile("(?i)(?:https?://|ftp://|www\\.)[^\\s<>`\"]+|[\\p{L}\\p{N}._%+-]+@[\\p{L}\\p{N}-]+(?:\\.[\\p{L}\\p{N}-]+)+")
)

// Clean leaves of a sentence's links those that lead where the answer may lead: others become text, images that no
// passage shows and elements of HTML go, and so do invisible characters. It says what it changed.
func (p *Places) Clean(text string, coded bool) (clean string, changed []string) {
	text = Visible(text)
	if coded {
		return text, nil
	}
	var out strings.Builder
	note := func(what string) { changed = append(changed, what) }
	if reference.MatchString(text) && !strings.HasPrefix(text, "[^") {
		return "", append(changed, text)
	}
	for text != "" {
		at := strings.IndexAny(text, "`[")
		if at < 0 {
			out.WriteString(p.bare(text, note))
			break
		}
		if at > 0 && text[at] == '[' && text[at-1] == '!' {
			at--
		}
		out.WriteString(p.bare(text[:at], note))
		text = text[at:]
		switch {
		case text[0] == '`':
			n := spanEnd(text)
			out.WriteString(text[:n])
			text = text[n:]
		default:
			n, label, address := linkAt(text)
			switch {
			case n == 0:
				skip := strings.IndexByte(text, '[') + 1
				out.WriteString(text[:skip])
				text = text[skip:]
				continue
			case text[0] == '!':
				if p.addresses[bareAddress(address)] && !program(address) {
					out.WriteString(text[:n])
				} else {
					note(text[:n])
				}
			case p.link(address):
				out.WriteString(text[:n])
			default:
				note(text[:n])
				inner, more := p.Clean(label, false)
				out.WriteString(inner)
				changed = append(changed, more...)
			}
			text = text[n:]
		}
	}
	return out.String(), changed
}

// spanEnd is where a code span that begins the text ends; the text's end if it is not closed in it.
func spanEnd(text string) int {
	ticks := len(text) - len(strings.TrimLeft(text, "`"))
	rest := text[ticks:]
	for at := 0; ; {
		i := strings.Index(rest[at:], text[:ticks])
		if i < 0 {
			return ticks // none is opened
		}
		at += i
		run := len(rest[at:]) - len(strings.TrimLeft(rest[at:], "`"))
		if run == ticks {
			return ticks + at + run
		}
		at += run
	}
}

// maxNested bounds how far a link's text is read.
const longestLabel = 1000

// linkAt reads a link or an image at the start of a text: how long it is, its text, its address. A link by reference
// has none; what it refers to is never written by an answer.
func linkAt(text string) (n int, label, address string) {
	start := strings.IndexByte(text, '[')
	depth, end := 0, -1
	for i := start; i < min(len(text), start+longestLabel) && end < 0; i++ {
		switch text[i] {
		case '\\':
			i++
		case '[':
			depth++
		case ']':
			if depth--; depth == 0 {
				end = i
			}
		}
	}
	if end < 0 || end+1 >= len(text) || text[end+1] != '(' {
		return 0, "", ""
	}
	label = text[start+1 : end]
	depth = 0
	for i := end + 1; i < min(len(text), end+2*longestLabel); i++ {
		switch text[i] {
		case '\\':
			i++
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				address, _, _ = strings.Cut(strings.TrimSpace(text[end+2:i]), " ")
				if a, _, ok := strings.Cut(address, "\n"); ok {
					address = a
				}
				return i + 1, label, strings.Trim(address, "<>")
			}
		}
	}
	// An address that does not end in this sentence.
	return len(text), label, ""
}

// bare cleans running text without links in brackets.
func (p *Places) bare(text string, note func(string)) string {
	text = tags.ReplaceAllStringFunc(text, func(tag string) string {
		name := strings.ToLower(strings.TrimLeft(tag, "</"))
		if at := strings.IndexFunc(name, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }); at >= 0 {
			name = name[:at]
		}
		if strings.HasPrefix(tag, "<!--") || elements[name] || strings.Contains(tag, "=") {
			if name != "br" && name != "kbd" && name != "sub" && name != "sup" || strings.Contains(tag, "=") {
				note(tag)
				return ""
			}
		}
		return tag // such as <name>, which stands for a name
	})
	return autolinked.ReplaceAllStringFunc(text, func(a string) string {
		address := a
		tail := ""
		if cut := strings.TrimRight(a, ".,;:!?)*_'"); cut != a {
			address, tail = cut, a[len(cut):]
		}
		full := address
		switch {
		case !strings.Contains(address, "://") && strings.Contains(address, "@"):
			full = "mailto:" + address
		case strings.HasPrefix(strings.ToLower(address), "www."):
			full = "http://" + address
			if p.link("https://" + address) {
				return a
			}
		}
		if p.link(full) || p.link(address) {
			return a
		}
		note(address)
		return "`" + address + "`" + tail
	})
}

// Visible leaves out the characters that a reader cannot see and that can hide text or turn it around.
func Visible(s string) string {
	if strings.IndexFunc(s, hidden) < 0 {
		return s
	}
	return strings.Map(func(r rune) rune {
		if hidden(r) {
			return -1
		}
		return r
	}, s)
}

func hidden(r rune) bool {
	switch {
	case r < 0x80:
		return r < ' ' && r != '\n' && r != '\t' && r != '\r' || r == 0x7F
	case r == 0x200D || r == 0x200C: // they join and part letters of some scripts and emoji
		return false
	case r >= 0x80 && r < 0xA0, r == 0xAD, r == 0x180E, r == 0xFEFF, r >= 0x200B && r <= 0x200F, r >= 0x202A && r <= 0x202E,
		r >= 0x2060 && r <= 0x206F, r >= 0xE0000 && r <= 0xE0FFF, r >= 0xFFF9 && r <= 0xFFFB:
		return true
	case r >= 0xFE00 && r <= 0xFE0E, r >= 0xE0100 && r <= 0xE01EF:
		return true
	}
	return false
}
