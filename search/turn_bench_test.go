package search

import (
	"context"
	"slices"
	"testing"

	"docent/api"
	"docent/bench/retrieval"
)

// BenchmarkAssistant: what one of the assistant's searches takes, several sections of each page: when it is
// ranked again, and when it was asked before.
func BenchmarkAssistant(b *testing.B) {
	queries := judgedQueries(b)
	for _, c := range []struct {
		name    string
		results int64
	}{{"ranked", -1}, {"remembered", 0}} {
		l := openTest(b, Options{ResultBytes: c.results})
		for _, name := range corpora {
			mustUpdate(b, l, api.Project{ID: api.ProjectID(name)}, corpus(b, name))
			own := slices.DeleteFunc(slices.Clone(queries), func(q retrieval.Query) bool { return q.Corpus != name })
			search := func(i int) {
				if _, err := l.Search(context.Background(), api.ProjectID(name),
					Query{Text: own[i%len(own)].Query, Sections: 4}); err != nil {
					b.Fatal(err)
				}
			}
			b.Run(c.name+"/"+name, func(b *testing.B) {
				for i := range own {
					search(i)
				}
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					search(i)
				}
			})
		}
	}
}
