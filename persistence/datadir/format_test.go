package datadir

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A directory says which version brought it to its format, until a later format comes; one of a later format than this
// version knows, or one that cannot be read, is not opened.
func TestADirectoryOfALaterFormatIsNotOpened(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, version := range []string{"v1", "v2"} {
		if err := Mark(dir, version); err != nil {
			t.Fatal(err)
		}
		if w, err := ReadFormat(dir); err != nil || w != (Written{Format, "v1"}) {
			t.Errorf("%+v, %v", w, err)
		}
	}
	d, err := Open(dir, "test", time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	for text, newer := range map[string]bool{`{"format":99,"version":"v3"}`: true, `{"for`: false} {
		if err := os.WriteFile(filepath.Join(dir, formatFile), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var e *NewerError
		if _, err := Open(dir, "test", time.Second); err == nil || errors.As(err, &e) != newer {
			t.Errorf("%s: %v", text, err)
		}
	}
}
