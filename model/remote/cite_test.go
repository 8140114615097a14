package remote

import (
	"reflect"
	"strings"
	"testing"

	"docent/model"
)

// Every way of cutting the model's text into chunks gives the same answer.
func TestCitationsAreTakenOutOfTheText(t *testing.T) {
	for _, c := range []struct {
		in, out string
		cite    []int
	}{
		{"plain text", "plain text", nil},
		{"Yes [1].", "Yes.", []int{10}},
		{"Yes[1]. And [2] more", "Yes. And more", []int{10, 20}},
		{"both [1, 2] and [2][1]", "both and", []int{10, 20, 20, 10}},
		{"invented [9] marker", "invented marker", nil},
		{"list[7] stays", "list[7] stays", nil},
		{"a year [2024] stays", "a year [2024] stays", nil},
		{"a [1](https://x.example) link", "a [1](https://x.example) link", nil},
		{"a [link](/x) and [ ] and [x]", "a [link](/x) and [ ] and [x]", nil},
		{"Run this [1]: so", "Run this: so", []int{10}},
		{"[1]: https://x.example", "[1]: https://x.example", nil},
		{"code `a [1]` text [1]", "code `a [1]` text", []int{10}},
		{"```go\nx := a [1]\n```\nend [2]", "```go\nx := a [1]\n```\nend", []int{20}},
		{"```` \n``` [1]\n````\nend [2]", "```` \n``` [1]\n````\nend", []int{20}},
		{"an open `span [1]\nnext [1]", "an open `span [1]\nnext", []int{10}},
		{"ends [", "ends [", nil},
		{"ends [1", "ends [1", nil},
		{"ends [1]", "ends", []int{10}},
		{"* item [1]\n* item [2]\n", "* item\n* item\n", []int{10, 20}},
		{"long [" + strings.Repeat("1, ", 15) + "1] x", "long x", []int{10}},
		{"longer [" + strings.Repeat("1, ", 40) + "1] x", "longer [" + strings.Repeat("1, ", 40) + "1] x", nil},
	} {
		for size := 1; size <= len(c.in)+1; size++ {
			var out strings.Builder
			var cite []int
			ct := &citer{given: []int{10, 20, 30}, emit: func(d model.Delta) error {
				out.WriteString(d.Text)
				cite = append(cite, d.Cite...)
				return nil
			}}
			for rest := c.in; rest != ""; {
				n := min(size, len(rest))
				if err := ct.write(rest[:n]); err != nil {
					t.Fatal(err)
				}
				rest = rest[n:]
			}
			if err := ct.flush(); err != nil {
				t.Fatal(err)
			}
			if out.String() != c.out || !reflect.DeepEqual(cite, c.cite) {
				t.Errorf("%q by %d: %q %v, want %q %v", c.in, size, out.String(), cite, c.out, c.cite)
				break
			}
		}
	}
}
