package console

import (
	"regexp"
	"strings"
)

var (
	listParts = regexp.MustCompile(`(?s)<table class="list|</table>|<thead>.*?</thead>|<tr[ >]|<t[dh]\b`)
	headings  = regexp.MustCompile(`(?s)<t[hd]\b[^>]*>(.*?)</t[hd]>`)
)

// labeled gives each cell of the lists in our own HTML the heading of its column as data-label. With it a narrow screen shows
// each row as a card. The first cell of a row is the card's title and has none, nor have the columns of buttons.
func labeled(page string) string {
	if !strings.Contains(page, `<table class="list`) {
		return page
	}
	var b strings.Builder
	var labels []string
	inList, column, written := false, 0, 0
	for _, at := range listParts.FindAllStringIndex(page, -1) {
		switch part := page[at[0]:at[1]]; {
		case strings.HasPrefix(part, "<table"):
			inList, labels = true, nil
		case part == "</table>":
			inList = false
		case strings.HasPrefix(part, "<thead"):
			labels = nil
			for _, h := range headings.FindAllStringSubmatch(part, -1) {
				label := ""
				if !strings.Contains(h[1], "visually-hidden") {
					label = tags.ReplaceAllString(h[1], "")
				}
				labels = append(labels, label)
			}
		case strings.HasPrefix(part, "<tr"):
			column = 0
		case inList:
			if column > 0 && column < len(labels) && labels[column] != "" {
				b.WriteString(page[written:at[1]])
				b.WriteString(` data-label="` + strings.ReplaceAll(labels[column], `"`, "&#34;") + `"`)
				written = at[1]
			}
			column++
		}
	}
	b.WriteString(page[written:])
	return b.String()
}
