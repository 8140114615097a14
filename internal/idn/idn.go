// Package idn knows international names of hosts.
package idn

import (
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

// ASCII is a name as the network knows it, in which form it is stored: bücher.example is xn--bcher-kva.example. What is
// no such name stays as it is.
func ASCII(name string) string {
	name = strings.TrimSpace(name)
	if strings.ContainsFunc(name, func(r rune) bool { return r >= utf8.RuneSelf }) {
		if ascii, err := idna.Lookup.ToASCII(name); err == nil {
			return ascii
		}
	}
	return strings.ToLower(name)
}
