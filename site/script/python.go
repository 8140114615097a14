package script

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"
)

var (
	pythonText   = `(?:[rRuUbBfF]{0,2})(?:"""((?s:.*?))"""|'''((?s:.*?))'''|"((?:[^"\\\n]|\\.)*)"|'((?:[^'\\\n]|\\.)*)')`
	pythonValue  = regexp.MustCompile(`(?m)^([A-Za-z_]\w*)[ \t]*(?::[^=\n]*)?=[ \t]*` + pythonText)
	pythonList   = regexp.MustCompile(`(?m)^([A-Za-z_]\w*)[ \t]*(?::[^=\n]*)?\+?=[ \t]*[\[\(\{]((?s:.*?))^?[\]\)\}][ \t]*(?:#.*)?$`)
	pythonNamed  = regexp.MustCompile(`(?m)^([A-Za-z_]\w*)[ \t]*=[ \t]*([A-Za-z_]\w*)[ \t]*(?:#.*)?$`)
	pythonEnv    = regexp.MustCompile(`(?m)^([A-Za-z_]\w*)[ \t]*=[ \t]*os\.(?:environ\.get|getenv)\([^,()\n]*,[ \t]*` + pythonText + `[ \t]*\)`)
	pythonField  = regexp.MustCompile(`\{([A-Za-z_]\w*)\}`)
	pythonAppend = regexp.MustCompile(`(?m)^([A-Za-z_]\w*)\.(append|extend)\((.*)\)`)
	pythonString = regexp.MustCompile(pythonText)
	pythonNoise  = regexp.MustCompile(`(?m)#.*$|[\s,\[\]\(\)+]`)
)

// maxFormatted bounds the bytes of a text that is made of others.
const maxFormatted = 4096

// Python reads the texts and lists of texts that a program of Python gives to names at its top. A list that holds
// anything else is in computed. What is taken from the environment is its default.
func Python(src string) (values map[string]string, lists map[string][]string, computed map[string]bool) {
	values, lists, computed = map[string]string{}, map[string][]string{}, map[string]bool{}
	for _, m := range pythonEnv.FindAllStringSubmatch(src, -1) {
		values[m[1]] = cmp.Or(m[2], m[3], m[4], m[5])
	}
	for _, m := range pythonValue.FindAllStringSubmatch(src, -1) {
		v := cmp.Or(m[2], m[3], m[4], m[5])
		if before, _, _ := strings.Cut(m[0][strings.IndexByte(m[0], '=')+1:], v); strings.ContainsAny(before, "fF") {
			left := maxFormatted - len(v) // texts that are made of each other would grow without end
			v = pythonField.ReplaceAllStringFunc(v, func(field string) string {
				of := values[field[1:len(field)-1]]
				if left -= len(of); of == "" || left < 0 {
					return field
				}
				return of
			})
		}
		values[m[1]] = v
	}
	for _, m := range pythonNamed.FindAllStringSubmatch(src, -1) {
		if v, known := values[m[2]]; known {
			values[m[1]] = v
		}
	}
	take := func(name, of string) {
		for _, m := range pythonString.FindAllStringSubmatch(of, -1) {
			lists[name] = append(lists[name], cmp.Or(m[1], m[2], m[3], m[4]))
		}
		if rest := pythonNoise.ReplaceAllString(pythonString.ReplaceAllString(of, ""), ""); strings.Trim(rest, ":") != "" {
			computed[name] = true
		}
	}
	for _, m := range pythonList.FindAllStringSubmatch(src, -1) {
		take(m[1], m[2])
	}
	for _, m := range pythonAppend.FindAllStringSubmatch(src, -1) {
		take(m[1], m[3])
	}
	return values, lists, computed
}

var (
	extLinks = regexp.MustCompile(`(?ms)^extlinks\b[^={]*=\s*\{(.*?)^?\}[ \t]*$`)
	extLink  = regexp.MustCompile(`["']([\w-]+)["']\s*:\s*[(\[]\s*([^()\[\]\n,]+?)\s*,\s*([^()\[\]]+?)\s*,?\s*[)\]]`)
)

// ExtLinks are the roles of Sphinx's extension extlinks by their names: what an address and a text are made with.
func ExtLinks(src string) map[string][2]string {
	m := extLinks.FindStringSubmatch(src)
	if m == nil {
		return nil
	}
	all := extLink.FindAllStringSubmatch(m[1], -1)
	for i, of := range all {
		src += fmt.Sprintf("\ndocent_at_%d = %s\ndocent_as_%d = %s\n", i, of[2], i, of[3])
	}
	values, _, _ := Python(src)
	out := map[string][2]string{}
	for i, of := range all {
		if at := values[fmt.Sprintf("docent_at_%d", i)]; strings.Contains(at, "%s") {
			out[of[1]] = [2]string{at, values[fmt.Sprintf("docent_as_%d", i)]}
		}
	}
	return out
}
