package search

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"docent/api"
	"docent/internal/cache"
	"docent/internal/testing/need"
	"docent/search/page"
)

// asks is how often queries were ranked, and how often not because the answer was known or on its way.
func asks(l *Library) (ranked, spared uint64) {
	t := &l.lookups.results
	return t.misses.Load() - t.shared.Load(), t.hits.Load() + t.shared.Load()
}

func TestEqualQuestionsAreRankedOnce(t *testing.T) {
	l := openTest(t, Options{})
	mustUpdate(t, l, docs, made(50, 1))
	want := texts(mustSearch(t, l, "docs", Query{Text: "topic7 common", Sections: 4}))
	const callers = 200
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			text := "topic9 and common things"
			if i%2 == 0 {
				text = " topic9  and common\nthings " // set apart otherwise
			}
			if hits := mustSearch(t, l, "docs", Query{Text: text, Sections: 4}); len(hits) == 0 {
				t.Error("nothing found")
			}
		})
	}
	wg.Wait()
	if ranked, spared := asks(l); ranked != 2 || spared != callers-1 {
		t.Errorf("ranked %d times, spared %d", ranked, spared)
	}
	if got := texts(mustSearch(t, l, "docs", Query{Text: "topic7 common", Sections: 4})); !slices.Equal(got, want) {
		t.Errorf("remembered as %v, was %v", got, want)
	}
}

// Everything that a ranking depends on sets a result apart, and nothing else does.
func TestOtherQuestionsAreRankedAnew(t *testing.T) {
	l := openTest(t, Options{})
	mustUpdate(t, l, docs, made(50, 1))
	base := Query{Text: "common things"}
	ask := func(q Query, searches bool) {
		t.Helper()
		before, _ := asks(l)
		mustSearch(t, l, "docs", q)
		if after, _ := asks(l); after-before != map[bool]uint64{true: 1}[searches] {
			t.Errorf("%+v was ranked %d times", q, after-before)
		}
	}
	ask(base, true)
	for _, q := range []Query{
		{Text: "Common things"}, {Text: "common things", Limit: 7}, {Text: "common things", Sections: 2},
		{Text: "common things", Threshold: 0.1},
		{Text: "common things", Box: true}, {Text: "common things ", Box: true},
		{Text: "common things", CurrentPath: "/part1/page-1"},
		{Text: "common things", CurrentPath: "/part2/page-2"}, {Text: "common things", Filter: Filter{Version: "v1"}},
		{Text: "common things", Filter: Filter{Language: "de"}}, {Text: "common things", Filter: Filter{Tag: "v1"}},
		{Text: "common things", Filter: Filter{Groups: []string{"a", "b"}}},
		{Text: "common things", Filter: Filter{Groups: []string{"ab"}}}, {Text: "common things", Everywhere: true},
	} {
		ask(q, true)
		ask(q, false)
	}
	for _, q := range []Query{
		base, {Text: "common  things\n"}, {Text: "common things", Limit: 5}, {Text: "common things", Sections: 1},
		{Text: "common things", CurrentPath: "/nowhere"},
		{Text: "common things", CurrentPath: "/part1/page-8"},
		{Text: "common things", Filter: Filter{Groups: []string{"b", "a"}}},
	} {
		ask(q, false)
	}
}

// What was found before an update, or under another address of the site, is not given to those who ask after it.
func TestResultsGoWithTheirIndex(t *testing.T) {
	l := openTest(t, Options{})
	for round := range 3 {
		mustUpdate(t, l, docs, made(20, round))
		for range 2 {
			hits := mustSearch(t, l, "docs", Query{Text: fmt.Sprint("written in round", round), Sections: 2})
			if len(hits) == 0 || hits[0].Heading != fmt.Sprintf("Round%d state", round) {
				t.Fatalf("round %d: %v", round, texts(hits))
			}
		}
	}
	moved := docs
	moved.SiteURL = "https://docs.example"
	tree := made(20, 2)
	tree.commit = "moved"
	mustUpdate(t, l, moved, tree) // the same pages: the index stays, its labels change
	if hits := mustSearch(t, l, "docs",
		Query{Text: "written in round2", Sections: 2}); hits[0].URL != "https://docs.example/"+
		hits[0].Path[:len(hits[0].Path)-len(".md")]+"#"+hits[0].Anchor {
		t.Errorf("at %s", hits[0].URL)
	}
	if _, spared := asks(l); spared != 4 {
		t.Errorf("spared %d rankings", spared)
	}
}

