package reqbody

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"strings"
	"time"
)

// A SyntaxError says that the body cannot be read as JSON.
type SyntaxError struct{ Reason string }

func (e *SyntaxError) Error() string { return e.Reason }

// A SizeError says that the body is larger than allowed.
type SizeError struct{ Limit int64 }

func (e *SizeError) Error() string {
	return fmt.Sprintf("the body is larger than %d bytes, which is the most that is taken", e.Limit)
}

// A MediaError says that the body is of another kind than what the operation takes.
type MediaError struct{ Reason string }

func (e *MediaError) Error() string { return e.Reason }

// A Memory holds bodies while they are read, and refuses what there is no room for.
type Memory interface {
	Hold(n int64) error
	Free(n int64)
}

// JSON reads a body that says it is JSON. See Bytes.
func JSON(w http.ResponseWriter, req *http.Request, limit int64, m Memory) (raw []byte, release func(), err error) {
	if err := wantJSON(req); err != nil {
		return nil, nil, err
	}
	return Bytes(w, req, limit, m)
}

// wantJSON refuses a body that says it is something else.
func wantJSON(req *http.Request) error {
	if enc := req.Header.Get("Content-Encoding"); enc != "" && !strings.EqualFold(enc, "identity") {
		return &MediaError{"the body must not be compressed: leave Content-Encoding out"}
	}
	kind, params, err := mime.ParseMediaType(req.Header.Get("Content-Type"))
	isJSON := kind == "application/json" || strings.HasPrefix(kind, "application/") && strings.HasSuffix(kind, "+json")
	if err != nil || !isJSON {
		return &MediaError{"the body must be JSON: send it with Content-Type: application/json"}
	}
	if charset := params["charset"]; charset != "" && !strings.EqualFold(charset, "utf-8") &&
		!strings.EqualFold(charset, "us-ascii") {
		return &MediaError{"the body must be UTF-8: leave the charset out of Content-Type"}
	}
	return nil
}

// Bytes reads a body of at most limit bytes; they are the caller's until it releases them. Memory is taken as the
// body comes in, not as its sender announces it.
func Bytes(w http.ResponseWriter, req *http.Request, limit int64, m Memory) (raw []byte, release func(), err error) {
	if req.ContentLength > limit {
		return nil, nil, &SizeError{limit}
	}
	held := int64(0)
	free := func() { m.Free(held) }
	defer func() {
		if err != nil {
			free()
		}
	}()
	body := http.MaxBytesReader(w, req.Body, limit)
	size := int64(4096)
	if n := req.ContentLength; n >= 0 && n < size {
		size = n + 1 // one more, so that the end is seen without growing
	}
	for {
		if int64(len(raw)) == held {
			if held > 0 {
				size = min(2*held, limit+1)
			}
			if err := m.Hold(size - held); err != nil {
				return nil, nil, err
			}
			held = size
			raw = append(make([]byte, 0, size), raw...)
		}
		n, err := body.Read(raw[len(raw):held])
		raw = raw[:len(raw)+n]
		if err == io.EOF {
			// What comes now is the end of the connection, or the next request: that may take its time.
			http.NewResponseController(w).SetReadDeadline(time.Time{})
			return raw, free, nil
		}
		if err != nil {
			return nil, nil, failed(w, req, limit, err)
		}
	}
}

// failed says why a body could not be read to its end.
func failed(w http.ResponseWriter, req *http.Request, limit int64, err error) error {
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return &SizeError{limit}
	case errors.Is(err, os.ErrDeadlineExceeded):
		w.Header().Set("Connection", "close")
		return &SyntaxError{"the body did not arrive in time"}
	case !errors.Is(err, io.ErrUnexpectedEOF) && req.Context().Err() != nil:
		return req.Context().Err()
	}
	return &SyntaxError{"the body ends before its announced length"}
}

// SaneID is whether a request may have the id.
func SaneID(id string) bool {
	if len(id) == 0 || len(id) > 128 {
		return false
	}
	for i := range len(id) {
		switch c := id[i]; {
		case c >= '0' && c <= '9', c >= 'A' && c <= 'Z', c >= 'a' && c <= 'z', strings.IndexByte("-_.:+/=@", c) >= 0:
		default:
			return false
		}
	}
	return true
}
