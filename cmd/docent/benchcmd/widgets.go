package benchcmd

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"docent/bench"
	"docent/cmd/docent/cli"
)

// newBenchWidgetsCommand has many readers open the widget at once.
func newBenchWidgetsCommand(b *benchRun) *cobra.Command {
	var w bench.Widgets
	cmd := &cobra.Command{Use: "widgets", Args: cobra.NoArgs,
		Short: "Readers who open the widget at one moment, search, ask, and read their answers",
		Long: "Readers who open the widget at one moment on the server that --url names, each with the requests of a browser of its\n" +
			"own: the script, the settings, the dialog, searches while typing, a question, and its answer to the end. Who is told to\n" +
			"wait waits and comes back, as the widget does. Fails where somebody gets no answer. --questions names other questions.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := cli.Required(cmd, "url", "domain", "key"); err != nil {
				return err
			}
			w.URL, w.Domain, w.Key = strings.TrimRight(b.url, "/"), b.domain, b.key
			var err error
			if w.Questions, err = b.readQuestions(); err != nil {
				return err
			}
			f, err := w.Run(cmd.Context())
			if err != nil {
				return err
			}
			if b.json {
				err = cli.PrintJSON(cmd.OutOrStdout(), f)
			} else {
				err = printWidgets(cmd, f)
			}
			if err == nil && f.Answered < f.Readers {
				err = fmt.Errorf("%d of %d readers got no answer: %s", f.Readers-f.Answered, f.Readers, strings.Join(f.Failures, "; "))
			}
			return err
		},
	}
	cmd.Flags().IntVar(&w.Number, "readers", 1000, "how many")
	cmd.Flags().StringVar(&w.Origin, "origin", "https://docs.example.com", "origin of the site that they are on")
	return cmd
}

func printWidgets(cmd *cobra.Command, f bench.WidgetFigures) error {
	out := cmd.OutOrStdout()
	fmt.Fprintf(out, "%d of %d readers have their answer; %d times somebody was told to wait, and came back\n%d requests, %.1f MB\n",
		f.Answered, f.Readers, f.Waited, f.Requests, float64(f.Bytes)/1e6)
	t := tabwriter.NewWriter(out, 0, 4, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "p50 ms\tp99 ms\tmost ms\tuntil\t")
	for _, l := range []struct {
		of   bench.Latency
		what string
	}{{f.Dialog, "the dialog is there, from opening"}, {f.Results, "the last results, from opening"},
		{f.Text, "the first text, from asking"}, {f.Whole, "the end of the answer, from asking"}} {
		fmt.Fprintf(t, "%.0f\t%.0f\t%.0f\t%s\t\n", l.of.P50, l.of.P99, l.of.Max, l.what)
	}
	return t.Flush()
}
