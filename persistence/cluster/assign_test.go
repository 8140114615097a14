package cluster

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// What an assignment promises, over many steps of nodes that come and go.
func TestShardsAreBalancedAndFewMove(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 1))
		var now [Shards]string
		var nodes []string
		made := 0
		for range 30 {
			if len(nodes) == 0 || random.IntN(5) < 3 {
				made++
				nodes = append(nodes, fmt.Sprintf("n%d", made))
			} else {
				i := random.IntN(len(nodes))
				nodes = slices.Delete(nodes, i, i+1)
			}
			if random.IntN(3) == 0 {
				random.Shuffle(len(nodes), func(i, j int) { nodes[i], nodes[j] = nodes[j], nodes[i] })
			}
			next := assign(now, nodes)
			if len(nodes) == 0 {
				if next != now {
					t.Fatalf("seed %d: shards moved with nobody to take them", seed)
				}
				continue
			}
			checkAssignment(t, seed, now, next, nodes)
			if again := assign(next, nodes); again != next {
				t.Fatalf("seed %d: a balanced assignment was changed", seed)
			}
			now = next
		}
	}
}

func checkAssignment(t *testing.T, seed uint64, now, next [Shards]string, nodes []string) {
	t.Helper()
	before, after := map[string]int{}, map[string]int{}
	moved := 0
	for shard := range next {
		before[now[shard]]++
		after[next[shard]]++
		if next[shard] != now[shard] {
			moved++
		}
	}
	least, most := Shards/len(nodes), (Shards+len(nodes)-1)/len(nodes)
	for n, count := range after {
		if !slices.Contains(nodes, n) {
			t.Fatalf("seed %d: %d shards are with %q, which takes none", seed, count, n)
		}
	}
	for _, n := range nodes {
		if after[n] < least || after[n] > most {
			t.Fatalf("seed %d: node %s of %d has %d shards", seed, n, len(nodes), after[n])
		}
	}
	// No balanced assignment keeps more: each node keeps at most what it may have, and as many as there are remainders
	// may have one more.
	kept, extra := 0, Shards%len(nodes)
	for _, n := range nodes {
		kept += min(before[n], least)
		if before[n] > least && extra > 0 {
			kept++
			extra--
		}
	}
	if moved != Shards-kept {
		t.Fatalf("seed %d: %d shards moved, %d had to", seed, moved, Shards-kept)
	}
}
