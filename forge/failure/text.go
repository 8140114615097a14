package failure

import (
	"fmt"
	"strings"

	"docent/internal/brief"
)

// Text is a text without what a terminal or a mail reader would act on.
func Text(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' || r == 0x7f || r == '\uFFFD' {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, ""))
}

// Line is Text on one line, cut to n bytes.
func Line(s string, n int) string { return brief.Bytes(brief.Line(Text(s)), n, "…") }

// Quote is what somebody else says, on one line and without our secret.
func Quote(s, secret string) string {
	if secret != "" {
		s = strings.ReplaceAll(s, secret, "[token]")
	}
	return Line(s, 300)
}

// Names lists files, and counts those that are too many.
func Names(files []string) string {
	const most = 20
	if len(files) <= most {
		return strings.Join(files, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(files[:most], ", "), len(files)-most)
}
