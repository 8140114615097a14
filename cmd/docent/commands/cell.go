package commands

import (
	"os"
	"strconv"

	"github.com/spf13/cobra"

	"docent/cmd/docent/cli"
	"docent/cmd/docent/stores"
	"docent/internal/cell"
)

// newCellCommand is a worker of the cell: the process in which parsers run on what strangers wrote.
func newCellCommand() *cobra.Command {
	return &cobra.Command{
		Use: "cell BYTES", Hidden: true, Short: "Parse for a server what strangers wrote", Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			memory, err := strconv.ParseInt(args[0], 10, 64)
			if err != nil {
				return cli.Usagef("the memory must be a number of bytes")
			}
			out := os.Stdout
			os.Stdout = os.Stderr // what a parser prints is no answer
			return cell.Serve(os.Stdin, out, memory, stores.CellKinds()...)
		}}
}
