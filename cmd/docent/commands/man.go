package commands

import (
	"cmp"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"docent/cmd/docent/build"
)

// newManCommand writes the manual pages that releases and packages carry.
func newManCommand() *cobra.Command {
	return &cobra.Command{
		Use: "man FOLDER", Hidden: true, Short: "Write a manual page for each command to a folder", Args: cobra.ExactArgs(1),
		Long: "Write a manual page for each command to a folder. They bear the date of the commit that this binary was built from,\n" +
			"or the one in SOURCE_DATE_EPOCH.",
		RunE: func(cmd *cobra.Command, args []string) error {
			v := build.Get()
			date, err := manDate(v.Date, os.Getenv("SOURCE_DATE_EPOCH"))
			if err != nil {
				return err
			}
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return err
			}
			root := cmd.Root()
			root.DisableAutoGenTag = true // it has the day of today
			return doc.GenManTree(root, &doc.GenManHeader{Date: &date, Source: "docent " + v.Version, Manual: "Docent"}, args[0])
		},
	}
}

// manDate is the date of the manual: never today's, so that the same commit gives the same pages.
func manDate(commit, epoch string) (time.Time, error) {
	if epoch != "" {
		seconds, err := strconv.ParseInt(epoch, 10, 64)
		if err != nil {
			return time.Time{}, fmt.Errorf("SOURCE_DATE_EPOCH must be seconds since 1970: %w", err)
		}
		return time.Unix(seconds, 0).UTC(), nil
	}
	date, err := time.Parse(time.RFC3339, cmp.Or(commit, time.Unix(0, 0).UTC().Format(time.RFC3339)))
	return date.UTC(), err
}
