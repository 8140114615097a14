// Package assets holds the styles, scripts and pictures of the pages, embedded. Each is served under a name with the
// hash of its content, so that browsers may keep it forever.
package assets

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"mime"
	"path"
	"strings"
	"sync"

	"docent/internal/gzipped"
)

//go:embed *.css *.js *.svg
var files embed.FS

// An Asset is one file as it is served.
type Asset struct {
	Name    string // with the hash, as in docent.0a1b2c3d4e5f.css
	Type    string // its media type
	Content []byte

	Compressed []byte // Content with gzip; nil if that would not be smaller
}

// loaded are the files by the name that they are served under, and by their own. Compressing them takes some
// milliseconds, which only a server spends, once.
var loaded = sync.OnceValues(load)

func load() (byName, bySource map[string]Asset) {
	byName, bySource = map[string]Asset{}, map[string]Asset{}
	entries, err := fs.ReadDir(files, ".")
	if err != nil {
		panic(err) // embedded: it is there
	}
	for _, e := range entries {
		content, err := files.ReadFile(e.Name())
		if err != nil {
			panic(err)
		}
		sum := sha256.Sum256(content)
		ext := path.Ext(e.Name())
		a := Asset{Name: strings.TrimSuffix(e.Name(), ext) + "." + hex.EncodeToString(sum[:6]) + ext, Content: content,
			Type: mime.TypeByExtension(ext)}
		switch ext { // a machine's own table of types may say otherwise
		case ".js":
			a.Type = "text/javascript; charset=utf-8"
		case ".css":
			a.Type = "text/css; charset=utf-8"
		case ".svg":
			a.Type = "image/svg+xml"
		}
		a.Compressed = gzipped.Smallest(content)
		byName[a.Name], bySource[e.Name()] = a, a
	}
	return byName, bySource
}

// Find is the asset that is served under a name, which has the hash.
func Find(name string) (Asset, bool) {
	byName, _ := loaded()
	a, ok := byName[name]
	return a, ok
}

// Path is the address of a file by its own name, as in docent.css. It panics if the file does not exist: names are
// in templates, which tests run.
func Path(source string) string { return "/assets/" + Source(source).Name }

// Source is a file by its own name.
func Source(source string) Asset {
	_, bySource := loaded()
	a, ok := bySource[source]
	if !ok {
		panic("there is no asset " + source)
	}
	return a
}
