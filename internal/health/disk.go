//go:build linux || darwin || freebsd

package health

import (
	"golang.org/x/sys/unix"
)

// DiskOf is the disk that a path is on.
func DiskOf(path string) (Disk, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		return Disk{}, err
	}
	block := uint64(st.Bsize)
	return Disk{Total: uint64(st.Blocks) * block, Free: uint64(st.Bavail) * block}, nil
}
