package forward

import (
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
)

const (
	// bodyBytes is how much of one request's body is kept until its answer begins. Requests to actors are smaller: the
	// edge refuses larger ones, uploads apart, which go to no actor.
	bodyBytes = 4 << 20
	// allBytes is how much is kept of all of them.
	allBytes = 128 << 20
)

var (
	errNotKept = errors.New("the body of the request is too large to be sent to another node")
	errClosed  = errors.New("the body of the request is closed")
)

// A kept body can be read again from its beginning until its request is answered.
type kept struct {
	src  io.ReadCloser
	held *atomic.Int64 // of all requests

	mu   sync.Mutex // a reader that was given up may still be in a read
	data []byte
	last *keptReader
	err  error // of src, behind data
	over bool  // too large: data is gone
	done bool  // nothing more is kept
}

// keep keeps the body of a request; nil where there is none.
func keep(req *http.Request, held *atomic.Int64) *kept {
	if req.Body == nil || req.Body == http.NoBody {
		return nil
	}
	return &kept{src: req.Body, held: held}
}

// reader reads the body from its beginning. The one before reads no more.
func (k *kept) reader() (io.ReadCloser, error) {
	if k == nil {
		return http.NoBody, nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.over || k.done {
		return nil, errNotKept
	}
	k.last = &keptReader{k: k}
	return k.last, nil
}

// free ends the keeping: the answer has begun, or there is none.
func (k *kept) free() {
	if k == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.done = true
	if k.last == nil || k.last.at >= len(k.data) {
		k.drop()
	}
}

func (k *kept) drop() {
	k.held.Add(-int64(len(k.data)))
	k.data = nil
}

// fill reads from the client, and keeps what it got.
func (k *kept) fill(b []byte) (int, error) {
	if k.err != nil {
		return 0, k.err
	}
	n, err := k.src.Read(b)
	k.err = err
	if k.done || k.over || n == 0 {
		return n, err
	}
	if len(k.data)+n > bodyBytes || k.held.Load()+int64(n) > allBytes {
		k.over = true
		k.drop()
		return n, err
	}
	k.held.Add(int64(n))
	k.data = append(k.data, b[:n]...)
	return n, err
}

type keptReader struct {
	k  *kept
	at int
}

func (r *keptReader) Read(b []byte) (int, error) {
	k := r.k
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.last != r {
		return 0, errClosed
	}
	if r.at < len(k.data) {
		n := copy(b, k.data[r.at:])
		if r.at += n; k.done && r.at >= len(k.data) {
			k.drop()
		}
		return n, nil
	}
	n, err := k.fill(b)
	r.at += n
	return n, err
}

// Close leaves the client's body open: it may be read once more, and the server closes it.
func (r *keptReader) Close() error { return nil }
