package site

import (
	"cmp"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"

	"docent/api"
	"docent/site/anchor"
	"docent/site/expand"
	"docent/site/markup"
)

// origin sets the address of the site as a file states it. Addresses that come with an example say nothing.
func (s *Site) setOrigin(file, key, address string) {
	address = strings.TrimSpace(address)
	if address == "" {
		return
	}
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil {
		return
	}
	host := strings.ToLower(u.Hostname())
	for _, example := range []string{"example.com", "example.org", "example.net", "localhost"} {
		if host == example || strings.HasSuffix(host, "."+example) {
			s.warn(file, "%s is %s, which is only an example", key, address)
			return
		}
	}
	u.RawQuery, u.Fragment = "", ""
	s.origin, s.stated = strings.TrimRight(u.String(), "/"), key+" in "+path.Join(s.docsDir, file)
}

// Address is the public URL of the documentation folder, without a slash at the end, and what says so. Both are empty
// if nobody does.
func (s *Site) Address() (address, from string) {
	if s.project.SiteURL != "" {
		return strings.TrimRight(s.project.SiteURL, "/"), "--site-url"
	}
	if s.origin == "" {
		return "", ""
	}
	below := s.Below()
	if below == "" {
		return s.origin, s.stated
	}
	return s.origin + (&url.URL{Path: "/" + below}).EscapedPath(), s.stated
}

// Below is the documentation folder's place on the site, of which it may be a part.
func (s *Site) Below() string {
	below := ""
	switch s.Kind {
	case api.SiteCollected:
		return "" // the origin is that of the addresses
	case api.SiteDocusaurus:
		for _, p := range s.plugins {
			if s.docsDir == p.folder || strings.HasPrefix(s.docsDir, p.folder+"/") {
				below = path.Join(p.route, p.versionPath("current"), WithoutNumbers(strings.TrimPrefix(s.docsDir, p.folder)))
			}
		}
	case api.SiteHugo:
		if t, rel, ok := s.treeOf("x.md"); ok {
			if s.docsDir == t.folder || strings.HasPrefix(s.docsDir, t.folder+"/") {
				below = path.Join(t.language, t.mounted, strings.ToLower(path.Dir("/"+rel)))
			}
			break
		}
		fallthrough
	default:
		if s.content != "" && strings.HasPrefix(s.docsDir, s.content+"/") {
			below = strings.TrimPrefix(s.docsDir, s.content+"/")
		} else if s.content == "" {
			below = s.docsDir
		}
	}
	return strings.Trim(below, "/.")
}

// LinkBase is the path, without slashes at its ends, that the generator puts before a link that begins with a slash; ok
// is false if it leaves such links as they are, so that they lead to the root of the host.
func (s *Site) LinkBase() (base string, ok bool) {
	switch s.Kind {
	case api.SiteNext:
		return s.base, s.base != ""
	case api.SiteDocusaurus, api.SiteVitePress:
		if s.base != "" {
			return s.base, true
		}
		fallthrough
	case api.SiteMintlify:
		address := cmp.Or(s.origin, s.project.SiteURL)
		if u, err := url.Parse(address); err == nil {
			return strings.Trim(u.Path, "/"), true
		}
		return "", true
	}
	return "", false
}

// Templates are the kinds of templates that the generator replaces in pages. Of a site whose generator is not known
// they are all: what is not told is not shown.
func (s *Site) Templates() markup.Templates {
	switch s.Kind {
	case api.SiteHugo, api.SiteQuarto:
		return markup.Shortcodes
	case api.SiteMkDocs:
		if s.macros {
			return markup.Values | markup.Tags | markup.Attributes
		}
		return markup.Attributes
	case api.SiteStarlight, api.SiteCollected, api.SiteSphinx, api.SiteAntora, api.SiteFern, api.SiteWiki, api.SiteMdBook:
		return 0
	case api.SiteJekyll:
		return markup.Values | markup.Tags | markup.Attributes
	case api.SiteGitBook:
		return markup.Values | markup.Tags
	case api.SiteVitePress, api.SiteDocusaurus, api.SiteMintlify, api.SiteNext:
		return markup.Values
	}
	return markup.Shortcodes | markup.Values | markup.Tags
}

// Redirects reports whether the site sends readers of an address elsewhere.
func (s *Site) Redirects(address string) bool {
	return slices.ContainsFunc(s.redirects,
		func(re *regexp.Regexp) bool { return re.MatchString(strings.Trim(address, "/")) })
}

var parameter = regexp.MustCompile(`:(\w+)([*+?]?)`)

// routePattern compiles a path with parameters, as in "packages/:name/src/:rest*"; nil if it holds more than these.
func routePattern(from string) *regexp.Regexp {
	if strings.ContainsAny(from, "(){}") {
		return nil
	}
	pattern, at := "", 0
	for _, m := range parameter.FindAllStringSubmatchIndex(from, -1) {
		part := `[^/]+?`
		switch from[m[4]:m[5]] {
		case "*":
			part = `.*`
		case "+":
			part = `.+`
		}
		pattern += regexp.QuoteMeta(from[at:m[0]]) + "(?P<" + from[m[2]:m[3]] + ">" + part + ")"
		at = m[1]
	}
	re, err := regexp.Compile("^" + pattern + strings.ReplaceAll(regexp.QuoteMeta(from[at:]), `\*`, `.*`) + "$")
	if err != nil {
		return nil
	}
	return re
}

// Anchors are the anchors that the site's generator gives the headings of one page, in their order.
func (s *Site) Anchors(headings []markup.Heading) []string {
	return anchor.Of(s.Kind, s.anchors).Anchors(headings)
}

// AnchorRule names the rule of the anchors: if it is the same as before, so are they.
func (s *Site) AnchorRule() string { return anchor.Of(s.Kind, s.anchors).Name }

// Withholds reports whether no page may show the text of a file: the project leaves it out, or a .mintignore does.
func (s *Site) Withholds(full string) bool {
	p, ok := Relative(s.docsDir, full)
	if !ok {
		return false
	}
	if by := s.exclude.LastAsGit(p); by != nil && !by.Keep {
		return true
	}
	rel, ok := s.inside(p)
	by := s.ignored.LastAsGit(rel)
	return ok && s.Kind == api.SiteMintlify && by != nil && !by.Keep
}

// Listed is what the file that lists the site's pages says of one.
func (s *Site) Listed(p string) (Place, bool) {
	at, ok := s.listed[p]
	if !ok || at.title == "" {
		return Place{}, false
	}
	return Place{Names: []string{at.title}, Hidden: at.hidden, Seq: at.seq}, true
}

// Rules are what the site's settings say of the text of its pages.
func (s *Site) Rules() *expand.Rules { return &s.rules }
