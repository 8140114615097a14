package index

import (
	"cmp"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"docent/api"
	"docent/internal/brief"
)

// titleKeys maps a generator to the key of its configuration that holds the site's title.
var titleKeys = map[api.SiteKind]string{api.SiteMintlify: "name", api.SiteDocusaurus: "title", api.SiteVitePress: "title", api.SiteHugo: "title",
	api.SiteMkDocs: "site_name", api.SiteStarlight: "title", api.SiteMdBook: "title", api.SiteJekyll: "title", api.SiteSphinx: "project",
	api.SiteAntora: "title", api.SiteQuarto: "title"}

// aboutKeys maps a generator to the keys of its configuration that may say what the site is about.
var aboutKeys = map[api.SiteKind][]string{api.SiteDocusaurus: {"tagline"}, api.SiteMkDocs: {"site_description"}}

var (
	titleLine = regexp.MustCompile(`(?m)^([ \t]*)["']?(\w+)["']?[ \t]*[:=][ \t]*u?(?:"([^"\n]+)"|'([^'\n]+)'|([^\s"'#{[<$&*!|>%@][^\n]*?)[ \t]*(?:[ \t]#[^\n]*)?$)`)
	ofDocs    = regexp.MustCompile(`(?i)\s+(?:[|–—-]\s.*|documentation|docs|website|handbook|manual|user guide|wiki)$`)
)

const longestTitle = 40 // characters; a longer one is a sentence

// outermost is the text of a key of a configuration: of the outermost, and of these the first, whether it can be read or not.
func outermost(file string, config []byte, keys ...string) string {
	best, margin := "", -1
	plain := strings.HasPrefix(path.Ext(file), ".y") // YAML, where a text needs no quotation marks
	for _, m := range titleLine.FindAllStringSubmatch(string(config), 1000) {
		if !slices.Contains(keys, m[2]) || margin >= 0 && len(m[1]) >= margin {
			continue
		}
		best, margin = cmp.Or(m[3], m[4]), len(m[1])
		if plain {
			best = cmp.Or(best, m[5])
		}
	}
	return best
}

// longestAbout is how many characters of what a site says of itself are kept.
const longestAbout = 500

// aboutOf is what a site's configuration says that it is about; empty if it does not.
func aboutOf(kind api.SiteKind, file string, config []byte) string {
	keys := aboutKeys[kind]
	if keys == nil {
		keys = []string{"description"}
	}
	about := brief.Line(outermost(file, config, keys...))
	if strings.Contains(about, "{{") {
		return ""
	}
	return brief.Runes(about, longestAbout, "…")
}

// titleOf is what a site's configuration calls the product; empty if it does not say.
func titleOf(kind api.SiteKind, file string, config []byte) string {
	best := outermost(file, config, titleKeys[kind])
	if namesNothing(best) || strings.ContainsFunc(best, unicode.IsControl) {
		return ""
	}
	for before := "\n"; before != best; { // no title has a line break
		before, best = best, strings.TrimSpace(ofDocs.ReplaceAllString(strings.TrimSpace(best), ""))
	}
	if utf8.RuneCountInString(best) > longestTitle || namesNothing(best) || strings.Contains(best, "{{") {
		return ""
	}
	return best
}

func namesNothing(title string) bool {
	return slices.Contains(noTitles, strings.ToLower(strings.TrimSpace(title)))
}

// noTitles name no product.
var noTitles = []string{"documentation", "docs", "my docs", "my site", "home", "website", "true", "false"}
