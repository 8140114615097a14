package datadir

import (
	"errors"
	"io"
	"log/slog"
	"os"
	"runtime/debug"
	"strings"

	"docent/internal/disk"
)

// WatchCrashes finds out whether the process before this one crashed, moves its trace aside, and has the Go runtime
// write to the same file when it ends this process: for a panic that nobody recovers, or a stack that overflows.
func (d *Dir) WatchCrashes(log *slog.Logger) {
	name := d.File(crashFile)
	if text, err := os.ReadFile(name); err == nil && len(text) > 0 {
		d.Crashed = true
		kept := strings.TrimSuffix(name, ".log") + ".last.log"
		first, _, _ := strings.Cut(string(text), "\n")
		log.Error("the previous server crashed", "reason", first, "trace", kept)
		if err := disk.Rename(name, kept); err != nil {
			log.Warn("could not move a crash trace", "error", err)
		}
	}
	f, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err == nil {
		err = debug.SetCrashOutput(f, debug.CrashOptions{})
		err = errors.Join(err, io.Closer(f).Close()) // the runtime has a descriptor of its own
	}
	if err != nil {
		log.Warn("crash traces cannot be written", "error", err)
	}
}
