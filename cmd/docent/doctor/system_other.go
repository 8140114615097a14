//go:build !linux

package doctor

import (
	"errors"
	"io/fs"
)

func volumeOf(string) (volume, error) { return volume{}, errors.ErrUnsupported }

func ownerOf(fs.FileInfo) (int, bool) { return 0, false }

// FileLimit is how many files this process may have open; 0 where the system does not say.
func FileLimit() uint64 { return 0 }
