package main

import (
	"bytes"
	"io"
	"os/exec"
	"strings"
	"testing"
	"time"

	"docent/cmd/docent/cli"
)

// A neighbour of a measurement keeps a processor busy for nobody when the bench has been killed.
func TestANeighbourEndsWithTheBenchAndByItself(t *testing.T) {
	t.Parallel()
	spin := func(lasts time.Duration) (*exec.Cmd, io.Closer) {
		cmd := exec.CommandContext(t.Context(), self(t), "bench", "spin", "--for", lasts.String())
		cmd.Env = docentEnvironment(t)
		input, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return cmd, input
	}
	orphan, input := spin(time.Hour)
	input.Close() // as when the process ends that holds it
	if err := orphan.Wait(); err != nil {
		t.Errorf("without the bench: %v", err)
	}
	bounded, input := spin(time.Millisecond)
	if err := bounded.Wait(); err != nil {
		t.Errorf("after its time: %v", err)
	}
	input.Close()
}

func TestTheBenchStartsNeighboursAndEndsThem(t *testing.T) {
	leftOutWhenShort(t)
	t.Parallel()
	if out := runBench(t, 0, "streams", "--streams", "3", "--ramp", "10ms", "--parts", "3", "--neighbours",
		"1", "--cold"); !strings.Contains(out, "busy neighbours: 1") {
		t.Errorf("the report does not tell of the neighbour:\n%s", out)
	}
	out := runBench(t, cli.ExitUsage, "streams", "--neighbours", "1", "--url", "http://127.0.0.1:1", "--domain", "d", "--key",
		"k")
	if !strings.Contains(out, "--neighbours") {
		t.Error(out)
	}
}

// runBench runs the bench to its end, and gives what it said.
func runBench(t *testing.T, exit int, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), self(t), append([]string{"bench"}, args...)...)
	cmd.Env = docentEnvironment(t)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	_ = cmd.Run() // the exit status is looked at
	if got := cmd.ProcessState.ExitCode(); got != exit {
		t.Fatalf("exit status %d, want %d:\n%s", got, exit, said.String())
	}
	return said.String()
}
