// Package widget holds the assistant of a documentation site as one script tag, embedded. Its sources are TypeScript in
// src; scripts/build-widget makes the files in dist, which are committed, and CI compares them with their sources.
package widget

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"

	"docent/internal/gzipped"
)

//go:embed dist
var dist embed.FS

// Loader is the file that pages name. All others have their hash in their name.
const Loader = "v1.js"

// A File is one script as it is served.
type File struct {
	Content []byte
	Gzip    []byte // the same, compressed; nil if that is not smaller
	Tag     string // changes with the content
}

// Files are all scripts by their names.
func Files() (map[string]File, error) {
	entries, err := fs.ReadDir(dist, "dist")
	if err != nil {
		return nil, err
	}
	files := map[string]File{}
	for _, e := range entries {
		content, err := dist.ReadFile("dist/" + e.Name())
		if err != nil {
			return nil, err
		}
		sum := sha256.Sum256(content)
		files[e.Name()] = File{Content: content, Gzip: gzipped.Smallest(content), Tag: `"` + hex.EncodeToString(sum[:12]) + `"`}
	}
	return files, nil
}
