package page

import (
	"github.com/blevesearch/bleve/v2/document"
	index "github.com/blevesearch/bleve_index_api"

	"docent/search/analysis"
)

// Fields of a section's document.
const (
	FieldHeading = iota
	FieldTrail
	FieldBody
	FieldCode
	SectionFields
)

// Fields of a page, held by the document of its first section.
const (
	FieldTitle       = iota
	FieldPath        // words of the path
	FieldKeywords    // keywords and tags
	FieldLinks       // text of the links that point here
	FieldDescription // of the front matter
	FieldSurface     // every word of the page as a reader types it: the dictionary for slips and unfinished words
	Fields
)

var SectionFieldNames = [SectionFields]string{"heading", "trail", "body", "code"}
var FieldNames = [Fields]string{"title", "path", "keywords", "links", "description", "surface"}

// addField gives a document one field of terms with spaces between.
func addField(doc *document.Document, name string, value []byte) {
	if len(value) == 0 {
		return
	}
	options := index.IndexField
	if name == FieldNames[FieldSurface] {
		options |= index.SkipFreqNorm
	}
	doc.AddField(document.NewTextFieldCustom(name, nil, value, options, analysis.Terms{}))
}
