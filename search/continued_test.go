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
	if each := (many - few) / 1000; each > 65 {
		t.Errorf("%.1f objects for each page that has not changed, more than 65", each)
	}
}
