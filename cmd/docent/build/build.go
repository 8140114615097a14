// Package build says which build of Docent this is.
package build

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
)

// Info says what a binary was built from.
type Info struct {
	Version  string `json:"version"`
	Commit   string `json:"commit,omitempty"`
	Date     string `json:"date,omitempty"` // of the commit
	Modified bool   `json:"modified"`       // files differed from the commit's
	Go       string `json:"go"`
	OS       string `json:"os"`
	Arch     string `json:"arch"`
}

// String is the version as people read it.
func (v Info) String() string {
	return fmt.Sprintf("docent %s (%s, %s/%s)", v.Version, v.Go, v.OS, v.Arch)
}

// Version is what a release, or the Makefile, says that it builds.
var Version string

// Get is what the Go toolchain recorded in the binary, under the name that the build was given.
func Get() Info {
	v := Info{Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
	recorded := ""
	if info, ok := debug.ReadBuildInfo(); ok {
		if info.Main.Version != "(devel)" {
			recorded = strings.TrimPrefix(info.Main.Version, "v")
		}
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				v.Commit = s.Value
			case "vcs.time":
				v.Date = s.Value
			case "vcs.modified":
				v.Modified = s.Value == "true"
			}
		}
	}
	v.Version = cmp.Or(Version, recorded, "(devel)")
	return v
}

// Key tells builds apart, as far as the toolchain recorded it.
func (v Info) Key() string { return v.Version + " " + v.Commit }
