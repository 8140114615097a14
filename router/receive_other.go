//go:build !linux

package router

type input struct{}

// receive is the connection's Read.
func (e *entry) receive(b []byte) (int, error) { return e.TCPConn.Read(b) }
