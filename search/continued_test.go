package search

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"docent/search/index"
)

// A small change goes on with what the generation before has written, and makes the same as an index that is read from
// disk: what is known of pages, how rare words are, and what is found.
func TestASmallChangeGoesOnWithTheGenerationBefore(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := openIn(t, dir)
	tree := made(60, 0)
	mustUpdate(t, l, docs, tree)
	text := func() os.FileInfo {
		list := index.List(filepath.Join(dir, "docs"))
		info, err := os.Stat(filepath.Join(dir, "docs", list[len(list)-1], "text"))
		if err != nil {
			t.Fatal(err)
		}
		return info
	}
	first := text()
	for round := range 40 {
		p := madePath(round % 50)
		switch round % 4 {
		case 0:
			tree.files[p] = madePage(round%50, round+1)
		case 1:
			delete(tree.files, p)
		case 2:
			tree.files["docs/new/"+strings.TrimPrefix(p, "docs/")] = fmt.Sprintf("# Zebra %d\n\nA topic%d that crosses.\n\n## Stripes of round%d\n\nThey cross.\n", round, round, round)
		case 3:
			tree.files[p] = tree.files[p] + "\n## Zebra again\n\nMore of it.\n"
		}
		tree.commit = fmt.Sprint("commit-", round)
		mustUpdate(t, l, docs, tree)
		if round == 3 && !os.SameFile(first, text()) {
			t.Error("the file of texts was written as a whole for one page")
		}
		if round%5 == 0 || round == 39 {
			equalFromDisk(t, l, dir)
		}
	}
	if os.SameFile(first, text()) {
		t.Error("what is no more is kept for ever")
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	// What an update that was cut off has left behind the end is nobody's.
	for _, name := range []string{"text", "pages"} {
		list := index.List(filepath.Join(dir, "docs"))
		f, err := os.OpenFile(filepath.Join(dir, "docs", list[len(list)-1], name), os.O_WRONLY|os.O_APPEND, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString("left behind"); err != nil {
			t.Fatal(err)
		}
		f.Close()
	}
	l = openIn(t, dir)
	tree.files["docs/last.md"] = "# The last quokka\n"
	tree.commit = "last"
	if rep := mustUpdate(t, l, docs, tree); len(rep.Added) != 1 || len(rep.Modified)+len(rep.Removed) > 0 {
		t.Errorf("%+v", rep)
	}
	if hits := mustSearch(t, l, "docs", Query{Text: "quokka"}); len(hits) != 1 {
		t.Errorf("%d hits", len(hits))
	}
	equalFromDisk(t, l, dir)
}

func openIn(t *testing.T, dir string) *Library {
	l, err := Open(dir, Options{Log: quiet(), IdleAfter: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// equalFromDisk compares the index that is served with the same one as another process reads it.
func equalFromDisk(t *testing.T, l *Library, dir string) {
	t.Helper()
	served, err := l.acquire("docs")
	if err != nil {
		t.Fatal(err)
	}
	defer served.release()
	read, err := openSnapshot(served.Dir, l, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer read.close()
	if !reflect.DeepEqual(served.pages, read.pages) || !reflect.DeepEqual(served.sectionOf, read.sectionOf) {
		t.Errorf("what is known of %d pages is not what the disk holds of %d", len(served.pages), len(read.pages))
	}
	if !reflect.DeepEqual(served.naming, read.naming) || !reflect.DeepEqual(served.linksTo, read.linksTo) {
		t.Error("pages are found by other names, or lead to others, than the disk says")
	}
	if !reflect.DeepEqual(served.words, read.words) {
		t.Error("the dictionary is not the one that the disk holds")
	}
	if !reflect.DeepEqual(served.titleIDF, read.titleIDF) || !reflect.DeepEqual(served.headIDF, read.headIDF) {
		t.Error("words are as rare as they were before")
	}
	now, err1 := served.sectionKeys()
	then, err2 := read.sectionKeys()
	if err := errors.Join(err1, err2); err != nil || !slices.Equal(now, then) {
		t.Errorf("the keys of sections are not those of what they say (%v)", err)
	}
	for _, r := range served.pages {
		content, err := served.Content(r)
		if err != nil || !strings.Contains(string(content), "\n") {
			t.Errorf("%s: %v", r.Path, err)
		}
	}
}

// The keys of sections are made of the pages that changed: no other text is read for them.
func TestAChangeOfOnePageReadsNoOtherTexts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := openIn(t, dir)
	tree := made(20, 0)
	mustUpdate(t, l, docs, tree)
	keys := func() error {
		snap, err := l.acquire("docs")
		if err != nil {
			return err
		}
		defer snap.release()
		_, err = snap.sectionKeys()
		return err
	}
	if err := keys(); err != nil {
		t.Fatal(err)
	}
	tree.files[madePath(3)] += "\n## More\n\nA quokka.\n"
	tree.commit = "more"
	list := index.List(filepath.Join(dir, "docs"))
	f, err := os.OpenFile(filepath.Join(dir, "docs", list[len(list)-1], "text"), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt([]byte("damaged"), 0); err != nil {
		t.Fatal(err)
	}
	mustUpdate(t, l, docs, tree)
	if err := keys(); err != nil {
		t.Error(err)
	}
	if err := l.Reopen("docs"); err != nil {
		t.Error(err)
	}
	if err := keys(); err != nil {
		t.Error(err)
	}
}

// A change of one page costs what the page does, and little for each of the others: no record of theirs is read, decoded
// or written. It is counted in objects, so that it holds on every machine.
func TestAChangeOfOnePageAllocatesLittleForTheOthers(t *testing.T) {
	objects := func(pages int) float64 {
		l := openTest(t, Options{IdleAfter: -1, Workers: 1})
		tree := made(pages, 0)
		mustUpdate(t, l, docs, tree)
		var before, after runtime.MemStats
		var least uint64
		for round := range 4 {
			tree.files[madePath(3)] = madePage(3, round+1)
			tree.commit = fmt.Sprint(round)
			runtime.ReadMemStats(&before)
			mustUpdate(t, l, docs, tree)
			runtime.ReadMemStats(&after)
			if n := after.Mallocs - before.Mallocs; round == 0 || n < least {
				least = n
			}
		}
		return float64(least)
	}
	few, many := objects(200), objects(1200)
	t.Logf("%.0f objects in 200 pages, %.0f in 1,200", few, many)
	if each := (many - few) / 1000; each > 34 {
		t.Errorf("%.1f objects for each page that has not changed, more than 34", each)
	}
}

// What a site's rules say of all pages is kept while nothing but texts changes. Whatever changes, the index is the one
// that a fresh reading of the tree makes.
func TestWhatStandsIsWhatAFreshReadingFinds(t *testing.T) {
	t.Parallel()
	pages := func(order string) string {
		return `{"name": "Acme", "navigation": {"groups": [{"group": "Guides", "pages": [` + order + `]}]}}`
	}
	tree := &memTree{commit: "0", files: map[string]string{
		"docs.json":           pages(`"a", "b", "deep/c"`),
		"a.mdx":               "---\ntitle: Apples\n---\n\nSee [pears](/b) and [cherries](deep/c.mdx).\n",
		"b.mdx":               "---\ntitle: Pears\n---\n\nimport Note from '/snippets/note.mdx'\n\nRound.\n\n<Note/>\n",
		"deep/c.mdx":          "# Cherries\n\nRed.\n\n## Of [apples](/a)\n\nText.\n",
		"deep/hidden.mdx":     "---\ntitle: Cellar\nhidden: true\n---\n\nDark.\n",
		"snippets/note.mdx":   "A note of quinces.\n",
		"left.txt.docx":       "none",
		"deep/untitled.mdx":   "Nothing.\n",
		"deep/untitled-2.mdx": "Nothing to [untitled](/deep/untitled).\n",
	}}
	l := openTest(t, Options{IdleAfter: -1})
	state := func(l *Library) (out []string) {
		snap, err := l.acquire("docs")
		if err != nil {
			t.Fatal(err)
		}
		defer snap.release()
		for _, r := range snap.Records {
			out = append(out, fmt.Sprintf("%s %d %q %q %q %q %d %t %q %d %+v", r.Path, r.Kind, r.Title, r.Titles, r.Shown, r.Crumbs, r.Order, r.Hidden,
				r.Aliases, r.Derived, r.PageLen))
		}
		return append(out, fmt.Sprint(snap.linksTo, snap.byAddress, snap.titles, snap.Manifest.Lost, snap.Manifest.Pages))
	}
	mustUpdate(t, l, docs0, tree)
	for round, change := range []struct{ file, content string }{
		{"a.mdx", "---\ntitle: Apples\n---\n\nSee [pears](/b) and [cherries](deep/c.mdx).\n\nGreen.\n"},
		{"a.mdx", "---\ntitle: Apples\n---\n\nSee [juicy pears](/b) and nothing.\n\nGreen.\n"},
		{"a.mdx", "---\ntitle: Apples\n---\n\nGreen.\n"},
		{"deep/c.mdx", "# Cherries\n\nRed.\n\n## Of [apples](/a)\n\nText.\n\nTo [the cellar](/deep/hidden), [untitled](/deep/untitled).\n"},
		{"deep/untitled.mdx", "Nothing yet.\n"},
		{"docs.json", pages(`"b", "a", "deep/c", "deep/untitled"`)},
		{"deep/untitled.mdx", "Nothing more.\n"},
		{"b.mdx", "---\ntitle: Pears and more\naliases: [/old]\n---\n\nRound.\n"},
		{"snippets/note.mdx", "A note of figs.\n"},
		{"a.mdx", "---\ntitle: Apples\n---\n\nimport Note from '/snippets/note.mdx'\n\nGreen, see [it](/old).\n\n<Note/>\n"},
		{"snippets/note.mdx", "A note of dates.\n"},
		{"deep/hidden.mdx", "---\ntitle: Cellar\n---\n\nDark.\n"},
		{"deep/hidden.mdx", "---\ntitle: Cellar\ndraft: true\n---\n\nDark.\n"},
		{"deep/new.mdx", "# New\n\n[Apples](/a).\n"},
		{"deep/new.mdx", "# New\n\n[Apples](/a), all.\n"},
		{"deep/new.mdx", ""},
		{"a.mdx", "---\ntitle: Apples\n---\n\nRed.\n"},
	} {
		if tree.commit = fmt.Sprint(round + 1); change.content == "" {
			delete(tree.files, change.file)
		} else {
			tree.files[change.file] = change.content
		}
		got := mustUpdate(t, l, docs0, tree)
		fresh := openTest(t, Options{IdleAfter: -1})
		want := mustUpdate(t, fresh, docs0, tree)
		if got.LeftOut != want.LeftOut || got.Lost != want.Lost || got.SiteURL != want.SiteURL || !reflect.DeepEqual(got.Warnings, want.Warnings) {
			t.Errorf("after %d, %s: %+v, and afresh %+v", round, change.file, got, want)
		}
		now, then := state(l), state(fresh)
		if len(now) != len(then) {
			t.Fatalf("after %d, %s: %d records, and afresh %d", round, change.file, len(now), len(then))
		}
		for i := range now {
			if now[i] != then[i] {
				t.Errorf("after %d, %s:\n%s\n%s", round, change.file, now[i], then[i])
			}
		}
	}
}
