package sites

import (
	"bytes"
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"docent/internal/testing/need"
	"docent/site/markup"
)

// titles are such as documentation has, and some that no identifier can be made of as they are.
var titles = []string{"What's new in 2.0?", "Überblick über Größen", "Setup", "Setup", "2. From source", "日本語の見出し", "a.b.c()", "C++ & C#", "``code`` and *more*",
	"setup", "Summary", "--long-option VALUE", "ŁÓDŹ, Ærø", "snake_case_name", "Scanning", "Syncing", "id2", "e-mail: me@example.com", "A — dash", "100 %", "Setup 2", "…", "Trailing -", "1. Numbered -- dashes", "joined--words", "Wait... what", "on...off", "Acme(R) (C)", "--no-color -- off", "x" + strings.Repeat("y", 70)}

var (
	section = regexp.MustCompile(`(?s)<(?:section|div)[^>]* id="([^"]+)"[^>]*>\s*(?:<span id="[^"]+"></span>)*\s*<h3`)
	h2      = regexp.MustCompile(`<h2 id="([^"]*)"`)
)

// The identifiers of headings are those that docutils and Asciidoctor make.
func TestIdentifiersAreThoseOfThePrograms(t *testing.T) {
	need.Everything(t, "runs docutils and Asciidoctor")
	for _, c := range []struct {
		name, file string
		command    []string
		ids        *regexp.Regexp
		head       string
		title      func(text string, n int) string
	}{
		{"docutils", "a.rst", []string{"/usr/bin/python3", "-c", "import sys, docutils.core as d; sys.stdout.buffer.write(d.publish_string(sys.stdin.buffer.read(), writer_name='html5', settings_overrides={'doctitle_xform': False, 'report_level': 5, 'id_prefix': '', 'auto_id_prefix': 'id'}))"},
			section, "Top\n===\n\n", func(text string, n int) string {
				label := ""
				if n%5 == 4 {
					label = fmt.Sprintf(".. _%s:\n\n", []string{"start", "syncing", "below the label", "Summary"}[n/5%4])
				}
				said := "Text."
				if n%6 == 1 {
					said = fmt.Sprintf("Text [%d]_, [#]_, [#n%d]_, and ``[1]_``::\n\n  code [1]_\n\n.. [%d] A note.\n.. [#] Another.\n.. [#n%d] A named one.", n, n, n, n)
				}
				return label + text + "\n" + strings.Repeat("-", 2*len(text)+3) + "\n\n" + said + "\n\n"
			}},
		{"Asciidoctor", "a.adoc", []string{"asciidoctor", "-q", "-o", "-", "-"}, h2, "= Top\n\n", func(text string, n int) string {
			label := ""
			if n%5 == 4 {
				label = fmt.Sprintf("[#own-%d]\n", n)
			}
			return label + "== " + text + "\n\nText.\n\n"
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			program := need.Installed(t, c.name, "scripts/install-generators", c.command[0])
			text := c.head
			for n, title := range titles {
				text += c.title(title, n)
			}
			run := exec.CommandContext(t.Context(), program, c.command[1:]...)
			run.Stdin = strings.NewReader(text)
			var said bytes.Buffer
			run.Stderr = &said
			out, err := run.Output()
			if err != nil {
				t.Fatalf("%v: %s", err, said.Bytes())
			}
			found := c.ids.FindAllSubmatch(out, -1)
			var read []markup.Heading
			for _, h := range markup.Parse(c.file, []byte(text)).Headings {
				if h.Level == 2 {
					read = append(read, h)
				}
			}
			if len(found) != len(titles) || len(read) != len(titles) {
				t.Fatalf("%d headings, of which the program has %d and Docent %d", len(titles), len(found), len(read))
			}
			for i, h := range read {
				if want := string(found[i][1]); want != "" && h.Anchor != want && !bytes.Contains(out, []byte(`<span id="`+h.Anchor+`"></span>`)) {
					t.Errorf("%q has the identifier %q, not %q", titles[i], h.Anchor, want)
				}
			}
		})
	}
}
