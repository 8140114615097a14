// Package cell runs parsers on what strangers wrote in processes of their own. What an input makes a parser do (loop,
// panic, take all memory) ends that process and is the error of that input: the program that asked goes on.
//
// A program registers its parsers as kinds and starts itself again as the worker. A pool keeps a few workers, each of
// which serves many inputs, one after another. There are bounds on processor time, on memory, and on the bytes that go
// in and come out.
package cell

import (
	"bytes"
	"context"
	"encoding/gob"
	"fmt"
	"time"

	"docent/internal/background"
)

// A Kind is one kind of work.
type Kind struct {
	Name      string
	Time      time.Duration // of processor, for one input
	MaxInput  int           // bytes
	MaxOutput int           // bytes
	// Read makes of an input what is wanted of it. Its error says what is wrong with the input.
	Read func(input []byte) ([]byte, error)
}

// A Func does the work of a kind. Its error is an *UnreadableError if the input is at fault.
type Func = func(ctx context.Context, kind string, input []byte) ([]byte, error)

// An UnreadableError says why there is nothing of an input.
type UnreadableError struct {
	Why   string
	Broke bool // the input broke its parser or one of the bounds; otherwise the parser refused it
}

func (e *UnreadableError) Error() string { return e.Why }

func broke(format string, args ...any) error {
	return &UnreadableError{Why: fmt.Sprintf(format, args...), Broke: true}
}

// These are reported to the owner of the input.
const (
	whyTime   = "it takes too long to be read"
	whyMemory = "it takes too much memory to be read"
	whyBroke  = "it broke the program that reads it"
)

func tooLarge(k Kind) error  { return broke("it has more than %d bytes", k.MaxInput) }
func tooMuch(max int) error  { return broke("what is made of it has more than %d bytes", max) }
func unknown(n string) error { return fmt.Errorf("no parser is registered as %q", n) }

// Values makes the Read of a kind of a function on values, which cross the process as Call sends them.
func Values[In, Out any](read func(In) (Out, error)) func([]byte) ([]byte, error) {
	return func(input []byte) ([]byte, error) {
		var in In
		if err := gob.NewDecoder(bytes.NewReader(input)).Decode(&in); err != nil {
			return nil, err
		}
		out, err := read(in)
		if err != nil {
			return nil, err
		}
		var b bytes.Buffer
		err = gob.NewEncoder(&b).Encode(&out)
		return b.Bytes(), err
	}
}

// Call asks for work on a value whose Read was made by Values.
func Call[Out, In any](ctx context.Context, f Func, kind string, in In) (out Out, err error) {
	if f == nil {
		return out, unknown(kind)
	}
	var b bytes.Buffer
	if err := gob.NewEncoder(&b).Encode(&in); err != nil {
		return out, err
	}
	raw, err := f(ctx, kind, b.Bytes())
	if err != nil {
		return out, err
	}
	if err := gob.NewDecoder(bytes.NewReader(raw)).Decode(&out); err != nil {
		return out, fmt.Errorf("read what was made of a %s: %w", kind, err)
	}
	return out, nil
}

type ownerKey struct{}

// WithOwner names who is behind the inputs of a context. Owners share the workers of a pool evenly, and none of several
// workers is left to one owner alone.
func WithOwner(ctx context.Context, owner string) context.Context {
	return context.WithValue(ctx, ownerKey{}, owner)
}

func ownerOf(ctx context.Context) string {
	owner, _ := ctx.Value(ownerKey{}).(string)
	return owner
}

func byName(kinds []Kind) map[string]Kind {
	out := make(map[string]Kind, len(kinds))
	for _, k := range kinds {
		out[k.Name] = k
	}
	return out
}

// InProcess does the work in this process, for tests and for inputs of one's own: the bounds on bytes hold and a panic
// is an error, those on time and memory do not.
func InProcess(kinds ...Kind) Func {
	known := byName(kinds)
	return func(ctx context.Context, kind string, input []byte) ([]byte, error) {
		k, ok := known[kind]
		switch {
		case !ok:
			return nil, unknown(kind)
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case len(input) > k.MaxInput:
			return nil, tooLarge(k)
		}
		status, out := k.run(input)
		return k.result(status, out)
	}
}

// A status says what came of an input.
type status byte

const (
	statusRead     status = iota
	statusRefused         // with why
	statusPanicked        // with the panic and its stack
	statusTooMuch
)

// run does the work on one input.
func (k Kind) run(input []byte) (s status, out []byte) {
	var refused error
	err := background.Guard(func() error {
		out, refused = k.Read(input)
		return nil
	})
	switch {
	case err != nil:
		return statusPanicked, []byte(err.Error())
	case refused != nil:
		return statusRefused, []byte(refused.Error())
	case len(out) > k.MaxOutput:
		return statusTooMuch, nil
	}
	return statusRead, out
}

// result is what the caller is told.
func (k Kind) result(s status, out []byte) ([]byte, error) {
	switch s {
	case statusRead:
		return out, nil
	case statusRefused:
		return nil, &UnreadableError{Why: string(out)}
	case statusTooMuch:
		return nil, tooMuch(k.MaxOutput)
	}
	return nil, broke(whyBroke)
}
