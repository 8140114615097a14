package markup_test

import (
	"testing"

	"docent/site/markup"
)

// How long it takes to read a whole documentation set: what an index and every check of the agent begin with.
func BenchmarkParse(b *testing.B) {
	for set, pages := range sets(b) {
		b.Run(set, func(b *testing.B) {
			var size int64
			for _, src := range pages {
				size += int64(len(src))
			}
			b.SetBytes(size)
			for b.Loop() {
				for name, src := range pages {
					markup.Parse(name, src)
				}
			}
			b.ReportMetric(float64(len(pages)), "pages")
		})
	}
}
