package manual

import (
	"errors"
	"fmt"
	"io/fs"
	"mime"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strings"

	"docent/api"
	"docent/docs"
	"docent/web/assets"
	"docent/web/console"
)

// Routes returns the pages.
func Routes(s *console.Server) []console.Route {
	h := &handler{s}
	return []console.Route{
		console.Get(Root, console.Anybody, h.show),
		console.Get(Root+"/*file", console.Anybody, h.show),
	}
}

type handler struct{ *console.Server }

func (h *handler) show(v *console.Visit) error {
	name := strings.TrimPrefix(v.Param("file"), "/")
	if strings.HasPrefix(name, "images/") {
		return picture(v, name)
	}
	groups, err := book()
	if err != nil {
		return err
	}
	p := find(pages(groups), name)
	if p == nil {
		if to := moved()[name]; to != "" {
			return v.SeeOther(Root + to)
		}
		return api.Missing("page")
	}
	view, err := newView(groups, p, address, func(name string) string { return Root + "/" + name })
	if err != nil {
		return err
	}
	return h.Render(v, "manual", p.Title, view)
}

// address is where the server shows a page.
func address(p *page) string {
	name := strings.TrimSuffix("/"+p.Name, "/index")
	return Root + name
}

func picture(v *console.Visit, name string) error {
	content, err := fs.ReadFile(docs.Files, name)
	if err != nil {
		return api.Missing("picture")
	}
	v.Header().Set("Cache-Control", "public, max-age=3600")
	v.Header().Set("X-Content-Type-Options", "nosniff")
	console.Send(v, http.StatusOK, mime.TypeByExtension(path.Ext(name)), content)
	return nil
}

const styleFile = "docent.css"

// Export writes the documentation as a static site into a folder, which may lie at any address, and returns how many
// pages it has.
func Export(dir string) (int, error) {
	groups, err := book()
	if err != nil {
		return 0, err
	}
	pictures, err := fs.Sub(docs.Files, "images")
	if err == nil {
		err = os.CopyFS(filepath.Join(dir, "images"), pictures)
	}
	if errors.Is(err, fs.ErrExist) {
		return 0, fmt.Errorf("%s is not empty: name a folder that is not there yet", dir)
	}
	if err != nil {
		return 0, fmt.Errorf("write the pictures: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, styleFile), assets.Source(styleFile).Content, 0o644); err != nil {
		return 0, err
	}
	list := pages(groups)
	for _, p := range list {
		up := strings.Repeat("../", strings.Count(p.Name, "/"))
		view, err := newView(groups, p, func(p *page) string { return up + p.Name + ".html" },
			func(name string) string { return up + name })
		if err != nil {
			return 0, err
		}
		view.Style = up + styleFile
		if err := write(dir, p.Name, "manual.static", view); err != nil {
			return 0, err
		}
	}
	for from, to := range moved() {
		name, anchor, _ := strings.Cut(strings.TrimPrefix(to, "/"), "#")
		p := find(list, name)
		if p == nil {
			return 0, fmt.Errorf("docs.json leads from %s to %s, which is not in the navigation", from, to)
		}
		to = strings.Repeat("../", strings.Count(from, "/")) + p.Name + ".html"
		if anchor != "" {
			to += "#" + anchor
		}
		if err := write(dir, from, "manual.moved", struct{ To, Title string }{to, p.Title}); err != nil {
			return 0, err
		}
	}
	return len(list), nil
}

// write writes a page of the static site.
func write(dir, name, template string, view any) error {
	html, err := console.Execute(template, view)
	if err != nil {
		return err
	}
	file := filepath.Join(dir, filepath.FromSlash(name)+".html")
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, []byte(html), 0o644)
}
