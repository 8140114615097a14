// Package meaning finds sections by what they mean: it keeps the vectors that an embedding model made of them, on disk by
// the hash of what they say and in memory within 500 bytes each, and finds those that lie nearest to a question's.
package meaning

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

// A Model says how vectors were made. Vectors of one model mean nothing to another.
type Model struct {
	Name       string `json:"name"`                 // the endpoint's
	Dimensions int    `json:"dimensions,omitempty"` // that the endpoint is asked for; 0 for the model's own number
	Prefix     string `json:"prefix,omitempty"`     // before the text of a section
	Longest    int    `json:"longest,omitempty"`    // bytes of a section's text that are sent
}

// form is how sections are written out for a model. Another form takes the next number: vectors of the previous
// one are computed again.
const form = 1

// ID names the model on disk.
func (m Model) ID() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %d %d %q %q", form, m.Dimensions, m.Longest, m.Name, m.Prefix))
	return hex.EncodeToString(sum[:8])
}

// A Key is the hash of what a section says.
type Key [16]byte

// KeyOf is the key of a section that these texts make.
func KeyOf(texts ...[]byte) (k Key) {
	h := sha256.New()
	var length [8]byte
	for _, t := range texts {
		for i, n := 0, len(t); i < len(length); i, n = i+1, n>>8 {
			length[i] = byte(n)
		}
		h.Write(length[:])
		h.Write(t)
	}
	copy(k[:], h.Sum(nil))
	return k
}
