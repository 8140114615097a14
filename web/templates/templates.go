// Package templates holds the pages and the parts of pages, embedded.
package templates

import "embed"

// Files are the templates. A file keys.html defines "keys" and parts such as "keys.rows".
//
//go:embed *.html
var Files embed.FS
