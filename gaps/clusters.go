package gaps

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// mostCommon is how many clusters may have a term that leads to them: a term that stands in more tells none apart.
const mostCommon = 400

// A cluster is the sum of its members' vectors.
type cluster struct {
	seed   int // -1 where it is new
	sum    map[int32]float64
	square float64 // of the sum's length
	size   int     // bags
	anchor vector  // what is known of it; it does not change
}

// clusters hold all, and for each term those that have it.
type clusters struct {
	*vocabulary
	at   lines
	list []*cluster
	with map[int32][]int // clusters by term; some may have it no longer

	score  map[int]float64 // scratch
	touchd []int
}

func newClusters(v *vocabulary, at lines, known []Seed) *clusters {
	c := &clusters{vocabulary: v, at: at, with: map[int32][]int{}, score: map[int]float64{}}
	for i, seed := range known {
		var anchor vector
		for t, w := range seed {
			anchor = append(anchor, entry{v.number[t], w})
		}
		slices.SortFunc(anchor, func(a, b entry) int { return cmp.Compare(a.term, b.term) })
		n := c.open(i)
		c.list[n].anchor = anchor.unit()
		for _, e := range anchor {
			c.with[e.term] = append(c.with[e.term], n)
		}
	}
	return c
}

// open makes an empty cluster.
func (c *clusters) open(seed int) int {
	c.list = append(c.list, &cluster{seed: seed, sum: map[int32]float64{}})
	return len(c.list) - 1
}

// put adds a vector to a cluster, or with sign -1 takes it out.
func (c *clusters) put(n int, v vector, sign float64) {
	k := c.list[n]
	dot := 0.0
	for _, e := range v {
		was, had := k.sum[e.term]
		dot += was * e.weight
		if !had && sign > 0 {
			c.with[e.term] = append(c.with[e.term], n)
		}
		k.sum[e.term] = was + sign*e.weight
	}
	k.square = max(0, k.square+2*sign*dot+1)
	k.size += int(sign)
	if k.size == 0 {
		k.square = 0
		clear(k.sum)
	}
}

// closeness is how close a unit vector is to a cluster: between the mean to all members and the cosine with their sum.
func (c *clusters) closeness(v vector, k *cluster) float64 {
	if k.size == 0 {
		return 0
	}
	dot := 0.0
	for _, e := range v {
		dot += e.weight * k.sum[e.term]
	}
	return dot / math.Pow(float64(k.size), 1-c.at.size) / math.Pow(max(k.square, 1e-9), c.at.size/2)
}

// best is the closest cluster, and whether it is close enough.
func (c *clusters) best(v vector) (int, bool) {
	candidates := map[int]bool{}
	for _, e := range v {
		list := c.with[e.term]
		if len(list) > mostCommon && len(candidates) > 0 {
			continue
		}
		for _, n := range list {
			candidates[n] = true
		}
	}
	found, most := -1, 0.0
	for n := range candidates {
		k := c.list[n]
		s := c.closeness(v, k) / c.at.join
		if k.seed >= 0 {
			s = max(s, dot(v, k.anchor)/c.at.known)
		}
		if s > most || s == most && s > 0 && n < found {
			found, most = n, s
		}
	}
	return found, most >= 1
}

func dot(a, b vector) float64 {
	sum := 0.0
	for i, j := 0, 0; i < len(a) && j < len(b); {
		switch {
		case a[i].term < b[j].term:
			i++
		case a[i].term > b[j].term:
			j++
		default:
			sum += a[i].weight * b[j].weight
			i, j = i+1, j+1
		}
	}
	return sum
}

// place puts a bag where it belongs, in a new cluster where it belongs to none.
func (c *clusters) place(n int, bags []bag) (moved bool) {
	b := &bags[n]
	was := b.cluster
	if was >= 0 {
		c.put(was, b.vector, -1)
	}
	to, ok := c.best(b.vector)
	if !ok {
		if was >= 0 && c.list[was].size == 0 && c.list[was].seed < 0 {
			to = was
		} else {
			to = c.open(-1)
		}
	}
	b.cluster = to
	c.put(to, b.vector, 1)
	return to != was
}

