package main

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"docent/datadir"
	"docent/persistence/journal"
	"docent/search/index"
)

func newVersionCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "version", Short: "Print the version of this binary", Args: cobra.NoArgs,
		Long: "Print the version of this binary. With --json: the commit that it was built from and the day of that commit, whether\n" +
			"files were changed (modified), and the forms of what it keeps on disk (formats): a release that reads an older\n" +
			"journal says so in the changelog, and an index of another form is built anew.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			v := buildVersion()
			if asJSON {
				return printJSON(cmd.OutOrStdout(), struct {
					versionInfo
					Formats dataFormats `json:"formats"`
				}{v, dataFormats{Data: datadir.Format, Journal: journal.Format, Index: index.Format()}})
			}
			_, err := fmt.Fprintln(cmd.OutOrStdout(), v)
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

type versionInfo struct {
	Version  string `json:"version"`
	Commit   string `json:"commit,omitempty"`
	Date     string `json:"date,omitempty"` // of the commit
	Modified bool   `json:"modified"`       // files differed from the commit's
	Go       string `json:"go"`
	OS       string `json:"os"`
	Arch     string `json:"arch"`
}

// dataFormats are the forms of what lies in a data directory.
type dataFormats struct {
	Data    int    `json:"data"` // of the directory as a whole: a version does not open one of a higher number
	Journal string `json:"journal"`
	Index   string `json:"index"`
}

// String is the version as people read it.
func (v versionInfo) String() string {
	return fmt.Sprintf("docent %s (%s, %s/%s)", v.Version, v.Go, v.OS, v.Arch)
}

// version is what a release, or the Makefile, says that it builds.
var version string

// buildVersion is what the Go toolchain recorded in the binary, under the name that the build was given.
func buildVersion() versionInfo {
	v := versionInfo{Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
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
	v.Version = cmp.Or(version, recorded, "(devel)")
	return v
}

// key tells builds apart, as far as the toolchain recorded it.
func (v versionInfo) key() string { return v.Version + " " + v.Commit }
