//go:build !linux

package sockets

import "errors"

// An epoll is there on Linux only: elsewhere answers are written by their handlers.
type epoll struct{}

func newEpoll() (*epoll, error) { return nil, errors.ErrUnsupported }

func (*epoll) run()               {}
func (*epoll) close()             {}
func (*epoll) add(*conn) error    { return errors.ErrUnsupported }
func (*epoll) room(*conn) error   { return errors.ErrUnsupported }
func (*epoll) forget(*conn)       {}
func (*epoll) remove(*conn) error { return errors.ErrUnsupported }

func writeNow(uintptr, []byte) (int, error) { return 0, errors.ErrUnsupported }
