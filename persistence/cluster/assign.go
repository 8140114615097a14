package cluster

import "slices"

// assign says which of the nodes is to run each shard. It is a function of what is: who has a shard keeps it if that
// leaves every node with the same number of shards, or one more; "" has none. Without nodes nothing moves.
func assign(now [Shards]string, nodes []string) [Shards]string {
	if len(nodes) == 0 {
		return now
	}
	has := make(map[string]int, len(nodes))
	for _, n := range nodes {
		has[n] = 0
	}
	for _, n := range now {
		if _, ok := has[n]; ok {
			has[n]++
		}
	}
	// Those that have most may have one more than the others, so that the fewest shards move.
	order := slices.Clone(nodes)
	slices.SortFunc(order, func(a, b string) int {
		if has[a] != has[b] {
			return has[b] - has[a]
		}
		if a < b {
			return -1
		}
		return 1
	})
	room := make(map[string]int, len(nodes))
	for i, n := range order {
		room[n] = Shards / len(order)
		if i < Shards%len(order) {
			room[n]++
		}
	}
	var to [Shards]string
	for shard, n := range now {
		if room[n] > 0 {
			to[shard] = n
			room[n]--
		}
	}
	for shard := range to {
		if to[shard] != "" {
			continue
		}
		for room[order[0]] == 0 {
			order = order[1:]
		}
		to[shard] = order[0]
		room[order[0]]--
	}
	return to
}
