package router

import (
	"net/http"
	"slices"

	"github.com/uptrace/bunrouter"

	"docent/api"
	"docent/api/client"
	"docent/persistence/catalog/insights"
	"docent/router/reqbody"
)

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
	Source      string   `json:"source,omitempty"` // label of the project's source, if it has several
	Score       float64  `json:"score"`
	Excerpt     string   `json:"excerpt,omitempty"`
}

func (s *Server) searchDocs(x *exchange, req bunrouter.Request) error {
	q, err := decode(s, x, req.Request, reqbody.DecodeSearch)
	if err != nil {
		return err
	}
	if q.Filter.Groups, err = x.audience("filter.groups", q.Filter.Groups); err != nil {
		return err
	}
	ticket, err := s.enqueue(req.Context())
	if err != nil {
		return err
	}
	defer ticket.Done()
	hits, err := s.Documents.Search(req.Context(), x.project.ID, q)
	if err != nil {
		return err
	}
	s.Analytics.RecordSearch(x.project.ID, string(x.key.ID)+" "+api.Network(x.client), q.Text, len(hits))
	out := make([]hitBody, 0, len(hits))
	for _, h := range hits {
		out = append(out, hitBody{Content: h.Content, Path: h.Path,
			Metadata: metadataBody{Title: h.Title, URL: h.URL, Heading: h.Heading,
				Anchor: h.Anchor, Breadcrumbs: slices.Concat(h.Crumbs, h.Trail), Description: h.Description, Version: h.Version,
				Language: h.Language, Tags: h.Tags, Source: h.Source, Score: h.Score, Excerpt: h.Excerpt(q.Text)}})
	}
	return encode(x, http.StatusOK, out)
}

func (s *Server) readPage(x *exchange, req bunrouter.Request) error {
	wanted, err := decode(s, x, req.Request, reqbody.DecodePage)
	if err != nil {
		return err
	}
	groups, err := x.audience("groups", wanted.Groups)
	if err != nil {
		return err
	}
	p, err := s.Documents.Page(req.Context(), x.project.ID, wanted.Path, groups)
	if err != nil {
		return api.Named(err, "page")
	}
	s.Analytics.RecordRead(x.project.ID, insights.ByTools, p.Path)
	return encode(x, http.StatusOK, client.Page{Path: p.Path, Content: p.Content, Title: p.Title, URL: p.URL})
}
