package analysis

// CommonPrefix is how many bytes two words begin with in common.
func CommonPrefix(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// Slips is the number of letters left out, added, replaced or swapped with their neighbor between two words, or
// more than most if there are more.
func Slips(a []rune, word string, most int) int {
	var buf [48]rune
	b := buf[:0]
	for _, r := range word {
		b = append(b, r)
	}
	if d := len(a) - len(b); d > most || -d > most || len(a) > 46 {
		return most + 1
	}
	var rows [3][48]int
	before, last, row := &rows[0], &rows[1], &rows[2]
	for j := range len(b) + 1 {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		least := i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			n := min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				n = min(n, before[j-2]+1)
			}
			row[j] = n
			least = min(least, n)
		}
		if least > most {
			return most + 1
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
