// Package deploy is what operators run Docent with, as far as the program itself writes it out: `docent init` puts these
// files where they belong.
package deploy

import "embed"

// Files holds the units of systemd and the commented configuration of the packages, under their names in this folder.
//
//go:embed systemd/docent.service systemd/docent.socket packages/docent.toml packages/docent.env
var Files embed.FS
