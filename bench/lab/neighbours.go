package lab

import (
	"context"
	"docent/internal/background"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
)

// NeighbourLife bounds how long a neighbour spins, whatever becomes of the bench.
const NeighbourLife = 15 * time.Minute

// Spin keeps one processor busy until what it reads ends, and no longer than lasts. The bench holds the other end: a
// neighbour ends with it, also where the bench is killed.
func Spin(ctx context.Context, held io.Reader, lasts time.Duration) error {
	ended := make(chan error, 1)
	background.Go("bench/lab.Spin", func() {
		_, err := io.Copy(io.Discard, held)
		ended <- err
	})
	for end := time.Now().Add(lasts); time.Now().Before(end) && ctx.Err() == nil; {
		select {
		case err := <-ended:
			return err
		default:
		}
	}
	return nil
}

// startNeighbours starts so many processes that spin, on the servers' processors, and ends them with stop.
func startNeighbours(n int, partition *Partition) (stop func() error, err error) {
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
	for range n {
		cmd := exec.Command(self, "bench", "spin", "--for", NeighbourLife.String())
		input, err := cmd.StdinPipe()
		if err == nil {
			err = partition.start(cmd)
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("start a neighbour: %w", err), stop())
		}
		started, held = append(started, cmd), append(held, input)
	}
	return stop, nil
}
