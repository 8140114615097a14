package disk_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"docent/internal/disk"
)

// held names the file that a process of this test holds the lock of until its input ends.
const held = "DOCENT_TEST_HOLD_LOCK"

func TestMain(m *testing.M) {
	if name := os.Getenv(held); name != "" {
		f, err := os.OpenFile(name, os.O_RDWR, 0)
		if err == nil {
			err = disk.TryLock(f)
		}
		fmt.Println(err)
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func open(t *testing.T, name string) *os.File {
	t.Helper()
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func TestALockIsHadByOne(t *testing.T) {
	name := filepath.Join(t.TempDir(), "lock")
	first, second := open(t, name), open(t, name)
	if err := disk.TryLock(first); err != nil {
		t.Fatal(err)
	}
	if err := disk.TryLock(second); !errors.Is(err, disk.ErrLocked) {
		t.Fatalf("a second opening gets %v", err)
	}
	// What is in the file can be read and written by others: it names who has the lock.
	if _, err := second.WriteAt([]byte("somebody"), 0); err != nil {
		t.Errorf("write to a file that is locked: %v", err)
	}
	if err := second.Truncate(4); err != nil {
		t.Errorf("cut a file that is locked: %v", err)
	}
	if text, err := os.ReadFile(name); err != nil || string(text) != "some" {
		t.Errorf("read a file that is locked: %q, %v", text, err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if err := disk.TryLock(second); err != nil {
		t.Errorf("after the first is closed: %v", err)
	}
}

// A process that is killed gives the lock back, without a word.
func TestALockEndsWithItsProcess(t *testing.T) {
	name := filepath.Join(t.TempDir(), "lock")
	mine := open(t, name)
	other := exec.Command(os.Args[0])
	other.Env = append(os.Environ(), held+"="+name)
	in, err := other.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := other.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	said, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || said != "<nil>\n" {
		t.Fatalf("the other process says %q, %v", said, err)
	}
	if err := disk.TryLock(mine); !errors.Is(err, disk.ErrLocked) {
		t.Errorf("while the other process has it: %v", err)
	}
	if err := other.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = other.Wait() // it was killed
	if err := disk.TryLock(mine); err != nil {
		t.Errorf("after the other process was killed: %v", err)
	}
}

func TestRenameReplacesAFileAndFolderNamesAreSynced(t *testing.T) {
	dir := t.TempDir()
	from, to := filepath.Join(dir, "new"), filepath.Join(dir, "old")
	for name, text := range map[string]string{from: "new", to: "old"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := disk.Rename(from, to); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(to); err != nil || string(text) != "new" {
		t.Errorf("%q, %v", text, err)
	}
	if err := disk.SyncFolder(dir); err != nil {
		t.Errorf("sync the folder: %v", err)
	}
	if err := disk.SyncFolder(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a folder that is not there: %v", err)
	}
	if err := disk.Rename(from, to); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
}

func TestWhatADiskSaysIsSorted(t *testing.T) {
	wrapped := func(err error) error { return fmt.Errorf("store: %w", &fs.PathError{Op: "write", Path: "x", Err: err}) }
	for _, err := range fullOnes {
		if !disk.Full(wrapped(err)) || disk.ReadOnly(wrapped(err)) || !disk.Exhausted(wrapped(err)) {
			t.Errorf("%v is not told as a full disk", err)
		}
	}
	if err := wrapped(readOnlyOne); disk.Full(err) || !disk.ReadOnly(err) || !disk.Exhausted(err) {
		t.Errorf("%v is not told as a file system that takes no writes", err)
	}
	if err := wrapped(shortOne); disk.Full(err) || disk.ReadOnly(err) || !disk.Exhausted(err) {
		t.Errorf("%v is not told as a machine that is short of something", err)
	}
	for _, err := range []error{nil, fs.ErrNotExist, io.ErrUnexpectedEOF} {
		if disk.Full(err) || disk.ReadOnly(err) || disk.Exhausted(err) {
			t.Errorf("%v is told as the disk's", err)
		}
	}
}
