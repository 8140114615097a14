package reqbody

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"unicode/utf8"
)

// maxDepth is how deep arrays and objects of a body may be nested.
const maxDepth = 100

// A value is one JSON value as it stands in a body that was found valid.
type value []byte

// parse checks that raw is one JSON value in UTF-8 that is not nested too deep.
func parse(raw []byte) (value, error) {
	trimmed := bytes.Trim(raw, " \t\r\n")
	if len(trimmed) == 0 {
		return nil, &SyntaxError{"the body is empty: send a JSON object"}
	}
	if !utf8.Valid(raw) {
		return nil, &SyntaxError{"the body is not valid UTF-8"}
	}
	if bytes.HasPrefix(raw, []byte("\ufeff")) {
		return nil, &SyntaxError{"the body begins with a byte order mark: leave it out"}
	}
	if depth(raw) > maxDepth {
		return nil, &SyntaxError{fmt.Sprintf("the body is nested deeper than %d arrays and objects", maxDepth)}
	}
	if !json.Valid(raw) {
		var whole json.RawMessage
		var syntax *json.SyntaxError
		if err := json.Unmarshal(raw, &whole); errors.As(err, &syntax) {
			return nil, &SyntaxError{fmt.Sprintf("the body is not valid JSON: %s at byte %d", syntax.Error(), syntax.Offset)}
		}
		return nil, &SyntaxError{"the body is not valid JSON"}
	}
	return trimmed, nil
}

// depth is how deep arrays and objects are nested. It holds for JSON; for anything else it is some number.
func depth(raw []byte) int {
	deepest, now, inString := 0, 0, false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			now++
			deepest = max(deepest, now)
		case c == '}' || c == ']':
			now--
		}
	}
	return deepest
}

// The types of values.
const (
	none     = byte(0) // there is no value
	braces   = '{'
	brackets = '['
	text     = '"'
	number   = '0'
	boolean  = 't'
	null     = 'n'
)

// is is the type of a value.
func is(v value) byte {
	if len(v) == 0 {
		return none
	}
	switch c := v[0]; c {
	case braces, brackets, text, null:
		return c
	case 't', 'f':
		return boolean
	}
	return number
}

// kind is the type of a value in words, for people.
func kind(v value) string {
	switch is(v) {
	case braces:
		return "an object"
	case brackets:
		return "an array"
	case text:
		return "a string"
	case boolean:
		return "a boolean"
	case null:
		return "null"
	case number:
		return "a number"
	}
	return "nothing"
}

// An object is the members of one, in their order. Like the elements of an array they are windows on the body: what
// reading it takes in memory does not grow with what it holds beside the fields that are read. (encoding/json with
// RawMessage checks and copies each level again: decision 0006.)
type object []member

type member struct {
	name  []byte
	value value
}

// get is the member of that name, the last one if there are several; none if there is no such member.
func (o object) get(name string) value {
	for i := len(o) - 1; i >= 0; i-- {
		if string(o[i].name) == name {
			return o[i].value
		}
	}
	return nil
}

// members are those of an object; none for another value.
func members(v value) (o object) {
	for name, value := range each(v) {
		if o == nil {
			o = make(object, 0, 8)
		}
		o = append(o, member{name, value})
	}
	return o
}

// find is the member of that name; none if there is no such member.
func find(v value, name string) (found value) {
	for n, value := range each(v) {
		if string(n) == name {
			found = value
		}
	}
	return found
}

// each yields the names and values of an object's members.
func each(v value) iter.Seq2[[]byte, value] {
	return func(yield func([]byte, value) bool) {
		if is(v) != braces {
			return
		}
		for i := space(v, 1); i < len(v) && v[i] == '"'; {
			end := skip(v, i)
			name := v[i+1 : end-1]
			if bytes.IndexByte(name, '\\') >= 0 {
				name = []byte(word(v[i:end]))
			}
			i = space(v, space(v, end)+1) // the colon
			end = skip(v, i)
			if !yield(name, v[i:end]) {
				return
			}
			i = space(v, space(v, end)+1) // the comma
		}
	}
}

// elements are those of an array; none for another value.
func elements(v value) (list []value) {
	if is(v) != brackets {
		return nil
	}
	for i := space(v, 1); i < len(v) && v[i] != ']'; {
		end := skip(v, i)
		list = append(list, v[i:end])
		i = space(v, space(v, end)+1) // the comma
	}
	return list
}

// word is the text of a string; empty for another value.
func word(v value) (s string) {
	switch {
	case is(v) != text:
		return ""
	case bytes.IndexByte(v, '\\') < 0:
		return string(v[1 : len(v)-1])
	}
	_ = json.Unmarshal(v, &s) // the body was found valid
	return s
}

func space(v value, i int) int {
	for i < len(v) && (v[i] == ' ' || v[i] == '\n' || v[i] == '\t' || v[i] == '\r') {
		i++
	}
	return i
}

// skip returns the end of the value that begins at i.
func skip(v value, i int) int {
	nested, start := 0, i
	for i < len(v) {
		switch v[i] {
		case '"':
			for i++; i < len(v) && v[i] != '"'; i++ {
				if v[i] == '\\' {
					i++
				}
			}
			i++
		case '{', '[':
			nested++
			i++
			continue
		case '}', ']':
			if nested == 0 {
				return i // the end of a number or word, just before its container's
			}
			nested--
			i++
		case ',', ':', ' ', '\n', '\t', '\r':
			if nested == 0 && i > start {
				return i
			}
			i++
			continue
		default:
			for i < len(v) && strings.IndexByte(",:]} \n\t\r", v[i]) < 0 {
				i++
			}
		}
		if nested == 0 {
			return i
		}
	}
	return min(i, len(v))
}
