package benchcmd

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"docent/bench/report"
	"docent/cmd/docent/cli"
)

// figurePages are the pages of the repository that show what the load suite has measured.
var figurePages = []string{"README.md", "docs/operate/load.mdx", curvesFolder + "/load-suite.md"}

const curvesFolder = "docs/measurements"

// newFiguresCommand writes the figures of the load suite into the pages that show them.
func newFiguresCommand() *cobra.Command {
	var check bool
	var from, to string
	cmd := &cobra.Command{Use: "figures RESULTS", Hidden: true, Args: cobra.ExactArgs(1),
		Short: "Write the figures of the load suite's reports into the pages of a checkout",
		RunE: func(cmd *cobra.Command, args []string) error {
			suite, err := readSuite(args[0])
			if err != nil {
				return err
			}
			made, err := figuresIn(from, suite)
			if err != nil {
				return err
			}
			var others []string
			for name, text := range made {
				if check {
					if got, err := os.ReadFile(filepath.Join(from, name)); err != nil || string(got) != text {
						others = append(others, name)
					}
					continue
				}
				path := filepath.Join(to, name)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					return err
				}
				if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
					return err
				}
			}
			if slices.Sort(others); len(others) > 0 {
				return fmt.Errorf("%s: not the figures of %s; docent bench figures %s writes them", strings.Join(others, ", "), args[0], args[0])
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%d pages and %d curves, measured at %s\n", len(figurePages), len(made)-len(figurePages),
				strings.Join(suite.Commits(), ", "))
			return nil
		}}
	cmd.Flags().BoolVar(&check, "check", false, "only check that they are up to date")
	cmd.Flags().StringVar(&from, "from", ".", "the checkout to read pages from")
	cmd.Flags().StringVar(&to, "to", ".", "the folder to write pages to")
	return cmd
}

// readSuite reads the reports of a folder.
func readSuite(folder string) (report.Suite, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil || len(files) == 0 {
		return nil, errors.Join(err, cli.Usagef("%s holds no report", folder))
	}
	suite := make(report.Suite)
	for _, name := range files {
		if suite[strings.TrimSuffix(filepath.Base(name), ".json")], err = readReport(name); err != nil {
			return nil, err
		}
	}
	return suite, nil
}

// figuresIn are the pages of a checkout with these figures, and the curves, by their paths.
func figuresIn(checkout string, suite report.Suite) (map[string]string, error) {
	out := make(map[string]string)
	for _, name := range figurePages {
		text, err := os.ReadFile(filepath.Join(checkout, name))
		if err != nil {
			return nil, err
		}
		if out[name], err = suite.Rewrite(string(text)); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	for name, svg := range suite.Curves() {
		out[curvesFolder+"/"+name] = svg
	}
	return out, nil
}
