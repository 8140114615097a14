package main

import (
	"errors"
	"io"
	"log/slog"
	"os"
	"runtime/debug"
	"strings"
)

// crashFile holds what the Go runtime says when it ends the process: a panic that nobody recovers, a stack that overflows.
const crashFile = "crash.log"

// watchCrashes tells whether the process before this one crashed, moves what it said aside, and has the runtime write there.
func watchCrashes(dir *dataDir, log *slog.Logger) (crashed bool) {
	name := dir.file(crashFile)
	if text, err := os.ReadFile(name); err == nil && len(text) > 0 {
		crashed = true
		kept := strings.TrimSuffix(name, ".log") + ".last.log"
		first, _, _ := strings.Cut(string(text), "\n")
		log.Error("the server before this one crashed", "reason", first, "trace", kept)
		if err := os.Rename(name, kept); err != nil {
			log.Warn("the trace of a crash stays where it is", "error", err)
		}
	}
	f, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err == nil {
		err = debug.SetCrashOutput(f, debug.CrashOptions{})
		err = errors.Join(err, io.Closer(f).Close()) // the runtime has a descriptor of its own
	}
	if err != nil {
		log.Warn("a crash of the server would not be noted", "error", err)
	}
	return crashed
}
