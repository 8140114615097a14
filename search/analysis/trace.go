package analysis

import (
	"regexp"
	"strings"
)

var (
	frame     = regexp.MustCompile(`(?m)^[ \t]+at \S|^[ \t]+File "|^[ \t]+from \S+:\d|^npm ERR!|^goroutine \d|^Traceback `)
	errorLine = regexp.MustCompile(`(?m)^.*\b\w*(?:Error|Exception): \S.*$|^(?:panic|fatal|error): \S.*$|^.*\?[ \t]*$`)
)

// Message returns the lines of a pasted trace that say what went wrong, and those that ask; the whole text if it holds no
// trace. The other lines name files and functions, which say more of the runtime than of the documentation.
func Message(text string) string {
	if strings.Count(text, "\n") < 4 || !frame.MatchString(text) {
		return text
	}
	if said := errorLine.FindAllString(text, 5); len(said) > 0 {
		return strings.Join(said, "\n")
	}
	return text
}
