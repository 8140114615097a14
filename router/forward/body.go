package forward

import (
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
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
	src   io.ReadCloser
	held  *atomic.Int64 // of all requests
	whole func()        // called when src has come to its end

	mu      sync.Mutex // not held while src is read: a client may never send what it announced
	read    sync.Cond  // somebody has read from src
	reading bool       // somebody reads from src; it may be a reader that was given up
	data    []byte
	base    int // of data, in the body
	last    *keptReader
	err     error // of src, behind data
	over    bool  // too large: nothing more is kept
	done    bool  // the answer has begun: only the last reader reads on
}

// keep keeps the body of a request; nil if there is none.
func keep(w http.ResponseWriter, req *http.Request, held *atomic.Int64) *kept {
	if req.Body == nil || req.Body == http.NoBody {
		return nil
	}
	rc := http.NewResponseController(w)
	k := &kept{src: req.Body, held: held, whole: func() { _ = rc.SetReadDeadline(time.Time{}) }} // if it can
	k.read.L = &k.mu
	return k
}

// reader reads the body from its beginning. The one before reads no more.
func (k *kept) reader() (io.ReadCloser, error) {
	if k == nil {
		return http.NoBody, nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.base > 0 || k.over || k.done {
		return nil, errNotKept
	}
	k.last = &keptReader{k: k}
	return k.last, nil
}

// free ends the keeping: the answer has begun.
func (k *kept) free() {
	if k == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.done = true
	if k.last == nil || k.last.at >= k.base+len(k.data) {
		k.drop()
	}
}

// end is the end of the request: nobody reads on.
func (k *kept) end() {
	if k == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.done, k.last = true, nil
	k.drop()
	k.read.Broadcast()
}

func (k *kept) drop() {
	k.held.Add(-int64(len(k.data)))
	k.base += len(k.data)
	k.data = nil
}

// left reports whether the client has not sent all of the body yet, and cut with what error it broke off.
func (k *kept) left() (left bool, cut error) {
	if k == nil {
		return false, nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.err == io.EOF {
		return false, nil
	}
	return k.err == nil, k.err
}

type keptReader struct {
	k  *kept
	at int
}

func (r *keptReader) Read(b []byte) (int, error) {
	k := r.k
	k.mu.Lock()
	defer k.mu.Unlock()
	for {
		switch {
		case k.last != r:
			return 0, errClosed
		case r.at < k.base:
			return 0, errNotKept
		case r.at < k.base+len(k.data):
			n := copy(b, k.data[r.at-k.base:])
			if r.at += n; k.done && r.at >= k.base+len(k.data) {
				k.drop()
			}
			return n, nil
		case k.err != nil:
			return 0, k.err
		case !k.reading:
			return r.fill(b)
		}
		k.read.Wait()
	}
}

// fill reads from the client, and keeps what it got. The caller holds mu.
func (r *keptReader) fill(b []byte) (int, error) {
	k := r.k
	k.reading = true
	k.mu.Unlock()
	n, err := k.src.Read(b)
	k.mu.Lock()
	if err == io.EOF && k.last != nil { // otherwise the connection may be another request's by now
		k.whole()
	}
	k.reading, k.err = false, err
	k.read.Broadcast()
	stale := k.last != r // another reader may need what was read, or nobody
	switch {
	case n == 0:
	case k.over || k.done && !stale || k.last == nil:
		k.base += n
	case len(k.data)+n > bodyBytes || k.held.Load()+int64(n) > allBytes:
		k.over = true
		k.drop()
		k.base += n
	default:
		k.held.Add(int64(n))
		k.data = append(k.data, b[:n]...)
	}
	if stale {
		return 0, errClosed
	}
	r.at += n
	return n, err
}

// Close leaves the client's body open: it may be read once more, and the server closes it.
func (r *keptReader) Close() error { return nil }
