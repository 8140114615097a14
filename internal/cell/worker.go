package cell

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"docent/internal/background"
)

// Exit statuses of a worker that ended in the middle of an input.
const (
	exitMemory = 3
	exitTime   = 4
)

const (
	maxServed = 1000      // inputs of one worker
	maxWhy    = 64 << 10  // bytes of a refusal, or of a panic with its stack
	ending    = byte(128) // beside a status: the worker ends after it
	watching  = 10 * time.Millisecond
)

// Serve is a worker: it does what comes in, with so many bytes of memory, until there is no more. It is for a process
// that does nothing else, which it ends when an input breaks a bound.
func Serve(in io.Reader, out io.Writer, memory int64, kinds ...Kind) error {
	known := byName(kinds)
	confine(memory)
	debug.SetMemoryLimit(memory / 4 * 3)
	debug.SetMaxStack(int(memory / 4))
	for n := 1; ; n++ {
		name, input, err := readRequest(in, known)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		k := known[name]
		done := watch(memory, k.Time)
		s, result := k.run(input)
		close(done)
		last := byte(0)
		if n == maxServed || s == statusPanicked || held() > uint64(memory/2) {
			last = ending
		}
		if s != statusRead {
			result = result[:min(len(result), maxWhy)]
		}
		head := binary.BigEndian.AppendUint32([]byte{byte(s) | last}, uint32(len(result)))
		if _, err := out.Write(head); err != nil {
			return err
		}
		if _, err := out.Write(result); err != nil || last != 0 {
			return err
		}
	}
}

// watch ends the process if the input that is worked on takes more than it may, until done is closed.
func watch(memory int64, most time.Duration) (done chan struct{}) {
	done = make(chan struct{})
	began := processorTime()
	background.Essential("cell.watch", func() {
		tick := time.NewTicker(watching)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
			}
			if held() > uint64(memory) {
				os.Exit(exitMemory)
			}
			if processorTime()-began > most {
				os.Exit(exitTime)
			}
		}
	})
	return done
}

// held is how much memory the process has taken from the system.
func held() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/total:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// A request is the length of the kind's name, the name, the length of the input, and the input.
func writeRequest(w io.Writer, kind string, input []byte) error {
	head := append([]byte{byte(len(kind))}, kind...)
	if _, err := w.Write(binary.BigEndian.AppendUint32(head, uint32(len(input)))); err != nil {
		return err
	}
	_, err := w.Write(input)
	return err
}

func readRequest(r io.Reader, known map[string]Kind) (kind string, input []byte, err error) {
	var length [1]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return "", nil, err
	}
	head := make([]byte, int(length[0])+4)
	if _, err := io.ReadFull(r, head); err != nil {
		return "", nil, err
	}
	kind = string(head[:length[0]])
	k, ok := known[kind]
	n := binary.BigEndian.Uint32(head[length[0]:])
	if !ok || int64(n) > int64(k.MaxInput) {
		return "", nil, fmt.Errorf("a request for %q of %d bytes", kind, n)
	}
	input = make([]byte, n)
	_, err = io.ReadFull(r, input)
	return kind, input, err
}

// readResponse reads what a worker made of an input.
func readResponse(r io.Reader, k Kind) (s status, last bool, out []byte, err error) {
	var head [5]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, false, nil, err
	}
	s, last = status(head[0]&^ending), head[0]&ending != 0
	n, most := binary.BigEndian.Uint32(head[1:]), maxWhy
	if s == statusRead {
		most = k.MaxOutput
	}
	if int64(n) > int64(most) {
		return statusTooMuch, true, nil, nil
	}
	out = make([]byte, n)
	_, err = io.ReadFull(r, out)
	return s, last, out, err
}
