//go:build !linux && !darwin && !freebsd && !windows

package health

import "errors"

// DiskOf is the disk that a path is on.
func DiskOf(string) (Disk, error) { return Disk{}, errors.ErrUnsupported }
