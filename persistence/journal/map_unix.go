//go:build unix

package journal

import (
	"os"

	"golang.org/x/sys/unix"
)

// mapFile maps a file for reading.
func mapFile(f *os.File) (data []byte, unmap func(), err error) {
	st, err := f.Stat()
	if err != nil {
		return nil, nil, err
	}
	data, err = unix.Mmap(int(f.Fd()), 0, int(st.Size()), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, nil, os.NewSyscallError("mmap", err)
	}
	return data, func() { _ = unix.Munmap(data) }, nil
}
