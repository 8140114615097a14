package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime/metrics"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"docent/formats/pdf"
	"docent/search"
)

// Bounds of reading one PDF file, which may hold anything.
const (
	pdfTime   = time.Minute
	pdfMemory = 256 << 20
	pdfInput  = 64 << 20
	pdfOutput = 8 << 20
)

// statusUnreadable is the exit status for a file that is at fault itself.
const statusUnreadable = 3

// newReadPDFCommand reads one PDF file in a process of its own. The server starts it for each such file.
func newReadPDFCommand() *cobra.Command {
	return &cobra.Command{Use: "read-pdf", Hidden: true, Short: "Write a PDF file from standard input as Markdown",
		Args: cobra.NoArgs,
		Run: func(cmd *cobra.Command, _ []string) {
			unreadable := func(err error) {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(statusUnreadable)
			}
			go func() {
				for sample := []metrics.Sample{{Name: "/memory/classes/total:bytes"}}; ; time.Sleep(20 * time.Millisecond) {
					if metrics.Read(sample); sample[0].Value.Uint64() > pdfMemory {
						unreadable(errors.New("it takes too much memory to be read"))
					}
				}
			}()
			content, err := io.ReadAll(io.LimitReader(cmd.InOrStdin(), pdfInput))
			if err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			text, err := pdf.Markdown(content)
			if err != nil {
				unreadable(err)
			}
			_, _ = cmd.OutOrStdout().Write(text)
		}}
}

// newPDFReader reads PDF files, one at a time, each in a process of its own: what one of them makes the reader do ends
// with that process.
func newPDFReader() func(ctx context.Context, content []byte) ([]byte, error) {
	turn := make(chan struct{}, 1)
	return func(ctx context.Context, content []byte) ([]byte, error) {
		select {
		case turn <- struct{}{}:
			defer func() { <-turn }()
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		self, err := os.Executable()
		if err != nil {
			return nil, err
		}
		limited, cancel := context.WithTimeout(ctx, pdfTime)
		defer cancel()
		cmd := exec.CommandContext(limited, self, "read-pdf")
		out, problem := &limitedBuffer{most: pdfOutput}, &limitedBuffer{most: 4 << 10}
		cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(content), out, problem
		err = cmd.Run()
		var exit *exec.ExitError
		switch {
		case err == nil && len(out.Bytes()) < pdfOutput:
			return out.Bytes(), nil
		case err == nil:
			return nil, &search.UnreadableError{Why: "it holds more text than is read"}
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case limited.Err() != nil:
			return nil, &search.UnreadableError{Why: fmt.Sprintf("it was not read within %s", pdfTime)}
		case errors.As(err, &exit) && exit.ExitCode() == statusUnreadable:
			return nil, &search.UnreadableError{Why: strings.TrimSpace(problem.String())}
		case errors.As(err, &exit) && exit.ExitCode() == 2: // the Go runtime gave up: a stack that is too deep
			return nil, &search.UnreadableError{Why: "it broke the reader of PDF files"}
		}
		return nil, fmt.Errorf("start the reader of PDF files: %w", err)
	}
}

// A limitedBuffer drops what is written beyond its size.
type limitedBuffer struct {
	bytes.Buffer
	most int
}

func (b *limitedBuffer) Write(p []byte) (int, error) {
	_, err := b.Buffer.Write(p[:min(len(p), max(0, b.most-b.Len()))])
	return len(p), err
}
