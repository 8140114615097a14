package check

import (
	"regexp"
	"strings"
)

var secrets = []struct {
	name string
	re   *regexp.Regexp
}{
	{"a private key", regexp.MustCompile(`-----BEGIN [A-Z ]*PRIVATE KEY-----`)},
	{"a cloud access key", regexp.MustCompile(`\b(?:AKIA|ASIA)[0-9A-Z]{16}\b`)},
	{"a code host's token", regexp.MustCompile(`\b(?:gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{60,}|glpat-[A-Za-z0-9_-]{20,})\b`)},
	{"a chat service's token", regexp.MustCompile(`\bxox[abprs]-[A-Za-z0-9-]{20,}\b`)},
	{"an API key", regexp.MustCompile(`\b(?:sk-(?:ant-|proj-)?[A-Za-z0-9_-]{32,}|AIza[0-9A-Za-z_-]{35}|dct_adm_[0-9A-Za-z]{30,})\b`)},
}

// SecretIn names what looks like a secret in the new text and was not in the old.
func SecretIn(now, before string) string {
	for _, s := range secrets {
		for _, m := range s.re.FindAllString(now, -1) {
			if !strings.Contains(before, m) {
				return "what looks like " + s.name
			}
		}
	}
	return ""
}
