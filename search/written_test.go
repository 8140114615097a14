package search

import (
	"reflect"
	"testing"

	"docent/api"
	sets "docent/bench/corpora"
)

// Where no questions are written nothing is another to the last bit, and where they are, they weigh less than what a
// section says itself.
func TestWrittenQuestionsAddToWhatAPageSaysAndChangeNothingElse(t *testing.T) {
	tree := sets.Tree{"keys.md": []byte("# Rotation\n\nReplace the value on each client.\n\n## Expiry\n\nAfter ninety days.\n"),
		"laptop.md": []byte("# Laptops\n\nA stolen laptop is locked by the administrator.\n"),
		"logs.md":   []byte("# Logs\n\nEach line has a level. A client writes its own.\n")}
	search := func(written func([]SectionKey) (map[SectionKey][]string, error), query string) []Hit {
		t.Helper()
		l := openTest(t, Options{Written: written})
		if _, err := l.Update(t.Context(), api.Project{ID: "p"}, tree, func(int, int) {}); err != nil {
			t.Fatal(err)
		}
		hits, err := l.Search(t.Context(), "p", Query{Text: query, Sections: 4})
		if err != nil {
			t.Fatal(err)
		}
		return hits
	}
	none := func([]SectionKey) (map[SectionKey][]string, error) { return nil, nil }
	first := func(keys []SectionKey) (map[SectionKey][]string, error) {
		return map[SectionKey][]string{keys[0]: {"My laptop was stolen, what now?"}}, nil
	}
	for _, query := range []string{"stolen laptop", "client", "value on each client", "level of a line"} {
		if without, with := search(nil, query), search(none, query); !reflect.DeepEqual(without, with) {
			t.Errorf("%q: %+v without, %+v with no questions", query, without, with)
		}
	}
	if hits := search(nil, "my laptop was stolen"); len(hits) != 1 || hits[0].Path != "laptop.md" {
		t.Errorf("without questions %+v", hits)
	}
	if hits := search(first, "my laptop was stolen"); len(hits) != 2 || hits[0].Path != "laptop.md" || hits[1].Path != "keys.md" ||
		hits[1].Anchor != "" {
		t.Errorf("with them %+v", hits)
	}
}
