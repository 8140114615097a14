package search

import (
	"path"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v4"
)

var headRE = regexp.MustCompile(`^(#{1,6})\s+(.*?)\s*#*\s*$`)
var idRE = regexp.MustCompile(`\s*\{\s*#([^}\s]+)\s*\}\s*$`)
var linkRE = regexp.MustCompile(`!?\[([^\]]*)\]\(([^)\s]*)[^)]*\)`)
var tagRE = regexp.MustCompile(`</?[A-Za-z][^>]*>`)
var attrRE = regexp.MustCompile(`(?:title|label|description|summary|alt|tip|caption)="([^"]*)"`)

// readSource reads a page of Markdown, line by line.
func readSource(r *record, content []byte) *source {
	src := &source{}
	r.Links, r.Imports = nil, nil
	text := string(content)
	var front map[string]any
	if strings.HasPrefix(text, "---\n") {
		if end := strings.Index(text[4:], "\n---"); end >= 0 {
			yaml.Unmarshal([]byte(text[4:4+end]), &front)
			nl := strings.IndexByte(text[4+end+1:], '\n')
			if nl < 0 {
				r.Body = int64(len(text))
			} else {
				r.Body = int64(4 + end + 1 + nl + 1)
			}
		}
	}
	str := func(k string) string { s, _ := front[k].(string); return s }
	list := func(k string) (out []string) {
		switch v := front[k].(type) {
		case string:
			return strings.Split(v, ",")
		case []any:
			for _, x := range v {
				if s, ok := x.(string); ok {
					out = append(out, s)
				}
			}
		}
		return
	}
	r.Title = str("title")
	r.Description = str("description")
	r.Keywords = list("keywords")
	r.Tags = list("tags")
	r.Groups = list("groups")
	r.Version, r.Language = str("version"), str("language")
	if b, _ := front["hidden"].(bool); b {
		r.Hidden = true
	}
	src.names = nil
	if s := str("sidebarTitle"); s != "" {
		r.Keywords = append(r.Keywords, s)
	}
	if s := str("linkTitle"); s != "" {
		r.Keywords = append(r.Keywords, s)
	}
	cur := section{start: int(r.Body)}
	var body, code strings.Builder
	fence := ""
	pos := int(r.Body)
	trail := [7]string{}
	flush := func(end int) {
		cur.end = end
		cur.body, cur.code = body.String(), code.String()
		src.sections = append(src.sections, cur)
		body.Reset()
		code.Reset()
	}
	for _, line := range strings.SplitAfter(text[r.Body:], "\n") {
		start := pos
		pos += len(line)
		t := strings.TrimSpace(line)
		if fence != "" {
			if strings.HasPrefix(t, fence) {
				fence = ""
			} else {
				code.WriteString(line)
			}
			continue
		}
		if strings.HasPrefix(t, "```") || strings.HasPrefix(t, "~~~") {
			n := 0
			for n < len(t) && t[n] == t[0] {
				n++
			}
			fence = t[:n]
			continue
		}
		if strings.HasPrefix(t, "import ") && strings.Contains(t, "from") {
			continue
		}
		if m := headRE.FindStringSubmatch(t); m != nil {
			lvl := len(m[1])
			h := m[2]
			anchor := ""
			if id := idRE.FindStringSubmatch(h); id != nil {
				anchor = id[1]
				h = idRE.ReplaceAllString(h, "")
			}
			h = linkRE.ReplaceAllString(h, "$1")
			h = strings.NewReplacer("`", "", "**", "").Replace(h)
			if anchor == "" {
				anchor = slug(h)
			}
			if lvl == 1 {
				if r.Title == "" {
					r.Title = h
				}
				body.WriteString(h + "\n")
				continue
			}
			if lvl <= 4 {
				flush(start)
				trail[lvl] = h
				for k := lvl + 1; k < 7; k++ {
					trail[k] = ""
				}
				var tr []string
				for k := 2; k < lvl; k++ {
					if trail[k] != "" {
						tr = append(tr, trail[k])
					}
				}
				cur = section{heading: h, anchor: anchor, level: lvl, trail: tr, start: start}
				continue
			}
		}
		for _, m := range linkRE.FindAllStringSubmatch(line, -1) {
			to := m[2]
			if strings.Contains(to, "://") || strings.HasPrefix(to, "#") || strings.HasPrefix(m[0], "!") {
				continue
			}
			if i := strings.IndexAny(to, "#?"); i >= 0 {
				to = to[:i]
			}
			if !strings.HasPrefix(to, "/") {
				to = path.Join(path.Dir(r.Path), to)
			}
			r.Links = append(r.Links, link{To: pageKey(to), Text: m[1]})
		}
		line = linkRE.ReplaceAllString(line, "$1")
		line = tagRE.ReplaceAllStringFunc(line, func(s string) string {
			out := " "
			for _, m := range attrRE.FindAllStringSubmatch(s, -1) {
				out += m[1] + " "
			}
			return out
		})
		body.WriteString(line)
	}
	flush(len(text))
	if r.Title == "" {
		r.Title = strings.NewReplacer("-", " ", "_", " ").Replace(path.Base(pageKey(r.Path)))
	}
	return src
}

func slug(h string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(h) {
		switch {
		case r == ' ':
			b.WriteByte('-')
		case r == '-' || r == '_' || r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r > 127:
			b.WriteRune(r)
		}
	}
	return b.String()
}

func (s *source) include(string, []byte) {}

func readNavigation(string, []byte, func(page, name string)) {}
