package remote

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func TestEventsAreReadInEveryForm(t *testing.T) {
	want := []string{`{"a":1}`, "two\nlines", `{"b":2}`, "[DONE]"}
	forms := map[string]string{
		"plain": "data: {\"a\":1}\n\ndata: two\ndata: lines\n\ndata: {\"b\":2}\n\ndata: [DONE]\n\n",
		"CRLF":  "data: {\"a\":1}\r\n\r\ndata: two\r\ndata: lines\r\n\r\ndata: {\"b\":2}\r\n\r\ndata: [DONE]\r\n\r\n",
		"CR":    "data: {\"a\":1}\r\rdata: two\rdata: lines\r\rdata: {\"b\":2}\r\rdata: [DONE]\r\r",
		"names and comments": strings.Repeat(": PROCESSING\n\n", 5000) +
			"event: x\nid: 1\nretry: 5\ndata:{\"a\":1}\n\n:\ndata: two\n: between\ndata: lines\n\n\n\ndata: {\"b\":2}\n\ndata: [DONE]\n\n",
		"no empty lines": "data: {\"a\":1}\ndata: two\ndata: lines\n\ndata: {\"b\":2}\ndata: [DONE]",
	}
	for name, text := range forms {
		for split, in := range map[string]io.Reader{"whole": strings.NewReader(text), "one byte at a time": iotest.OneByteReader(strings.NewReader(text))} {
			events := newEvents(in)
			var got []string
			var err error
			for err == nil {
				var data []byte
				if data, err = events.next(); err == nil {
					got = append(got, string(data))
				}
			}
			if err != io.EOF || strings.Join(got, "|") != strings.Join(want, "|") {
				t.Errorf("%s, %s: %q, %v", name, split, got, err)
			}
		}
	}
	if _, err := newEvents(strings.NewReader(strings.Repeat("data: xxxxxxxxx\n", longestLine/8))).next(); err != errSize {
		t.Errorf("an event without an end: %v", err)
	}
	events := newEvents(strings.NewReader("{\"error\":{\"message\":\"no more\",\n\"type\":\"server_error\"}}\n"))
	_, err := events.next()
	var report *reported
	if err = events.end(err); !errors.As(err, &report) || report.text != "no more" || !report.temporary {
		t.Errorf("an error as it is: %v", err)
	}
}
