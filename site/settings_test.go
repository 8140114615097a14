package site

import (
	"errors"
	"testing"

	"docent/api"
)

// A pattern that is none is refused: nothing would be left out by it.
func TestAPatternThatIsNoneIsRefused(t *testing.T) {
	err := CheckPatterns(api.Project{Include: []string{"docs/"}, Exclude: []string{"ok/", "internal/[", `a\`}})
	var invalid *api.InvalidError
	if !errors.As(err, &invalid) || len(invalid.Problems) != 2 || invalid.Problems[0].Field != "exclude[1]" {
		t.Errorf("%v", err)
	}
	if err := CheckPatterns(api.Project{Exclude: []string{"internal/", "!x.md"}}); err != nil {
		t.Errorf("%v", err)
	}
}
