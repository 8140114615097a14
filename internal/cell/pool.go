package cell

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os/exec"
	"strconv"
	"sync"
	"time"
)

// Options of a pool.
type Options struct {
	// Command makes the command of a worker, which gets the arguments of Serve's memory at its end.
	Command func() (*exec.Cmd, error)
	Kinds   []Kind
	Workers int           // at once
	Memory  int64         // bytes of each worker
	Idle    time.Duration // after which a worker that has nothing to do ends; a minute if 0
	Log     *slog.Logger
}

// maxStanding is how much longer than its processor time an input may take, when a machine does much else. It ends
// what stands still.
const maxStanding = 5 * time.Minute

// A Pool is the workers of one program. They are started when there is work.
type Pool struct {
	o     Options
	kinds map[string]Kind

	mu      sync.Mutex
	closed  bool
	working int            // inputs
	owners  map[string]int // the same of each owner
	waiting []*place
	idle    []*worker
	live    map[*worker]bool
	sweeps  bool // sweep will be called
}

// A place is one of the inputs that are worked on at once.
type place struct {
	owner string
	given chan struct{} // is closed when it is
}

// ErrClosed is the error of all calls to a closed pool.
var ErrClosed = errors.New("the workers that read what strangers wrote have ended")

// New makes a pool. No process is started yet.
func New(o Options) *Pool {
	o.Workers, o.Idle, o.Log = max(1, o.Workers), cmp.Or(o.Idle, time.Minute), cmp.Or(o.Log, slog.Default())
	return &Pool{o: o, kinds: byName(o.Kinds), owners: map[string]int{}, live: map[*worker]bool{}}
}

// Do implements Func. The end of the context ends the work.
func (p *Pool) Do(ctx context.Context, kind string, input []byte) ([]byte, error) {
	k, ok := p.kinds[kind]
	if !ok {
		return nil, unknown(kind)
	}
	if len(input) > k.MaxInput {
		return nil, tooLarge(k)
	}
	owner := ownerOf(ctx)
	leave, err := p.enter(ctx, owner)
	if err != nil {
		return nil, err
	}
	defer leave()
	for {
		w, fresh, err := p.take()
		if err != nil {
			return nil, err
		}
		out, again, err := p.work(ctx, w, k, input)
		if again && !fresh {
			continue // it had ended while it was idle
		}
		if broken := (*UnreadableError)(nil); errors.As(err, &broken) && broken.Broke {
			p.o.Log.Warn("an input broke its parser", "kind", kind, "project", owner, "bytes", len(input), "error", err)
		}
		return out, err
	}
}

// enter waits for a place.
func (p *Pool) enter(ctx context.Context, owner string) (leave func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	at := &place{owner, make(chan struct{})}
	leave = func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.working--
		if p.owners[owner]--; p.owners[owner] == 0 {
			delete(p.owners, owner)
		}
		p.give()
	}
	p.mu.Lock()
	p.waiting = append(p.waiting, at)
	p.give()
	p.mu.Unlock()
	select {
	case <-at.given:
		return leave, nil
	case <-ctx.Done():
	}
	p.mu.Lock()
	for i, other := range p.waiting {
		if other == at {
			p.waiting = append(p.waiting[:i], p.waiting[i+1:]...)
			p.mu.Unlock()
			return nil, ctx.Err()
		}
	}
	p.mu.Unlock()
	leave() // it was given meanwhile
	return nil, ctx.Err()
}

// give gives free places to the owners who have the fewest, in the order in which they came. A named owner does not get
// the last one. The caller holds p.mu.
func (p *Pool) give() {
	for p.working < p.o.Workers {
		next := -1
		for i, at := range p.waiting {
			has := p.owners[at.owner]
			if at.owner != "" && p.o.Workers > 1 && has >= p.o.Workers-1 {
				continue
			}
			if next < 0 || has < p.owners[p.waiting[next].owner] {
				next = i
			}
		}
		if next < 0 {
			return
		}
		at := p.waiting[next]
		p.waiting = append(p.waiting[:next], p.waiting[next+1:]...)
		p.working++
		p.owners[at.owner]++
		close(at.given)
	}
}

// A worker is a process that Serves.
type worker struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	out   io.ReadCloser
	since time.Time // that it is idle
}

