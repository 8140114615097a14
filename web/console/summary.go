package console

import (
	"html/template"
	"regexp"
)

// A fault is what is wrong with a field of a form.
type fault struct {
	Field string // its id
	Label template.HTML
	Text  template.HTML
}

var (
	faultyParts = regexp.MustCompile(`(?s)<label[^>]* for="([^"]+)"[^>]*>(.*?)</label>|<[a-z]+[^>]* id="([^"]+)"[^>]* aria-invalid="true"|<p class="fault"[^>]*>(.*?)</p>`)
	tags        = regexp.MustCompile(`<[^>]*>`)
)

// faultsOf returns what a page says of its fields, for the summary above the form. Forms are made in many ways, and what
// they show has all of it.
func faultsOf(content template.HTML) (list []fault) {
	labels := map[string]template.HTML{}
	field := ""
	for _, m := range faultyParts.FindAllStringSubmatch(string(content), -1) {
		switch {
		case m[1] != "":
			labels[m[1]] = template.HTML(tags.ReplaceAllString(m[2], "")) // text of our own templates, as they escaped it
		case m[3] != "":
			field = m[3]
		case m[4] != "":
			list = append(list, fault{field, labels[field], template.HTML(m[4])})
			field = ""
		}
	}
	return list
}
