package article

import (
	"bytes"
	"mime"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html/charset"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/htmlindex"
)

// Decode is a text of the web in UTF-8, whatever it says of its encoding. A byte order mark is believed first. Bytes
// that are UTF-8 and not only ASCII are UTF-8, whatever else is said: other encodings hardly ever look like it. Then
// the header counts, then what the page says of itself, unless its bytes are none of that encoding.
func Decode(content []byte, contentType string) []byte {
	mark, name, certain := charset.DetermineEncoding(content, contentType)
	if certain && (bytes.HasPrefix(content, []byte("\xef\xbb\xbf")) || bytes.HasPrefix(content, []byte("\xfe\xff")) ||
		bytes.HasPrefix(content, []byte("\xff\xfe"))) {
		return decodeWith(mark, content)
	}
	if utf8.Valid(content) && !escapes(content) {
		return content
	}
	for _, said := range []encoding.Encoding{fromHeader(contentType), fromPage(content)} {
		if said == nil {
			continue
		}
		if text := decodeWith(said, content); !bytes.Contains(text, []byte("\uFFFD")) {
			return text
		}
	}
	if name == "utf-8" { // with a broken byte, or none of it is text
		if broken(content) > 0.01 {
			fallback, _ := htmlindex.Get("windows-1252")
			return decodeWith(fallback, content)
		}
		return bytes.ToValidUTF8(content, []byte("\uFFFD"))
	}
	return decodeWith(mark, content)
}

// escapes reports whether a text of nothing but ASCII switches between sets of characters, as ISO-2022-JP does.
func escapes(content []byte) bool {
	return bytes.Contains(content, []byte("\x1b$")) || bytes.Contains(content, []byte("\x1b("))
}

// broken is which part of the characters is not UTF-8.
func broken(content []byte) float64 {
	bad, all := 0, 0
	for len(content) > 0 {
		r, n := utf8.DecodeRune(content)
		if r == utf8.RuneError && n == 1 {
			bad++
		}
		if n > 1 || r == utf8.RuneError {
			all++
		}
		content = content[n:]
	}
	return float64(bad) / float64(max(1, all))
}

func fromHeader(contentType string) encoding.Encoding {
	_, params, err := mime.ParseMediaType(contentType)
	if err != nil || params["charset"] == "" {
		return nil
	}
	e, _ := charset.Lookup(strings.Trim(params["charset"], `'" `))
	return e
}

// fromPage is what the page's own meta element says.
func fromPage(content []byte) encoding.Encoding {
	e, name, _ := charset.DetermineEncoding(content[:min(len(content), 1024)], "text/html")
	if name == "windows-1252" && !bytes.Contains(bytes.ToLower(content[:min(len(content), 1024)]), []byte("charset")) {
		return nil // nobody has said that
	}
	return e
}

func decodeWith(e encoding.Encoding, content []byte) []byte {
	text, err := e.NewDecoder().Bytes(content)
	if err != nil {
		return bytes.ToValidUTF8(content, []byte("\uFFFD"))
	}
	return text
}
