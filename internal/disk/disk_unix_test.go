//go:build unix

package disk_test

import (
	"path/filepath"
	"syscall"
	"testing"

	"docent/internal/disk"
)

var (
	fullOnes    = []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG}
	readOnlyOne = syscall.EROFS
	shortOne    = syscall.EMFILE
)

// TestALockThatIsGivenBackIsHadByNobody has another descriptor of the same open file, as a process that is being started has.
func TestALockThatIsGivenBackIsHadByNobody(t *testing.T) {
	name := filepath.Join(t.TempDir(), "lock")
	first, second := open(t, name), open(t, name)
	if err := disk.TryLock(first); err != nil {
		t.Fatal(err)
	}
	forked, err := syscall.Dup(int(first.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(forked) })
	if err := disk.Unlock(first); err != nil {
		t.Fatal(err)
	}
	if err := disk.TryLock(second); err != nil {
		t.Errorf("after it was given back: %v", err)
	}
}
