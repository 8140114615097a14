// Package docs is Docent's own documentation, which is also what `docent demo` indexes and edits.
package docs

import "embed"

// Files holds the pages, their pictures and their navigation.
//
//go:embed docs.json *.mdx agent api assistant concepts console deploy guides images operate
var Files embed.FS
