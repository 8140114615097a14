package search

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"docent/api"
	"docent/bench/retrieval"
)

// BenchmarkSearch: how long one search takes, warm but not remembered, in each of the judged documentation sets.
func BenchmarkSearch(b *testing.B) {
	queries := judgedQueries(b)
	l := openTest(b, Options{ResultBytes: -1})
	for _, name := range corpora {
		mustUpdate(b, l, api.Project{ID: api.ProjectID(name)}, corpus(b, name))
		own := slices.DeleteFunc(slices.Clone(queries), func(q retrieval.Query) bool { return q.Corpus != name })
		b.Run(name, func(b *testing.B) { benchQueries(b, l, own, 1) })
	}
}

// benchQueries asks the queries in turn from several goroutines at once.
func benchQueries(b *testing.B, l *Library, queries []retrieval.Query, callers int) {
	for _, q := range queries {
		if _, err := ask(l)(context.Background(), q); err != nil {
			b.Fatal(err)
		}
	}
	var mu sync.Mutex
	var times []time.Duration
	b.ReportAllocs()
	b.ResetTimer()
	begin := time.Now()
	var wg sync.WaitGroup
	for c := range callers {
		wg.Go(func() {
			own := make([]time.Duration, 0, b.N/callers+1)
			for i := c; i < b.N; i += callers {
				at := time.Now()
				if _, err := ask(l)(context.Background(), queries[i%len(queries)]); err != nil {
					b.Error(err)
				}
				own = append(own, time.Since(at))
			}
			mu.Lock()
			times = append(times, own...)
			mu.Unlock()
		})
	}
	wg.Wait()
	took := time.Since(begin)
	slices.Sort(times)
	b.ReportMetric(float64(retrieval.Quantile(times, 0.5).Microseconds()), "p50-µs")
	b.ReportMetric(float64(retrieval.Quantile(times, 0.99).Microseconds()), "p99-µs")
	b.ReportMetric(float64(b.N)/took.Seconds(), "queries/s")
}

// BenchmarkIndex: how fast a documentation set is indexed from nothing.
func BenchmarkIndex(b *testing.B) {
	for _, name := range corpora {
		tree := corpus(b, name)
		b.Run(name, func(b *testing.B) {
			l := openTest(b, Options{})
			sections := 0
			for b.Loop() {
				if err := l.Remove("x"); err != nil {
					b.Fatal(err)
				}
				sections += mustUpdate(b, l, api.Project{ID: "x"}, tree).Sections
			}
			b.ReportMetric(float64(sections)/b.Elapsed().Seconds(), "sections/s")
		})
	}
}

// large makes a site of so many sections out of words that are as unevenly common as those of a language.
func large(sections int) *memTree {
	rng := rand.New(rand.NewPCG(7, 8))
	zipf := rand.NewZipf(rng, 1.2, 8, 60_000)
	word := func() string {
		return fmt.Sprintf("w%s", strings.ToLower(fmt.Sprintf("%x", zipf.Uint64()*2654435761%16777213)))
	}
	words := func(n int) string {
		out := make([]string, n)
		for i := range out {
			out[i] = word()
		}
		return strings.Join(out, " ")
	}
	t := &memTree{commit: "large", files: make(map[string]string)}
	for p := range sections / 10 {
		var body strings.Builder
		fmt.Fprintf(&body, "---\ntitle: %s\n---\n%s\n", words(3), words(60))
		for range 9 {
			fmt.Fprintf(&body, "\n## %s\n\n%s\n", words(3), words(80))
		}
		t.files[fmt.Sprintf("a%d/p%d.md", p%100, p)] = body.String()
	}
	return t
}

// BenchmarkLarge: a site of 100,000 sections.
func BenchmarkLarge(b *testing.B) {
	tree := large(100_000)
	l := openTest(b, Options{IdleAfter: -1, ResultBytes: -1})
	begin := time.Now()
	rep := mustUpdate(b, l, api.Project{ID: "large"}, tree)
	took := time.Since(begin)
	b.Logf("indexed %d sections in %v: %.0f sections/s, peak %s", rep.Sections, took.Round(time.Millisecond),
		float64(rep.Sections)/took.Seconds(), peakMemory())
	files := tree.files
	paths := make([]string, 0, 5)
	for p := range files {
		if paths = append(paths, p); len(paths) == 5 {
			break
		}
	}
	for _, p := range paths {
		files[p] += "\nnewword\n"
	}
	begin = time.Now()
	mustUpdate(b, l, api.Project{ID: "large"}, &memTree{commit: "large-2", files: files})
	b.Logf("5 pages changed: %v", time.Since(begin).Round(time.Millisecond))
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	b.Logf("heap with the index open %d MB (the site's own text %d MB)", stats.HeapAlloc>>20, size(files)>>20)
	rng := rand.New(rand.NewPCG(9, 9))
	var queries []retrieval.Query
	all := slices.Sorted(func(yield func(string) bool) {
		for p := range files {
			if !yield(p) {
				return
			}
		}
	})
	for range 300 {
		words := strings.Fields(files[all[rng.IntN(len(all))]])
		at := 4 + rng.IntN(len(words)-20)
		queries = append(queries, retrieval.Query{Corpus: "large", Query: strings.Join(words[at:at+2+rng.IntN(6)], " ")})
	}
	b.Run("1", func(b *testing.B) { benchQueries(b, l, queries, 1) })
	b.Run("4", func(b *testing.B) { benchQueries(b, l, queries, 4) })
}

