package say

import (
	"errors"
	"fmt"
)

// A Refusal is something that the instructions ask for and the workspace does not allow. It is for the user to read.
type Refusal struct {
	Text string
	Idle bool // there is nothing to change
}

// AsRefusal finds the refusal in an error.
func AsRefusal(err error) (*Refusal, bool) { return errors.AsType[*Refusal](err) }

func (r *Refusal) Error() string { return r.Text }

// Refuse makes a refusal.
func Refuse(format string, args ...any) error { return &Refusal{Text: fmt.Sprintf(format, args...)} }

// Idle is a refusal because there is nothing to change: what is asked for is so already, or occurs nowhere.
func Idle(format string, args ...any) error {
	return &Refusal{Text: fmt.Sprintf(format, args...), Idle: true}
}
