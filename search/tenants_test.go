package search

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"docent/api"
	"docent/bench/retrieval"
	"docent/internal/testing/need"
)

// hosted makes a library of many projects of 100 pages each.
func hosted(t testing.TB, projects int, o Options) *Library {
	t.Helper()
	l := openTest(t, o)
	tree := made(100, 0)
	var wg sync.WaitGroup
	next := make(chan int)
	for range 4 {
		wg.Go(func() {
			for i := range next {
				if _, err := l.Update(t.Context(), api.Project{ID: api.ProjectID(fmt.Sprint("p", i))}, tree, nil); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for i := range projects {
		next <- i
	}
	close(next)
	wg.Wait()
	return l
}

// Three hundred projects on one node: what open indexes hold stays under the setting, no matter what is asked.
func TestManyProjectsStayWithinTheMemoryGiven(t *testing.T) {
	projects := 300
	if !need.All {
		projects = 60
	}
	const bound = 12 << 20
	l := hosted(t, projects, Options{MaxOpen: projects, Memory: bound, IdleAfter: -1})
	runtime.GC()
	var before runtime.MemStats
	runtime.ReadMemStats(&before)
	most := 0
	for round := range 2 {
		for i := range projects {
			hits := mustSearch(t, l, api.ProjectID(fmt.Sprint("p", i)), Query{Text: fmt.Sprint("page ", i%100, " round")})
			if len(hits) == 0 {
				t.Fatalf("round %d: project %d finds nothing", round, i)
			}
			if n := l.Memory(); n > bound {
				t.Fatalf("open indexes hold %d bytes, more than %d", n, int64(bound))
			}
			most = max(most, l.Open())
		}
	}
	if most < 2 || most == projects {
		t.Errorf("%d indexes were open at once: the bound was not what closed them", most)
	}
	runtime.GC()
	var after runtime.MemStats
	runtime.ReadMemStats(&after)
	t.Logf("%d indexes open at most; counted %d KB, heap %d KB, before %d KB", most, l.Memory()>>10, after.HeapAlloc>>10,
		before.HeapAlloc>>10)
	if after.HeapAlloc > before.HeapAlloc+2*bound {
		t.Errorf("the heap grew by %d bytes where %d are allowed and counted", after.HeapAlloc-before.HeapAlloc, int64(bound))
	}
	l.mu.Lock()
	var idle []*snapshot
	for _, s := range l.projects {
		if s.current != nil {
			idle = append(idle, s.shut())
		}
	}
	l.mu.Unlock()
	for _, s := range idle {
		s.close()
	}
	if n := l.Memory(); n != 0 {
		t.Errorf("with every index closed %d bytes are still counted", n)
	}
}

// BenchmarkClosedProject: the first query to a project whose index is closed, one of 300 with 100 pages.
func BenchmarkClosedProject(b *testing.B) {
	l := hosted(b, 300, Options{MaxOpen: 8, IdleAfter: -1})
	var times []time.Duration
	i := 0
	for b.Loop() {
		i = (i + 7) % 300
		at := time.Now()
		mustSearch(b, l, api.ProjectID(fmt.Sprint("p", i)), Query{Text: "page"})
		times = append(times, time.Since(at))
	}
	slices.Sort(times)
	b.ReportMetric(float64(retrieval.Quantile(times, 0.5).Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(retrieval.Quantile(times, 0.99).Microseconds())/1000, "p99-ms")
}
