package gaps

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"docent/internal/corpora"
	"docent/search/analysis"
)

var fit = flag.Bool("fit", false, "look for better lines among those around")

type judgedSet struct {
	name   string
	points []Point
	texts  []string
	topic  []int // numbers; of its own for each question that belongs to nothing
}

// judged reads the judged questions of one corpus and split.
func judged(t testing.TB, corpus, split string) judgedSet {
	t.Helper()
	data, err := os.ReadFile("testdata/judged.txt")
	if err != nil {
		t.Fatal(err)
	}
	set := judgedSet{name: corpus + " " + split}
	topic, wanted, alone := 0, false, false
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || line[0] == '#':
		case strings.HasPrefix(line, "= "):
			f := strings.Fields(line)
			wanted, alone = f[1] == corpus && f[2] == split, f[3] == "-"
			topic++
		case wanted:
			if alone {
				topic++
			}
			set.texts = append(set.texts, line)
			set.points = append(set.points, Point{Key: fmt.Sprintf("%04d", len(set.points)), Words: Read(line)})
			set.topic = append(set.topic, topic)
		}
	}
	return set
}

// rarityOf counts terms in the sections of a corpus as the index does: what stands between two headings.
func rarityOf(t testing.TB, corpus string) Rarity {
	t.Helper()
	in, of := map[string]int{}, 0
	a := analysis.Get()
	defer a.Put()
	for name, body := range corpora.Judged(t, corpus) {
		if !strings.HasSuffix(name, ".md") && !strings.HasSuffix(name, ".mdx") {
			continue
		}
		for section := range strings.SplitSeq(string(body), "\n#") {
			of++
			seen := map[string]bool{}
			a.Tokens(section, "en", func(tok analysis.Token) {
				if !seen[tok.Term] {
					seen[tok.Term] = true
					in[tok.Term]++
				}
			})
		}
	}
	return func(terms []string) ([]int, int) {
		out := make([]int, len(terms))
		for i, t := range terms {
			out[i] = in[t]
		}
		return out, of
	}
}

// scores are B-cubed: for each question the share of its group that is of its topic, and the share of its topic that is
// in its group; and purity, the share of questions that are of their group's most frequent topic.
type scores struct{ precision, recall, purity float64 }

func (s scores) f() float64 { return 2 * s.precision * s.recall / (s.precision + s.recall) }

func score(set judgedSet, groups []Group) (s scores) {
	group := make([]int, len(set.points))
	for n, g := range groups {
		for _, m := range g.Members {
			group[m] = n
		}
	}
	for i := range set.points {
		both, sameGroup, sameTopic := 0.0, 0.0, 0.0
		for j := range set.points {
			g, t := group[i] == group[j], set.topic[i] == set.topic[j]
			if g {
				sameGroup++
			}
			if t {
				sameTopic++
			}
			if g && t {
				both++
			}
		}
		s.precision += both / sameGroup
		s.recall += both / sameTopic
	}
	for _, g := range groups {
		count, most := map[int]int{}, 0
		for _, m := range g.Members {
			count[set.topic[m]]++
			most = max(most, count[set.topic[m]])
		}
		s.purity += float64(most)
	}
	n := float64(len(set.points))
	return scores{s.precision / n, s.recall / n, s.purity / n}
}

func TestGroupingOfJudgedQuestions(t *testing.T) {
	rarity := map[string]Rarity{}
	for _, corpus := range []string{"prometheus", "mintlify", "vite"} {
		rarity[corpus] = rarityOf(t, corpus)
		for _, split := range []string{"tune", "held"} {
			set := judged(t, corpus, split)
			if len(set.points) == 0 {
				continue
			}
			groups := Collect(set.points, nil, rarity[corpus])
			s := score(set, groups)
			t.Logf("%s: %d questions, %d groups: precision %.3f, recall %.3f, F %.3f, purity %.3f", set.name,
				len(set.points), len(groups), s.precision, s.recall, s.f(), s.purity)
			if testing.Verbose() && split == "tune" {
				for _, g := range groups {
					t.Log("  ", g.Words)
					for _, m := range g.Members {
						t.Logf("      %d %s", set.topic[m], set.texts[m])
					}
				}
			}
		}
	}
	if *fit {
		fitLines(t, rarity)
	}
}

func fitLines(t *testing.T, rarity map[string]Rarity) {
	best := 0.0
	for _, join := range []float64{0.15, 0.18, 0.21, 0.24, 0.27, 0.3, 0.35} {
		for _, merge := range []float64{0.15, 0.2, 0.25, 0.3, 0.4, 1} {
			for _, weak := range []float64{0.15, 0.25, 0.35, 0.5} {
				for _, docs := range []float64{0, 0.25, 0.5, 0.75} {
					for _, size := range []float64{0, 0.25, 0.5, 0.75, 1} {
						at := lines{join, merge, 0.35, weak, docs, size}
						sum, low := 0.0, 1.0
						for _, corpus := range []string{"prometheus", "mintlify"} {
							r := rarity[corpus]
							set := judged(t, corpus, "tune")
							s := score(set, collect(set.points, nil, r, at))
							sum += s.f() / 2
							low = min(low, s.precision)
						}
						if sum > best && low > 0.8 {
							best = sum
							t.Logf("%+v: F %.3f, least precision %.3f", at, sum, low)
						}
					}
				}
			}
		}
	}
}
