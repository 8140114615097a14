package topics

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// A Kind is what is wrong with the answer to a question. One question may be of several.
type Kind uint8

const (
	Unanswered Kind = 1 << iota // the documentation does not answer it
	Doubt                       // the answer says itself that it may be none
	RatedDown                   // a reader did not find it good
)

// A Question was not answered well.
type Question struct {
	ID, Thread string // ids sort by time
	Text       string // as it stands by itself
	// Own is what the reader has asked in other words than Text, and Before what was said before that it leans on; both
	// are empty of a question that stands by itself.
	Own, Before string
	Asker       string // who asked: nobody is counted twice
	Asked       time.Time
	Kind        Kind
	Comment     string // that the reader left
	Words       Words
}

// A Topic is a group of questions about the same, that the documentation lacks.
type Topic struct {
	Seed      int    // the known topic that it goes on with; -1 if it is new
	ID        string // its first question's id, for a new one
	Question  string // the most telling one
	Words     []string
	Terms     Seed
	Questions []Question // newest first
	Askers    int
	First     time.Time
	Last      time.Time

	Unanswered, Doubt, RatedDown int

	weight float64
}

// halfLife is the time after which an asker counts half.
const halfLife = 14 * 24 * time.Hour

// Topics groups questions and ranks the groups: by how many different readers asked, recent ones counting more. Known
// topics without a question are left out.
func Topics(questions []Question, known []Seed, rarity Rarity, now time.Time) []Topic {
	points := make([]Point, len(questions))
	for i, q := range questions {
		points[i] = Point{Key: q.ID, Words: q.Words}
	}
	var out []Topic
	for _, g := range Collect(points, known, rarity) {
		if len(g.Members) == 0 {
			continue
		}
		t := Topic{Seed: g.Seed, ID: questions[g.Members[0]].ID, Question: questions[g.Center].Text, Words: g.Words,
			Terms: g.Terms, Questions: make([]Question, 0, len(g.Members))}
		for _, m := range g.Members {
			t.Questions = append(t.Questions, questions[m])
		}
		t.count(now)
		out = append(out, t)
	}
	slices.SortFunc(out, func(a, b Topic) int {
		return cmp.Or(cmp.Compare(b.weight, a.weight), b.Last.Compare(a.Last), cmp.Compare(a.ID, b.ID))
	})
	return out
}

// count counts a topic's questions and askers.
func (t *Topic) count(now time.Time) {
	slices.SortFunc(t.Questions, func(a, b Question) int {
		return cmp.Or(b.Asked.Compare(a.Asked), cmp.Compare(b.ID, a.ID))
	})
	t.Last, t.First = t.Questions[0].Asked, t.Questions[len(t.Questions)-1].Asked
	seen := map[string]bool{}
	for _, q := range t.Questions {
		if !seen[q.Asker] { // the newest first
			seen[q.Asker] = true
			t.weight += math.Exp2(-max(0, now.Sub(q.Asked).Hours()) / halfLife.Hours())
		}
		if q.Kind&Unanswered != 0 {
			t.Unanswered++
		}
		if q.Kind&Doubt != 0 {
			t.Doubt++
		}
		if q.Kind&RatedDown != 0 {
			t.RatedDown++
		}
	}
	t.Askers = len(seen)
}

// Matches says which of the points are about a known topic.
func Matches(points []Point, known Seed, rarity Rarity) []int {
	groups := Collect(points, []Seed{known}, rarity)
	return groups[0].Members
}

// A Said is a question in all its wordings that are the same but for case and space, and how often it was asked.
type Said struct {
	Text        string
	Own, Before string // see Question
	Times       int
	Kind        Kind
	Last        time.Time
}

// Wordings are the different questions of a topic, the most asked first and the newest among equals; at most n.
func (t *Topic) Wordings(n int) []Said {
	at := map[string]int{}
	var out []Said
	for _, q := range t.Questions {
		key := plain(q.Text)
		i, ok := at[key]
		if !ok {
			i = len(out)
			at[key] = i
			out = append(out, Said{Text: q.Text, Own: q.Own, Before: q.Before, Last: q.Asked})
		}
		out[i].Times++
		out[i].Kind |= q.Kind
	}
	slices.SortStableFunc(out, func(a, b Said) int { return cmp.Compare(b.Times, a.Times) })
	return out[:min(n, len(out))]
}
