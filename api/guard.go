package api

import (
	"fmt"
	"runtime/debug"
)

// A PanicError is a panic that was caught so that it ends one piece of work and not the process. It is for the log.
type PanicError struct {
	Value any
	Stack []byte
}

func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v\n%s", e.Value, e.Stack) }

// Guard runs f and makes a *PanicError of a panic in it. Whoever starts a goroutine that works on what comes from
// outside runs that work in a Guard: no goroutine but itself can catch what it panics with.
func Guard(f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &PanicError{Value: v, Stack: debug.Stack()}
		}
	}()
	return f()
}