// Somebody who waits for another's search may leave without it; a search that breaks off is an error for those who
// wait, and not for those who come later.
func TestWaitersAreNotTiedToASearch(t *testing.T) {
	l := openTest(t, Options{})
	mustUpdate(t, l, docs, made(5, 1))
	snap, err := l.acquire("docs")
	if err != nil {
		t.Fatal(err)
	}
	defer snap.release()
	q := Query{Text: "topic1"}
	f, _ := snap.flights.Join(snap.key(&q))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := snap.ranked(ctx, q); err != ctx.Err() {
		t.Errorf("who left: %v", err)
	}
	func() {
		defer func() { _ = recover() }()
		snap.flights.Land(snap.key(&q), f, func() ([]scored, error) { panic("broken") })
	}()
	if _, err := f.Wait(t.Context()); err != cache.ErrBrokenOff {
		t.Errorf("who waited: %v", err)
	}
	if hits := mustSearch(t, l, "docs", q); len(hits) == 0 {
		t.Error("nothing found afterwards")
	}
}

// The cache stays within its bound, and is counted as what it takes.
func TestWhatIsRememberedIsBounded(t *testing.T) {
	const room = 64 << 10
	l := openTest(t, Options{CacheBytes: room, TextBytes: room, ResultBytes: room, IdleAfter: -1})
	mustUpdate(t, l, docs, made(300, 1))
	snap, err := l.acquire("docs")
	if err != nil {
		t.Fatal(err)
	}
	for i := range 2000 {
		mustSearch(t, l, "docs", Query{Text: fmt.Sprintf("topic%d in round1 or word%d", i%300, i), Sections: 3})
		for name, n := range map[string]int64{"terms": snap.terms.Holds(), "texts": snap.shown.Holds(),
			"results": snap.results.Holds()} {
			if n > room {
				t.Fatalf("%s hold %d bytes of %d", name, n, room)
			}
		}
		if got, want := l.Memory(), snap.holds(); got != want {
			t.Fatalf("counted %d bytes, held %d", got, want)
		}
	}
	for _, c := range []*lookupCount{&l.lookups.terms, &l.lookups.texts} {
		if c.hits.Load() == 0 || c.misses.Load() == 0 {
			t.Errorf("%d hits and %d misses", c.hits.Load(), c.misses.Load())
		}
	}
	snap.release()
}

// Rankings from words that are kept whole, and the close look that passes over what was not asked for, are those of the
// plain way, bit for bit: each word gathered from its terms, and each word of a text looked up.
func TestShortcutsRankAsThePlainWay(t *testing.T) {
	need.Everything(t, "one goroutine, over all judged queries")
	queries := judgedQueries(t)
	once := DefaultTuning
	once.Synonym = 0 // queries that find little are ranked once more, always in the plain way
	l := openTest(t, Options{Tuning: &once})
	for _, name := range corpora {
		mustUpdate(t, l, api.Project{ID: api.ProjectID(name)}, corpus(t, name))
	}
	for _, j := range queries {
		snap, err := l.acquire(api.ProjectID(j.Corpus))
		if err != nil {
			t.Fatal(err)
		}
		for _, q := range []Query{{Text: j.Query, Sections: 4}, {Text: j.Query + " how and how " + j.Query, Limit: 9}} {
			short, err := snap.rank(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			w := scratches.Get().(*scratch)
			groups, err := snap.parse(t.Context(), w, q, snap.languages)
			if err != nil {
				t.Fatal(err)
			}
			for i := range groups {
				groups[i].ready = nil
			}
			plain, err := snap.rankGroups(t.Context(), w, q, groups, &scope{}, 0)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(short, plain) {
				t.Errorf("%s %q: %v, the plain way %v", j.Corpus, q.Text, short, plain)
			}
			for i := 0; i < len(snap.sections); i += 7 {
				rec := snap.sections[i]
				if a, b := snap.proximity(groups, &w.asked, rec), plainProximity(snap, groups, rec); a != b {
					t.Fatalf("%s %q: section %d of %s has proximity %v, the plain way %v", j.Corpus, q.Text, i,
						snap.pages[snap.pageOf[i]].Path, a, b)
				}
			}
			w.done()
		}
		snap.release()
	}
}

// plainProximity is what proximity promises, word by word.
func plainProximity(s *snapshot, groups []group, rec *page.Section) float32 {
	of := make(map[uint32]int)
	for g := range groups {
		for _, v := range groups[g].variants {
			if _, taken := of[v.hash]; !taken && v.weight >= 0.3 {
				of[v.hash] = g
			}
		}
	}
	acc := make([]float32, len(groups))
	last, lastAt := -1, 0
	for i := range rec.Body.Len() {
		g, ok := of[rec.Body.At(i)]
		if !ok || g >= 64 {
			continue
		}
		if d := i - lastAt; last >= 0 && last != g && d <= nearBy {
			acc[g] += groups[last].idf * (1 / float32(d*d))
			acc[last] += groups[g].idf * (1 / float32(d*d))
		}
		last, lastAt = g, i
	}
	b := s.tuning.B[page.FieldBody]
	k := float32(s.tuning.ProximityK) * float32(1-b+b*float64(rec.Len[page.FieldBody])/s.meanBody)
	var sum float32
	if len(groups) > 1 {
		for g, a := range acc {
			if g < 64 && a > 0 {
				sum += min(1, groups[g].idf) * a * (k + 1) / (k + a)
			}
		}
	}
	return sum
}
