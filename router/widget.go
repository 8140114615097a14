package router

import (
	"errors"
	"net/http"
	"sync"

	"github.com/uptrace/bunrouter"

	"docent/api"
	"docent/internal/gzipped"
	"docent/router/widget"
)

// widgetFiles are compressed once, when the first page asks for one.
var widgetFiles = sync.OnceValues(widget.Files)

// readWidget serves the widget's scripts to pages of any site. Browsers request the loader again after some minutes, so
// that an upgrade reaches every page; the rest is kept, since its names have its hashes.
func (s *Server) readWidget(x *exchange, req bunrouter.Request) error {
	files, err := widgetFiles()
	if err != nil {
		return err
	}
	name := param(req, "file")
	f, ok := files[name]
	if !ok {
		return api.Missing("file of the widget")
	}
	h := x.Header()
	h.Set("Access-Control-Allow-Origin", "*")
	h.Set("Cross-Origin-Resource-Policy", "cross-origin")
	h.Set("Cache-Control", "public, max-age=31536000, immutable")
	if name == widget.Loader {
		h.Set("Cache-Control", "public, max-age=300, stale-while-revalidate=86400")
	}
	fixed(x, req, "text/javascript; charset=utf-8", f)
	return nil
}

// fixed serves a file that was compressed once for all. What a client has already is not sent again.
func fixed(x *exchange, req bunrouter.Request, kind string, f gzipped.File) {
	h := x.Header()
	h.Set("ETag", f.Tag)
	if gzipped.Known(req.Header.Values("If-None-Match"), f.Tag) {
		x.WriteHeader(http.StatusNotModified)
		return
	}
	body := f.Content
	if f.Gzip != nil {
		h.Add("Vary", "Accept-Encoding")
		if x.gzip {
			gzipped.Mark(h)
			body = f.Gzip
		}
	}
	send(x, http.StatusOK, kind, body)
}

// widgetSettings says what a project has stored of its widget, to pages of any site. It is nothing that the widget does
// not show, so it needs no key: a browser asks for it with no request of its own before. A domain that is nobody's is
// answered like one that has stored nothing.
func (s *Server) widgetSettings(x *exchange, req bunrouter.Request) error {
	p, err := s.Catalog.ProjectByDomain(req.Context(), param(req, "domain"))
	if err != nil && !errors.Is(err, api.ErrNotFound) {
		return err
	}
	body, err := marshal(widget.Settings(p))
	if err != nil {
		return err
	}
	tag := gzipped.Tag(body)
	h := x.Header()
	h.Set("Access-Control-Allow-Origin", "*")
	h.Set("Cross-Origin-Resource-Policy", "cross-origin")
	h.Set("Cache-Control", "public, max-age=300, stale-while-revalidate=86400")
	h.Set("ETag", tag)
	if gzipped.Known(req.Header.Values("If-None-Match"), tag) {
		x.WriteHeader(http.StatusNotModified)
		return nil
	}
	write(x, http.StatusOK, "application/json", body)
	return nil
}
