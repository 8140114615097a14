package console

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"sync"

	"docent/internal/gzipped"
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
// The one secret that pages repeat is the token of their forms, which is masked differently in each answer.
func compress(h http.Header, req *http.Request, body []byte) []byte {
	h.Add("Vary", "Accept-Encoding")
	if len(body) < worthCompressing || !gzipped.Taken(req) {
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
