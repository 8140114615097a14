package manual

import (
	"html"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"docent/docs"
)

var (
	ids   = regexp.MustCompile(` id="([^"]+)"`)
	links = regexp.MustCompile(` (?:href|src)="([^"]+)"`)
	imgs  = regexp.MustCompile(`<img [^>]*>`)
	sized = regexp.MustCompile(` width="\d{3,4}" height="\d{3,4}"`)
)

// exported is the static site, by the paths of its files.
func exported(t *testing.T) map[string]string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "site")
	if _, err := Export(dir); err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
		files[name] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestEveryPageIsShownAndEveryLinkLeadsSomewhere(t *testing.T) {
	files := exported(t)
	err := fs.WalkDir(docs.Files, ".", func(name string, d fs.DirEntry, err error) error {
		if page, ok := strings.CutSuffix(name, ".mdx"); ok && files[page+".html"] == "" {
			t.Errorf("%s is not in the navigation of docs.json", name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		if path.Ext(name) != ".html" {
			continue
		}
		if strings.Contains(text, "<p>{/*") || strings.Contains(text, "<!-- raw HTML omitted -->") {
			t.Errorf("%s has a comment or HTML that is not rendered", name)
		}
		for _, img := range imgs.FindAllString(text, -1) { // what follows one does not move when it has loaded
			if !sized.MatchString(img) {
				t.Errorf("%s has a picture without its size: %s", name, img)
			}
		}
		for _, m := range links.FindAllStringSubmatch(text, -1) {
			to := html.UnescapeString(m[1])
			if strings.Contains(to, "://") {
				continue
			}
			file, anchor, _ := strings.Cut(to, "#")
			if file = path.Join(path.Dir(name), file); strings.HasPrefix(to, "#") {
				file = name
			}
			target, ok := files[file]
			found := anchor == "" || anchor == "main"
			for _, id := range ids.FindAllStringSubmatch(target, -1) {
				found = found || html.UnescapeString(id[1]) == anchor
			}
			if !ok || !found {
				t.Errorf("%s links to %s, which is not there", name, to)
			}
		}
	}
}

func TestMovedPagesLeadToOnesThatAreThere(t *testing.T) {
	files := exported(t)
	if len(moved()) == 0 {
		t.Error("docs.json has no redirects")
	}
	for from, to := range moved() {
		name, anchor, _ := strings.Cut(strings.TrimPrefix(to, "/"), "#")
		text := files[name+".html"] + files[name+"/index.html"]
		there := html.UnescapeString(files[from+".html"])
		if text == "" || anchor != "" && !strings.Contains(text, ` id="`+anchor+`"`) || !strings.Contains(there, `http-equiv="refresh"`) ||
			anchor != "" && !strings.Contains(there, "#"+anchor+`"`) {
			t.Errorf("%s leads to %s", from, to)
		}
	}
}

func TestAFolderWithASiteIsNotWrittenOver(t *testing.T) {
	dir := t.TempDir()
	if _, err := Export(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := Export(dir); err == nil || !strings.Contains(err.Error(), "is not empty") {
		t.Error(err)
	}
}
