//go:build race

package router

import "syscall"

// The same by way of package syscall, which tells the race detector that what comes out of a socket comes after what went in.

func writeNow(fd uintptr, b []byte) (int, error) {
	return again(func() (int, error) { return syscall.Write(int(fd), b) })
}

func readNow(fd uintptr, b []byte) (int, error) {
	return again(func() (int, error) { return syscall.Read(int(fd), b) })
}

func eventsNow(fd uintptr, events []syscall.EpollEvent) (int, error) {
	return again(func() (int, error) { return syscall.EpollWait(int(fd), events, 0) })
}

func again(call func() (int, error)) (int, error) {
	for {
		if n, err := call(); err != syscall.EINTR {
			return max(n, 0), err
		}
	}
}
