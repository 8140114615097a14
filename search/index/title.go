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
)

// titleKeys maps a generator to the key of its configuration that holds the site's title.
var titleKeys = map[api.SiteKind]string{api.SiteMintlify: "name", api.SiteDocusaurus: "title", api.SiteVitePress: "title", api.SiteHugo: "title",
	api.SiteMkDocs: "site_name", api.SiteStarlight: "title", api.SiteMdBook: "title", api.SiteJekyll: "title", api.SiteSphinx: "project",
	api.SiteAntora: "title"}

var (
	titleLine = regexp.MustCompile(`(?m)^([ \t]*)["']?(\w+)["']?[ \t]*[:=][ \t]*u?(?:"([^"\n]+)"|'([^'\n]+)'|([^\s"'#{[<$&*!|>%@][^\n]*?)[ \t]*(?:[ \t]#[^\n]*)?$)`)
	ofDocs    = regexp.MustCompile(`(?i)\s+(?:[|–—-]\s.*|documentation|docs|website|handbook|manual|user guide|wiki)$`)
)

const longestTitle = 40 // characters; a longer one is a sentence

// titleOf is what a site's configuration calls the product; empty if it does not say.
func titleOf(kind api.SiteKind, file string, config []byte) string {
	best, margin := "", -1
	plain := strings.HasPrefix(path.Ext(file), ".y") // YAML, where a text needs no quotation marks
	for _, m := range titleLine.FindAllStringSubmatch(string(config), 1000) {
		if m[2] != titleKeys[kind] || margin >= 0 && len(m[1]) >= margin {
			continue // the outermost, and of these the first, whether it can be read or not
		}
		best, margin = cmp.Or(m[3], m[4]), len(m[1])
		if plain {
			best = cmp.Or(best, m[5])
		}
	}
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
