package site

import (
	"cmp"
	"testing"
)

// Versions are in the order of their numbers.
func TestVersionsAreOrderedByTheirNumbers(t *testing.T) {
	ordered := []string{"next", "v0.9", "1.0-rc.1", "1.0", "1.2.x", "1.9", "v1.10", "2", "10.1", "latest"}
	for i, a := range ordered {
		for k, b := range ordered {
			if got := compareVersions(a, b); got != cmp.Compare(i, k) {
				t.Errorf("%s and %s compare as %d", a, b, got)
			}
		}
	}
}
