package page

import (
	"slices"
	"testing"
)

func TestSectionsStandAround(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		levels []int
		at     int
		want   []int
	}{
		"those below":                      {[]int{0, 2, 2, 3, 2}, 0, []int{0, 1, 2, 4}},
		"below the title":                  {[]int{0, 1, 2, 3, 2}, 0, []int{1, 2, 4}},
		"those beside":                     {[]int{0, 2, 2, 3, 2}, 1, []int{0, 1, 2, 4}},
		"one below is none":                {[]int{0, 2, 2, 3, 2}, 2, []int{0, 1, 2, 4}},
		"below a section":                  {[]int{0, 2, 3, 3, 2}, 1, []int{1, 2, 3}},
		"beside a section below a section": {[]int{0, 2, 3, 3, 2}, 3, []int{1, 2, 3}},
		"alone":                            {[]int{0}, 0, nil},
		"with one":                         {[]int{0, 2}, 1, nil},
		"a reference":                      {append([]int{0}, slices.Repeat([]int{2}, 40)...), 1, nil},
	} {
		all := make([]Section, len(c.levels))
		for i, l := range c.levels {
			all[i].Level = l
		}
		if got := Around(all, c.at); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, not %v", name, got, c.want)
		}
	}
}
