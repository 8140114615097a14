package crawl

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"docent/internal/outbound"
)

const (
	requestTime = time.Minute
	attempts    = 3                // of a request that a server could not answer
	maxPause    = 2 * time.Minute  // that a server may ask for within a crawl
	maxDelay    = 30 * time.Second // of Crawl-delay
	pdfBytes    = 16 << 20
	fullBytes   = 100 << 20 // of an llms-full.txt
)

// agent is how we call ourselves.
const agent = "Docent (reads documentation for its readers' questions; in robots.txt: " + Robot + ")"

// A host is asked at one pace.
type host struct {
	mu   sync.Mutex
	next time.Time
	open chan struct{}
}

func (c *Crawler) host(name string) *host {
	c.mu.Lock()
	defer c.mu.Unlock()
	h := c.hosts[name]
	if h == nil {
		h = &host{open: make(chan struct{}, c.o.AtOnce)}
		c.hosts[name] = h
	}
	return h
}

// turn waits until the host may be asked; done gives its place back.
func (h *host) turn(ctx context.Context, pause time.Duration) (done func(), err error) {
	select {
	case h.open <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	done = func() { <-h.open }
	for {
		h.mu.Lock()
		now := time.Now()
		wait := h.next.Sub(now)
		if wait <= 0 {
			h.next = now.Add(pause)
			h.mu.Unlock()
			return done, nil
		}
		h.mu.Unlock()
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			done()
			return nil, ctx.Err()
		}
	}
}

// leave leaves the host alone for that long.
func (h *host) leave(pause time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if until := time.Now().Add(pause); until.After(h.next) {
		h.next = until
	}
}

// A response is what a server said.
type response struct {
	code     int
	header   http.Header
	body     []byte
	kind     string // the media type
	location string
	over     bool // the body is longer than what is read of it
	read     int64
}

// errSlow is of a server that wants to be left alone for longer than a crawl waits.
var errSlow = errors.New("the server wants to be asked later")

// get asks for an address, again if the server was not able to answer.
func (r *run) get(ctx context.Context, u *url.URL, conditions http.Header, limit int64) (response, error) {
	h := r.crawler.host(u.Host)
	var last error
	for n := range attempts {
		if n > 0 {
			h.leave(min(max(r.pause, 50*time.Millisecond)<<(2*n), maxPause))
		}
		done, err := h.turn(ctx, r.pause)
		if err != nil {
			return response{}, err
		}
		resp, err := r.once(ctx, u, conditions, limit)
		done()
		r.count(resp)
		switch {
		case ctx.Err() != nil:
			return resp, ctx.Err()
		case errors.Is(err, outbound.ErrTarget):
			return resp, errTarget
		case err != nil:
			last = err
			continue
		case resp.code == http.StatusTooManyRequests || resp.code >= 500:
			last = fmt.Errorf("the server answers %d %s", resp.code, http.StatusText(resp.code))
			if pause := pauseOf(resp.header.Get("Retry-After"), r.crawler.o.Now()); pause > maxPause {
				return resp, errSlow
			} else if pause > 0 {
				h.leave(pause)
			}
			continue
		}
		return resp, nil
	}
	return response{}, last
}

// errTarget is told without the address that a name leads to, which says something of the server's network.
var errTarget = errors.New(
	"the address is on a private network or on this machine; the operator can allow that with --allow-private")

// pauseOf reads the header Retry-After: seconds, or a time.
func pauseOf(header string, now time.Time) time.Duration {
	if n, err := strconv.Atoi(strings.TrimSpace(header)); err == nil {
		return time.Duration(max(0, min(n, 1<<20))) * time.Second
	}
	if at, err := http.ParseTime(header); err == nil {
		return max(0, at.Sub(now))
	}
	return 0
}

func (r *run) once(ctx context.Context, u *url.URL, conditions http.Header, limit int64) (response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return response{}, errors.New("it is no address of the web")
	}
	req.Header.Set("User-Agent", agent)
	req.Header.Set("Accept", "text/html,application/xhtml+xml;q=0.9,text/markdown;q=0.8,text/plain;q=0.7,*/*;q=0.1")
	maps.Copy(req.Header, conditions)
	client := r.crawler.public
	if r.settings.AllowPrivate {
		client = r.crawler.private
	}
	res, err := client.Do(req)
	if err != nil {
		return response{}, reason(err)
	}
	defer res.Body.Close()
	out := response{code: res.StatusCode, header: res.Header, location: res.Header.Get("Location")}
	out.kind, _, _ = mime.ParseMediaType(res.Header.Get("Content-Type"))
	if res.StatusCode != http.StatusOK {
		return out, nil
	}
	if out.kind == "application/pdf" {
		limit = max(limit, pdfBytes)
	}
	if res.ContentLength > limit || !mayRead(out.kind) {
		out.over = res.ContentLength > limit
		return out, nil
	}
	var b bytes.Buffer
	n, err := io.Copy(&b, io.LimitReader(res.Body, limit+1))
	out.body, out.read, out.over = b.Bytes(), n, n > limit
	if err != nil && !out.over {
		return out, reason(err)
	}
	return out, nil
}

// mayRead reports whether there can be anything to read in a body of a media type.
func mayRead(kind string) bool {
	switch kind {
	case "", "application/xhtml+xml", "application/xml", "application/pdf", "application/rss+xml", "application/gzip",
		"application/x-gzip", "application/octet-stream":
		return true
	}
	return strings.HasPrefix(kind, "text/")
}

// reason is why a request failed, in words that say nothing of the server's network.
func reason(err error) error {
	var dns *net.DNSError
	var late interface{ Timeout() bool }
	var op *net.OpError
	var u *url.Error
	switch {
	case errors.Is(err, outbound.ErrTarget), errors.Is(err, context.Canceled):
		return err
	case errors.As(err, &dns):
		return errors.New("there is no host of that name")
	case errors.As(err, &late) && late.Timeout():
		return errors.New("the server does not answer in time")
	case errors.As(err, &op):
		return errors.New("the server cannot be reached")
	case errors.As(err, &u):
		return u.Err
	}
	return err
}
