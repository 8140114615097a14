package index

import (
	"github.com/blevesearch/bleve/v2"
	"github.com/blevesearch/bleve/v2/mapping"

	"docent/search/analysis"
	"docent/search/page"
)

// indexMapping tells Bleve's own tools how the index was made; documents come with their fields.
func indexMapping() mapping.IndexMapping {
	m := bleve.NewIndexMapping()
	m.DefaultAnalyzer = analysis.Analyzer
	doc := bleve.NewDocumentStaticMapping()
	for _, names := range [][]string{page.SectionFieldNames[:], page.FieldNames[:]} {
		for _, name := range names {
			f := bleve.NewTextFieldMapping()
			f.Analyzer = analysis.Analyzer
			f.Store, f.DocValues, f.IncludeInAll, f.IncludeTermVectors = false, false, false, false
			f.SkipFreqNorm = name == page.FieldNames[page.FieldSurface]
			doc.AddFieldMappingsAt(name, f)
		}
	}
	m.DefaultMapping = doc
	return m
}
