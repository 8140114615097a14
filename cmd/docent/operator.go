package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"docent/datadir"
)

// An operator runs operations on the data directory that a command's flags name.
type operator struct {
	prog   program
	config string
	json   bool
	here   doer // does operations where no server has the directory; operateHere where nil
}

// operatorFlags adds the flags that name a data directory.
func operatorFlags(cmd *cobra.Command, o *operator) {
	flags := cmd.PersistentFlags()
	flags.String("data", DefaultConfig().Data, "data directory (DOCENT_DATA)")
	flags.String("catalog-dsn", "", "catalogue database, where it is not in the data directory (DOCENT_CATALOG_DSN)")
	flags.StringVar(&o.config, "config", os.Getenv(envPrefix+"CONFIG"), "configuration file (TOML)")
	flags.BoolVar(&o.json, "json", false, "print one JSON object (a line each in lists)")
}

func (o *operator) load(cmd *cobra.Command) (Config, error) {
	c, err := LoadConfig(o.config, os.LookupEnv, cmd.Flags())
	return o.prog.configured(c), err
}

// run performs one operation and reads its result, with progress on the command's standard error.
func (o *operator) run(cmd *cobra.Command, name string, params, result any) error {
	c, err := o.load(cmd)
	if err != nil {
		return err
	}
	here := o.here
	if here == nil {
		here = operateHere
	}
	progress, end := showProgress(cmd.ErrOrStderr(), slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil)))
	defer end()
	return flagWords(cmd, operate(cmd.Context(), c, name, params, result, progress, here))
}

// show performs one operation and shows its result: as JSON, or as print has it for people.
func show[T any](o *operator, cmd *cobra.Command, name string, params any,
	print func(w io.Writer, result T) error) error {
	var result T
	if err := o.run(cmd, name, params, &result); err != nil {
		return err
	}
	if o.json {
		return printJSON(cmd.OutOrStdout(), result)
	}
	return print(cmd.OutOrStdout(), result)
}

// showRows is show for an operation that lists something: a JSON object a line, or a table.
func showRows[T any](o *operator, cmd *cobra.Command, name string, params any, head string, row func(T) string) error {
	var rows []T
	if err := o.run(cmd, name, params, &rows); err != nil {
		return err
	}
	return printRows(cmd.OutOrStdout(), o.json, rows, head, row)
}

// makesDataDir is the data directory that a command will make; empty where it is there.
func (o *operator) makesDataDir(cmd *cobra.Command) (string, error) {
	c, err := o.load(cmd)
	if err != nil {
		return "", err
	}
	if ok, err := datadir.Used(c.Data); ok || err != nil {
		return "", err
	}
	return filepath.Abs(c.Data)
}

// did says what was done where there is nothing else to show.
func (o *operator) did(cmd *cobra.Command, object any, format string, args ...any) error {
	if o.json {
		return printJSON(cmd.OutOrStdout(), object)
	}
	_, err := fmt.Fprintf(cmd.OutOrStdout(), format+"\n", args...)
	return err
}

// shownTime is a time as tables show it, in the user's time zone.
func shownTime(t time.Time) string { return t.Local().Format("2006-01-02 15:04:05 MST") }

// printRows prints a list: a JSON object a line, or a table.
func printRows[T any](w io.Writer, asJSON bool, rows []T, head string, row func(T) string) error {
	if asJSON {
		var errs []error
		for _, r := range rows {
			errs = append(errs, printJSON(w, r))
		}
		return errors.Join(errs...)
	}
	table := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintln(table, head)
	for _, r := range rows {
		fmt.Fprintln(table, row(r))
	}
	return table.Flush()
}
