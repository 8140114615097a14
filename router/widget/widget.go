// Package widget holds the assistant of a documentation site as one script tag, embedded. Its sources are TypeScript in
// src; scripts/build-widget makes the files in dist, which are committed, and CI compares them with their sources.
package widget

import (
	"embed"
	"io/fs"

	"docent/internal/gzipped"
)

//go:embed dist
var dist embed.FS

// Loader is the file that pages name. All others have their hash in their name.
const Loader = "v1.js"

// Files are all scripts by their names.
func Files() (map[string]gzipped.File, error) {
	entries, err := fs.ReadDir(dist, "dist")
	if err != nil {
		return nil, err
	}
	files := map[string]gzipped.File{}
	for _, e := range entries {
		content, err := dist.ReadFile("dist/" + e.Name())
		if err != nil {
			return nil, err
		}
		files[e.Name()] = gzipped.NewFile(content)
	}
	return files, nil
}
