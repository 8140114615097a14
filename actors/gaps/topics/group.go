package topics

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// A Point is a question for grouping.
type Point struct {
	Key   string // in the order of time, so that the first of a group stays its first
	Words Words
}

// A Seed is a group that is known already: its terms and their weights.
type Seed map[string]float64

// A Rarity says in how many sections of the documentation each term is, and how many sections there are.
type Rarity func(terms []string) (in []int, of int)

// Where the lines are drawn, fitted to the judged questions marked "tune": go test ./actors/gaps/topics -run
// TestGrouping -v -fit.
type lines struct {
	join  float64 // a question joins a group that it is at least so close to
	merge float64 // two groups become one
	known float64 // a question joins a group that is known already
	weak  float64 // what a word that is said of everything weighs
	docs  float64 // how much of a word's weight is its rarity in the documentation
	size  float64 // 0: closeness is the mean to all members; 1: closeness to what the members have in common
}

var drawn = lines{join: 0.3, merge: 0.2, known: 0.25, weak: 0.6, docs: 0.75, size: 1}

// A Group is a set of points that are about the same, and the words that they share.
type Group struct {
	Seed    int   // the known group that it goes on with; -1 if it is new
	Members []int // numbers of the points, in the order of their keys
	Center  int   // the point that is closest to all
	Terms   Seed  // the most telling, by weight
	Words   []string
}

// Collect groups the points. Known groups come first in the result, in their order, even if they have no members;
// the others follow in the order of their first points.
func Collect(points []Point, known []Seed, rarity Rarity) []Group {
	return collect(points, known, rarity, drawn)
}

func collect(points []Point, known []Seed, rarity Rarity, at lines) []Group {
	order := make([]int, len(points))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(points[a].Key, points[b].Key) })
	v := newVocabulary(points, known, rarity, at)
	bags := v.bags(points, order)
	c := newClusters(v, at, known)
	for n := range bags {
		c.place(n, bags)
	}
	for range 3 {
		if !c.settle(bags) {
			break
		}
	}
	c.merge(bags)
	c.settle(bags)
	return c.groups(points, bags, len(known))
}

// A vector is a sparse one, sorted by term.
type vector []entry

type entry struct {
	term   int32
	weight float64
}

func (v vector) norm() float64 {
	sum := 0.0
	for _, e := range v {
		sum += e.weight * e.weight
	}
	return math.Sqrt(sum)
}

// unit scales a vector to the length 1.
func (v vector) unit() vector {
	if n := v.norm(); n > 0 {
		for i := range v {
			v[i].weight /= n
		}
	}
	return v
}

// A bag is all the questions that have the same terms.
type bag struct {
	vector
	members []int
	cluster int
}

// A vocabulary is the terms of all points, numbered, with their weights.
type vocabulary struct {
	number map[string]int32
	names  []string
	weight []float64
	same   map[string]string // a term with a slip in it to the one that is meant
}

func newVocabulary(points []Point, known []Seed, rarity Rarity, at lines) *vocabulary {
	v := &vocabulary{number: map[string]int32{}}
	asked := map[string]int{}
	for _, p := range points {
		for _, w := range p.Words {
			asked[w.Term]++
		}
	}
	terms := make([]string, 0, len(asked))
	for t := range asked {
		terms = append(terms, t)
	}
	for _, seed := range known {
		for t := range seed {
			if asked[t] == 0 {
				asked[t] = 1
				terms = append(terms, t)
			}
		}
	}
	slices.Sort(terms)
	in, of := make([]int, len(terms)), 0
	if rarity != nil {
		in, of = rarity(terms)
	}
	said := make(map[string]int, len(terms))
	for i, t := range terms {
		said[t] = in[i]
	}
	v.same = slips(terms, asked, said)
	for t, meant := range v.same {
		asked[meant] += asked[t]
	}
	for i, t := range terms {
		v.number[t] = int32(i)
		v.names = append(v.names, t)
		w := rare(asked[t], len(points))
		if of > 0 {
			w = (1-at.docs)*w + at.docs*rare(in[i], of)
		}
		if weak[t] {
			w *= at.weak
		}
		v.weight = append(v.weight, w)
	}
	return v
}

// rare is 1 for what is in one of many, and near 0 for what is in all.
func rare(in, of int) float64 {
	n, all := float64(max(in, 1)), float64(max(of, in, 1))
	return max(0.05, math.Log(1+(all-n+0.5)/(n+0.5))/math.Log(1+(all-1+0.5)/1.5))
}

// bags makes one vector of all points that have the same terms, in the order of their first points.
func (v *vocabulary) bags(points []Point, order []int) []bag {
	var out []bag
	at := map[string]int{}
	var key strings.Builder
	for _, i := range order {
		vec := v.vector(points[i].Words)
		key.Reset()
		for _, e := range vec {
			key.WriteString(v.names[e.term])
			key.WriteByte(' ')
		}
		n, ok := at[key.String()]
		if !ok {
			n = len(out)
			at[key.String()] = n
			out = append(out, bag{vector: vec.unit(), cluster: -1})
		}
		out[n].members = append(out[n].members, i)
	}
	return out
}

func (v *vocabulary) vector(words Words) vector {
	vec := make(vector, 0, len(words))
	for _, w := range words {
		term := w.Term
		if meant, ok := v.same[term]; ok {
			term = meant
		}
		vec = append(vec, entry{v.number[term], 0})
	}
	slices.SortFunc(vec, func(a, b entry) int { return cmp.Compare(a.term, b.term) })
	vec = slices.CompactFunc(vec, func(a, b entry) bool { return a.term == b.term })
	for i := range vec {
		vec[i].weight = v.weight[vec[i].term]
	}
	return vec
}

// slips finds terms that are asked once and nowhere in the documentation, and are one letter away from one that is.
func slips(terms []string, asked, said map[string]int) map[string]string {
	const shortest = 5
	near := map[string]string{} // what is left of a known term without one of its letters
	better := func(a, b string) bool {
		x, y := asked[a]+said[a], asked[b]+said[b]
		return x > y || x == y && a < b
	}
	for _, t := range terms {
		if len(t) < shortest || asked[t] < 2 && said[t] == 0 {
			continue
		}
		for i := range len(t) {
			rest := t[:i] + t[i+1:]
			if have, ok := near[rest]; !ok || better(t, have) {
				near[rest] = t
			}
		}
		if have, ok := near[t]; !ok || better(t, have) {
			near[t] = t
		}
	}
	same := map[string]string{}
	for _, t := range terms {
		if len(t) < shortest || asked[t] > 1 || said[t] > 0 || strings.ContainsAny(t, "0123456789") {
			continue
		}
		if meant, ok := near[t]; ok && meant != t {
			same[t] = meant
			continue
		}
		for i := range len(t) {
			if meant, ok := near[t[:i]+t[i+1:]]; ok && meant != t && t[0] == meant[0] {
				same[t] = meant
				break
			}
		}
	}
	return same
}
