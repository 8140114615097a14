package markup_test

import (
	"maps"
	"strings"
	"testing"

	"docent/bench/corpora"
)

// sets are the pages of the real documentation sets that lie beside a checkout, by set and path.
func sets(t testing.TB) map[string]corpora.Tree {
	t.Helper()
	sets := map[string]corpora.Tree{}
	for _, name := range []string{"mintlify", "vite", "prometheus"} {
		sets[name+"-docs"] = corpora.Site(t, name)
		maps.DeleteFunc(sets[name+"-docs"], func(path string, _ []byte) bool { return !isPage(path) })
	}
	return sets
}

func isPage(name string) bool {
	return strings.HasSuffix(name, ".md") || strings.HasSuffix(name, ".mdx")
}
