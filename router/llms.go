package router

import (
	"bytes"
	"cmp"
	"encoding/json"
	"io"
	"net/http"
	"strings"

	"github.com/uptrace/bunrouter"

	"docent/api"
	"docent/internal/gzipped"
	"docent/persistence/catalog/insights"
	"docent/router/llms"
)

const markdownType = "text/markdown; charset=utf-8"

// readLLMS serves what is published as Markdown: llms.txt, llms-full.txt, and each page under its path or its address with
// the ending .md, or without it for a client that asks for Markdown. What a client has already is not sent again.
func (s *Server) readLLMS(x *exchange, req bunrouter.Request) error {
	name := strings.TrimPrefix(param(req, "file"), "/")
	h := x.Header()
	base := s.base(x, req.Request) + "/llms/" + x.project.Domain
	tag := s.edition(x, base+name)
	h.Set("ETag", tag)
	h.Set("Cache-Control", "no-cache") // kept, and asked for again with the tag
	h.Set("Vary", "Authorization, Accept")
	h.Set("X-Robots-Tag", "noindex") // the site's own pages are what people should find
	if gzipped.Known(req.Header.Values("If-None-Match"), tag) {
		x.WriteHeader(http.StatusNotModified)
		return nil
	}
	if name == "llms-full.txt" {
		s.Analytics.RecordRead(x.project.ID, insights.ByMarkdown, name)
		h.Set("Content-Type", markdownType)
		h.Add("Vary", "Accept-Encoding")
		x.deadline()
		full := func(w io.Writer) error { return llms.Full(req.Context(), w, x.project, s.Documents) }
		if !x.gzip {
			return api.Named(full(x), "documentation")
		}
		gzipped.Mark(h)
		return api.Named(gzipped.To(x, full), "documentation")
	}
	var b bytes.Buffer
	markdown := strings.Contains(strings.Join(req.Header.Values("Accept"), ","), "text/markdown")
	p := x.project
	p.SiteURL = cmp.Or(p.SiteURL, s.Documents.Address(p.ID))
	read, err := llms.Write(req.Context(), &b, name, markdown, p, s.Documents, base)
	if err != nil {
		return api.Named(err, "page")
	}
	s.Analytics.RecordRead(p.ID, insights.ByMarkdown, read)
	write(x, http.StatusOK, markdownType, b.Bytes())
	return nil
}

// edition is a validator: it changes with the documentation, with the project's settings and with the program.
func (s *Server) edition(x *exchange, address string) string {
	settings, _ := json.Marshal(x.project) // no value of it can fail
	commits := ""
	for _, part := range x.project.Parts() {
		commits += s.Documents.Commit(part.ID) + " "
	}
	return gzipped.Tag([]byte(s.Version + "\x00" + commits + "\x00" + string(settings) + "\x00" + address))
}
