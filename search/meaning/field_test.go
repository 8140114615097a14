package meaning

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"docent/internal/testing/need"
)

// clustered makes vectors as texts have them: around subjects, with much in common, and in few of the directions that
// there are.
func clustered(n, numbers int, seed uint64) [][]float32 {
	const directions = 60
	random := rand.New(rand.NewPCG(seed, 7))
	common := gaussian(random, directions)
	subjects := make([][]float32, 100)
	for i := range subjects {
		subjects[i] = gaussian(random, directions)
	}
	leads := make([][]float32, directions)
	for i := range leads {
		leads[i] = gaussian(random, numbers)
	}
	out := make([][]float32, n)
	for i := range out {
		v := gaussian(random, numbers)
		for k := range v {
			v[k] *= 0.5
		}
		s, own := subjects[random.IntN(len(subjects))], gaussian(random, directions)
		for d, lead := range leads {
			x := 0.8*own[d] + s[d] + 0.7*common[d]
			for k := range v {
				v[k] += x * lead[k]
			}
		}
		out[i] = normal(v)
	}
	return out
}

func gaussian(random *rand.Rand, n int) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(random.NormFloat64())
	}
	return v
}

func filled(vectors [][]float32) *Field {
	f := newField(len(vectors[0]), len(vectors))
	for i, v := range vectors {
		f.add(uint32(i), f.encoded(nil, v))
	}
	return f
}

// exactly finds what lies nearest by the vectors themselves.
func exactly(vectors [][]float32, q []float32, n int) []uint32 {
	sims := make([]float32, len(vectors))
	order := make([]uint32, len(vectors))
	for i, v := range vectors {
		for k := range v {
			sims[i] += v[k] * q[k]
		}
		order[i] = uint32(i)
	}
	slices.SortFunc(order, func(a, b uint32) int {
		switch {
		case sims[a] > sims[b]:
			return -1
		case sims[a] < sims[b]:
			return 1
		}
		return 0
	})
	return order[:n]
}

// What lies nearest by the vectors is found by sketches and codes, whatever number of dimensions a model has, within 500
// bytes a section.
func TestTheNearestAreFoundWithinTheMemoryOfASection(t *testing.T) {
	need.NoRace(t, "one goroutine computes for long")
	for _, numbers := range []int{100, 384, 1536, 4096} {
		t.Run(fmt.Sprint(numbers), func(t *testing.T) {
			vectors := clustered(620, numbers, 1)
			vectors, questions := vectors[:600], vectors[600:]
			f := filled(vectors)
			if per := float64(f.Bytes()) / float64(f.Len()); per > 500 {
				t.Errorf("%.0f bytes a section", per)
			}
			same, first, asked := 0, 0, len(questions)
			for _, q := range questions {
				want := exactly(vectors, q, 10)
				got := f.Nearest(f.Probe(q), 10, nil)
				for i, g := range got {
					if slices.Contains(want, g.Section) {
						same++
					}
					if i == 0 && g.Section == want[0] {
						first++
					}
				}
			}
			t.Logf("of the ten nearest %.3f are found, the first %.3f, %.0f bytes", float64(same)/float64(10*asked), float64(first)/float64(asked), float64(f.Bytes())/float64(f.Len()))
			if same < 80*asked/10 {
				t.Errorf("of the ten nearest only %d of %d are found", same, 10*asked)
			}
		})
	}
}

func BenchmarkNearest(b *testing.B) {
	for _, numbers := range []int{384, 1536} {
		for _, n := range []int{10_000, 100_000} {
			f := filled(clustered(n, numbers, 1))
			q := f.Probe(clustered(1, numbers, 2)[0])
			b.Run(fmt.Sprintf("%d/%d", numbers, n), func(b *testing.B) {
				for b.Loop() {
					f.Nearest(q, 50, func(s uint32) bool { return s%7 != 0 })
				}
			})
		}
	}
}
