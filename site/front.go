package site

import (
	"fmt"
	"strings"
	"time"

	"docent/site/markup"
	"docent/site/sidebar"
)

// Front is what a page's front matter says of whether the site shows the page.
type Front struct {
	_         struct{} `cbor:",toarray"`
	Has       bool     // there is front matter
	Draft     string   // the line that makes it a draft; empty if it is none
	Hidden    string   // the line that keeps it out of searches
	Shown     bool     // it says that it is not hidden
	Build     Build
	PublishAt int64 // seconds since 1970; 0 if it does not say
	ExpireAt  int64
	Date      int64 // of a post
	// of a post
	Categories []string
	Problem    string    // why the front matter does not parse
	Cascade    []Cascade // what it says of the pages below
	Sidebar    sidebar.Front
}

// Build is what Hugo's build options say; empty fields say nothing.
type Build struct {
	_      struct{} `cbor:",toarray"`
	Render string
	List   string
	Draft  string
}

// A Cascade is what a page says of the pages below it that match.
type Cascade struct {
	_     struct{} `cbor:",toarray"`
	Path  string
	Kind  string
	Lang  string
	Build Build
}

// ReadFront takes from a page's front matter what decides whether the site shows it. Names differ between generators.
func ReadFront(values map[string]any) Front {
	var f Front
	if len(values) == 0 {
		return f
	}
	for key, off := range map[string]string{"draft": "true", "published": "false"} {
		if saysBool(values[key], off) {
			f.Draft = key + ": " + off
		}
	}
	for _, k := range []struct{ key, off string }{{"hidden", "true"}, {"noindex", "true"}, {"unlisted", "true"},
		{"searchable", "false"}, {"search", "false"}, {"pagefind", "false"}, {"search_exclude", "true"}} {
		if saysBool(values[k.key], k.off) {
			f.Hidden = k.key + ": " + k.off
		}
	}
	if m, ok := values["search"].(map[string]any); ok && saysBool(m["exclude"], "true") {
		f.Hidden = "search.exclude: true"
	}
	f.Shown = saysBool(values["hidden"], "false")
	lower := lowerKeys(values)
	f.Build = readBuild(lower)
	f.Build.Draft = ""
	f.Date, f.Categories = readTime(lower, "date", "publishdate"), markup.FrontList(values, "categories", "category")
	f.PublishAt = readTime(lower, "publishdate", "pubdate", "published", "date")
	f.ExpireAt = readTime(lower, "expirydate", "unpublishdate")
	f.Cascade = readCascades(lower["cascade"])
	f.Sidebar = sidebar.ReadFront(values)
	return f
}

func saysBool(v any, want string) bool {
	switch v := v.(type) {
	case bool:
		return fmt.Sprint(v) == want
	case string:
		return strings.EqualFold(strings.TrimSpace(v), want)
	}
	return false
}

// lowerKeys is a map by the keys as Hugo compares them.
func lowerKeys(values map[string]any) map[string]any {
	out := make(map[string]any, len(values))
	for k, v := range values {
		out[strings.ToLower(k)] = v
	}
	return out
}

func readBuild(values map[string]any) (b Build) {
	for _, key := range []string{"_build", "build"} {
		m, ok := values[key].(map[string]any)
		if !ok {
			continue
		}
		m = lowerKeys(m)
		b.Render, b.List = "always", "always" // if they stand at all, nothing of them comes from above
		word := func(v any) string {
			switch s := strings.ToLower(strings.TrimSpace(fmt.Sprint(v))); s {
			case "false", "0":
				return "never"
			case "never", "link", "local":
				return s
			}
			return "always" // as Hugo reads whatever else stands there
		}
		if v, ok := m["render"]; ok {
			b.Render = word(v)
		}
		if v, ok := m["list"]; ok {
			b.List = word(v)
		}
	}
	if saysBool(values["headless"], "true") {
		b.Render, b.List = "never", "never"
	}
	if saysBool(values["draft"], "true") {
		b.Draft = "draft: true"
	}
	return b
}

const maxCascades = 100 // of one page: each is held against all pages below

// readCascades reads one set of values, or a list of sets with a target each.
func readCascades(v any) (out []Cascade) {
	switch v := v.(type) {
	case []any:
		for _, x := range v[:min(len(v), maxCascades)] {
			out = append(out, readCascades(x)...)
		}
	case []map[string]any: // as TOML gives it
		for _, x := range v[:min(len(v), maxCascades)] {
			out = append(out, readCascades(x)...)
		}
	case map[string]any:
		m := lowerKeys(v)
		c := Cascade{Build: readBuild(m)}
		for _, key := range []string{"_target", "target"} {
			if t, ok := m[key].(map[string]any); ok {
				t = lowerKeys(t)
				c.Path, _ = t["path"].(string)
				c.Kind, _ = t["kind"].(string)
				c.Lang, _ = t["lang"].(string)
				if env, ok := t["environment"].(string); ok && !strings.Contains(env, "*") && !strings.Contains(env, "production") {
					return nil
				}
			}
		}
		if c.Build != (Build{}) {
			out = append(out, c)
		}
	}
	return out
}

// readTime is the first of these keys that holds a time.
func readTime(values map[string]any, keys ...string) int64 {
	for _, k := range keys {
		switch v := values[k].(type) {
		case nil, bool:
		case time.Time:
			if !v.IsZero() {
				return v.Unix()
			}
		default:
			text := strings.TrimSpace(fmt.Sprint(v))
			for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02 15:04:05 -0700",
				"2006-01-02 15:04:05 -07:00", "2006-01-02 15:04:05", "2006-01-02 15:04", time.DateOnly,
				time.RFC1123Z, time.RFC1123, "02 Jan 2006", "2 January 2006"} {
				if t, err := time.Parse(layout, text); err == nil {
					return t.Unix()
				}
			}
		}
	}
	return 0
}

// ReadPage reads from a page's front matter what it says of its own address. Names differ between the generators.
func ReadPage(file string, values map[string]any) Page {
	p := Page{Path: file, Title: markup.FrontText(values, "title"), Categories: markup.FrontList(values, "categories", "category")}
	p.Date = readTime(lowerKeys(values), "publishdate", "pubdate", "published", "date")
	if slug := markup.FrontText(values, "slug"); !strings.Contains(slug, ":") {
		p.Slug = slug
	}
	if id := markup.FrontText(values, "id"); !strings.ContainsAny(id, ":/ ") {
		p.ID = id
	}
	switch address := markup.FrontText(values, "permalink", "url"); {
	case strings.HasPrefix(address, "https://"), strings.HasPrefix(address, "http://"):
		p.Address = address // which counts if a program has collected the page
	case address != "" && (!strings.Contains(address, ":") || address[0] == '/'): // with names in it: Jekyll's
		p.Address = "/" + strings.TrimPrefix(address, "/")
	}
	for _, alias := range markup.FrontList(values, "aliases", "redirect_from") {
		if strings.HasPrefix(alias, "/") {
			p.Aliases = append(p.Aliases, alias)
		}
	}
	return p
}
