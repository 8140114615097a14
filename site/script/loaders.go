package script

import (
	"cmp"
	"regexp"
	"strings"
)

var (
	loaderCall   = regexp.MustCompile(`\bloader\(\s*(?:\{|\w+\.\w+\(\)\s*,\s*\{)`)
	loaderBase   = regexp.MustCompile(`\bbaseUrl\s*:\s*["']([^"'\n]*)["']`)
	loaderSource = regexp.MustCompile(`(?:\bsource\s*:\s*(?:\w+\(\s*)?|\bloader\(\s*)(\w+)`)
	renamed      = regexp.MustCompile(`\b(\w+)\s+as\s+(\w+)`)
)

// Loaders reads at which addresses Fumadocs shows its collections, by their names.
func Loaders(src []byte) map[string]string {
	const most = 50
	out, names := map[string]string{}, map[string]string{}
	for _, m := range renamed.FindAllSubmatch(src, most) {
		names[string(m[2])] = string(m[1])
	}
	at := append(loaderCall.FindAllIndex(src, most), []int{len(src), len(src)})
	for i, from := range at[:len(at)-1] {
		call := src[from[0]:at[i+1][0]]
		base, of := loaderBase.FindSubmatch(call), loaderSource.FindSubmatch(call)
		if base != nil && of != nil {
			out[cmp.Or(names[string(of[1])], string(of[1]))] = strings.Trim(string(base[1]), "/")
		}
	}
	return out
}
