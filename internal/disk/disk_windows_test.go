package disk_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/windows"

	"docent/internal/disk"
)

var (
	fullOnes    = []error{windows.ERROR_DISK_FULL, windows.ERROR_HANDLE_DISK_FULL, windows.ERROR_DISK_QUOTA_EXCEEDED}
	readOnlyOne = windows.ERROR_WRITE_PROTECT
	shortOne    = windows.ERROR_TOO_MANY_OPEN_FILES
)

// Another program that has the file open for a moment does not fail a rename.
func TestRenameWaitsForOthers(t *testing.T) {
	dir := t.TempDir()
	from, to := filepath.Join(dir, "new"), filepath.Join(dir, "old")
	for _, name := range []string{from, to} {
		if err := os.WriteFile(name, []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	reader, err := os.Open(to)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(from, to); !errors.Is(err, windows.ERROR_SHARING_VIOLATION) && !errors.Is(err, windows.ERROR_ACCESS_DENIED) {
		t.Fatalf("a file that is open is replaced, which the waiting is for: %v", err)
	}
	renamed := make(chan error)
	go func() { renamed <- disk.Rename(from, to) }()
	reader.Close()
	if err := <-renamed; err != nil {
		t.Error(err)
	}
}
