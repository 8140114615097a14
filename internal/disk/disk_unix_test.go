//go:build unix

package disk_test

import "syscall"

var (
	fullOnes    = []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG}
	readOnlyOne = syscall.EROFS
	shortOne    = syscall.EMFILE
)
