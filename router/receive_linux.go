package router

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"
)

// An input reads from a connection as that does itself, but with readNow.
type input struct {
	raw  syscall.RawConn
	into []byte
	n    int
	err  error
	take func(fd uintptr) bool
}

// receive is the connection's Read.
func (e *entry) receive(b []byte) (int, error) {
	if e.input == nil {
		raw, err := e.SyscallConn()
		if err != nil {
			return 0, err
		}
		in := &input{raw: raw}
		in.take = func(fd uintptr) bool {
			in.n, in.err = readNow(fd, in.into)
			return in.err != syscall.EAGAIN
		}
		e.input = in
	}
	in := e.input
	in.into = b
	err := in.raw.Read(in.take)
	in.into = nil
	if failed := (*net.OpError)(nil); errors.As(err, &failed) {
		err = failed.Err
	} else if err == nil && in.err != nil {
		err = os.NewSyscallError("read", in.err)
	}
	switch {
	case err != nil:
		// Not as raw-read: net/http knows an error of its client's by the name.
		return 0, &net.OpError{Op: "read", Net: "tcp", Source: e.LocalAddr(), Addr: e.RemoteAddr(), Err: err}
	case in.n == 0 && len(b) > 0:
		return 0, io.EOF
	}
	return in.n, nil
}
