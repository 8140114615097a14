package meaning

import (
	"encoding/binary"
	"math"
	"math/bits"
	"slices"
)

// What a section takes in memory, whatever its model: a sketch of 512 bits, and a code of 384 bytes at the most. Of a
// vector of up to 384 numbers each has a byte; of one with 768 half a byte, with 1,536 a quarter, with 3,072 a bit.
// Beyond that, numbers are left out. Vectors are turned by a fixed rotation first: it spreads what they hold evenly over
// all numbers, so that few bits for many of them lose less than many bits for few, and so that leaving some out is a
// random projection (docs/decisions/0028-meaning.md).
const (
	sketchWords = 8
	codeBytes   = 384
	maxNumbers  = 8 * codeBytes
)

// A Field holds the vectors of the sections of one state of a documentation. It never changes.
type Field struct {
	turn     *rotation
	bits     int // of a number
	size     int // bytes of a code
	sketches []uint64
	codes    []byte
	scales   []float32 // what a code's numbers are multiplied by
	sections []uint32  // that a row stands for, growing
}

// A Near is a section that lies near to a question.
type Near struct {
	Section    uint32
	Similarity float32 // the cosine, as far as the codes tell
}

// steps are the distances between the levels of a code by its bits, for numbers that are spread normally around 0 with
// a deviation of 1, as they are after a rotation: those that lose least (Max, 1960).
var steps = [9]float64{1: 1.596, 2: 0.9957, 3: 0.586, 4: 0.3352, 5: 0.1881, 6: 0.1041, 7: 0.0569, 8: 0.0308}

// newField makes room for the vectors of a number of sections; all have the same count of numbers.
func newField(numbers, sections int) *Field {
	f := &Field{turn: newRotation(numbers)}
	kept := min(numbers, maxNumbers)
	f.bits = min(8, 8*codeBytes/kept)
	f.size = (kept + 7) / 8 * f.bits
	f.sketches = make([]uint64, 0, sections*sketchWords)
	f.codes = make([]byte, spare, sections*f.size+spare)
	f.scales = make([]float32, 0, sections)
	f.sections = make([]uint32, 0, sections)
	return f
}

// Len is how many sections have vectors.
func (f *Field) Len() int { return len(f.sections) }

// Bytes is what the field holds.
func (f *Field) Bytes() int64 {
	return int64(8*cap(f.sketches) + cap(f.codes) + 4*cap(f.scales) + 4*cap(f.sections))
}

// A row is what is kept of a vector: its scale, its sketch and its code, as bytes.
func (f *Field) rowBytes() int { return 4 + 8*sketchWords + f.size }

// encoded appends the row of a vector.
func (f *Field) encoded(row []byte, vector []float32) []byte {
	turned := f.turn.apply(normal(vector))
	code := make([]byte, f.size)
	scale := encode(code, turned[:min(len(turned), maxNumbers)], f.bits)
	row = binary.LittleEndian.AppendUint32(row, math.Float32bits(scale))
	for _, word := range f.turn.sketch(turned) {
		row = binary.LittleEndian.AppendUint64(row, word)
	}
	return append(row, code...)
}

// add adds a row for a section. Sections come in their order.
func (f *Field) add(section uint32, row []byte) {
	f.scales = append(f.scales, math.Float32frombits(binary.LittleEndian.Uint32(row)))
	row = row[4:]
	for range sketchWords {
		f.sketches = append(f.sketches, binary.LittleEndian.Uint64(row))
		row = row[8:]
	}
	f.codes = append(append(f.codes[:len(f.codes)-spare], row...), make([]byte, spare)...)
	f.sections = append(f.sections, section)
}

// encode writes numbers as codes of a few bits and returns their scale, chosen so that a vector's product with itself is
// that of the numbers.
func encode(code []byte, numbers []float32, width int) float32 {
	var sum float64
	for _, v := range numbers {
		sum += float64(v) * float64(v)
	}
	if sum == 0 {
		return 0
	}
	levels := 1 << width
	step := steps[width] * math.Sqrt(sum/float64(len(numbers)))
	var product float64 // of the numbers and their codes
	for i, v := range numbers {
		level := min(max(int(math.Floor(float64(v)/step))+levels/2, 0), levels-1)
		at, bit := i*width/8, i*width%8
		code[at] |= byte(level << bit)
		if bit+width > 8 {
			code[at+1] |= byte(level >> (8 - bit))
		}
		product += float64(v) * (float64(level) - float64(levels-1)/2)
	}
	return float32(sum / product)
}

// spare is how many bytes follow the last code, so that it can be read eight at a time as the others are.
const spare = 8