// end ends the process and waits for it.
func (w *worker) end() error {
	_ = w.cmd.Process.Kill()
	return w.cmd.Wait()
}

// take is an idle worker, or a fresh one.
func (p *Pool) take() (w *worker, fresh bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, false, ErrClosed
	}
	if n := len(p.idle); n > 0 {
		w = p.idle[n-1]
		p.idle = p.idle[:n-1]
		return w, false, nil
	}
	cmd, err := p.o.Command()
	if err != nil {
		return nil, false, fmt.Errorf("start a worker that reads what strangers wrote: %w", err)
	}
	cmd.Args = append(cmd.Args, strconv.FormatInt(p.o.Memory, 10))
	w = &worker{cmd: cmd}
	if w.in, err = cmd.StdinPipe(); err == nil {
		if w.out, err = cmd.StdoutPipe(); err == nil {
			err = cmd.Start()
		}
	}
	if err != nil {
		return nil, false, fmt.Errorf("start a worker that reads what strangers wrote: %w", err)
	}
	p.live[w] = true
	return w, true, nil
}

// work makes a worker process one input. again is true if the worker may have been gone
// before it had the input.
func (p *Pool) work(ctx context.Context, w *worker, k Kind, input []byte) (out []byte, again bool, err error) {
	limited, cancel := context.WithTimeout(ctx, k.Time+maxStanding)
	defer cancel()
	stop := context.AfterFunc(limited, func() { _ = w.cmd.Process.Kill() })
	wrote := writeRequest(w.in, k.Name, input)
	s, last, out, err := readResponse(w.out, k)
	if stop() && err == nil && wrote == nil {
		p.release(w, !last)
		if s == statusPanicked {
			p.o.Log.Error("a parser panicked", "kind", k.Name, "project", ownerOf(ctx), "error", string(out))
		}
		out, err = k.result(s, out)
		return out, false, err
	}
	died := p.release(w, false)
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return nil, false, ctx.Err()
	case p.ended():
		return nil, false, ErrClosed
	case limited.Err() != nil:
		return nil, false, broke(whyTime)
	case errors.As(died, &exit) && exit.ExitCode() == exitMemory:
		return nil, false, broke(whyMemory)
	case errors.As(died, &exit) && exit.ExitCode() == exitTime:
		return nil, false, broke(whyTime)
	}
	signaled := exit != nil && exit.ExitCode() < 0 // by somebody else, maybe before it had the input
	return nil, wrote != nil || signaled, broke(whyBroke)
}

// release keeps a worker for the next input, or ends it and returns how it ended.
func (p *Pool) release(w *worker, keep bool) error {
	p.mu.Lock()
	if keep && !p.closed {
		w.since = time.Now()
		p.idle = append(p.idle, w)
		if !p.sweeps {
			p.sweeps = true
			time.AfterFunc(p.o.Idle, p.sweep)
		}
		p.mu.Unlock()
		return nil
	}
	delete(p.live, w)
	p.mu.Unlock()
	if keep {
		return w.end()
	}
	_, _ = w.in.Close(), w.out.Close() // it ends by itself, and what it still writes goes nowhere
	return w.cmd.Wait()
}

// sweep ends workers that had nothing to do for long.
func (p *Pool) sweep() {
	p.mu.Lock()
	var gone []*worker
	kept := p.idle[:0]
	for _, w := range p.idle {
		if time.Since(w.since) < p.o.Idle {
			kept = append(kept, w)
			continue
		}
		delete(p.live, w)
		gone = append(gone, w)
	}
	p.idle = kept
	if p.sweeps = len(kept) > 0; p.sweeps {
		time.AfterFunc(p.o.Idle, p.sweep)
	}
	p.mu.Unlock()
	for _, w := range gone {
		_ = w.end()
	}
}

// Close ends all workers. What they work on fails.
func (p *Pool) Close() error {
	p.mu.Lock()
	p.closed = true
	gone := p.idle
	p.idle = nil
	for w := range p.live {
		_ = w.cmd.Process.Kill()
	}
	p.mu.Unlock()
	for _, w := range gone {
		_ = w.cmd.Wait()
	}
	return nil
}

func (p *Pool) ended() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.closed
}
