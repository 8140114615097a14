//go:build !linux

package router

import "errors"

// A watch is there on Linux only: elsewhere streams stay with their handlers.
type watch struct{}

func newWatch() (*watch, error) { return nil, errors.ErrUnsupported }

func (*watch) run()              {}
func (*watch) close()            {}
func (*watch) add(*flow) error   { return errors.ErrUnsupported }
func (*watch) room(*flow) error  { return errors.ErrUnsupported }
func (*watch) remove(*flow)      {}
func (*watch) leave(*flow) error { return errors.ErrUnsupported }