// dot is the product of a question's numbers with a row's. Eight codes take as many bytes as each has bits.
func (f *Field) dot(p *Probe, row int) float32 {
	code := f.codes[row*f.size : (row+1)*f.size+spare]
	width, mask := f.bits, uint64(1)<<f.bits-1
	var a, b float32
	for i := 0; i+8 <= len(p.numbers); i += 8 {
		q, w := (*[8]float32)(p.numbers[i:]), binary.LittleEndian.Uint64(code[i/8*width:])
		a += q[0]*float32(int32(w&mask)) + q[1]*float32(int32(w>>width&mask)) +
			q[2]*float32(int32(w>>(2*width)&mask)) + q[3]*float32(int32(w>>(3*width)&mask))
		w >>= 4 * width
		b += q[4]*float32(int32(w&mask)) + q[5]*float32(int32(w>>width&mask)) +
			q[6]*float32(int32(w>>(2*width)&mask)) + q[7]*float32(int32(w>>(3*width)&mask))
	}
	return (a + b - p.sum*float32(int(1)<<f.bits-1)/2) * f.scales[row]
}

// A Probe is a question's vector as a field is asked with it.
type Probe struct {
	sketch  [sketchWords]uint64
	numbers []float32
	sum     float32 // of the numbers
}

// Probe prepares a question's vector. It is nil if the vector is not one of the field's model.
func (f *Field) Probe(vector []float32) *Probe {
	if len(vector) != f.turn.numbers {
		return nil
	}
	turned := f.turn.apply(normal(vector))
	p := &Probe{numbers: slices.Clip(turned[:min(len(turned), maxNumbers)]), sketch: f.turn.sketch(turned)}
	if len(turned) > maxNumbers { // the rest has no part in the product
		p.numbers = normal(p.numbers)
	}
	for _, v := range p.numbers {
		p.sum += v
	}
	p.numbers = append(p.numbers, make([]float32, (8-len(p.numbers)%8)%8)...)
	return p
}

// rerank is how many sections are compared by their codes after the sketches have chosen them: at least so many, and of
// a large field a share.
const (
	rerankLeast = 600
	rerankShare = 80
)

// Nearest finds the n sections that lie nearest to a question among those that are allowed, best first. It looks at all
// sketches, and at the codes of the sections whose sketches differ least.
func (f *Field) Nearest(p *Probe, n int, allowed func(section uint32) bool) []Near {
	var count [64*sketchWords + 1]int32
	distance := make([]uint16, len(f.sections))
	k := p.sketch
	for row := range distance {
		s := (*[sketchWords]uint64)(f.sketches[row*sketchWords:])
		d := bits.OnesCount64(s[0]^k[0]) + bits.OnesCount64(s[1]^k[1]) + bits.OnesCount64(s[2]^k[2]) +
			bits.OnesCount64(s[3]^k[3]) + bits.OnesCount64(s[4]^k[4]) + bits.OnesCount64(s[5]^k[5]) +
			bits.OnesCount64(s[6]^k[6]) + bits.OnesCount64(s[7]^k[7])
		if allowed != nil && !allowed(f.sections[row]) {
			d = 64*sketchWords + 1
			distance[row] = uint16(d)
			continue
		}
		distance[row] = uint16(d)
		count[d]++
	}
	wanted := int32(max(rerankLeast, len(distance)/rerankShare, 4*n))
	limit, sum := uint16(0), int32(0)
	for d, c := range count {
		if sum += c; sum >= wanted || d == len(count)-1 {
			limit = uint16(d)
			break
		}
	}
	found := make([]Near, 0, sum)
	for row, d := range distance {
		if d <= limit {
			found = append(found, Near{f.sections[row], f.dot(p, row)})
		}
	}
	slices.SortFunc(found, func(a, b Near) int {
		switch {
		case a.Similarity > b.Similarity:
			return -1
		case a.Similarity < b.Similarity:
			return 1
		}
		return int(a.Section) - int(b.Section)
	})
	return found[:min(n, len(found))]
}

// Similarity is how near a section lies to a question; ok is false if it has no vector.
func (f *Field) Similarity(p *Probe, section uint32) (s float32, ok bool) {
	row, ok := slices.BinarySearch(f.sections, section)
	if !ok {
		return 0, false
	}
	return f.dot(p, row), true
}

// Background is what a field's sections have in common with any question: the mean and the spread of the similarities
// of a sample. Models differ in where they put texts that have nothing to do with each other.
func (f *Field) Background(p *Probe) (mean, spread float64) {
	const sample = 256
	step := max(1, len(f.sections)/sample)
	n, sum, squares := 0, 0.0, 0.0
	for row := 0; row < len(f.sections); row += step {
		v := float64(f.dot(p, row))
		n, sum, squares = n+1, sum+v, squares+v*v
	}
	if n == 0 {
		return 0, 0
	}
	mean = sum / float64(n)
	return mean, math.Sqrt(max(0, squares/float64(n)-mean*mean))
}

// normal is a vector with the length 1.
func normal(v []float32) []float32 {
	var sum float64
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	out := make([]float32, len(v))
	if sum == 0 || math.IsNaN(sum) || math.IsInf(sum, 0) {
		return out
	}
	scale := float32(1 / math.Sqrt(sum))
	for i, x := range v {
		out[i] = x * scale
	}
	return out
}
