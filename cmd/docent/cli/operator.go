package cli

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"docent/cmd/docent/config"
	"docent/cmd/docent/operator"
	"docent/persistence/datadir"
)

// An Operator runs operations on the data directory that a command's flags name.
type Operator struct {
	Prog   Program
	Config string
	JSON   bool
	Here   operator.Doer // does operations where no server has the directory; operateHere if nil
}

// OperatorFlags adds the flags that name a data directory.
func OperatorFlags(cmd *cobra.Command, o *Operator) {
	flags := cmd.PersistentFlags()
	flags.String("data", config.Default().Data, "data directory (DOCENT_DATA)")
	flags.String("catalog-dsn", "", "catalog database, if it is not in the data directory (DOCENT_CATALOG_DSN)")
	flags.StringVar(&o.Config, "config", os.Getenv(config.EnvPrefix+"CONFIG"), "configuration file (TOML)")
	flags.BoolVar(&o.JSON, "json", false, "print JSON: one object, or one per line for lists")
}

// Load reads the configuration that a command is run with.
func (o *Operator) Load(cmd *cobra.Command) (config.Config, error) {
	c, err := config.Load(o.Config, os.LookupEnv, cmd.Flags())
	return o.Prog.Configured(c), err
}

// Run performs one operation and reads its result, with progress on the command's standard error.
func (o *Operator) Run(cmd *cobra.Command, name string, params, result any) error {
	c, err := o.Load(cmd)
	if err != nil {
		return err
	}
	here := o.Here
	if here == nil {
		here = operator.OperateHere
	}
	progress, end := ShowProgress(cmd.ErrOrStderr(), slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil)))
	defer end()
	return flagWords(cmd, operator.Operate(cmd.Context(), c, name, params, result, progress, here))
}

// Show performs one operation and shows its result: as JSON, or as print has it for people.
func Show[T any](o *Operator, cmd *cobra.Command, name string, params any,
	print func(w io.Writer, result T) error) error {
	var result T
	if err := o.Run(cmd, name, params, &result); err != nil {
		return err
	}
	if o.JSON {
		return PrintJSON(cmd.OutOrStdout(), result)
	}
	return print(cmd.OutOrStdout(), result)
}

// ShowRows is show for an operation that lists something: a JSON object a line, or a table.
func ShowRows[T any](o *Operator, cmd *cobra.Command, name string, params any, head string, row func(T) string) error {
	var rows []T
	if err := o.Run(cmd, name, params, &rows); err != nil {
		return err
	}
	return PrintRows(cmd.OutOrStdout(), o.JSON, rows, head, row)
}

// MakesDataDir is the data directory that a command will make; empty if it is there.
func (o *Operator) MakesDataDir(cmd *cobra.Command) (string, error) {
	c, err := o.Load(cmd)
	if err != nil {
		return "", err
	}
	if ok, err := datadir.Used(c.Data); ok || err != nil {
		return "", err
	}
	return filepath.Abs(c.Data)
}

// Do performs one operation that has nothing to show, and says that it was done.
func (o *Operator) Do(cmd *cobra.Command, name string, params, object any, format string, args ...any) error {
	if err := o.Run(cmd, name, params, nil); err != nil {
		return err
	}
	return o.Did(cmd, object, format, args...)
}

// Did says what was done where there is nothing else to show.
func (o *Operator) Did(cmd *cobra.Command, object any, format string, args ...any) error {
	if o.JSON {
		return PrintJSON(cmd.OutOrStdout(), object)
	}
	_, err := fmt.Fprintf(cmd.OutOrStdout(), format+"\n", args...)
	return err
}

// PrintRows prints a list: a JSON object a line, or a table.
func PrintRows[T any](w io.Writer, asJSON bool, rows []T, head string, row func(T) string) error {
	if asJSON {
		var errs []error
		for _, r := range rows {
			errs = append(errs, PrintJSON(w, r))
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
