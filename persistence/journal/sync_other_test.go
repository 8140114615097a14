//go:build !linux

package journal

import (
	"os"
	"testing"
	"time"
)

func syncData(f *os.File) error { return f.Sync() }

func processorTime(testing.TB) time.Duration { return 0 }
