//go:build !linux

package router

import "errors"

// writeNow is there on Linux only, like the pumps that need it.
func writeNow(uintptr, []byte) (int, error) { return 0, errors.ErrUnsupported }
