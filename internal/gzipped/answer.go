package gzipped

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"strings"
	"sync"
)

// worthIt is the size from which on an answer is sent compressed: less fits a packet anyway.
const worthIt = 1 << 10

var writers = sync.Pool{New: func() any {
	w, err := gzip.NewWriterLevel(nil, gzip.BestSpeed)
	if err != nil {
		panic(err) // of a level that there is
	}
	return w
}}

// Answer makes an answer smaller for a client that takes gzip, and says so in its header.
//
// How long a compressed answer is tells who sees it something of what is in it, if they choose a part of it (BREACH).
// The one secret that answers to browsers repeat is the token of a page's forms, which is masked differently each time.
func Answer(h http.Header, taken bool, body []byte) []byte {
	if len(body) < worthIt {
		return body
	}
	h.Add("Vary", "Accept-Encoding")
	if !taken {
		return body
	}
	var b bytes.Buffer
	To(&b, func(w io.Writer) error {
		_, err := w.Write(body)
		return err
	}) // into memory: cannot fail
	Mark(h)
	return b.Bytes()
}

// To compresses what write writes. If that fails before it has written anything, nothing is written.
func To(dst io.Writer, write func(io.Writer) error) error {
	w := writers.Get().(*gzip.Writer)
	defer writers.Put(w)
	w.Reset(dst)
	if err := write(w); err != nil {
		return err
	}
	return w.Close()
}

// Mark says in the header of an answer that it is compressed. Its tag is a weak one then: the bytes are others than
// those of the answer that is not (RFC 9110, section 8.8.3.3).
func Mark(h http.Header) {
	h.Set("Content-Encoding", "gzip")
	if tag := h.Get("ETag"); tag != "" && !strings.HasPrefix(tag, "W/") {
		h.Set("ETag", "W/"+tag)
	}
}
