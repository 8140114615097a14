package pages

import (
	"strings"

	"docent/agent/say"
	"docent/api"
	"docent/markup"
)

// Compose writes a new page in the manner of the site's other pages.
func (s *Site) Compose(f, title, description, content string) ([]byte, error) {
	all, err := s.All()
	if err != nil {
		return nil, err
	}
	front, quoted, toml, crlf := 0, 0, 0, 0
	for _, p := range all {
		if EOL(p.Src) == "\r\n" {
			crlf++
		}
		if _, ok := p.Front.Values["title"]; !ok {
			continue
		}
		front++
		if p.Front.Kind == "toml" {
			toml++
		}
		if at, ok := p.FrontValue("title"); ok && at.Start < at.End && p.Src[at.Start] == '"' {
			quoted++
		}
	}
	body := strings.Trim(strings.ReplaceAll(content, "\r\n", "\n"), "\n")
	if p := markup.Parse(f, []byte(body)); p.Front.Kind != "" {
		return nil, say.Refuse("the content has front matter of its own; give title and description in the instruction")
	}
	var b strings.Builder
	escape := strings.NewReplacer(`\`, `\\`, `"`, `\"`)
	switch {
	case s.Generator.Kind != api.SiteMintlify && len(all) > 0 && front*2 < len(all) && description == "":
		if !strings.HasPrefix(body, "# ") {
			b.WriteString("# " + title + "\n\n")
		}
	case toml*2 > front:
		b.WriteString("+++\ntitle = \"" + escape.Replace(title) + "\"\n")
		if description != "" {
			b.WriteString("description = \"" + escape.Replace(description) + "\"\n")
		}
		b.WriteString("+++\n\n")
	default:
		p := markup.Parse(f, []byte("---\n---\n"))
		set := func(key, value string) error {
			if quoted*2 >= front || s.Generator.Kind == api.SiteMintlify {
				at := p.Front.Body.End
				out, err := markup.Apply(p.Src, []markup.Edit{{Span: markup.Span{Start: at, End: at},
					New: []byte(key + ": \"" + escape.Replace(value) + "\"\n")}})
				if err != nil {
					return err
				}
				p = markup.Parse(f, out)
				return nil
			}
			edits, err := p.SetFront(key, value)
			if err != nil {
				return say.Refuse("%v", err)
			}
			out, err := markup.Apply(p.Src, edits)
			p = markup.Parse(f, out)
			return err
		}
		if err := set("title", title); err != nil {
			return nil, err
		}
		if description != "" {
			if err := set("description", description); err != nil {
				return nil, err
			}
		}
		b.Write(p.Src)
		b.WriteString("\n")
	}
	out := strings.TrimRight(b.String()+body, "\n") + "\n"
	if crlf*2 > len(all) {
		out = strings.ReplaceAll(out, "\n", "\r\n")
	}
	return []byte(out), nil
}
