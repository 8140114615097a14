//go:build unix

package control

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// longestSocket is how long the path of a Unix socket may be: 107 bytes on Linux, 103 on other systems.
const longestSocket = 103

// socketPath makes a path that is short enough. Where it has to hold a folder open for that, done lets it go.
func socketPath(path string) (short string, done func(), err error) {
	if len(path) <= longestSocket {
		return path, func() {}, nil
	}
	if runtime.GOOS != "linux" {
		return "", nil, fmt.Errorf(
			"the path %s is longer than the %d bytes that this system allows: use a data directory with a shorter name", path,
			longestSocket)
	}
	folder, err := os.Open(filepath.Dir(path))
	if err != nil {
		return "", nil, err
	}
	return fmt.Sprintf("/proc/self/fd/%d/%s", folder.Fd(), filepath.Base(path)), func() { folder.Close() }, nil
}

// listen makes the socket, which only its owner can open from the moment when it is there.
func listen(path string) (net.Listener, error) {
	short, done, err := socketPath(path)
	if err != nil {
		return nil, err
	}
	defer done()
	config := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) error {
		return raw.Control(func(fd uintptr) {
			_ = unix.Fchmod(int(fd), 0o600) // Linux gives the file the mode of the socket; elsewhere this may not be possible
		})
	}}
	listener, err := config.Listen(context.Background(), "unix", short)
	if err != nil {
		return nil, err
	}
	listener.(*net.UnixListener).SetUnlinkOnClose(false) // a successor's may stand there by then
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	return listener, nil
}

func dial(ctx context.Context, path string) (net.Conn, error) {
	short, done, err := socketPath(path)
	if err != nil {
		return nil, err
	}
	defer done()
	return new(net.Dialer).DialContext(ctx, "unix", short)
}
