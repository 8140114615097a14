// Command docent serves an agent that edits documentation and an assistant that answers from it, and is the client and
// the operator's tool for both. Package commands has what it can be told to do.
package main

import (
	"docent/cmd/docent/build"
	"docent/cmd/docent/cli"
	"docent/cmd/docent/commands"
)

// version is set by the linker: what a release, or the Makefile, says that it builds.
var version string

func main() {
	build.Version = version
	commands.Main(cli.Program{})
}
