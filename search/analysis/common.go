package analysis

import (
	_ "embed"
	"math"
	"strconv"
	"strings"
	"sync"
)

// How common words are in technical English, by which a set of a few pages judges its words: see the command in words.
//
//go:embed english.txt
var commonWords string

// unlisted is the share of sections of a word that is not in the table.
const unlisted = 1. / 3000

var shares = sync.OnceValue(func() map[uint32]float32 {
	m := make(map[uint32]float32, strings.Count(commonWords, "\n"))
	for line := range strings.Lines(commonWords) {
		stem, tenths, _ := strings.Cut(strings.TrimSpace(line), " ")
		n, err := strconv.Atoi(tenths)
		if err != nil {
			panic("english.txt: " + line)
		}
		m[Hash(stem)] = float32(math.Pow(10, -float64(n)/10))
	}
	return m
})

// Common is the share of the sections of technical English that has a stem, by its hash; a small one if it is not
// known.
func Common(hash uint32) float64 {
	if share, ok := shares()[hash]; ok {
		return float64(share)
	}
	return unlisted
}
