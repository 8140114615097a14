package site

import (
	"slices"
	"strings"
	"testing"
)

// What stands within a sidebar is read with it, and not once more for each key of that name: a configuration of a
// quarter of a megabyte is read in one pass.
func TestASidebarWithinASidebarIsReadOnce(t *testing.T) {
	for _, c := range []struct{ file, src string }{
		{".vitepress/config.ts",
			"export default { themeConfig: { sidebar: [{ text: 'A', link: '/a' }, { text: 'B', items: [{ link: '/b' }], sidebar: [{ link: '/b' }] }] } }"},
		{"sidebars.js", "module.exports = { docs: ['/a', { type: 'category', label: 'B', items: ['/b'], customProps: { x: (y = { z: ['/b'] }) } }] }"},
	} {
		var got []string
		ReadNavigation(c.file, []byte(c.src), nil, func(page string, _ Place) {
			if !strings.HasPrefix(page, "docs/") {
				got = append(got, page)
			}
		})
		if !slices.Equal(got, []string{"/a", "/b"}) {
			t.Errorf("%s: %q", c.file, got)
		}
	}
	for _, part := range []string{"sidebar:[", "sidebar:{a:", "sidebar:("} {
		ReadNavigation(".vitepress/config.ts", []byte(strings.Repeat(part, 256<<10/len(part))), nil, func(string, Place) {})
	}
}
