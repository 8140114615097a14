package topics

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// maxCommon is how many clusters a term leads to at most: if more have it, it tells none apart, and counts only for
// those that another term leads to.
const maxCommon = 300

// A cluster is the sum of its members' vectors.
type cluster struct {
	seed   int             // -1 if it is new
	held   map[int32]int32 // its position in the list of each of its terms
	square float64         // of the sum's length
	size   int             // bags
	anchor vector          // what is known of it; it does not change
}

// A share is what a cluster's sum has of one term.
type share struct {
	cluster int32
	weight  float64
	anchor  float64
}

// clusters hold all, and for each term those that have it.
type clusters struct {
	*vocabulary
	at   lines
	list []*cluster
	with [][]share // by number of the term

	// What a lookup adds up, by cluster, and which of them it has touched.
	score, known []float64
	touched      []int32
}

func newClusters(v *vocabulary, at lines, known []Seed) *clusters {
	c := &clusters{vocabulary: v, at: at, with: make([][]share, len(v.names))}
	for i, seed := range known {
		var anchor vector
		for t, w := range seed {
			anchor = append(anchor, entry{v.number[t], w})
		}
		slices.SortFunc(anchor, func(a, b entry) int { return cmp.Compare(a.term, b.term) })
		n := c.open(i)
		k := c.list[n]
		k.anchor = anchor.unit()
		for _, e := range k.anchor {
			c.share(n, e.term).anchor = e.weight
		}
	}
	return c
}

// open makes an empty cluster.
func (c *clusters) open(seed int) int {
	c.list = append(c.list, &cluster{seed: seed, held: map[int32]int32{}})
	c.score, c.known = append(c.score, 0), append(c.known, 0)
	return len(c.list) - 1
}

// share is what a cluster has of a term; it is created if there is none.
func (c *clusters) share(n int, term int32) *share {
	k := c.list[n]
	at, ok := k.held[term]
	if !ok {
		at = int32(len(c.with[term]))
		k.held[term] = at
		c.with[term] = append(c.with[term], share{cluster: int32(n)})
	}
	return &c.with[term][at]
}

// put adds a vector to a cluster, or with sign -1 takes it out.
func (c *clusters) put(n int, v vector, sign float64) {
	k := c.list[n]
	dot := 0.0
	for _, e := range v {
		s := c.share(n, e.term)
		dot += s.weight * e.weight
		if s.weight += sign * e.weight; s.weight < 1e-9 {
			s.weight = 0
		}
	}
	k.square = max(0, k.square+2*sign*dot+1)
	if k.size += int(sign); k.size == 0 {
		k.square = 0
	}
}

// closeness is how close a unit vector is to a cluster, by its product with the cluster's sum: between the mean to all
// members and the cosine with their sum.
func (c *clusters) closeness(product float64, k *cluster) float64 {
	if k.size == 0 {
		return 0
	}
	return product / math.Pow(float64(k.size), 1-c.at.size) / math.Pow(max(k.square, 1e-9), c.at.size/2)
}

// look adds up the products of a vector with the sums of all clusters that share a telling term with it.
func (c *clusters) look(v vector) {
	for _, n := range c.touched {
		c.score[n], c.known[n] = 0, 0
	}
	c.touched = c.touched[:0]
	var common vector
	for _, e := range v {
		if len(c.with[e.term]) > maxCommon {
			common = append(common, e)
			continue
		}
		for _, s := range c.with[e.term] {
			if c.score[s.cluster] == 0 && c.known[s.cluster] == 0 {
				c.touched = append(c.touched, s.cluster)
			}
			c.score[s.cluster] += e.weight * s.weight
			c.known[s.cluster] += e.weight * s.anchor
		}
	}
	for _, e := range common {
		for _, n := range c.touched {
			if at, ok := c.list[n].held[e.term]; ok {
				c.score[n] += e.weight * c.with[e.term][at].weight
				c.known[n] += e.weight * c.with[e.term][at].anchor
			}
		}
	}
}

// best is the closest cluster, and whether it is close enough.
func (c *clusters) best(v vector) (int, bool) {
	c.look(v)
	found, most := -1, 0.0
	for _, n := range c.touched {
		s := max(c.closeness(c.score[n], c.list[n])/c.at.join, c.known[n]/c.at.known)
		if s > most || s == most && s > 0 && int(n) < found {
			found, most = int(n), s
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

// place puts a bag where it belongs, in a new cluster if it belongs to none.
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

// merge makes one of clusters that are close, the newer ones into known and older ones.
func (c *clusters) merge(bags []bag) {
	of := make([][]int, len(c.list))
	for n := range bags {
		of[bags[n].cluster] = append(of[bags[n].cluster], n)
	}
	for n, k := range c.list {
		if k.size == 0 || k.seed >= 0 {
			continue
		}
		c.look(c.sum(k))
		to, most := -1, c.at.merge
		for _, m := range c.touched {
			other := c.list[m]
			if int(m) == n || other.size == 0 {
				continue
			}
			s := c.closeness(c.score[m], other) / math.Pow(float64(k.size), 1-c.at.size) /
				math.Pow(max(k.square, 1e-9), c.at.size/2)
			if s > most || s == most && int(m) < to {
				to, most = int(m), s
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

// sum is the sum of a cluster's members.
func (c *clusters) sum(k *cluster) vector {
	out := make(vector, 0, len(k.held))
	for t, at := range k.held {
		if w := c.with[t][at].weight; w > 0 {
			out = append(out, entry{t, w})
		}
	}
	slices.SortFunc(out, func(a, b entry) int { return cmp.Compare(a.term, b.term) })
	return out
}

// groups are the clusters as callers see them.
func (c *clusters) groups(points []Point, bags []bag, known int) []Group {
	out := make([]Group, known)
	of := map[int]int{}
	for i := range known {
		out[i] = Group{Seed: i, Center: -1}
		of[i] = i // they were opened first
	}
	members := map[int][]int{}
	for n := range bags {
		k := bags[n].cluster
		if _, ok := of[k]; !ok {
			of[k] = len(out)
			out = append(out, Group{Seed: -1, Center: -1})
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

// maxTold is how many terms stand for a group.
const maxTold = 12

// describe finds the most telling question of a group, and its most telling words.
func (c *clusters) describe(g *Group, k *cluster, bags []bag, members []int, points []Point) {
	slices.SortFunc(g.Members, func(a, b int) int { return cmp.Compare(points[a].Key, points[b].Key) })
	best := -1.0
	sum := c.sum(k)
	for _, n := range members {
		s := c.closeness(dot(bags[n].vector, sum), k) * (1 + math.Log(float64(len(bags[n].members)))/10)
		first := bags[n].members[0]
		if s > best+1e-9 || s > best-1e-9 && points[first].Key < points[g.Center].Key {
			best, g.Center = s, first
		}
	}
	type told struct {
		term   string
		weight float64
	}
	var list []told
	for _, e := range sum {
		list = append(list, told{c.names[e.term], e.weight / math.Sqrt(max(k.square, 1e-9))})
	}
	slices.SortFunc(list, func(a, b told) int {
		return cmp.Or(cmp.Compare(b.weight, a.weight), strings.Compare(a.term, b.term))
	})
	g.Terms = Seed{}
	for i, t := range list {
		if i == maxTold {
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
