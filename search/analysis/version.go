package analysis

import (
	"regexp"
	"strconv"
)

// versionNumber matches a version in a title: 8.10.0, v2.1, 1.0.0-rc.1.
var versionNumber = regexp.MustCompile(`(?i)(?:^|[^\w.])v?(\d{1,4})\.(\d{1,4})(?:\.(\d{1,6}))?(-?(?:alpha|beta|rc|pre)[\w.]*)?(?:$|[^\w.]|\.$)`)

// ReleaseIn is the version that a title names, as numbers that compare; nil if it names none.
func ReleaseIn(title string) []int {
	m := versionNumber.FindStringSubmatch(title)
	if m == nil {
		return nil
	}
	out := make([]int, 4)
	for i := range 3 {
		out[i], _ = strconv.Atoi(m[i+1])
	}
	if m[4] == "" {
		out[3] = 1 // a release goes before what led to it
	}
	return out
}
