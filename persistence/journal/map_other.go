//go:build !unix

package journal

import (
	"io"
	"os"
)

// mapFile reads a file.
func mapFile(f *os.File) (data []byte, unmap func(), err error) {
	data, err = io.ReadAll(f)
	return data, func() {}, err
}