func size(files map[string]string) (n int) {
	for _, c := range files {
		n += len(c)
	}
	return n
}

// peakMemory is the most memory that the process has had, as the system counts it.
func peakMemory() string {
	raw, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return "unknown"
	}
	for line := range strings.SplitSeq(string(raw), "\n") {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			return strings.Join(strings.Fields(rest), " ")
		}
	}
	return "unknown"
}

// BenchmarkOpen: the first query to a closed index of 10,000 sections.
func BenchmarkOpen(b *testing.B) {
	l := openTest(b, Options{IdleAfter: -1})
	mustUpdate(b, l, api.Project{ID: "x"}, large(10_000))
	for b.Loop() {
		l.mu.Lock()
		old := l.projects["x"].shut()
		l.mu.Unlock()
		old.close()
		mustSearch(b, l, "x", Query{Text: "w1 w2"})
	}
}

// BenchmarkUpdate: 5 changed pages of 1,000, until they are found.
func BenchmarkUpdate(b *testing.B) {
	l := openTest(b, Options{IdleAfter: -1})
	tree := made(1000, 0)
	mustUpdate(b, l, docs, tree)
	round := 0
	for b.Loop() {
		round++
		for i := range 5 {
			tree.files[madePath(i)] = madePage(i, round)
		}
		tree.commit = fmt.Sprint("round-", round)
		mustUpdate(b, l, docs, tree)
		if hits := mustSearch(b, l, "docs", Query{Text: fmt.Sprint("round", round)}); len(hits) != 5 {
			b.Fatal(len(hits))
		}
	}
}

// hashed is a tree that knows the hashes of its files, as a repository does.
type hashed struct {
	memTree
	list []api.File
}

func (t *hashed) Files(context.Context) ([]api.File, error) { return t.list, nil }

// change gives a file other contents.
func (t *hashed) change(commit, path, content string) {
	t.commit, t.files[path] = commit, content
	at := slices.IndexFunc(t.list, func(f api.File) bool { return f.Path == path })
	t.list = slices.Clone(t.list)
	t.list[at] = api.File{Path: path, Hash: commit, Size: int64(len(content))}
}

// BenchmarkChange: one page changed of 30,000, the judged sites many times over. Its texts change, or its links too.
func BenchmarkChange(b *testing.B) {
	tree := &hashed{memTree: memTree{commit: "first", files: make(map[string]string)}}
	for copies := range 18 {
		for _, name := range corpora {
			for p, content := range corpus(b, name).files {
				tree.files[fmt.Sprintf("copy%d/%s/%s", copies, name, p)] = content + fmt.Sprintf("\n\nof copy%d\n", copies)
			}
		}
	}
	tree.list, _ = tree.memTree.Files(b.Context())
	l := openTest(b, Options{IdleAfter: -1})
	rep := mustUpdate(b, l, docs0, tree)
	b.Logf("%d pages with %d sections", rep.Pages, rep.Sections)
	path := "copy3/vite/guide/features.md"
	content, round := tree.files[path], 0
	for _, change := range []struct{ name, text string }{{"texts", "More of it."}, {"links", "[More](./why.md)."}} {
		b.Run(change.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				round++
				begin := time.Now()
				tree.change(fmt.Sprint("round-", round), path, fmt.Sprintf("%s\n\nround%d %s\n", content, round, strings.Repeat(change.text+" ", round%2)))
				if rep := mustUpdate(b, l, docs0, tree); len(rep.Modified) != 1 {
					b.Fatal(rep)
				}
				if testing.Verbose() {
					fmt.Println(change.name, round, time.Since(begin))
				}
			}
		})
	}
}

var docs0 = api.Project{ID: "docs"}

// BenchmarkExplain: how long one search takes that is explained, and one that is ranked with weights of its own: late
// ones, which need nothing recomputed, and those of fields.
func BenchmarkExplain(b *testing.B) {
	queries := judgedQueries(b)
	l := openTest(b, Options{})
	const name = "electron" // the one with most sections
	mustUpdate(b, l, api.Project{ID: name}, corpus(b, name))
	own := slices.DeleteFunc(slices.Clone(queries), func(q retrieval.Query) bool { return q.Corpus != name })
	for _, c := range []struct {
		name    string
		weights map[string]float64
		explain bool
	}{
		{"explained", nil, true}, {"late weights", map[string]float64{"vote": 1}, false},
		{"weights of fields", map[string]float64{"title": 1}, false},
	} {
		b.Run(c.name, func(b *testing.B) {
			n := 0
			for b.Loop() {
				q := Query{Text: own[n%len(own)].Query, Box: true, Limit: 10, Weights: c.weights}
				n++
				var err error
				if c.explain {
					_, err = l.Explain(b.Context(), name, q)
				} else {
					_, err = l.Search(b.Context(), name, q)
				}
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
