package index

import (
	"cmp"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"docent/api"
)

// titleKeys are under which a generator's configuration says what the site is called.
var titleKeys = map[api.SiteKind]string{api.SiteMintlify: "name", api.SiteDocusaurus: "title", api.SiteVitePress: "title", api.SiteHugo: "title",
	api.SiteMkDocs: "site_name", api.SiteStarlight: "title", api.SiteMdBook: "title", api.SiteJekyll: "title", api.SiteSphinx: "project",
	api.SiteAntora: "title"}

var (
	titleLine = regexp.MustCompile(`(?m)^([ \t]*)["']?(\w+)["']?[ \t]*[:=][ \t]*u?(?:"([^"\n]+)"|'([^'\n]+)'|([^\s"'#{[<$&*!|>%@][^"'#\n]*))`)
	ofDocs    = regexp.MustCompile(`(?i)\s+(?:[|–—-]\s.*|documentation|docs|website|handbook|manual|user guide|wiki)$`)
)

const longestTitle = 40 // characters; a longer one is a sentence

// titleOf is what a site's configuration calls the product; empty if it does not say.
func titleOf(kind api.SiteKind, file string, config []byte) string {
	best, margin := "", -1
	plain := strings.HasPrefix(path.Ext(file), ".y") // YAML, where a text needs no quotation marks
	for _, m := range titleLine.FindAllStringSubmatch(string(config), 1000) {
		if m[2] == titleKeys[kind] && (plain || m[5] == "") && (margin < 0 || len(m[1]) < margin) { // the outermost, and of these the first
			best, margin = cmp.Or(m[3], m[4], m[5]), len(m[1])
		}
	}
	for before := " "; before != best; {
		before, best = best, strings.TrimSpace(ofDocs.ReplaceAllString(strings.TrimSpace(best), ""))
	}
	if utf8.RuneCountInString(best) > longestTitle || slices.Contains(noTitles, strings.ToLower(best)) || strings.Contains(best, "{{") {
		return ""
	}
	return best
}

// noTitles name no product.
var noTitles = []string{"documentation", "docs", "my docs", "my site", "home", "website", "true", "false"}
