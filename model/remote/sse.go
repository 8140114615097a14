package remote

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
)

// An eventReader reads a stream of server-sent events: with lines that end in LF, CRLF or CR, comments of any number,
// and data of several lines. What servers do beyond that is read too: events without an empty line between them, and a
// last one that nothing closes.
type eventReader struct {
	in      *bufio.Reader
	line    []byte
	data    []byte
	kept    []byte // a line of data that begins the next event
	stray   []byte // what is no event: some servers write an error as it is
	afterCR bool
}

func newEvents(in io.Reader) *eventReader { return &eventReader{in: bufio.NewReader(in)} }

// next returns the data of the next event. It is good until the next call.
func (e *eventReader) next() ([]byte, error) {
	e.data = append(e.data[:0], e.kept...)
	has := e.kept != nil
	e.kept = nil
	for {
		err := e.readLine()
		if err != nil {
			if err == io.EOF && has {
				return e.data, nil
			}
			return nil, err
		}
		data, isData := bytes.CutPrefix(e.line, []byte("data:"))
		data = bytes.TrimPrefix(data, []byte(" "))
		switch {
		case len(e.line) == 0 && has:
			return e.data, nil
		case len(e.line) == 0 || e.line[0] == ':':
		case isData && has && json.Valid(e.data): // a server that leaves out the empty line
			e.kept = append([]byte{}, data...)
			return e.data, nil
		case isData:
			if has {
				e.data = append(e.data, '\n')
			}
			e.data, has = append(e.data, data...), true
			if len(e.data) > longestLine {
				return nil, errSize
			}
		case bytes.HasPrefix(e.line, []byte("event")) || bytes.HasPrefix(e.line, []byte("id")) ||
			bytes.HasPrefix(e.line, []byte("retry")): // the event's name comes again in its data
		case len(e.stray) < longestError:
			e.stray = append(append(e.stray, e.line...), '\n')
		}
	}
}

// readLine reads a line without its end. The last one needs none.
func (e *eventReader) readLine() error {
	e.line = e.line[:0]
	for {
		b, err := e.in.ReadByte()
		if err != nil {
			if err == io.EOF && len(e.line) > 0 {
				return nil
			}
			return err
		}
		after := e.afterCR
		e.afterCR = b == '\r'
		switch {
		case b == '\n' && after && len(e.line) == 0: // the other half of CRLF
		case b == '\n' || b == '\r':
			return nil
		default:
			e.line = append(e.line, b)
		}
	}
}

// end is how a stream ended that had not come to its end: with what the server wrote in place of an event, if it did.
func (e *eventReader) end(err error) error {
	if report := readProblem(0, e.stray); report != nil && report.given {
		return report
	}
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
