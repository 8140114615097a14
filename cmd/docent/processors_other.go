//go:build !unix

package main

import (
	"errors"
	"time"
)

// timeUsed is not known here.
func timeUsed() (time.Duration, error) { return 0, errors.ErrUnsupported }
