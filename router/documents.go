package router

import (
	"net/http"
	"slices"

	"github.com/uptrace/bunrouter"

	"docent/search"
)

// A lookup is what a search asks, or which page is wanted, decoded.
type lookup struct {
	Query  search.Query
	Path   string
	Groups []string
}

func decodeSearch(body node) (lookup, error) {
	var (
		l                                  lookup
		ps                                 problems
		query, size, threshold, filter, at node
	)
	if ps.object(body) {
		for name, v := range body.members {
			switch name {
			case "query":
				query = v
			case "pageSize":
				size = v
			case "scoreThreshold":
				threshold = v
			case "filter":
				filter = v
			case "currentPath":
				at = v
			}
		}
		l.Query = search.Query{
			Text:        ps.required("query", query, length{min: 1, max: 1000, trim: true, lines: true}),
			Limit:       ps.whole("pageSize", size, 1, 50, 10),
			Threshold:   ps.fraction("scoreThreshold", threshold, 0, 1),
			Filter:      ps.filter("filter", filter),
			CurrentPath: ps.nullable("currentPath", at, length{max: maxPath}),
			Box:         true,
		}
	}
	return l, ps.err()
}

func decodePage(body node) (lookup, error) {
	var (
		l            lookup
		ps           problems
		path, groups node
	)
	if ps.object(body) {
		for name, v := range body.members {
			switch name {
			case "path":
				path = v
			case "groups":
				groups = v
			}
		}
		l.Path = ps.required("path", path, length{min: 1, max: 1000, trim: true})
		l.Groups = ps.strings("groups", groups, 100, length{min: 1, max: maxName})
	}
	return l, ps.err()
}

// hitBody is one found section on the wire.
type hitBody struct {
	Content  string       `json:"content"`
	Path     string       `json:"path"`
	Metadata metadataBody `json:"metadata"`
}

type metadataBody struct {
	Title       string   `json:"title"`
	URL         string   `json:"url,omitempty"`
	Heading     string   `json:"heading,omitempty"`
	Anchor      string   `json:"anchor,omitempty"`
	Breadcrumbs []string `json:"breadcrumbs,omitempty"`
	Description string   `json:"description,omitempty"`
	Version     string   `json:"version,omitempty"`
	Language    string   `json:"language,omitempty"`
	Tags        []string `json:"tags,omitempty"`
	Score       float64  `json:"score"`
}

func (s *Server) searchDocs(x *exchange, req bunrouter.Request) error {
	doc, err := s.body(x, req.Request)
	if err != nil {
		return err
	}
	l, err := decodeSearch(doc.root)
	doc.release()
	if err != nil {
		return err
	}
	place, err := s.enqueue(req.Context())
	if err != nil {
		return err
	}
	defer place.Leave()
	hits, err := s.Documents.Search(req.Context(), x.project.ID, l.Query)
	if err != nil {
		return err
	}
	s.Analytics.RecordSearch(x.project.ID, string(x.key.ID)+" "+counted(x.client), l.Query.Text, len(hits))
	out := make([]hitBody, 0, len(hits))
	for _, h := range hits {
		out = append(out, hitBody{Content: h.Content, Path: h.Path, Metadata: metadataBody{Title: h.Title, URL: h.URL, Heading: h.Heading,
			Anchor: h.Anchor, Breadcrumbs: slices.Concat(h.Crumbs, h.Trail), Description: h.Description, Version: h.Version, Language: h.Language, Tags: h.Tags, Score: h.Score}})
	}
	return encode(x, http.StatusOK, out)
}

func (s *Server) readPage(x *exchange, req bunrouter.Request) error {
	doc, err := s.body(x, req.Request)
	if err != nil {
		return err
	}
	l, err := decodePage(doc.root)
	doc.release()
	if err != nil {
		return err
	}
	p, err := s.Documents.Page(req.Context(), x.project.ID, l.Path, l.Groups)
	if err != nil {
		return named(err, "page")
	}
	return encode(x, http.StatusOK, struct {
		Path    string `json:"path"`
		Content string `json:"content"`
	}{p.Path, p.Content})
}
