package meaning

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"sync"
)

// A rotation turns vectors of so many numbers: signs are changed, numbers change places, and blocks of a power of two
// are mixed by a Walsh-Hadamard transform, twice. The same numbers always get the same rotation.
type rotation struct {
	numbers int
	signs   [2][]bool
	places  [2][]int32
	over    []bool // signs of the wider vector that a sketch is taken of
}

var rotations sync.Map // by numbers

func newRotation(numbers int) *rotation {
	if r, ok := rotations.Load(numbers); ok {
		return r.(*rotation)
	}
	r := &rotation{numbers: numbers}
	random := rand.New(rand.NewPCG(0x646f63656e74, uint64(numbers)))
	flips := func(n int) []bool {
		out := make([]bool, n)
		for i := range out {
			out[i] = random.Uint64()&1 == 1
		}
		return out
	}
	for round := range r.signs {
		r.signs[round] = flips(numbers)
		places := make([]int32, numbers)
		for i := range places {
			places[i] = int32(i)
		}
		random.Shuffle(numbers, func(i, j int) { places[i], places[j] = places[j], places[i] })
		r.places[round] = places
	}
	r.over = flips(64 * sketchWords)
	kept, _ := rotations.LoadOrStore(numbers, r)
	return kept.(*rotation)
}

// apply turns a vector. Lengths and products of vectors stay what they are.
func (r *rotation) apply(vector []float32) []float32 {
	from, to := append([]float32(nil), vector...), make([]float32, r.numbers)
	for round := range r.signs {
		for i, place := range r.places[round] {
			v := from[i]
			if r.signs[round][i] {
				v = -v
			}
			to[place] = v
		}
		for at := 0; at < len(to); {
			n := 1 << (bits.Len(uint(len(to)-at)) - 1)
			hadamard(to[at : at+n])
			at += n
		}
		from, to = to, from
	}
	return from
}

// sketch is the signs of the first numbers of a turned vector. A vector with fewer numbers than a sketch has bits is
// filled up and mixed once more, so that each bit is the side of a plane of its own.
func (r *rotation) sketch(turned []float32) (out [sketchWords]uint64) {
	const width = 64 * sketchWords
	if len(turned) < width {
		wide := make([]float32, width)
		for i, v := range turned {
			if r.over[i] {
				v = -v
			}
			wide[i] = v
		}
		hadamard(wide)
		turned = wide
	}
	for i, v := range turned[:width] {
		if v > 0 {
			out[i/64] |= 1 << (i % 64)
		}
	}
	return out
}

// hadamard is the transform of a vector whose length is a power of two, scaled so that lengths stay.
func hadamard(v []float32) {
	for half := 1; half < len(v); half *= 2 {
		for at := 0; at < len(v); at += 2 * half {
			for i := at; i < at+half; i++ {
				a, b := v[i], v[i+half]
				v[i], v[i+half] = a+b, a-b
			}
		}
	}
	scale := float32(1 / math.Sqrt(float64(len(v))))
	for i := range v {
		v[i] *= scale
	}
}
