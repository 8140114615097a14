package work

import (
	"bytes"
	"fmt"
	"net/mail"
	"regexp"
	"strings"
	"time"

	"docent/api"
	"docent/forge"
	"docent/internal/brief"
)

// patch is the diff as a mail that `git am` takes.
func patch(p api.PullRequest, d forge.Diff) []byte {
	var b bytes.Buffer
	from := mail.Address{Name: "Docent", Address: "docent@localhost"}
	fmt.Fprintf(&b, "From %040d Mon Sep 17 00:00:00 2001\n", 0)
	fmt.Fprintf(&b, "From: %s\nDate: %s\nSubject: [PATCH] %s\n", from.String(), p.UpdatedAt.UTC().Format(time.RFC1123Z),
		brief.Line(p.Title))
	b.WriteString("MIME-Version: 1.0\nContent-Type: text/plain; charset=UTF-8\nContent-Transfer-Encoding: 8bit\n\n")
	first := true
	for l := range strings.Lines(p.Body) {
		l = strings.TrimRight(l, "\r\n")
		if endsMessage(l) || first && inBodyHeader.MatchString(l) {
			l = " " + l
		}
		first = first && strings.TrimSpace(l) == ""
		b.WriteString(l + "\n")
	}
	b.WriteString("---\n")
	for _, f := range d.Files {
		fmt.Fprintf(&b, " %s | %d\n", forge.QuotePath(f.Path), f.Added+f.Deleted)
	}
	fmt.Fprintf(&b, " %d files changed, %d insertions(+), %d deletions(-)\n\n", len(d.Files), d.Added, d.Deleted)
	b.WriteString(d.String())
	return b.Bytes()
}

// endsMessage tells the lines at which `git am` takes a mail's text to be over, or another mail to begin.
func endsMessage(line string) bool {
	for _, sign := range []string{"diff ", "--- ", "Index: ", "From ", ">From "} {
		if strings.HasPrefix(line, sign) {
			return true
		}
	}
	return strings.TrimRight(line, " \t") == "---"
}

// inBodyHeader are the lines that `git am` takes for the author or the subject if a text begins with them.
var inBodyHeader = regexp.MustCompile(`^([A-Za-z-]+:|\[PATCH)`)
