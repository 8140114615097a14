package search

import (
	"github.com/blevesearch/bleve/v2"
	"github.com/blevesearch/bleve/v2/document"
	"github.com/blevesearch/bleve/v2/mapping"
	index "github.com/blevesearch/bleve_index_api"
)

// Fields of a section's document.
const (
	fieldHeading = iota
	fieldTrail
	fieldBody
	fieldCode
	sectionFields
)

// Fields of a page, held by the document of its first section.
const (
	fieldTitle       = iota
	fieldPath        // words of the path
	fieldKeywords    // keywords and tags
	fieldLinks       // text of the links that point here
	fieldDescription // of the front matter
	fieldSurface     // every word of the page as a reader types it: the dictionary for slips and unfinished words
	pageFields
)

var sectionFieldNames = [sectionFields]string{"heading", "trail", "body", "code"}
var pageFieldNames = [pageFields]string{"title", "path", "keywords", "links", "description", "surface"}

// indexMapping tells Bleve's own tools how the index was made; documents come with their fields.
func indexMapping() mapping.IndexMapping {
	m := bleve.NewIndexMapping()
	m.DefaultAnalyzer = termsAnalyzer
	doc := bleve.NewDocumentStaticMapping()
	for _, names := range [][]string{sectionFieldNames[:], pageFieldNames[:]} {
		for _, name := range names {
			f := bleve.NewTextFieldMapping()
			f.Analyzer = termsAnalyzer
			f.Store, f.DocValues, f.IncludeInAll, f.IncludeTermVectors = false, false, false, false
			f.SkipFreqNorm = name == pageFieldNames[fieldSurface]
			doc.AddFieldMappingsAt(name, f)
		}
	}
	m.DefaultMapping = doc
	return m
}

// addField gives a document one field of terms with spaces between.
func addField(doc *document.Document, name string, value []byte) {
	if len(value) == 0 {
		return
	}
	options := index.IndexField
	if name == pageFieldNames[fieldSurface] {
		options |= index.SkipFreqNorm
	}
	doc.AddField(document.NewTextFieldCustom(name, nil, value, options, terms{}))
}
