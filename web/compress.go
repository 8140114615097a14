package web

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"strconv"
	"strings"
	"sync"
)

// worthCompressing is the size from which on a page is sent compressed: less fits a packet anyway.
const worthCompressing = 1 << 10

var compressors = sync.Pool{New: func() any {
	w, err := gzip.NewWriterLevel(nil, gzip.BestSpeed)
	if err != nil {
		panic(err) // of a level that there is
	}
	return w
}}

// compress makes a page smaller for a browser that reads gzip, and says so in its header.
//
// How long a compressed answer is tells who sees it something of what is in it, if they choose a part of it (BREACH).
// The one secret that pages repeat is the token of their forms, which is masked anew in each answer.
func compress(h http.Header, req *http.Request, body []byte) []byte {
	h.Add("Vary", "Accept-Encoding")
	if len(body) < worthCompressing || !takesGzip(req) {
		return body
	}
	var b bytes.Buffer
	w := compressors.Get().(*gzip.Writer)
	defer compressors.Put(w)
	w.Reset(&b)
	w.Write(body) // into memory
	w.Close()
	h.Set("Content-Encoding", "gzip")
	return b.Bytes()
}

// takesGzip reports whether a browser reads gzip (RFC 9110, section 12.5.3).
func takesGzip(req *http.Request) bool {
	for _, accepted := range req.Header.Values("Accept-Encoding") {
		for part := range strings.SplitSeq(accepted, ",") {
			coding, weight, weighted := strings.Cut(part, ";")
			if !strings.EqualFold(strings.TrimSpace(coding), "gzip") {
				continue
			}
			_, weight, _ = strings.Cut(weight, "=")
			q, err := strconv.ParseFloat(strings.TrimSpace(weight), 64)
			return !weighted || err == nil && q > 0
		}
	}
	return false
}
