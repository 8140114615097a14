package search

import (
	"fmt"
	"strings"
	"testing"

	"docent/api"
)

// What a page for some readers is called, and what its links say, is told by no page that others read: not in the line of
// folders above it, not in lists, and not by what it is found with.
func TestTheTitleOfARestrictedPageIsOnNoOther(t *testing.T) {
	const secret, title, linked = "swordfish", "Zanzibar plan", "leviathan launch"
	front := func(groups, title string) string {
		return fmt.Sprintf("---\ntitle: %s\ngroups: [%s]\n---\n\n", title, groups)
	}
	above := front("staff", title) + "The " + secret + ", and [" + linked + "](child.md).\n"
	child := "---\ntitle: Child\n---\n\nThe goats graze.\n"
	for name, files := range map[string]map[string]string{
		"Hugo": {"hugo.toml": "baseURL = 'https://x.dev/'\n", "content/_index.md": "# Home\n", "content/plan/_index.md": above,
			"content/plan/child.md": child},
		"Docusaurus": {"docusaurus.config.js": "module.exports={url:'https://x.dev',baseUrl:'/'}", "docs/index.md": "# Home\n", "docs/plan/index.md": above,
			"docs/plan/child.md": child},
		"Jekyll": {"_config.yml": "title: x\ntheme: just-the-docs\n", "index.md": "---\ntitle: Home\n---\n", "plan.md": above,
			"between.md": "---\ntitle: Between\nparent: " + title + "\n---\n", "child.md": "---\ntitle: Child\nparent: Between\n---\n\nThe goats graze.\n"},
		"Antora": {"antora.yml": "name: x\nversion: ~\nnav:\n- modules/ROOT/nav.adoc\n", "modules/ROOT/nav.adoc": "* xref:plan.adoc[]\n** xref:child.adoc[]\n",
			"modules/ROOT/pages/plan.adoc":  "= " + title + "\n:page-groups: staff\n\n" + secret + " xref:child.adoc[" + linked + "]\n",
			"modules/ROOT/pages/child.adoc": "= Child\n\nThe goats graze.\n"},
		"Sphinx": {"conf.py": "project = 'x'\n", "index.rst": "Home\n====\n\n.. toctree::\n\n   plan\n",
			"plan.rst":  ":groups: staff\n\n" + title + "\n=============\n\n" + secret + " :doc:`" + linked + " <child>`\n\n.. toctree::\n\n   child\n",
			"child.rst": "Child\n=====\n\nThe goats graze.\n"},
	} {
		t.Run(name, func(t *testing.T) {
			l := openTest(t, Options{})
			p := api.Project{ID: "p"}
			tree := &memTree{commit: "a", files: files}
			mustUpdate(t, l, p, tree)
			look := func() {
				t.Helper()
				for _, query := range []string{"goats graze", title, linked, secret} {
					hits := mustSearch(t, l, p.ID, Query{Text: query})
					if said := fmt.Sprintf("%+v", hits); strings.Contains(said, title) || strings.Contains(said, linked) || strings.Contains(said, secret) {
						t.Errorf("%q finds %s", query, said)
					}
					if query == linked && len(hits) > 0 {
						t.Errorf("the words of a restricted link find %s", hits[0].Path)
					}
				}
				if hits := mustSearch(t, l, p.ID, Query{Text: "goats graze"}); len(hits) == 0 {
					t.Error("the open page is not found")
				}
				if hits := mustSearch(t, l, p.ID, Query{Text: secret, Filter: Filter{Groups: []string{"staff"}}}); len(hits) == 0 {
					t.Error("the staff does not find its page")
				}
				list, err := l.Published(t.Context(), p.ID)
				if said := fmt.Sprintf("%+v", list); err != nil || strings.Contains(said, title) {
					t.Errorf("the list says %s, %v", said, err)
				}
			}
			look()
			// A page that was open is closed later, and nothing else changes.
			for path, text := range files {
				if strings.Contains(text, secret) {
					files[path] = strings.NewReplacer("groups: [staff]\n", "", ":page-groups: staff\n", "", ":groups: staff\n\n", "").Replace(text)
					tree.commit = "b"
					mustUpdate(t, l, p, tree)
					files[path] = text
				}
			}
			tree.commit = "c"
			mustUpdate(t, l, p, tree)
			look()
		})
	}
}
