package web_test

import (
	"strings"
	"testing"

	"docent/api/openapi"
)

// The page shows the whole document: every operation with all its answers, and every type.
func TestThePageOfTheAPIHasAllOfIt(t *testing.T) {
	t.Parallel()
	h := build(t)
	page, _ := h.browser().text(200, "/api")
	if _, sent := h.fetchRaw("/api", "gzip"); len(sent) > 60_000 {
		t.Errorf("the page weighs %d bytes", len(sent))
	} else {
		t.Logf("the page has %d bytes, and %d as they are sent", len(page), len(sent))
	}
	operations := 0
	for _, g := range openapi.Read().Groups {
		for _, o := range g.Operations {
			operations++
			_, part, ok := strings.Cut(page, `<details class="operation" id="`+o.ID+`">`)
			if !ok {
				t.Errorf("%s is not on the page", o.ID)
				continue
			}
			part, _, _ = strings.Cut(part, "</form>")
			for _, r := range o.Responses {
				if !strings.Contains(part, "<strong>"+r.Status+"</strong>") {
					t.Errorf("%s does not say that it may answer %s", o.ID, r.Status)
				}
			}
			for _, p := range o.Parameters {
				if !strings.Contains(part, `name="`+p.Name+`"`) {
					t.Errorf("%s cannot be tried with %s", o.ID, p.Name)
				}
			}
		}
	}
	if operations < 30 {
		t.Errorf("only %d operations were looked at", operations)
	}
	for _, s := range openapi.Read().Schemas {
		if !strings.Contains(page, `id="schema-`+s.Name+`"`) {
			t.Errorf("the type %s is not on the page", s.Name)
		}
	}
	for _, id := range strings.Split(page, `href="#`)[1:] {
		if id, _, _ = strings.Cut(id, `"`); !strings.Contains(page, `id="`+id+`"`) {
			t.Errorf("a link leads to #%s, which is not there", id)
		}
	}
}
