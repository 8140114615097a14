package nodes_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"docent/api"
	"docent/persistence/catalog"
	"docent/persistence/catalog/catalogtest"
	"docent/persistence/catalog/nodes"
)

func TestUsesAreCountedByAllNodesTogether(t *testing.T) {
	t.Parallel()
	a, b := catalogtest.TwoNodes(t)
	counts := []*nodes.Counts{a.Counts(), b.Counts()}
	const most = 10
	var taken atomic.Int64
	var all sync.WaitGroup
	for n := range 4 * most {
		all.Go(func() {
			bounds := []nodes.Bound{{"account", most}, {"address", 100}}
			if n%2 == 1 {
				bounds[0], bounds[1] = bounds[1], bounds[0]
			}
			wait, err := counts[n%2].Take(t.Context(), time.Minute, bounds...)
			switch {
			case err != nil:
				t.Error(err)
			case wait == 0:
				taken.Add(1)
			case wait > time.Minute:
				t.Errorf("wait %v", wait)
			}
		})
	}
	all.Wait()
	if taken.Load() != most {
		t.Fatalf("%d uses were taken, of at most %d", taken.Load(), most)
	}
	if err := counts[0].Give(t.Context(), "account"); err != nil {
		t.Fatal(err)
	}
	if wait, err := counts[1].Take(t.Context(), time.Minute, nodes.Bound{"account", most}); wait > 0 || err != nil {
		t.Errorf("what was given back cannot be taken: %v, %v", wait, err)
	}
	// A refusal counts nothing, also of the other bound: 10 uses of the address were taken.
	if wait, err := counts[1].Take(t.Context(), time.Minute, nodes.Bound{"address", most + 1}); wait > 0 || err != nil {
		t.Errorf("a refused use was counted: %v, %v", wait, err)
	}
}

func TestAWindowOfUsesEnds(t *testing.T) {
	t.Parallel()
	a, b := catalogtest.TwoNodes(t)
	for _, n := range []*nodes.Counts{a.Counts(), b.Counts()} {
		catalogtest.Soon(t, "the window is over", func() bool {
			return catalogtest.Must(n.Take(t.Context(), time.Millisecond, nodes.Bound{"one", 1}))(t) == 0
		})
	}
}

func TestALinkLetsInOnceOverAllNodes(t *testing.T) {
	t.Parallel()
	a, b := catalogtest.TwoNodes(t)
	hash := [32]byte{3}
	if _, err := a.AddLink(t.Context(), api.Link{ID: "lnk_1", ExpiresAt: time.Now().Add(time.Hour)}, hash); err != nil {
		t.Fatal(err)
	}
	var let atomic.Int64
	var all sync.WaitGroup
	for _, c := range []*catalog.Catalog{a, b, a, b} {
		all.Go(func() {
			if _, err := c.UseLink(t.Context(), hash); err == nil {
				let.Add(1)
			}
		})
	}
	all.Wait()
	if let.Load() != 1 {
		t.Errorf("the link let in %d times", let.Load())
	}
}
