package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"github.com/spf13/cobra"
)

// neighboursLife bounds how long a neighbour spins, whatever becomes of the bench.
const neighboursLife = 15 * time.Minute

// newBenchSpinCommand is a neighbour: a process that keeps one processor busy. It ends with its standard input, which the bench
// holds: also where the bench is killed.
func newBenchSpinCommand() *cobra.Command {
	var lasts time.Duration
	cmd := &cobra.Command{Use: "spin", Hidden: true, Short: "Keep one processor busy until standard input ends", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ended := make(chan error, 1)
			go func() {
				_, err := io.Copy(io.Discard, cmd.InOrStdin())
				ended <- err
			}()
			for end := time.Now().Add(lasts); time.Now().Before(end); {
				select {
				case err := <-ended:
					return err
				default:
				}
			}
			return nil
		}}
	cmd.Flags().DurationVar(&lasts, "for", neighboursLife, "at most so long")
	return cmd
}

// startNeighbours starts so many processes that spin, on the servers' processors, and ends them with stop.
func (b *benchRun) startNeighbours() (stop func() error, err error) {
	var started []*exec.Cmd
	var held []io.Closer
	stop = func() error {
		var errs []error
		for i, cmd := range started {
			errs = append(errs, held[i].Close(), cmd.Wait())
		}
		return errors.Join(errs...)
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	for range b.neighbours {
		cmd := exec.Command(self, "bench", "spin", "--for", neighboursLife.String())
		input, err := cmd.StdinPipe()
		if err == nil {
			err = b.shares.start(cmd)
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("start a neighbour: %w", err), stop())
		}
		started, held = append(started, cmd), append(held, input)
	}
	return stop, nil
}

// beside names the neighbours of a load.
func (b *benchRun) beside() string {
	if b.neighbours == 0 {
		return ""
	}
	return fmt.Sprintf(", busy neighbours: %d", b.neighbours)
}
