package console

import (
	"net/http"
	"strings"
	"time"
)

// CSVRow returns cells that no program for tables takes for a formula.
func CSVRow(cells ...string) []string {
	for i, text := range cells {
		if text != "" && strings.ContainsRune("=+-@\t\r", rune(text[0])) {
			cells[i] = "'" + text
		}
	}
	return cells
}

// The types of files that browsers save.
const (
	TypeCSV    = "text/csv; charset=utf-8"
	TypeNDJSON = "application/x-ndjson"
)

// BeginFile begins an answer that the browser saves under a name, as far as the name may be one everywhere.
func (v *Visit) BeginFile(kind, name, ending string) {
	name = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '.' {
			return r
		}
		return '-'
	}, name)
	h := v.Header()
	h.Set("Content-Type", kind)
	h.Set("Content-Disposition", `attachment; filename="`+name+`.`+ending+`"`)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	v.Patience()
}

// Patience gives the browser its time once more to read what it is sent.
func (v *Visit) Patience() {
	http.NewResponseController(v).SetWriteDeadline(time.Now().Add(writeTimeout)) // if it can
}
