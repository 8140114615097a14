package blocks

import (
	"net/url"
	"path"
	"strings"

	"docent/model"
)

// resolve makes the destination of a link on a page absolute; empty if nothing sensible can be said.
func resolve(p *model.Passage, dest string) string {
	u, err := url.Parse(dest)
	if err != nil || dest == "" {
		return ""
	}
	switch u.Scheme {
	case "http", "https", "mailto":
		return dest
	case "":
	default:
		return ""
	}
	base, err := url.Parse(p.URL)
	if err != nil || p.URL == "" {
		return ""
	}
	base.Fragment = ""
	if u.Host == "" && u.Path == "" {
		if u.Fragment == "" {
			return ""
		}
		base.Fragment = u.Fragment
		return base.String()
	}
	target := u.Path
	ext := path.Ext(target)
	switch ext {
	case ".md", ".mdx", ".markdown", ".html":
	case "":
		if !strings.HasPrefix(target, "/") && !strings.HasPrefix(target, ".") {
			return ""
		}
	default:
		return ""
	}
	target = strings.TrimSuffix(target, ext)
	if !strings.HasPrefix(target, "/") {
		// Relative links are relative to the file. They can be followed if the page's address ends in its path.
		own := strings.TrimSuffix(p.Path, path.Ext(p.Path))
		own = strings.TrimSuffix(strings.TrimSuffix(own, "/index"), "/README")
		at := strings.TrimSuffix(base.Path, "/")
		prefix, ok := strings.CutSuffix(at, own)
		if !ok {
			return ""
		}
		joined := path.Join(path.Dir(p.Path), target)
		if strings.HasPrefix(joined, "..") {
			return ""
		}
		target = strings.TrimSuffix(prefix, "/") + "/" + joined
	}
	target = strings.TrimSuffix(strings.TrimSuffix(target, "/index"), "/README")
	base.Path, base.RawPath, base.RawQuery, base.Fragment = target, "", u.RawQuery, u.Fragment
	return base.String()
}
