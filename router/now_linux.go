//go:build !race

package router

import (
	"syscall"
	"unsafe"
)

// Calls that never wait: on sockets of the runtime's, which are O_NONBLOCK, and on what the runtime says is ready. Unlike those of
// package syscall they do not tell the runtime, which would get ready for a call that waits: it wakes its monitor, and that looks at
// the processors every 20 µs until they rest again (decision 0011).

// writeNow writes what a socket takes.
func writeNow(fd uintptr, b []byte) (int, error) {
	return now(syscall.SYS_WRITE, fd, unsafe.Pointer(unsafe.SliceData(b)), len(b))
}

// readNow reads what a socket has.
func readNow(fd uintptr, b []byte) (int, error) {
	return now(syscall.SYS_READ, fd, unsafe.Pointer(unsafe.SliceData(b)), len(b))
}

// eventsNow are those that an epoll set has.
func eventsNow(fd uintptr, events []syscall.EpollEvent) (int, error) {
	return now(syscall.SYS_EPOLL_PWAIT, fd, unsafe.Pointer(unsafe.SliceData(events)), len(events))
}

func now(call, fd uintptr, into unsafe.Pointer, size int) (int, error) {
	for {
		n, _, errno := syscall.RawSyscall6(call, fd, uintptr(into), uintptr(size), 0, 0, 0)
		switch errno {
		case 0:
			return int(n), nil
		case syscall.EINTR:
		default:
			return 0, errno
		}
	}
}
