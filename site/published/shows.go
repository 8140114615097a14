package published

import (
	"hash/maphash"
	"strings"
)

const maxPhrases = 100_000 // phrases of a page that is held against a change

// Shows says whether a page shows a change of its file, a diff of lines, or still what was there before; neither if its
// words do not tell, as of what no reader sees.
func Shows(page []byte, change string) (after, before bool) {
	var lines [2]strings.Builder
	for line := range strings.Lines(change) {
		switch line[0] {
		case '+':
			lines[0].WriteString(line[1:])
		case '-':
			lines[1].WriteString(line[1:])
		}
	}
	seed := maphash.MakeSeed()
	there := phrases(page, seed, maxPhrases)
	added, removed := phrases([]byte(lines[0].String()), seed, mostPhrases), phrases([]byte(lines[1].String()), seed, mostPhrases)
	count := func(of, without map[uint64]bool) (all, shown int) {
		for h := range of {
			if !without[h] {
				if all++; there[h] {
					shown++
				}
			}
		}
		return all, shown
	}
	is, has := count(added, removed)
	was, had := count(removed, added)
	after = has > 0 && 2*has >= is && 2*had <= was && had < max(was, 1)
	return after, !after && had > 0 && 2*had >= was && 2*has < max(is, 1)
}
