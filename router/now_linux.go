package router

import "syscall"

// Calls that never wait: on sockets of the runtime's, which are O_NONBLOCK, and on what the runtime says is ready.

// writeNow writes what a socket takes.
func writeNow(fd uintptr, b []byte) (int, error) {
	return again(func() (int, error) { return syscall.Write(int(fd), b) })
}

// eventsNow are those that an epoll set has.
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