// settle looks at every bag again, now that its cluster is known.
func (c *clusters) settle(bags []bag) (moved bool) {
	for n := range bags {
		if c.place(n, bags) {
			moved = true
		}
	}
	return moved
}

// merge makes one of clusters that are close, the closest first, into known ones and older ones.
func (c *clusters) merge(bags []bag) {
	of := make([][]int, len(c.list))
	for n := range bags {
		of[bags[n].cluster] = append(of[bags[n].cluster], n)
	}
	for n, k := range c.list {
		if k.size == 0 || k.seed >= 0 {
			continue
		}
		to, most := -1, c.at.merge
		candidates := map[int]bool{}
		for t := range k.sum {
			if len(c.with[t]) <= mostCommon {
				for _, m := range c.with[t] {
					candidates[m] = true
				}
			}
		}
		for m := range candidates {
			other := c.list[m]
			if m == n || other.size == 0 {
				continue
			}
			d := 0.0
			for t, w := range k.sum {
				d += w * other.sum[t]
			}
			s := d / math.Pow(float64(k.size*other.size), 1-c.at.size) / math.Pow(k.square*other.square, c.at.size/2)
			if s > most || s == most && m < to {
				to, most = m, s
			}
		}
		if to < 0 {
			continue
		}
		for _, b := range of[n] {
			c.put(n, bags[b].vector, -1)
			c.put(to, bags[b].vector, 1)
			bags[b].cluster = to
		}
		of[to] = append(of[to], of[n]...)
		of[n] = nil
	}
}

// groups are the clusters as callers see them.
func (c *clusters) groups(points []Point, bags []bag, known int) []Group {
	out := make([]Group, known)
	of := map[int]int{}
	for i := range known {
		out[i] = Group{Seed: i, Centre: -1}
		of[i] = i // they were opened first
	}
	members := map[int][]int{}
	for n := range bags {
		k := bags[n].cluster
		if _, ok := of[k]; !ok {
			of[k] = len(out)
			out = append(out, Group{Seed: -1, Centre: -1})
		}
		g := &out[of[k]]
		g.Members = append(g.Members, bags[n].members...)
		members[k] = append(members[k], n)
	}
	for k, g := range of {
		c.describe(&out[g], c.list[k], bags, members[k], points)
	}
	return out
}

// mostTold is how many terms stand for a group.
const mostTold = 12

// describe finds the most telling question of a group, and its most telling words.
func (c *clusters) describe(g *Group, k *cluster, bags []bag, members []int, points []Point) {
	slices.SortFunc(g.Members, func(a, b int) int { return cmp.Compare(points[a].Key, points[b].Key) })
	best := -1.0
	for _, n := range members {
		s := c.closeness(bags[n].vector, k) * (1 + math.Log(float64(len(bags[n].members)))/10)
		first := bags[n].members[0]
		if s > best+1e-9 || s > best-1e-9 && points[first].Key < points[g.Centre].Key {
			best, g.Centre = s, first
		}
	}
	type told struct {
		term   string
		weight float64
	}
	var list []told
	for t, w := range k.sum {
		if w > 1e-9 {
			list = append(list, told{c.names[t], w / math.Sqrt(max(k.square, 1e-9))})
		}
	}
	slices.SortFunc(list, func(a, b told) int {
		return cmp.Or(cmp.Compare(b.weight, a.weight), strings.Compare(a.term, b.term))
	})
	g.Terms = Seed{}
	for i, t := range list {
		if i == mostTold {
			break
		}
		g.Terms[t.term] = t.weight
	}
	written := map[string]map[string]int{}
	for _, m := range g.Members {
		for _, w := range points[m].Words {
			if written[w.Term] == nil {
				written[w.Term] = map[string]int{}
			}
			written[w.Term][w.Surface]++
		}
	}
	for _, t := range list {
		if len(g.Words) == 4 || len(g.Words) > 0 && t.weight < list[0].weight/4 {
			break
		}
		word, most := "", 0
		for s, n := range written[t.term] {
			if n > most || n == most && s < word {
				word, most = s, n
			}
		}
		if word != "" && !slices.Contains(g.Words, word) {
			g.Words = append(g.Words, word)
		}
	}
}
