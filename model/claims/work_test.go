package claims

import (
	"testing"

	"docent/internal/testing/growth"
)

// Work on what models and pages write.
func TestWorkGrowsNoFasterThanItsText(t *testing.T) {
	growth.Check(t, "docent/model/claims",
		func(t *testing.T, text string) {
			pieces, _ := split(t, text, 1)
			for _, p := range pieces {
				_ = RoleOf(p)
			}
		},
		func(t *testing.T, text string) {
			read := Read(text, text)
			pieces, _ := split(t, text, 4096)
			for _, p := range pieces {
				Parse(p.Text, p.Kind == Code).Against(read, read)
			}
		},
		func(t *testing.T, text string) {
			var p Places
			p.Text(text)
			pieces, _ := split(t, text, 4096)
			for _, q := range pieces {
				p.Clean(q.Text, false)
			}
		},
	)
}
