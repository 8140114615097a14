//go:build unix

package control

import (
	"io/fs"
	"os"
	"testing"
)

func onlyTheOwners(t *testing.T, path string) {
	t.Helper()
	if info, err := os.Lstat(path); err != nil || info.Mode() != fs.ModeSocket|0o600 {
		t.Errorf("the socket: %v, %v", info, err)
	}
}
